"""`agenteval shrink`: the smallest input that still fails for the same cause."""

from __future__ import annotations

from typing import Any

import click

from agenteval_tui.analysis.shrink.options import ShrinkOptions
from agenteval_tui.cli import completed_values
from agenteval_tui.cli.continuation_options import Asking, continuation_options
from agenteval_tui.cli.declared_options import declared
from agenteval_tui.cli.invocation import Invocation, all_projects, common_options, pass_invocation


@click.command("shrink", short_help="Find the smallest input that still fails for the same cause.")
@click.argument("reference", metavar="RUN", shell_complete=completed_values.references)
@declared(ShrinkOptions, "at")
@declared(ShrinkOptions, "criterion")
@declared(ShrinkOptions, "rate")
@declared(ShrinkOptions, "keep_calls")
@declared(ShrinkOptions, "keep_tools")
@click.option(
    "--save-test", metavar="ID", help="Afterwards, add the small case to the run's suite, as a test with this id."
)
@click.option(
    "--export",
    type=click.Choice(["python", "curl"]),
    help="Afterwards, print a program that asks the same question without agenteval.",
)
@continuation_options(ShrinkOptions, document="the small case, and how it was found")
@all_projects("--all")
@common_options
@pass_invocation
def command(invocation: Invocation, /, reference: str, **given: Any) -> int:
    """Remove parts of the input of RUN's agent, as long as it still fails for the same cause.

    RUN is the id of a run or a part of it, or a test's id (its newest run that failed). shrink removes messages, calls,
    tools, sentences, JSON values and words. A call and its result are removed together, and a tool that is still called
    stays. At the end, each remaining part has been tried by itself: without it, the failure is gone. Every continuation
    is stored, but does not count in rates, trends, baselines or gates. Stored answers are not asked for again, so the
    same command continues after a crash, Ctrl-C or --max-cost.

    The exit code is 0 if a small case was found (or nothing can be removed), and 1 if the failure did not come back or
    the command was stopped.
    """
    asking, save_test, export = Asking.taken(given), given.pop("save_test"), given.pop("export")
    if export and asking.as_json:
        raise click.UsageError("--export prints a program, and --json a document: give only one")

    # The options are read without what executes, as in `run`.
    from agenteval_tui.cli.shrink_run import shrink_run

    options = ShrinkOptions(**given)
    return shrink_run(invocation, reference, options, asking, save_test=save_test, export=export)
