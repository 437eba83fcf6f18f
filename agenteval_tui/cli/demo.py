"""`agenteval demo`: the sample suites, in the app or without a terminal."""

from __future__ import annotations

import click

from agenteval_tui import places
from agenteval_tui.cli.invocation import Invocation, common_options, on_a_terminal, pass_invocation
from agenteval_tui.cli.start import AppStart
from agenteval_tui.text.problems import INFRASTRUCTURE, InfrastructureError


@click.command("demo")
@click.option("--headless", is_flag=True, help="Run the samples here, even on a terminal.")
@common_options
@pass_invocation
def command(invocation: Invocation, headless: bool) -> int:
    """Open the app on the sample suites. Their agent is a small program of rules: no key, no network, no AI model.

    Without a terminal the samples are run and the results printed. Some of them fail on purpose, which is no error
    here; the exit code is 0 unless something is broken.
    """
    samples = places.bundled("sample_suites")
    if not samples.is_dir():
        raise InfrastructureError("the sample suites are not there", where=str(samples), mend="install agenteval again")
    if on_a_terminal() and not headless:
        return invocation.launch_app(AppStart(paths=(samples,), db=invocation.db))
    from agenteval_tui.cli.exits import INTERRUPTED
    from agenteval_tui.cli.run import load_for_run
    from agenteval_tui.cli.run_here import execute
    from agenteval_tui.runs.plan import PlanOptions

    with invocation.store() as store:
        done = execute(invocation, store, load_for_run(invocation, (samples,), ()), PlanOptions(), quiet=False)
    if done.interrupted:
        return INTERRUPTED
    if done.execution.status != "finished":
        raise InfrastructureError(f"the samples could not be run to their end: {done.execution.message}")
    if done.counts["error"]:
        raise InfrastructureError("a sample ended in an error, which none of them should", mend="agenteval doctor")
    invocation.out.line(
        (
            "Some samples fail on purpose: find out why with `agenteval demo` on a terminal, or `agenteval why RUN`.",
            "dim",
        )
    )
    return 0 if done.counts["passed"] else INFRASTRUCTURE
