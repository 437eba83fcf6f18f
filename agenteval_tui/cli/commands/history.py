"""`agenteval history`: executions and runs, newest first."""

from __future__ import annotations

import click
from msgspec.structs import replace

from agenteval_tui.cli import shell_completion
from agenteval_tui.cli.invocation import Invocation, all_projects, common_options, pass_invocation
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.ids import now_ms
from agenteval_tui.core.numbers import count
from agenteval_tui.core.outcomes import ENDED
from agenteval_tui.formats.documents.listings import listed_execution, listed_run
from agenteval_tui.history.search import HistoryQuery
from agenteval_tui.views.execution import execution_line, run_lines
from agenteval_tui.views.model import paragraphs


@click.command("history")
@click.argument("searches", metavar="[SEARCH]...", nargs=-1)
@click.option("--runs", is_flag=True, help="List runs, not executions.")
@click.option("--outcome", "outcomes", multiple=True, type=click.Choice(ENDED), help="Only runs with this outcome.")
@click.option(
    "--test", "test_id", default="", metavar="ID", help="Only runs of this test.", shell_complete=shell_completion.tests
)
@click.option(
    "--agent", default="", metavar="A", help="Only runs of this agent.", shell_complete=shell_completion.agents
)
@click.option(
    "--kind",
    type=click.Choice(("run", "import", "fork")),
    default=None,
    help="Only executions that were run, imported or forked.",
)
@click.option("--limit", type=click.IntRange(1), default=20, metavar="N", help="At most N lines (default 20).")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON list.")
@all_projects("--all")
@common_options
@pass_invocation
def command(
    invocation: Invocation,
    searches: tuple[str, ...],
    runs: bool,
    outcomes: tuple[str, ...],
    test_id: str,
    agent: str,
    kind: str | None,
    limit: int,
    as_json: bool,
) -> int:
    """List the executions of this project, newest first; --all lists all projects, and where each one is.

    SEARCH finds words in prompts, answers and tool calls, and knows the fields of the app's History screen:
    outcome:failed, agent:x, test:x, suite:x, tag:x, cause:x, since:7d, before:2026-11-01, kind:import, is:labelled,
    is:feedback, is:baseline, name:v2, note:x, commit:1a2b3c4, meta.model:mini.

    With a search or a filter, it lists the executions with matching runs, or with --runs the runs themselves.
    """
    search = " ".join(searches)
    query = HistoryQuery.parse(search)
    if query.problem:
        raise AgentevalError(query.problem, where=search, fix="`agenteval history --help` lists the fields")
    searched = query.filter(now_ms())

    # What is typed and what is given as an option must both hold.
    both = outcomes
    if searched.outcomes:
        # No run has the outcome "none": two conditions that exclude each other find nothing.
        both = tuple(outcome for outcome in searched.outcomes if not outcomes or outcome in outcomes) or ("none",)
    run_filter = replace(
        searched, outcomes=both, test_id=test_id, agent=agent, kind=kind or searched.kind, projects=invocation.projects
    )
    if kind and searched.kind not in ("", kind):
        run_filter = replace(run_filter, outcomes=("none",))
    with invocation.store(to_look=True) as store:
        ids = store.run_ids(run_filter) if runs else store.execution_ids(run_filter)
        listed = ids[:limit]
        run_rows = store.run_rows(listed) if runs else []
        executions = [] if runs else store.execution_rows(listed)
        nothing = "" if listed else invocation.why_nothing(store)
    if as_json:
        invocation.out.json([*map(listed_run, run_rows), *map(listed_execution, executions)])
        return 0
    if not listed:
        invocation.out.line(nothing or f"no {'run' if runs else 'execution'} matches")
        return 0
    suites = {row.suite_key for row in run_rows}
    projects = {row.project for row in executions}
    lines = run_lines(run_rows, with_suite=len(suites) > 1)
    lines += [execution_line(row, with_project=len(projects) > 1) for row in executions]
    invocation.out.view(paragraphs(lines))
    if len(ids) > limit:
        total = count(len(ids), "run" if runs else "execution")
        invocation.out.line((f"{len(listed):,} of {total}; --limit shows more", "dim"))
    return 0
