"""`agenteval db`: how the history file is, what takes its space; checking it, and giving space back."""

from __future__ import annotations

import csv
import io
import os
import sqlite3
import time
from pathlib import Path

import click

from agenteval_tui.analysis.labels import resolve_review
from agenteval_tui.cli import shell_completion
from agenteval_tui.cli.declared_options import FiniteNumber
from agenteval_tui.cli.invocation import Invocation, allow_one_of, common_options, json_option, pass_invocation
from agenteval_tui.cli.output import Output, Style
from agenteval_tui.cli.prompts import can_ask, confirm
from agenteval_tui.cli.standard_input import read_standard_input
from agenteval_tui.core import directories
from agenteval_tui.core.display import command_line
from agenteval_tui.core.document import extended
from agenteval_tui.core.errors import INFRASTRUCTURE, AgentevalError
from agenteval_tui.core.ids import now_ms
from agenteval_tui.core.numbers import count, file_size, moment
from agenteval_tui.formats.documents.db import (
    HistoryCheck,
    HistoryHealth,
    HistoryMerge,
    HistoryPruning,
    HistoryQueryResult,
    HistoryView,
    HistoryViewColumn,
    HistoryViews,
    NearbyFile,
    Removed,
    Space,
)
from agenteval_tui.formats.exporters.results_csv import cell
from agenteval_tui.history.backup import copy_history, move_suites
from agenteval_tui.history.connections import on_network
from agenteval_tui.history.delete_runs import DeleteResult
from agenteval_tui.history.errors import RUN_SOMETHING
from agenteval_tui.history.maintenance import CheckResult, check, check_health, repair, space, vacuum
from agenteval_tui.history.merge import merge_history
from agenteval_tui.history.pruning import Prunable, Pruning, moment_before, prunable, prune
from agenteval_tui.history.salvage import describe_loss, salvage
from agenteval_tui.history.sql_query import ROWS, SECONDS, QueryResult, query
from agenteval_tui.history.sql_views import VERSION, VIEWS
from agenteval_tui.views.model import Column, Row, Table, text
from agenteval_tui.views.pruning import pruning_view

_NULL = "NULL"
_ROUNDED_BELOW = 100_000
"""Six digits of a larger number would leave out digits before its point."""


@click.command("query")
@click.argument("sql", required=False)
@click.option("--limit", type=click.IntRange(1), default=ROWS, metavar="N", help=f"At most N rows (default {ROWS:,}).")
@click.option(
    "--timeout",
    type=FiniteNumber(0.001),
    default=SECONDS,
    metavar="SECONDS",
    help=f"How long the query may take (default {SECONDS:g}).",
)
@click.option("--views", "list_views", is_flag=True, help="List the views with their columns.")
@json_option
@click.option("--csv", "as_csv", is_flag=True, help="Print CSV.")
@common_options
@pass_invocation
def query_command(
    invocation: Invocation, sql: str | None, limit: int, timeout: float, list_views: bool, as_json: bool, as_csv: bool
) -> int:
    """Run one SQL query (SELECT) over the history, and print what it gives. `-` reads the query from standard input.

    It reads views, which stay the same when the tables of the history change: executions, runs, criteria, tool_calls,
    labels, feedback and all_runs; --views lists their columns. Times are UTC, as SQLite's `datetime('now')`. The
    history has the runs of all projects: `WHERE project = '/path'` chooses one. Nothing can be changed.

    `agenteval docs sql` has the views and examples.
    """
    allow_one_of("as_json", "as_csv")
    if list_views:
        _print_views(invocation.out, as_json=as_json)
        return 0
    if sql is None:
        raise click.UsageError('give a query: agenteval db query "SELECT test, passed FROM runs LIMIT 5"')
    if sql == "-":
        sql = read_standard_input(invocation, "an SQL query").decode("utf-8", "replace")
    with invocation.store(to_look=True):
        pass  # an older file is brought up to date
    result = query(directories.history_file(invocation.db), sql, rows=limit, seconds=timeout)
    if as_json:
        invocation.out.json(_query_document(result))
    elif as_csv:
        _print_csv(invocation.out, result)
    else:
        invocation.out.view((_query_table(result),))
    if result.cut:
        invocation.note(f"there are more rows: these are the first {limit:,}; --limit N prints more")
    return 0


def _query_document(result: QueryResult) -> HistoryQueryResult:
    rows = tuple(dict(zip(result.columns, map(_plain, row), strict=True)) for row in result.rows)
    return extended(HistoryQueryResult, result, rows=rows)


def _plain(value: object) -> object:
    return value.hex() if isinstance(value, bytes) else value


def _print_csv(out: Output, result: QueryResult) -> None:
    lines = io.StringIO()
    writer = csv.writer(lines, lineterminator="\n")
    for row in (result.columns, *result.rows):
        writer.writerow([cell(value) if isinstance(value, str) else _plain(value) for value in row])
    out.line(lines.getvalue().rstrip("\n"))


def _query_table(result: QueryResult) -> Table:
    numbers = [
        all(isinstance(row[place], int | float | None) for row in result.rows) for place in range(len(result.columns))
    ]
    columns = (Column(name, "right" if right else "left") for name, right in zip(result.columns, numbers, strict=True))
    rows = tuple(
        Row(tuple(text((_NULL, "dim") if value is None else _cell_text(value)) for value in row)) for row in result.rows
    )
    return Table(tuple(columns), rows, "" if rows else "no rows")


def _cell_text(value: object) -> str:
    if not isinstance(value, float):
        return str(_plain(value))
    return f"{value:.6g}" if abs(value) < _ROUNDED_BELOW else f"{value:.15g}"


def _print_views(out: Output, *, as_json: bool) -> None:
    if as_json:
        views = tuple(
            HistoryView(
                name=view.name,
                about=view.about,
                columns=tuple(HistoryViewColumn(name=column.name, about=column.about) for column in view.columns),
            )
            for view in VIEWS
        )
        out.json(HistoryViews(views_version=VERSION, views=views))
        return
    for view in VIEWS:
        out.line((view.name, "bold"), f"  {view.about}")
        out.view(
            (
                Table(
                    (Column(""), Column("")),
                    tuple(Row((text(f"  {column.name}"), text((column.about, "dim")))) for column in view.columns),
                ),
            )
        )
        out.line()


_LIST_SUITES = command_line("agenteval", "db", "query", "SELECT DISTINCT suite_file FROM runs")


class _Parts(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)  # as they are added below, not by the alphabet


@click.group("db", cls=_Parts, invoke_without_command=True)
@json_option
@common_options
@click.pass_context
def command(context: click.Context, as_json: bool) -> int:
    """Show the state of the history file: its size, its health, what takes the space, versions and counts.

    `db query` runs your own SQL over it; `db check` examines it thoroughly; `db prune` removes old runs; `db vacuum`
    frees unused disk space; `db export`, `db import` and `db move` are for another disk or machine; `db salvage` is for
    damaged files.
    """
    if context.invoked_subcommand is not None:
        return 0
    invocation = context.ensure_object(Invocation)
    path = existing(invocation)
    health = _health(path)
    if as_json:
        invocation.out.json(health)
    else:
        _print(invocation.out, health, invocation.db_option)
    return INFRASTRUCTURE if health.problems or health.wrong else 0


def existing(invocation: Invocation) -> Path:
    """The history file; raises AgentevalError when there is none."""
    path = directories.history_file(invocation.db)
    if not path.exists():
        raise AgentevalError("there is no history yet", where=str(path), fix=RUN_SOMETHING)
    return path


def _health(path: Path) -> HistoryHealth:
    health = check_health(path)
    # In a damaged file a query may end in an error, or count what is not there.
    parts = space(path).parts if not health.problems else ()
    # What an update, and what saving a damaged file, left there.
    beside = sorted(path.parent.glob(f"{path.name}.version-*")) + sorted(path.parent.glob(f"{path.name}.damaged-*"))
    rows = health.rows
    return HistoryHealth(
        file=str(path),
        size=health.size,
        log_size=health.log_size,
        unused=health.free,
        journal=health.journal,
        network=on_network(path),
        file_version=health.version,
        newest_version=health.newest_version,
        sqlite=sqlite3.sqlite_version,
        problems=health.problems,
        wrong=health.wrong,
        counts={
            name: rows.get(name, 0)
            for name in ("executions", "runs", "tests", "criteria", "transcripts", "labels", "baselines", "quarantines")
        },
        space=tuple(Space(what=what, bytes=size) for what, size in parts),
        beside=tuple(NearbyFile(file=str(nearby), size=nearby.stat().st_size) for nearby in beside),
    )


def _print(out: Output, state: HistoryHealth, options: str) -> None:
    health: tuple[str, Style] = ("whole", "good")
    if state.problems:
        health = ("damaged", "bad")
    elif state.wrong:
        health = ("needs repair", "warn")
    out.line(state.file)
    log = f" and {file_size(state.log_size)} of its log" if state.log_size else ""
    out.line(f"  {file_size(state.size)}{log}, ", health, f"; version {state.file_version}, SQLite {state.sqlite}")
    for problem in state.problems[:5]:
        out.line(("    " + problem, "bad"))
    if state.problems:
        out.line(
            f"    start agenteval{options}: it moves a damaged file aside and saves what can be read (or: db salvage)"
        )
    for wrong in state.wrong:
        out.line(("    " + wrong, "warn"))
    if state.wrong:
        out.line(f"    agenteval db check{options} says what to do")
    if state.network:
        out.line(("  on a network file system: reading waits while a run is written", "warn"))
    if state.file_version > state.newest_version:
        out.line(("  made by a newer agenteval: read-only here", "warn"))
    counts = state.counts
    out.line(
        f"  {count(counts['executions'], 'execution')}, {count(counts['runs'], 'run')} of"
        f" {count(counts['tests'], 'test')}; {count(counts['labels'], 'label')},"
        f" {count(counts['baselines'], 'baseline')}"
    )
    for part in state.space:
        share = part.bytes / max(state.size, 1)
        out.line(f"  {part.what:<22}{file_size(part.bytes):>10}  ", (f"{100 * share:3.0f} %", "dim"))
    for nearby in state.beside:
        out.line(("  kept beside it: ", "dim"), f"{nearby.file} ({file_size(nearby.size)})")
    if state.unused > state.size / 4:
        out.line((f"  agenteval db vacuum{options} frees the unused space", "dim"))


@command.command("check")
@click.option("--deep", is_flag=True, help="Unpack every transcript and result too.")
@click.option(
    "--fix",
    "fixing",
    is_flag=True,
    help="Repair totals, the search index and dangling rows.",
)
@json_option
@common_options
@pass_invocation
def check_command(invocation: Invocation, deep: bool, fixing: bool, as_json: bool) -> int:
    """Read the whole history file: every page, its tables, the search index, totals and references between rows.

    Exit code 3 when something is wrong. What was lost with an earlier, damaged file is listed, but does not count as
    wrong. The next start saves what can be read of a damaged file.
    """
    path = existing(invocation)
    began = time.monotonic()
    result = check(path, deep=deep)
    if fixing and result.wrong and not result.damage:
        with invocation.store() as store:
            repair(store)
        # Looked at again, and not believed: what is left is wrong still.
        before, result = result.wrong, check(path, deep=deep)
        fixed = tuple(mistake for mistake in before if mistake not in result.wrong)
    else:
        fixed = ()
    if as_json:
        invocation.out.json(
            HistoryCheck(
                damage=result.damage,
                wrong=result.wrong,
                fixed=fixed,
                lost=result.lost,
                lost_evidence=result.lost_evidence,
            )
        )
    else:
        _print_check(invocation, result, fixed, time.monotonic() - began)
    return INFRASTRUCTURE if result.damage or result.wrong else 0


def _print_check(invocation: Invocation, result: CheckResult, fixed: tuple[str, ...], seconds: float) -> None:
    out, options = invocation.out, invocation.db_option
    for damage in result.damage:
        out.line(("✗ ", "bad"), f"damaged: {damage}")
    for mistake in result.wrong:
        out.line(("! ", "warn"), mistake)
    for mistake in fixed:
        out.line(("✓ ", "good"), f"repaired: {mistake}")
    if result.lost:
        out.line(
            ("! ", "warn"),
            f"the transcripts of {count(result.lost, 'run')} are lost: the runs stay in the list without them",
        )
    if result.lost_evidence:
        out.line(
            ("! ", "warn"),
            f"the evidence of {count(result.lost_evidence, 'run')} is lost: only their verdicts are left",
        )
    if result.damage:
        out.line(
            f"start agenteval{options}: it moves a damaged file aside and saves what can be read "
            f"(or: agenteval db salvage{options})"
        )
    elif result.other_tables:
        out.line(f"agenteval db salvage{options} writes everything in it into a new history with the right tables")
    elif result.wrong:
        out.line(
            f"agenteval db check --fix{options} repairs it: it counts again, and removes dangling rows and what "
            "can't be read"
        )
    else:
        state = "sound, except for what is lost" if result.lost or result.lost_evidence else "whole"
        out.line(("✓ ", "good"), f"the history is {state} ({moment(int(time.time() * 1000))}, {seconds:.1f} s)")


command.add_command(query_command, "query")


# `agenteval db prune`: old runs go, by age and by count per test


@command.command("prune")
@click.option("--older-than", "older_than", metavar="AGE", help="Runs older than this (90d, 12h, 2w, 6mo, 1y, a day).")
@click.option("--keep", type=click.IntRange(0), metavar="N", help="Keep the newest N runs of each test.")
@click.option("--dry-run", is_flag=True, help="Show what would be removed; change nothing.")
@click.option("--yes", "-y", "sure", is_flag=True, help="Do not ask.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document, and do not ask.")
@common_options
@pass_invocation
def prune_command(
    invocation: Invocation, older_than: str | None, keep: int | None, dry_run: bool, sure: bool, as_json: bool
) -> int:
    """Remove old runs of all projects, with their transcripts and results.

    With both options, a run is removed only if both allow it. These always stay: baselines, labelled runs, tests in
    quarantine, examples of triage decisions, and running executions. The file does not shrink by itself: new runs use
    the space, or `agenteval db vacuum` frees it.
    """
    existing(invocation)
    pruning = Pruning(None if older_than is None else moment_before(older_than, now_ms()), keep)
    with invocation.store(to_look=dry_run) as store:
        old = prunable(store, pruning)
        if not as_json:
            invocation.out.view(pruning_view(old, len(old.runs)))
        if dry_run or (not old.runs and not old.executions):
            if as_json:
                invocation.out.json(_pruning_document(old, None))
            return 0
        if not sure and not _confirm_pruning(invocation, old, as_json):
            raise AgentevalError("nothing was removed")
        done = prune(store, old, lambda at, of: _show_progress(invocation, at, of))
        invocation.err.status("")
    if as_json:
        invocation.out.json(_pruning_document(old, done))
    else:
        invocation.out.line(
            f"removed {count(done.runs, 'run')} and {count(done.executions, 'execution')};"
            f" {file_size(done.free_bytes)} of the file are now unused"
        )
        invocation.out.line((f"agenteval db vacuum{invocation.db_option} frees them", "dim"))
    return 0


def _show_progress(invocation: Invocation, at: int, of: int) -> bool:
    invocation.err.status(f"removing: {at:,} of {of:,} runs")
    return False


def _confirm_pruning(invocation: Invocation, prunable: Prunable, as_json: bool) -> bool:
    if as_json or not can_ask(invocation):
        where = "--json asks nothing" if as_json else "there is no terminal to ask in"
        raise AgentevalError(f"this removes runs permanently, and {where}", fix="--yes, or --dry-run to look")
    return confirm(invocation, f"Remove {count(len(prunable.runs), 'run')} of all projects for good?")


def _pruning_document(prunable: Prunable, done: DeleteResult | None) -> HistoryPruning:
    removed = None if done is None else Removed(runs=done.runs, executions=done.executions, unused=done.free_bytes)
    return extended(HistoryPruning, prunable, runs=len(prunable.runs), removed=removed)


@command.command("vacuum")
@common_options
@pass_invocation
def vacuum_command(invocation: Invocation) -> int:
    """Rewrite the history file without unused space. This needs twice its size, and can't run during an execution."""
    existing(invocation)
    with invocation.store() as store:
        done = vacuum(store)
    freed = max(done.before - done.after, 0)
    invocation.out.line(f"{file_size(done.before)} → {file_size(done.after)}: {file_size(freed)} freed")
    return 0


# `agenteval db export`, `import`, `move`, `salvage`: the history on another disk or machine, and a damaged one


@command.command("export")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--force", is_flag=True, help="Overwrite FILE if it exists.")
@common_options
@pass_invocation
def export_command(invocation: Invocation, file: Path, force: bool) -> int:
    """Copy the history to FILE as it is now, even while executions run.

    The copy is a complete history: use it with --db, or add it to another history with `db import`. Executions that are
    running are interrupted in the copy. (If you copy history.db with cp during a write, the copy may be broken.)
    """
    path = existing(invocation)
    with invocation.store(to_look=True):
        pass  # an older file is brought up to date, a damaged one is saved
    size = copy_history(path, file, force=force)
    invocation.out.line(f"{file}: {file_size(size)}")
    invocation.out.line((command_line("agenteval", "--db", str(file), "history"), "dim"))
    return 0


@command.command("import")
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print one JSON list.")
@common_options
@pass_invocation
def import_command(invocation: Invocation, files: tuple[Path, ...], as_json: bool) -> int:
    """Add the runs of other history FILES: from another machine, from CI, from a backup.

    Executions and runs keep their ids, so importing the same file again adds nothing, and executions that were resumed
    elsewhere are completed. Labels, quarantines, triage decisions, and baselines of tests without one here come too.
    Labels and decisions that were withdrawn on either side stay withdrawn.
    """
    done: list[HistoryMerge] = []
    with invocation.store() as store:
        for file in files:
            merged = merge_history(
                store,
                file,
                lambda at, of, file=file: invocation.err.status(f"{file.name}: {at:,} of {of:,} runs"),  # type: ignore[misc]
            )
            invocation.err.status("")
            resolve_review(store, merged.relabelled)
            done.append(extended(HistoryMerge, merged, file=str(file)))
            if not as_json:
                _print_merged(invocation, done[-1])
    if as_json:
        invocation.out.json(done)
    return 0


def _print_merged(invocation: Invocation, merged: HistoryMerge) -> None:
    parts = [f"{count(merged.executions, 'execution')} and {count(merged.runs, 'run')} added"]
    if merged.completed:
        parts.append(f"{count(merged.completed, 'run')} completed")
    if merged.labels:
        parts.append(f"{count(merged.labels, 'label')} added")
    if merged.taken_back:
        parts.append(f"{merged.taken_back} removed there, and now here too")
    if merged.already:
        parts.append(f"{count(merged.already, 'run')} already known")
    invocation.out.line(f"{merged.file}: {', '.join(parts)}")
    for note in merged.left_out:
        invocation.out.line(("  left out ", "warn"), note)


@command.command("move")
@click.argument("old", shell_complete=shell_completion.folders)
@click.argument("new", shell_complete=shell_completion.folders)
@common_options
@pass_invocation
def move_command(invocation: Invocation, old: str, new: str) -> int:
    """Tell the history that the suites in the folder (or file) OLD are now in NEW, so that they keep their runs.

    The history knows suites by their absolute path. After you moved or renamed a project, or imported a history from
    another machine, this joins the old runs with the new ones. OLD no longer has to exist.
    """
    existing(invocation)
    there = Path(os.path.realpath(new))
    if not there.exists():
        raise AgentevalError("there is no such file or folder", where=new, fix="name the new place of the suites")
    with invocation.store() as store:
        # Not resolved: it may be gone, and links in it lead elsewhere now.
        done = move_suites(store, os.path.abspath(Path(old).expanduser()), str(there))  # noqa: PTH100
    if not done.suites:
        raise AgentevalError(
            f"the history has no suite in {old}",
            fix=f"{_LIST_SUITES}{invocation.db_option} lists the suites",
        )
    joined = f"; {count(done.merged, 'test')} had runs under both paths" if done.merged else ""
    invocation.out.line(f"{count(done.suites, 'suite')} moved to {there}{joined}")
    return 0


@command.command("salvage")
@click.argument("file", required=False, type=click.Path(path_type=Path))
@click.option("--to", type=click.Path(path_type=Path), help="The new file (default: FILE.salvaged.db).")
@common_options
@pass_invocation
def salvage_command(invocation: Invocation, file: Path | None, to: Path | None) -> int:
    """Save everything that can still be read of a damaged history FILE (default: the history) in a new file.

    FILE does not change. A destroyed page costs only its own content, and everything lost is listed. Totals, the search
    index, tool calls and results of criteria are rebuilt from the rest.
    """
    source = file or existing(invocation)
    target = to or Path(f"{source}.salvaged.db")
    saved = salvage(source, target)
    invocation.out.line(
        f"{target}: {count(saved.rows['executions'], 'execution')}, {count(saved.rows['runs'], 'run')},"
        f" {count(saved.rows['transcripts'], 'transcript')}"
    )
    for loss in saved.lost:
        invocation.out.line(("  lost ", "warn"), describe_loss(loss))
    if not saved.lost:
        invocation.out.line(("  nothing is lost", "dim"))
    imports = command_line("agenteval", "db", "import", str(target))
    invocation.out.line((f"{imports}{invocation.db_option} adds them to the history", "dim"))
    return 0
