"""Runs and their criteria as comparisons need them: narrow rows of many runs, and no transcript."""

# ruff: noqa: S608 - statements are put together from words of ours; values are always bound

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from msgspec import Struct

from agenteval_tui.core.storable import storable
from agenteval_tui.history.bulk_sql import batches, rows_among
from agenteval_tui.history.records import tokens_in_all
from agenteval_tui.suites.row_keys import row_case

_SELECT = (
    "SELECT r.id, r.uid, e.uid, e.started_ms, s.key, s.name, t.test_id, t.name, r.variation, r.row, r.repetition,"
    " r.agent, r.status, r.score, r.duration_ms, r.input_tokens, r.output_tokens, r.cost, r.cached, r.transcript,"
    " r.plan, coalesce(d.key, ''), r.agent_version, r.task, r.task_number FROM runs r"
    " JOIN executions e ON e.id = r.execution JOIN tests t ON t.id = r.test"
    " JOIN suites s ON s.id = t.suite LEFT JOIN dataset_rows d ON d.id = r.dataset_row"
)
_CHUNK = 5_000  # runs asked about in one statement
_LOOK_BACK = 50  # executions with a test in common


class ComparedRun(Struct, frozen=True):
    """A run without its texts. `started_ms` is its execution's start.

    `transcript` and `plan` are numbers of what is stored: runs with equal ones did the same, or were asked the same.
    `row` is where the dataset's row stood, `row_key` what it is ("": no dataset). `task`: runs with equal ones were
    planned alike (None: not known); `agent_version` is the agent's configuration ("": not known).
    """

    rowid: int
    id: str
    execution_id: str
    started_ms: int
    suite_key: str
    suite_name: str
    test_id: str
    test_name: str
    variation: str
    row: int
    repetition: int
    agent: str
    status: str
    score: float | None
    duration_ms: float | None
    input_tokens: int | None
    output_tokens: int | None
    cost: float | None
    cached: bool
    transcript: int | None
    plan: int
    row_key: str = ""
    agent_version: str = ""
    task: tuple[int, int] | None = None

    @property
    def row_case(self) -> str:
        """What tells its row from others; "" without a dataset."""
        return row_case(self.row, self.row_key)

    @property
    def tokens(self) -> float | None:
        """Input and output together; None: not measured."""
        return tokens_in_all(self.input_tokens, self.output_tokens)


class ComparedCriterion(NamedTuple):
    """What one criterion said of one run (`run`: its row number). `hash` "": not known which version judged.

    A tuple: there are several for each of 100,000 runs.
    """

    run: int
    hash: str
    name: str
    outcome: str
    score: float | None


def execution_before(connection: sqlite3.Connection, execution_ids: Sequence[str]) -> str | None:
    """The default execution to compare these with: the newest earlier one in which at least half of their tests have a
    verdict. If there is none, the newest earlier one in which any test has, unless it was imported. Looks at the 50
    newest earlier executions with such a test. None if there is none."""
    named = json.dumps([storable(execution_id) for execution_id in execution_ids])
    first, imported = connection.execute(
        "SELECT min(id), min(kind = 'import') FROM executions WHERE uid IN (SELECT value FROM json_each(?))", (named,)
    ).fetchone()
    tests = connection.execute(
        "SELECT DISTINCT r.test FROM runs r JOIN executions e ON e.id = r.execution"
        " WHERE e.uid IN (SELECT value FROM json_each(?))",
        (named,),
    ).fetchall()
    test_ids = json.dumps([row[0] for row in tests])
    verdict = "r.test = w.value AND r.execution = ? AND r.status IN ('passed', 'failed')"
    earlier = connection.execute(
        "SELECT e.id, e.uid, e.kind, e.runs FROM executions e WHERE e.id < ? AND e.kind != 'fork' AND EXISTS ("
        "  SELECT 1 FROM runs r WHERE r.execution = e.id AND r.status IN ('passed', 'failed')"
        "  AND r.test IN (SELECT value FROM json_each(?))) ORDER BY e.id DESC LIMIT ?",
        (first, test_ids, _LOOK_BACK),
    )
    fallback: str | None = None
    for execution, uid, kind, runs in earlier:
        if 2 * runs >= len(tests):
            (both,) = connection.execute(
                f"SELECT count(*) FROM json_each(?) w WHERE EXISTS (SELECT 1 FROM runs r WHERE {verdict})",
                (test_ids, execution),
            ).fetchone()
            if 2 * both >= len(tests):
                return str(uid)
        if fallback is None and (imported or kind != "import"):
            fallback = str(uid)
    return fallback


def compared_runs_of(connection: sqlite3.Connection, execution_id: str) -> list[ComparedRun]:
    """The runs of an execution in the order of its plan."""
    rows = connection.execute(
        f"{_SELECT} WHERE r.execution = (SELECT id FROM executions WHERE uid = ?) ORDER BY r.position, r.id",
        (storable(execution_id),),
    )
    return [_run(row) for row in rows.fetchall()]


def compared_runs(connection: sqlite3.Connection, run_ids: Sequence[str]) -> list[ComparedRun]:
    """These runs, in the order given; those that are gone are left out."""
    by_id: dict[str, ComparedRun] = {}
    for chunk in batches(run_ids, _CHUNK):
        rows = rows_among(connection, f"{_SELECT} WHERE r.uid IN {{keys}}", map(storable, chunk))
        by_id.update((row[1], _run(row)) for row in rows)
    return [by_id[run_id] for run_id in run_ids if run_id in by_id]


def criteria_of(connection: sqlite3.Connection, rowids: Sequence[int]) -> Iterator[ComparedCriterion]:
    """What the criteria said of these runs, run by run, in the order of each run's criteria."""
    for chunk in batches(rowids, _CHUNK):
        rows = rows_among(
            connection,
            "SELECT o.run, coalesce(c.hash, ''), o.name, o.outcome, o.score FROM criterion_results o"
            " LEFT JOIN criteria c ON c.id = o.criterion WHERE o.run IN {keys} ORDER BY o.run, o.position",
            chunk,
        )
        yield from map(ComparedCriterion._make, rows)


def variables_of(connection: sqlite3.Connection, plans: Sequence[int]) -> dict[int, dict[str, object]]:
    """By plan: the variables of its runs."""
    by_plan: dict[int, dict[str, object]] = {}
    for chunk in batches(plans, _CHUNK):
        rows = rows_among(connection, "SELECT id, variables FROM plans WHERE id IN {keys}", chunk)
        by_plan.update((number, json.loads(text)) for number, text in rows)
    return by_plan


def questions_of(connection: sqlite3.Connection, plans: Sequence[int]) -> dict[int, tuple[str, str]]:
    """By plan: the beginning of its prompt, and its variables as JSON."""
    by_plan: dict[int, tuple[str, str]] = {}
    for chunk in batches(plans, _CHUNK):
        rows = rows_among(connection, "SELECT id, prompt_head, variables FROM plans WHERE id IN {keys}", chunk)
        by_plan.update((number, (prompt, variables)) for number, prompt, variables in rows)
    return by_plan


def _run(row: Sequence[object]) -> ComparedRun:
    task = None if row[23] is None else (row[23], row[24])
    values = (*row[:18], bool(row[18]), *row[19:23], task)
    return ComparedRun(*values)  # type: ignore[arg-type]
