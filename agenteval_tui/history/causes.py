"""Which causes the failed runs have (`grading.causes`), and since when a cause is known.

A cause is stored with the result that has it when its run ends. For results that have none, it is computed from
their evidence on request, and then stored.
"""

# ruff: noqa: S608 - statements are put together from words of ours; values are always bound

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from msgspec import Struct

from agenteval_tui.core.groups import grouped
from agenteval_tui.core.outcomes import COMPLETED
from agenteval_tui.core.storable import storable
from agenteval_tui.grading.causes import UNEXPLAINED, agent_cause, deciding_line, signatures
from agenteval_tui.history.blobs import unpack_results, unpack_transcript
from agenteval_tui.history.bulk_sql import rows_among, write_rows
from agenteval_tui.history.errors import HistoryError
from agenteval_tui.history.recordings import FORK
from agenteval_tui.history.scope import runs_in
from agenteval_tui.history.store import Store
from agenteval_tui.history.writer import Operation, Totals
from agenteval_tui.transcripts.model import ErrorCode, RunError

_HAS_ENDED = f"r.status IN ({', '.join(map(repr, COMPLETED))})"
_LAST = 2**63 - 1  # no execution has this number


class Failure(Struct, frozen=True):
    """One result of a failed run, and its cause. `run`, `test`, `execution` are row numbers; they grow with time.

    `position` is the result's number in the run, from 0; `criterion` the hash of the criterion's version. A run whose
    agent failed, or that has no result that says why, has one of these with position -1.
    """

    run: int
    test: int
    execution: int
    signature: str
    position: int = -1
    criterion: str = ""


def failures(store: Store, runs: Sequence[int] | None = None) -> list[Failure]:
    """The causes of the failed runs among these row numbers (None: of all, of each recording the newest
    grading), oldest first.

    A run with several failed criteria is there several times. What had to be made out of evidence is kept, where the
    history can be written; that is not waited for.
    """
    failures, explained = store.read(lambda c: _read_failures(c, runs))
    # Found again by the next question where it can't be kept.
    if explained and not store.read_only:
        store.write(KeepCauses(explained))
    return failures


class KeepCauses(Operation):
    """Causes that were made out of evidence: (run, position, signature or "")."""

    patient: ClassVar[bool] = True
    rows: Sequence[tuple[int, int, str]]

    def apply(self, connection: sqlite3.Connection, totals: Totals) -> None:
        """Fill in the missing causes. A run that ended again in the meantime has its own."""
        write_rows(
            connection,
            "WITH new AS ({rows}) UPDATE criterion_results SET cause = new.column3 FROM new"
            " WHERE run = new.column1 AND position = new.column2 AND cause IS NULL",
            [(run, position, storable(signature)) for run, position, signature in self.rows],
        )


def _read_failures(
    connection: sqlite3.Connection, runs: Sequence[int] | None
) -> tuple[list[Failure], list[tuple[int, int, str]]]:
    """The failures, and the rows that `KeepCauses` should store."""
    chosen = " AND r.superseded = 0" if runs is None else " AND r.id IN (SELECT value FROM json_each(?))"
    values = [] if runs is None else [json.dumps(list(runs))]
    # The "+": runs that are named are looked up one by one, and not among all that failed.
    status = "r.status" if runs is None else "+r.status"
    rows = connection.execute(
        "SELECT r.id, r.test, r.execution, r.status, r.error_kind FROM runs r"
        f" WHERE {status} IN ('failed', 'error'){chosen} ORDER BY r.id",
        values,
    ).fetchall()
    stored = grouped(
        (run, (cause, position, criterion))
        for run, cause, position, criterion in connection.execute(
            "SELECT r.id, c.cause, c.position, coalesce(k.hash, '') FROM runs r"
            " JOIN criterion_results c ON c.run = r.id LEFT JOIN criteria k ON k.id = c.criterion"
            f" WHERE {status} IN ('failed', 'error') AND c.cause > ''{chosen} ORDER BY c.run, c.position",
            values,
        )
    )
    failures: list[Failure] = []
    explained: list[tuple[int, int, str]] = []
    for run, test, execution, status, kind in rows:
        causes = stored.get(run)
        if kind:
            cause = causes[0][0] if causes else _of_agent(connection, run, kind)
            if not causes and _has_results(connection, run):
                explained.append((run, 0, cause))
            failures.append(Failure(run, test, execution, cause))
            continue
        if causes is None:
            causes = _made(connection, run, status)
            explained += [(run, position, signature) for signature, position, _ in causes if position >= 0]
        failures += [Failure(run, test, execution, *entry) for entry in causes]
    return failures, explained


def expected_by_all(connection: sqlite3.Connection, results: Sequence[tuple[int, int]]) -> object:
    """What the deciding condition of these failed results expected, if all expected the same; else
    None, as where the evidence of one can't be read. `results`: (run, position)."""
    expected: Any = None
    read: dict[tuple[bytes, int], Any] = {}  # of runs that answered the same, the bytes are the same
    rows = connection.execute(
        "SELECT e.data, json_extract(j.value, '$[1]') FROM json_each(?) j"
        " LEFT JOIN evidence e ON e.run = json_extract(j.value, '$[0]')",
        (json.dumps(results),),
    )
    for number, (data, position) in enumerate(rows):
        if (data, position) not in read:
            read[data, position] = _expected_in(data, position)
        here = read[data, position]
        if number and (type(here), here) != (type(expected), expected):
            return None
        expected = here
    return expected


def _expected_in(data: bytes | None, position: int) -> object:
    try:
        results = unpack_results(data) if data else ()
    except (ValueError, HistoryError):
        return None  # broken bytes
    line = deciding_line(results[position]) if 0 <= position < len(results) else None
    return None if line is None else line.expected


def _of_agent(connection: sqlite3.Connection, run: int, kind: str) -> str:
    """The cause of a run whose agent did not finish and that has none stored: no criterion, or an old history."""
    row = connection.execute(
        "SELECT t.data FROM runs r JOIN transcripts t ON t.id = r.transcript WHERE r.id = ?", (run,)
    ).fetchone()
    try:
        error = unpack_transcript(row[0]).error if row is not None else None
    except ValueError:
        error = None  # broken bytes
    return agent_cause(error or RunError(kind, "", code=ErrorCode.NO_REASON)).signature


def _has_results(connection: sqlite3.Connection, run: int) -> bool:
    return connection.execute("SELECT 1 FROM criterion_results WHERE run = ? LIMIT 1", (run,)).fetchone() is not None


def _made(connection: sqlite3.Connection, run: int, status: str) -> list[tuple[str, int, str]]:
    """The causes of a run that has none stored, from its evidence."""
    row = connection.execute("SELECT data FROM evidence WHERE run = ?", (run,)).fetchone()
    try:
        results = unpack_results(row[0]) if row is not None else ()
    except (ValueError, HistoryError):
        results = ()  # broken bytes: the run is listed all the same
    causes = signatures(status, results)
    explained = [(cause, number, results[number].criterion_hash) for number, cause in enumerate(causes) if cause]
    return explained or [(UNEXPLAINED.signature, 0 if results else -1, "")]


def first_seen_in(connection: sqlite3.Connection, signatures: Sequence[str]) -> dict[str, int]:
    """The oldest run with each of these signatures."""
    # A subquery a cause takes the first entry of the index; with GROUP BY all runs that have the cause are read. A fork
    # is named only where nothing else has the cause.
    rows = connection.execute(
        "SELECT w.value, coalesce((SELECT c.run FROM criterion_results c CROSS JOIN runs r ON r.id = c.run"
        f" WHERE c.cause = w.value AND c.cause > '' AND r.superseded != {FORK} ORDER BY c.run LIMIT 1),"
        " (SELECT min(run) FROM criterion_results WHERE cause = w.value AND cause > ''))"
        " FROM json_each(?) w",
        (json.dumps([storable(signature) for signature in signatures]),),
    )
    return {signature: run for signature, run in rows.fetchall() if run is not None}


def runs_where(connection: sqlite3.Connection, condition: str, values: Sequence[Any]) -> list[int]:
    """The row numbers of ended runs that a condition over table `runs` (as `r`) lets through, oldest first."""
    rows = connection.execute(f"SELECT r.id FROM runs r WHERE {_HAS_ENDED} AND ({condition}) ORDER BY r.id", values)
    return [row[0] for row in rows.fetchall()]


def tests_of(connection: sqlite3.Connection, runs: Sequence[int]) -> set[int]:
    """The row numbers of the tests that these runs (row numbers) are of."""
    return {row[0] for row in rows_among(connection, "SELECT DISTINCT test FROM runs WHERE id IN {keys}", runs)}


def tests_where(connection: sqlite3.Connection, suite_keys: Sequence[str], test_ids: Sequence[str]) -> list[int]:
    """The row numbers of tests of these suites (none: of all) with these ids (none: all)."""
    rows = connection.execute(
        "SELECT t.id FROM tests t JOIN suites s ON s.id = t.suite"
        " WHERE (?1 = '[]' OR s.key IN (SELECT value FROM json_each(?1)))"
        " AND (?2 = '[]' OR t.test_id IN (SELECT value FROM json_each(?2)))",
        (json.dumps([storable(key) for key in suite_keys]), json.dumps([storable(test_id) for test_id in test_ids])),
    )
    return [row[0] for row in rows.fetchall()]


def newest_executions(
    connection: sqlite3.Connection, before: Mapping[int, int | None], projects: Sequence[str] = ()
) -> dict[int, int]:
    """By test (row number): the newest execution in which it has an ended run, the newest by order of arrival.

    `before`: the tests, each with the execution before which to look (None: any), `projects`: only executions of these
    (none: of all). Tests that have none are left out. One step in an index a test, however long the history is.
    """
    condition, values = runs_in(projects, "+r.execution")
    # A subquery a test: with a join and max() all executions of the test would be read. The "+" keeps the index from
    # being asked for each execution of the projects.
    here = f" AND {condition}" if projects else ""
    rows = connection.execute(
        "SELECT w.key, (SELECT r.execution FROM runs r WHERE r.test = w.key AND r.execution < coalesce(w.value, ?)"
        f" AND r.superseded != {FORK} AND {_HAS_ENDED}{here} ORDER BY r.execution DESC LIMIT 1)"
        " FROM (SELECT CAST(key AS INTEGER) AS key, value FROM json_each(?)) w",
        (_LAST, *values, json.dumps(before)),
    )
    return {test: execution for test, execution in rows.fetchall() if execution is not None}


def runs_of_tests(connection: sqlite3.Connection, executions: Mapping[int, int]) -> dict[int, list[int]]:
    """By test: the row numbers of its ended runs in the execution that is named with it, oldest first."""
    rows = connection.execute(
        "SELECT r.test, r.id FROM (SELECT CAST(key AS INTEGER) AS test, value AS execution FROM json_each(?)) w"
        " CROSS JOIN runs r ON r.test = w.test AND r.execution = w.execution"
        f" WHERE {_HAS_ENDED} ORDER BY r.id",
        (json.dumps(executions),),
    )
    return grouped((test, run) for test, run in rows.fetchall())
