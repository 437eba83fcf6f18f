"""Which causes the failed runs have (`grading.causes`), and since when a cause is known.

A cause is stored with the result that has it when its run ends. Of runs that an older program stored it is made out of
their evidence when somebody asks, and kept then.
"""

# ruff: noqa: S608 - statements are put together from words of ours; values are always bound

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from agenteval_tui.grading.causes import UNEXPLAINED, agent_cause, signatures
from agenteval_tui.history.blobs import clean, unpack_results
from agenteval_tui.history.bulk import write_rows
from agenteval_tui.history.errors import HistoryError
from agenteval_tui.history.writer import Totals
from agenteval_tui.text.quick_dataclass import dataclass

if TYPE_CHECKING:
    from agenteval_tui.history.store import Store

FAILED = ("failed", "error")
"""Outcomes of runs that have a cause."""
ENDED = ("passed", "failed", "error", "needs_review")


@dataclass(frozen=True, slots=True)
class Failure:
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
    found, made = store.read(lambda c: read(c, runs))
    if made and not store.read_only:
        store.write(KeepCauses(made))
    return found


def first_seen(store: Store, wanted: Iterable[str]) -> dict[str, int]:
    """The oldest run (row number) with each of these signatures; those that no run has are left out."""
    listed = list(wanted)
    return store.read(lambda c: first_seen_in(c, listed))


@dataclass(slots=True)
class KeepCauses:
    """Causes that were made out of evidence: (run, position, signature or "")."""

    patient: ClassVar[bool] = True
    rows: Sequence[tuple[int, int, str]]

    def prepare(self) -> None:
        """Nothing to encode."""

    def apply(self, connection: sqlite3.Connection, totals: Totals) -> None:
        """Fill in what is still missing; a run that ended anew in the meantime has its own."""
        write_rows(
            connection,
            "WITH new AS ({rows}) UPDATE criterion_results SET cause = new.column3 FROM new"
            " WHERE run = new.column1 AND position = new.column2 AND cause IS NULL",
            [(run, position, clean(signature)) for run, position, signature in self.rows],
        )


def read(
    connection: sqlite3.Connection, runs: Sequence[int] | None
) -> tuple[list[Failure], list[tuple[int, int, str]]]:
    """The failures, and what `KeepCauses` should keep of them."""
    chosen = " AND r.superseded = 0" if runs is None else " AND r.id IN (SELECT value FROM json_each(?))"
    values = [] if runs is None else [json.dumps(list(runs))]
    rows = connection.execute(
        "SELECT r.id, r.test, r.execution, r.status, r.error_kind, r.error_message FROM runs r"
        f" WHERE r.status IN ('failed', 'error'){chosen} ORDER BY r.id",
        values,
    ).fetchall()
    stored: dict[int, list[tuple[str, int, str]]] = {}
    for run, cause, position, criterion in connection.execute(
        "SELECT r.id, c.cause, c.position, coalesce(k.hash, '') FROM runs r JOIN criterion_results c ON c.run = r.id"
        " LEFT JOIN criteria k ON k.id = c.criterion"
        f" WHERE r.status IN ('failed', 'error') AND c.cause > ''{chosen} ORDER BY c.run, c.position",
        values,
    ):
        stored.setdefault(run, []).append((cause, position, criterion))
    found: list[Failure] = []
    made: list[tuple[int, int, str]] = []
    for run, test, execution, status, kind, message in rows:
        if kind:
            found.append(Failure(run, test, execution, agent_cause(kind, message).signature))
            continue
        known = stored.get(run)
        if known is None:
            known = _made(connection, run, status)
            made += [(run, position, signature) for signature, position, _ in known if position >= 0]
        found += [Failure(run, test, execution, *one) for one in known]
    return found, made


def _made(connection: sqlite3.Connection, run: int, status: str) -> list[tuple[str, int, str]]:
    """The causes of a run that has none stored, from its evidence."""
    row = connection.execute("SELECT data FROM evidence WHERE run = ?", (run,)).fetchone()
    try:
        results = unpack_results(row[0]) if row is not None else ()
    except (ValueError, HistoryError):
        results = ()  # broken bytes: the run is listed all the same
    causes = signatures(status, results)
    told = [(cause, number, results[number].criterion_hash) for number, cause in enumerate(causes) if cause]
    return told or [(UNEXPLAINED.signature, 0 if results else -1, "")]


def first_seen_in(connection: sqlite3.Connection, wanted: Sequence[str]) -> dict[str, int]:
    """The oldest run with each of these signatures."""
    rows = connection.execute(
        "SELECT cause, min(run) FROM criterion_results WHERE cause > '' AND cause IN (SELECT value FROM json_each(?))"
        " GROUP BY cause",
        (json.dumps([clean(one) for one in wanted]),),
    )
    return dict(rows.fetchall())


# Which runs to look at


def runs_where(connection: sqlite3.Connection, condition: str, values: Sequence[Any]) -> list[int]:
    """The row numbers of ended runs that a condition over table `runs` (as `r`) lets through, oldest first."""
    marks = ",".join("?" * len(ENDED))
    rows = connection.execute(
        f"SELECT r.id FROM runs r WHERE r.status IN ({marks}) AND ({condition}) ORDER BY r.id", (*ENDED, *values)
    )
    return [row[0] for row in rows.fetchall()]


def tests_where(connection: sqlite3.Connection, suite_keys: Sequence[str], test_ids: Sequence[str]) -> list[int]:
    """The row numbers of tests of these suites (none: of all) with these ids (none: all)."""
    rows = connection.execute(
        "SELECT t.id FROM tests t JOIN suites s ON s.id = t.suite"
        " WHERE (?1 = '[]' OR s.key IN (SELECT value FROM json_each(?1)))"
        " AND (?2 = '[]' OR t.test_id IN (SELECT value FROM json_each(?2)))",
        (json.dumps([clean(one) for one in suite_keys]), json.dumps([clean(one) for one in test_ids])),
    )
    return [row[0] for row in rows.fetchall()]


def executions_of_tests(connection: sqlite3.Connection, tests: Sequence[int]) -> dict[int, list[int]]:
    """By test: the executions in which it has ended runs, the newest first."""
    marks = ",".join("?" * len(ENDED))
    rows = connection.execute(
        f"SELECT DISTINCT r.test, r.execution FROM runs r WHERE r.test IN (SELECT value FROM json_each(?))"
        f" AND r.status IN ({marks}) ORDER BY r.execution DESC",
        (json.dumps(list(tests)), *ENDED),
    )
    found: dict[int, list[int]] = {}
    for test, execution in rows.fetchall():
        found.setdefault(test, []).append(execution)
    return found
