"""`agenteval db query`: a person's own SQL over the views of the history."""

from __future__ import annotations

import csv
import io

import click

from agenteval_tui.cli.declared_options import FiniteNumber
from agenteval_tui.cli.invocation import Invocation, allow_one_of, common_options, pass_invocation
from agenteval_tui.cli.output import Output
from agenteval_tui.cli.standard_input import read_standard_input
from agenteval_tui.core import directories
from agenteval_tui.core.document import extended
from agenteval_tui.formats.documents.db import HistoryQueryResult, HistoryView, HistoryViewColumn, HistoryViews
from agenteval_tui.formats.exporters.results_csv import cell
from agenteval_tui.history.sql_query import ROWS, SECONDS, QueryResult, query
from agenteval_tui.history.sql_views import VERSION, VIEWS
from agenteval_tui.views.model import Column, Row, Table, text

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
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.option("--csv", "as_csv", is_flag=True, help="Print CSV.")
@common_options
@pass_invocation
def command(
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
        invocation.out.json(_document(result))
    elif as_csv:
        _print_csv(invocation.out, result)
    else:
        invocation.out.view((_table(result),))
    if result.cut:
        invocation.note(f"there are more rows: these are the first {limit:,}; --limit N prints more")
    return 0


def _document(result: QueryResult) -> HistoryQueryResult:
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


def _table(result: QueryResult) -> Table:
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
