"""`agenteval ps`: the executions that run right now."""

from __future__ import annotations

from collections.abc import Container

import click

from agenteval_tui.agents.process.process_tree import Footprint, footprint
from agenteval_tui.cli.attach_client import views_of
from agenteval_tui.cli.invocation import Invocation, common_options, json_option, pass_invocation
from agenteval_tui.cli.output import Output
from agenteval_tui.cli.run_progress import progress_figures
from agenteval_tui.core import directories
from agenteval_tui.core.display import one_line
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.ids import now_ms, short_id
from agenteval_tui.core.numbers import count, dollars, duration, iso
from agenteval_tui.formats.documents.listings import LiveExecution, LiveExecutions
from agenteval_tui.history.records import ExecutionRow
from agenteval_tui.runs.client import live_executions
from agenteval_tui.runs.live_registry import Live
from agenteval_tui.runs.live_view import ExecutionView

_TITLE = 36
_LOOKED_AT = 50  # executions, the newest
_SHOWN_MS = 86_400_000  # so long one whose process died is listed


@click.command("ps")
@json_option
@common_options
@pass_invocation
def command(invocation: Invocation, as_json: bool) -> int:
    """List your running executions, oldest first, with their progress and cost.

    Executions whose process died within the last day follow, each with the command that resumes it.
    """
    running = live_executions()
    views = views_of(running)
    now = now_ms()
    dead = _died(invocation, {live.execution for live in running}, now)
    if as_json:
        rows = [_data(live, view) for live, view in zip(running, views, strict=True)]
        invocation.out.json(LiveExecutions(executions=(*rows, *map(_data_of_dead, dead))))
        return 0
    if not running:
        invocation.out.line("no execution is running", ("; agenteval run PATH starts one", "dim"))
    for live, view in zip(running, views, strict=True):
        _print(invocation.out, live, view, now)
    if running:
        invocation.out.line((f"{count(len(running), 'execution')}; agenteval attach ID watches one", "dim"))
    for row in dead:
        invocation.out.line(
            f"{row.id}  {one_line(row.title, _TITLE):<{_TITLE}}  ",
            ("stopped unexpectedly: its process died", "bad"),
            f"; {row.ended:,} of {count(row.runs, 'run')} ended and {'is' if row.ended == 1 else 'are'} saved",
            (f"  agenteval resume {short_id(row.id)}{invocation.db_option} runs the others", "dim"),
        )
    return 0


def _died(invocation: Invocation, alive: Container[str], now: int) -> list[ExecutionRow]:
    """Executions of the last day whose process died and that were not resumed; the oldest first."""
    # To open a history that is not there would make one.
    path = directories.history_file(invocation.db)
    if not path.is_file():
        return []
    try:
        with invocation.store(to_look=True) as store:
            rows = store.executions(limit=_LOOKED_AT)
    except AgentevalError as error:
        invocation.note(one_line(error.sentence, 300))
        return []
    # An import that broke off is not resumed: its file is imported again.
    dead = [row for row in rows if row.kind != "import" and row.status == "interrupted" and row.id not in alive]
    return [row for row in reversed(dead) if now - row.started_ms < _SHOWN_MS]


def _print(out: Output, live: Live, view: ExecutionView | None, now: int) -> None:
    since = duration(max(now - live.started_ms, 0))
    head = f"{live.execution}  {one_line(live.title, _TITLE):<{_TITLE}}  "
    if view is None:
        out.line(head, ("does not answer", "warn"), (f"  process {live.pid}, since {since}", "dim"))
        return
    state = "ended" if view.ended else "paused" if view.paused else ""
    bad = view.count("failed", "error")
    cost = dollars(None if view.progress is None else view.progress.total_cost)
    programs = _programs(footprint(live.pid))
    out.line(
        head,
        (" · ".join(progress_figures(view)), "bad" if bad else "good"),
        (f"  since {since}" + (f"  {cost}" if cost else "") + (f"  {programs}" if programs else ""), "dim"),
        (f"  {state}" if state else "", "warn"),
    )


def _programs(used: Footprint) -> str:
    """What an execution has started: "5 programs (2 levels), 120 MB"."""
    if not used.processes:
        return ""
    levels = f" ({count(used.levels, 'level')})" if used.levels else ""
    return f"{count(used.processes, 'program')}{levels}" + (f", {used.mb:.0f} MB" if used.mb else "")


def _data_of_dead(row: ExecutionRow) -> LiveExecution:
    return LiveExecution(
        execution=row.id,
        title=row.title,
        pid=None,
        started=iso(row.started_ms),
        answers=False,
        status="died",
        runs=row.runs,
        ended=row.ended,
        running=0,
        passed=row.passed,
        failed=row.failed,
        error=row.errors,
        eta_s=None,
        input_tokens=row.input_tokens,
        output_tokens=row.output_tokens,
        cost=row.cost,
    )


def _data(live: Live, view: ExecutionView | None) -> LiveExecution:
    progress = view.progress if view is not None else None
    used = footprint(live.pid)
    return LiveExecution(
        execution=live.execution,
        title=live.title,
        pid=live.pid,
        started=iso(live.started_ms),
        answers=view is not None,
        status="unknown" if view is None else "paused" if view.paused else "ended" if view.ended else "running",
        runs=view.total if view is not None else None,
        ended=view.done if view is not None else None,
        running=view.count("running", "grading") if view is not None else None,
        passed=view.count("passed") if view is not None else None,
        failed=view.count("failed") if view is not None else None,
        error=view.count("error") if view is not None else None,
        eta_s=view.eta_s if view is not None else None,
        input_tokens=progress.input_tokens if progress is not None else None,
        output_tokens=progress.output_tokens if progress is not None else None,
        cost=progress.total_cost if progress is not None else None,
        processes=used.processes,
        levels=used.levels,
        memory_mb=None if used.mb is None else round(used.mb, 1),
    )
