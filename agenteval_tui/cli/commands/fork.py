"""`agenteval fork`: continue a stored run from one of its steps, with something changed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from agenteval_tui.cli import completed_values
from agenteval_tui.cli.continuation_options import continuation_options
from agenteval_tui.cli.declared_options import declared
from agenteval_tui.cli.invocation import Invocation, all_projects, common_options, pass_invocation
from agenteval_tui.runs.fork.options import ForkRequest

_ROLES = ("user", "assistant", "system")


@click.command("fork", short_help="Continue a run from one of its steps, with something changed.")
@click.argument("reference", metavar="RUN", shell_complete=completed_values.runs)
@declared(ForkRequest, "at")
@click.option(
    "--set",
    "sets",
    multiple=True,
    metavar="NAME=VALUE",
    help="Change the step's tool_result, tool_error, arguments (JSON) or text; @FILE takes it from a file.",
)
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
    "--sweep",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Try several changes: a YAML or JSON list, a branch for each entry (see the page `fork`).",
)
@declared(ForkRequest, "n", "-n")
@declared(ForkRequest, "agent", shell_complete=completed_values.agents)
@click.option(
    "--save-test",
    metavar="ID",
    help="Afterwards, add the continued conversation to the run's suite, as a test with this id.",
)
@click.option(
    "--save-system", is_flag=True, help="Afterwards, save the changed system prompt in the agent's configuration."
)
@continuation_options(ForkRequest, document="the branches and their continuations")
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
    if given["insert"] is not None:
        role, equals, text = given["insert"].partition("=")
        if role not in _ROLES or not equals:
            raise click.BadParameter("write ROLE=TEXT; ROLE is user, assistant or system", param_hint="--insert")
        given["insert"] = {"role": role, "text": text}

    # The options are read without what executes, as in `run`.
    from agenteval_tui.cli.fork_run import fork_run

    return fork_run(invocation, reference, given)
