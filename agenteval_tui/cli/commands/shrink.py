"""`agenteval shrink`: the smallest input that still fails for the same cause."""

from __future__ import annotations

from typing import Any

import click

from agenteval_tui.cli.continuation_options import continuation_options
from agenteval_tui.cli.invocation import Invocation, all_projects, common_options, pass_invocation


@click.command("shrink", short_help="Find the smallest input that still fails for the same cause.")
@click.argument("reference", metavar="RUN")
@click.option(
    "--at", type=click.IntRange(1), metavar="STEP",
    help="The last message that the agent is told, a number in `agenteval show RUN` (default: the one before the step "
    "that is to blame).",
)  # fmt: skip
@click.option(
    "--criterion", default="", metavar="NAME", help="Whose failure is meant (default: the first that failed)."
)
@click.option(
    "--rate", type=click.FloatRange(0.3, 1), default=0.8, show_default=True,
    help="How often it must fail for the cause to count as the same failure.",
)  # fmt: skip
@click.option(
    "--keep-calls", is_flag=True,
    help="Take no call out, only parts of what calls and results say: a call that is gone may be made again.",
)  # fmt: skip
@click.option("--keep-tools", is_flag=True, help="Keep the list of tools.")
@click.option("--save-test", metavar="ID", help="Then add the small case to the run's suite, as a test with this id.")
@click.option(
    "--export",
    type=click.Choice(["python", "curl"]),
    help="Then print a program that asks the same question without agenteval.",
)
@continuation_options(document="the small case, and how it was found")
@all_projects("--all")
@common_options
@pass_invocation
def command(invocation: Invocation, /, reference: str, **given: Any) -> int:
    """Take parts out of what RUN's agent was told while it still fails for the same cause.

    RUN is the id of a run or a part of it, or a test's id (its newest run). Messages, calls, sentences, members of JSON
    and words are taken out; a call goes with its result. At the end each part that is left was tried by itself: without
    it, the failure is gone. Every continuation is stored and counts in no rate, trend, baseline or gate; what was asked
    before is not asked again, so the same command continues after a crash, Ctrl-C or --max-cost.

    The exit code is 0 if a small case was found (or nothing can go), 1 if the failure did not come back or it was
    stopped.
    """
    # The options are read without what executes, as in `run`.
    from agenteval_tui.cli.shrink_run import ShrinkOptions, shrink_run

    if given["export"] and given["as_json"]:
        raise click.UsageError("--export prints a program, and --json a document: give one of them")
    return shrink_run(invocation, reference, ShrinkOptions(**given))
