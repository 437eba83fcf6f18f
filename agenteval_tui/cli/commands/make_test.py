"""`agenteval make-test`: runs that went well become a test."""

from __future__ import annotations

from pathlib import Path

import click

from agenteval_tui.analysis.drafted_test import make_test, stored_runs
from agenteval_tui.cli import shell_completion
from agenteval_tui.cli.invocation import Invocation, all_projects, common_options, pass_invocation
from agenteval_tui.core import directories
from agenteval_tui.formats.documents.drafted_test import drafted_test_document
from agenteval_tui.suites.agents_file import load_agents
from agenteval_tui.views.drafted_test import drafted_test_view


@click.command("make-test", short_help="Make a test from a run or a trace, with suggested criteria.")
@click.argument("references", metavar="RUN...", nargs=-1, required=True, shell_complete=shell_completion.runs)
@click.option(
    "--suite",
    "path",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="The suite to add it to, created if needed (default: the runs' own, else recorded.suite.yaml).",
)
@click.option("--id", "test_id", default="", metavar="ID", help="The test's id (default: made from the question).")
@click.option("--name", default="", help="The test's name (default: the question).")
@click.option(
    "--agent",
    default="",
    metavar="A",
    help="The agent to ask (default: the runs' agent, if known).",
    shell_complete=shell_completion.agents,
)
@click.option("--dry-run", is_flag=True, help="Print the test, and write nothing.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document: the test, and where it is.")
@all_projects("--all")
@common_options
@pass_invocation
def command(
    invocation: Invocation,
    references: tuple[str, ...],
    path: Path | None,
    test_id: str,
    name: str,
    agent: str,
    dry_run: bool,
    as_json: bool,
) -> int:
    """Make a test from RUN: it asks what the run was asked, and expects what the run did. Several runs of the same
    question make one test, from what they all share.

    RUN is the id of a run or a part of it, or a test's id (its newest run): a run that agenteval made, recorded,
    imported or received. The criteria are those that `agenteval suggest` finds for good runs: tool calls with their
    arguments, what the answer says, and its form. They are a first draft to refine. No model is asked.
    """
    with invocation.store(to_look=True) as store:
        find = invocation.references(store)
        runs = stored_runs(store, [find.run(reference) for reference in references])
    user_agents = load_agents(directories.config_dir())
    drafted_test = make_test(runs, path, test_id=test_id, name=name, agent=agent, agents=user_agents, write=not dry_run)
    if as_json:
        invocation.out.json(drafted_test_document(drafted_test, runs))
    else:
        invocation.out.view(drafted_test_view(drafted_test, runs))
    return 0
