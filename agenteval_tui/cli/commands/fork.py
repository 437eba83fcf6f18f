"""`agenteval fork`: continue a stored run from one of its steps, with something changed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from agenteval_tui.cli.continuation_options import continuation_options
from agenteval_tui.cli.invocation import Invocation, all_projects, common_options, pass_invocation

_ROLES = ("user", "assistant", "system")


@click.command("fork", short_help="Continue a run from one of its steps, with something changed.")
@click.argument("reference", metavar="RUN")
@click.option(
    "--at", type=click.IntRange(1), metavar="STEP", help="The step: a message's number in `agenteval show RUN`."
)
@click.option(
    "--set", "sets", multiple=True, metavar="NAME=VALUE",
    help="Change the step's tool_result, tool_error, arguments (JSON) or text; @FILE takes it from a file.",
)  # fmt: skip
@click.option("--drop", is_flag=True, help="Leave the step out, with the calls and results that belong to it.")
@click.option("--insert", metavar="ROLE=TEXT", help="Add a message after the step; ROLE is user, assistant or system.")
@click.option("--system", metavar="TEXT", help="Use another system prompt; @FILE takes it from a file.")
@click.option(
    "--without-tool",
    "without_tools",
    multiple=True,
    metavar="NAME",
    help="Withhold one of the agent's tools; may be repeated.",
)
@click.option(
    "--sweep", type=click.Path(exists=True, dir_okay=False, path_type=Path), metavar="FILE",
    help="Try several changes: a YAML or JSON list, a branch for each entry (see the page `fork`).",
)  # fmt: skip
@click.option(
    "-n",
    "count",
    type=click.IntRange(1, 1000),
    metavar="N",
    default=5,
    show_default=True,
    help="Continuations per branch.",
)
@click.option(
    "--agent", default="", metavar="A", help="Let this agent of the run's suite continue, instead of the run's own."
)
@click.option(
    "--save-test",
    metavar="ID",
    help="Afterwards, add the continued conversation to the run's suite, as a test with this id.",
)
@click.option(
    "--save-system", is_flag=True, help="Afterwards, save the changed system prompt in the agent's configuration."
)
@continuation_options(document="the branches and their continuations")
@all_projects("--all")
@common_options
@pass_invocation
def command(invocation: Invocation, /, reference: str, **given: Any) -> int:
    """Continue RUN from a step, with something changed, and see what happens.

    RUN is the id of a run or a part of it, or a test's id (its newest run). The agent gets the conversation up to the
    step again: no tool is called twice, and recorded results are reused. Each continuation is graded by the
    run's criteria and stored as a run; forks do not count in rates, trends, baselines or gates. Stored answers are not
    asked for again, so you can run the same command again after a crash or Ctrl-C. Without a change and without --at,
    the run's stored forks are shown.

    The exit code is 0 if the agent was asked, whatever the results are.
    """
    # The options are read without what executes, as in `run`.
    from agenteval_tui.cli.fork_run import ForkOptions, fork_run

    if given["insert"] is not None:
        role, equals, text = given["insert"].partition("=")
        if role not in _ROLES or not equals:
            raise click.BadParameter("write ROLE=TEXT; ROLE is user, assistant or system", param_hint="--insert")
        given["insert"] = {"role": role, "text": text}
    return fork_run(invocation, reference, ForkOptions(**given))
