"""`agenteval shrink`: the smallest input that still fails for the same cause."""

from __future__ import annotations

from typing import Any

import click

from agenteval_tui.cli.continuation_options import continuation_options
from agenteval_tui.cli.finite_number import FiniteNumber
from agenteval_tui.cli.invocation import Invocation, all_projects, common_options, pass_invocation


@click.command("shrink", short_help="Find the smallest input that still fails for the same cause.")
@click.argument("reference", metavar="RUN")
@click.option(
    "--at", type=click.IntRange(1), metavar="STEP",
    help="The last message the agent gets, a number in `agenteval show RUN` (default: the one before the step to "
    "blame).",
)  # fmt: skip
@click.option(
    "--criterion", default="", metavar="NAME", help="The criterion that must fail (default: the first that failed)."
)
@click.option(
    "--rate", type=FiniteNumber(0.3, 1), metavar="RATE", default=0.8, show_default=True,
    help="How often it must fail for the cause to count as the same failure.",
)  # fmt: skip
@click.option(
    "--keep-calls", is_flag=True,
    help="Keep all calls, and shorten only the text in them and in their results: the agent may repeat a removed call.",
)  # fmt: skip
@click.option("--keep-tools", is_flag=True, help="Keep the list of tools.")
@click.option(
    "--save-test", metavar="ID", help="Afterwards, add the small case to the run's suite, as a test with this id."
)
@click.option(
    "--export",
    type=click.Choice(["python", "curl"]),
    help="Afterwards, print a program that asks the same question without agenteval.",
)
@continuation_options(document="the small case, and how it was found")
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
    # The options are read without what executes, as in `run`.
    from agenteval_tui.cli.shrink_run import ShrinkOptions, shrink_run

    if given["export"] and given["as_json"]:
        raise click.UsageError("--export prints a program, and --json a document: give only one")
    return shrink_run(invocation, reference, ShrinkOptions(**given))
