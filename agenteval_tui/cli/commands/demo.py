"""`agenteval demo`: the sample suites, in the app or without a terminal."""

from __future__ import annotations

import click

from agenteval_tui.cli.app_start import AppStart
from agenteval_tui.cli.invocation import Invocation, common_options, on_a_terminal, pass_invocation
from agenteval_tui.core import directories
from agenteval_tui.suites.samples import copied_samples


@click.command("demo")
@click.option("--headless", is_flag=True, help="Run the samples here, even on a terminal.")
@common_options
@pass_invocation
def command(invocation: Invocation, headless: bool) -> int:
    """Open the app on the sample suites. Their agent is a small rule-based program: no key, no network, no AI model.

    The demo works on copies of the sample suites and has its own history, in the data folder. Your history does not
    change. If git is installed, the copies are a repository: `git diff` in their folder shows your changes. The demo's
    history starts with eight runs of `return-window`, three of which are labelled, for `agenteval suggest`.

    Without a terminal, the samples run and the results are printed. Some fail on purpose; the exit code is 0 unless
    something is broken.
    """
    samples = copied_samples()
    if invocation.db is None:
        invocation.db = directories.demo_history()
    if not invocation.db.exists():
        # Only the first time; later the app's first frame does not wait for it.
        from agenteval_tui.cli.labelled_samples import label_samples

        label_samples(invocation.db, samples)
    invocation.out.line((f"The demo has its own suites ({samples}) and its own history ({invocation.db}).", "dim"))
    if on_a_terminal() and not headless:
        return invocation.launch_app(AppStart(paths=(samples,), db=invocation.db))

    # The app needs nothing of what runs suites: its first frame came 150 ms later with it.
    from agenteval_tui.cli.demo_run import run_samples

    return run_samples(invocation, samples)
