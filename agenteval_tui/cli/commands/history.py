"""`agenteval history`: executions and runs, newest first."""

from __future__ import annotations

from typing import Any

import click
from msgspec.structs import replace

from agenteval_tui.cli.invocation import Invocation, all_projects, common_options, pass_invocation
from agenteval_tui.cli.output import SIGNS, STYLES, Output
from agenteval_tui.core.display import one_line
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.ids import now_ms
from agenteval_tui.core.numbers import count, duration, moment
from agenteval_tui.core.timespan import IN_FUTURE, in_future
from agenteval_tui.formats.timestamps import iso
from agenteval_tui.history.records import RunFilter
from agenteval_tui.history.search import HistoryQuery

_OUTCOMES = ("passed", "failed", "error", "skipped", "needs_review", "cancelled")


@click.command("history")
@click.argument("searches", metavar="[SEARCH]...", nargs=-1)
@click.option("--runs", is_flag=True, help="List runs, not executions.")
@click.option("--outcome", "outcomes", multiple=True, type=click.Choice(_OUTCOMES), help="Only runs that ended so.")
@click.option("--test", "test_id", default="", metavar="ID", help="Only runs of this test.")
@click.option("--agent", default="", metavar="A", help="Only runs of this agent.")
@click.option("--kind", type=click.Choice(("run", "import")), default=None, help="Only what was run, or imported.")
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
    """List what was run of this project, newest first; --all lists all projects, and where each is.

    SEARCH finds words in prompts, answers and tool calls, and knows the fields of the app's History screen:
    outcome:failed, agent:x, test:x, suite:x, tag:x, cause:x, since:7d, before:2026-11-01, kind:import, is:labelled,
    is:baseline.

    With a search or a filter, executions that hold such a run are listed, or with --runs the runs themselves.
    """

    search = " ".join(searches)
    query = HistoryQuery.parse(search)
    if query.problem:
        raise AgentevalError(query.problem, where=search, mend="`agenteval history --help` lists the fields")
    searched = query.filter(now_ms())

    # What is typed and what is given as an option must both hold.
    both = outcomes
    if searched.outcomes:
        both = tuple(one for one in searched.outcomes if not outcomes or one in outcomes) or ("none",)
    wanted = replace(
        searched, outcomes=both, test_id=test_id, agent=agent, kind=kind or searched.kind, projects=invocation.projects
    )
    if kind and searched.kind not in ("", kind):
        wanted = replace(wanted, outcomes=("none",))
    with invocation.store(to_look=True) as store:
        ids = store.run_ids(wanted) if runs else store.execution_ids(wanted)
        shown = ids[:limit]
        if runs:
            rows = store.run_rows(shown)
            data = [_run_data(row) for row in rows]
            suites = {row.id: row.suite_key for row in rows} if len({row.suite_key for row in rows}) > 1 else {}
        else:
            executions = store.execution_rows(shown)
            data = [_execution_data(row) for row in executions]
            several = len({row.project for row in executions}) > 1
            times = [(moment(row.started_ms), _took(row), in_future(row.started_ms)) for row in executions]
        elsewhere = "" if data else invocation.elsewhere(store)
    if as_json:
        invocation.out.json(data)
        return 0
    if not data:
        empty = wanted == RunFilter(projects=wanted.projects)
        invocation.out.line(elsewhere or ("nothing was run yet: try `agenteval demo`" if empty else "no run fits"))
        return 0
    for number, one in enumerate(data):
        if runs:
            _print_run(invocation.out, one, suites.get(one["run"], ""))
        else:
            _print_execution(invocation.out, one, *times[number], places=several)
    if len(ids) > limit:
        what = "run" if runs else "execution"
        invocation.out.line((f"{len(data)} of {count(len(ids), what)}; --limit shows more", "dim"))
    return 0


def _execution_data(row: Any) -> dict[str, Any]:
    names = ("runs", "passed", "failed", "errors", "skipped", "cancelled", "needs_review", "cost")
    return {
        "execution": row.id,
        "title": row.title,
        "kind": row.kind,
        "status": row.status,
        "message": row.message,
        "notes": list(row.notes),
        "started": iso(row.started_ms),
        "finished": iso(row.finished_ms),
        "suites": row.suites,
        "agents": row.agents,
        "project": row.project,
        **{name: getattr(row, name) for name in names},
    }


def _run_data(row: Any) -> dict[str, Any]:
    return {
        "run": row.id,
        "execution": row.execution_id,
        "suite": row.suite_name,
        "test": row.test_id,
        "variation": row.variation,
        "repetition": row.repetition,
        "agent": row.agent,
        "outcome": row.status,
        "score": row.score,
        "why": row.why,
        "started": iso(row.started_ms),
        "duration_ms": row.duration_ms,
        "prompt": row.prompt_head,
        "output": row.output_head,
    }


def _took(row: Any) -> str:
    """How long it took in all (not of an import: that is how long reading the file took), and on which cluster:
    `  in 12.4 s on tcp://cluster:8786`."""
    took = row.finished_ms - row.started_ms if row.finished_ms and row.kind != "import" else 0
    said = f"  in {duration(took)}" if took > 0 else ""
    where = one_line(str(row.options.get("scheduler") or ""), 60)
    return f"{said}  on {where}" if where else said


def _print_execution(out: Output, one: dict[str, Any], started: str, took: str, future: bool, *, places: bool) -> None:
    # Of an import nothing was graded; of a run the rest was not needed.
    skipped = "not graded" if one["kind"] == "import" else "skipped"
    words = (("failed", "failed"), ("errors", "in error"), ("needs_review", "to review"), ("cancelled", "cancelled"))
    ends = [f"{one[key]} {word}" for key, word in (*words, ("skipped", skipped)) if one[key]]
    if one["passed"] or not ends:
        ends.insert(0, f"{one['passed']} passed")
    bad = one["failed"] or one["errors"]
    status = "" if one["status"] == "finished" else f"  {one['status']}"
    out.line(
        (one["execution"][:10], "dim"),
        f"  {started}  {one_line(one['title'], 48):<48}  ",
        (", ".join(ends), "bad" if bad else "good"),
        f" of {one['runs']}",
        (took, "dim"),
        (status, "warn"),
        (f"  {IN_FUTURE}" * future, "warn"),
        (f"  {count(len(one['notes']), 'note')}" if one["notes"] else "", "dim"),
        (f"  {one_line(one['project'] or 'project not known')}" if places else "", "dim"),
    )


def _print_run(out: Output, one: dict[str, Any], suite: str) -> None:
    why = one_line(one["why"] or (one["output"] if one["outcome"] == "passed" else ""), 80)
    out.line(
        (SIGNS.get(one["outcome"], "·"), STYLES.get(one["outcome"], "dim")),
        f" {one['run']}  {one_line(one['test'], 30):<30} {duration(one['duration_ms']):>8}  ",
        (why, "dim"),
        (f"  {one_line(suite)}" if suite else "", "dim"),
    )
