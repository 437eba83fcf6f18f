"""Baselines: for a test the runs that later ones are measured against, set by a person or after a success.

A test has at most one: all runs of an execution that belong to it, or a single run. Exactly one of the columns
`execution` and `run` is filled.
"""

# ruff: noqa: S608 - statements are put together from words of ours; values are always bound

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from typing import Any

from msgspec import Struct

from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.ids import now_ms
from agenteval_tui.core.storable import storable
from agenteval_tui.history import tombstones
from agenteval_tui.history.process_liveness import is_alive
from agenteval_tui.history.recordings import FORK
from agenteval_tui.history.writer import History, Operation, Totals

TestKey = tuple[str, str]
"""Suite key and test id."""
# A run that says something about the test. An error says nothing, and a cancelled run is none.
_TELLING = ("passed", "failed", "needs_review")
_UNENDED = ("queued", "running", "grading")


_FORKS = "forks, which continue other runs from a step with something changed"
_OTHER = "choose one that ran from the start"


class Baseline(Struct, frozen=True):
    """What is set for one test. `run_id` is "" where all runs of the execution count.

    `runs`, `passed` and `errors` count the runs that it consists of; `started_ms` is when its execution started.
    """

    suite_key: str
    suite_name: str
    test_id: str
    test_name: str
    execution_id: str
    run_id: str
    who: str
    at_ms: int
    started_ms: int
    runs: int
    passed: int
    errors: int


class BaselineSet(Struct, frozen=True):
    """What setting did: the tests that have it now, and those left out because none of their runs has a verdict."""

    tests: tuple[TestKey, ...]
    left_out: tuple[TestKey, ...] = ()


def set_baseline(
    store: History,
    execution_id: str,
    *,
    tests: Iterable[TestKey] | None = None,
    who: str = "",
    at_ms: int | None = None,
) -> BaselineSet:
    """The runs of a finished execution become the baseline of its tests (or of `tests` among them). Blocks.

    Raises AgentevalError: it has not finished, or none of its runs was decided.
    """
    keys = None if tests is None else tuple(tests)
    return _done(store, _SetExecution(execution_id, keys, who, now_ms() if at_ms is None else at_ms))


def set_baseline_run(store: History, run_id: str, *, who: str = "") -> BaselineSet:
    """A single run becomes the baseline of its test. Raises AgentevalError: it has not ended, or ended in an error."""
    return _done(store, _SetRun(run_id, who, now_ms()))


def clear_baselines(store: History, tests: Iterable[TestKey] | None = None) -> int:
    """Take the baselines of these tests (None: all) away; the runs stay. Gives how many there were. Blocks."""
    return int(store.write(_Clear(None if tests is None else tuple(tests))).result())


def baselines(store: History) -> list[Baseline]:
    """All baselines, by suite and test."""
    return store.read(read_all)


def has_baselines(store: History) -> bool:
    """Whether there is a baseline at all."""
    return bool(store.read(lambda c: c.execute("SELECT EXISTS (SELECT 1 FROM baselines)").fetchone()[0]))


def baselines_of(store: History, tests: Iterable[TestKey]) -> dict[TestKey, Baseline]:
    """The baselines of these tests; tests without one are left out."""
    keys = set(tests)
    return store.read(lambda c: {(baseline.suite_key, baseline.test_id): baseline for baseline in read_all(c, keys)})


def lost_baselines(store: History, tests: Iterable[TestKey]) -> list[TestKey]:
    """Those of these tests that have a baseline of which no run is in the history: it is damaged, or a copy of it is
    not whole."""
    keys = set(tests)
    rows = store.read(
        lambda c: c.execute(
            "SELECT s.key, t.test_id FROM baselines b JOIN tests t ON t.id = b.test JOIN suites s ON s.id = t.suite"
            " WHERE NOT EXISTS (SELECT 1 FROM runs r JOIN executions e ON e.id = r.execution WHERE r.test = b.test"
            "  AND (r.execution = b.execution OR r.id = b.run)) ORDER BY s.key, t.test_id"
        ).fetchall()
    )
    return [(suite, test) for suite, test in rows if (suite, test) in keys]


def baseline_runs(store: History, tests: Iterable[TestKey]) -> list[str]:
    """The ids of the runs that the baselines of these tests consist of, in the order of their plans."""
    keys = set(tests)
    rows = store.read(
        lambda c: c.execute(
            f"{_RUNS} SELECT s.key, t.test_id, r.uid{_FROM} ORDER BY r.execution, r.position"
        ).fetchall()
    )
    return [uid for suite, test, uid in rows if (suite, test) in keys]


def _done(store: History, operation: _SetExecution | _SetRun) -> BaselineSet:
    baseline_set: BaselineSet = store.write(operation).result()
    return baseline_set


class _SetExecution(Operation):
    execution_id: str
    tests: Sequence[TestKey] | None
    who: str
    at_ms: int

    def apply(self, connection: sqlite3.Connection, totals: Totals) -> BaselineSet:
        """Set it for each test that has a decided run."""
        execution_row = connection.execute(
            "SELECT id, kind, status, owner FROM executions WHERE uid = ?", (storable(self.execution_id),)
        ).fetchone()
        if execution_row is None:
            raise AgentevalError(f"there is no execution {self.execution_id}", fix="see agenteval history")
        if execution_row[1] == "fork":
            raise AgentevalError(
                f"execution {self.execution_id} can't be a baseline: its runs are {_FORKS}", fix=_OTHER
            )
        # Under the lock: it may have ended, or begun again, since somebody looked.
        _refuse_unfinished(connection, self.execution_id, *execution_row)
        rows = connection.execute(
            "SELECT s.key, t.test_id, t.id, count(*) FILTER (WHERE r.status IN (?, ?, ?)) FROM runs r"
            " JOIN tests t ON t.id = r.test JOIN suites s ON s.id = t.suite WHERE r.execution = ?"
            " GROUP BY t.id ORDER BY min(r.position)",
            (*_TELLING, execution_row[0]),
        ).fetchall()
        if self.tests is not None:
            keys = {(storable(suite), storable(test)) for suite, test in self.tests}
            rows = [row for row in rows if (row[0], row[1]) in keys]
        telling = [row for row in rows if row[3]]
        if not telling:
            raise AgentevalError(
                f"execution {self.execution_id} can't be a baseline: none of its runs passed or failed"
                if self.tests is None
                else f"execution {self.execution_id} has no run of these tests that passed or failed",
                fix="choose one whose agent answered",
            )
        _put(connection, [(row[2], execution_row[0], None, storable(self.who), self.at_ms) for row in telling])
        return BaselineSet(
            tuple((row[0], row[1]) for row in telling), tuple((row[0], row[1]) for row in rows if not row[3])
        )


class _SetRun(Operation):
    run_id: str
    who: str
    at_ms: int

    def apply(self, connection: sqlite3.Connection, totals: Totals) -> BaselineSet:
        """Set it for the run's test."""
        row = connection.execute(
            "SELECT s.key, t.test_id, t.id, r.id, r.status, r.superseded FROM runs r JOIN tests t ON t.id = r.test"
            " JOIN suites s ON s.id = t.suite WHERE r.uid = ?",
            (storable(self.run_id),),
        ).fetchone()
        if row is None:
            raise AgentevalError(f"there is no run {self.run_id}", fix="see agenteval history --runs")
        suite, test_id, test, run, status, superseded = row
        if superseded == FORK:
            raise AgentevalError(f"run {self.run_id} can't be a baseline: it is one of the {_FORKS}", fix=_OTHER)
        if status not in _TELLING:
            ended = "has not ended" if status in _UNENDED else f"ended as {status}"
            raise AgentevalError(
                f"run {self.run_id} can't be a baseline: it {ended}", fix="choose one that passed or failed"
            )
        _put(connection, [(test, None, run, storable(self.who), self.at_ms)])
        return BaselineSet(((suite, test_id),))


class _Clear(Operation):
    tests: Sequence[TestKey] | None

    def apply(self, connection: sqlite3.Connection, totals: Totals) -> int:
        """Delete them, and remember it: another history that still has them does not bring them again."""
        at_ms, removed = now_ms(), 0
        tests = (None,) if self.tests is None else {(storable(suite), storable(test)) for suite, test in self.tests}
        for test in tests:
            for rowid, name in tombstones.baseline_names(connection, test).items():
                tombstones.add_tombstone(connection, "baseline", name, at_ms)
                removed += connection.execute("DELETE FROM baselines WHERE id = ?", (rowid,)).rowcount
        return removed


def _put(connection: sqlite3.Connection, rows: Sequence[tuple[Any, ...]]) -> None:
    connection.executemany(
        "INSERT INTO baselines (test, execution, run, who, at_ms) VALUES (?, ?, ?, ?, ?)"
        " ON CONFLICT (test) DO UPDATE SET execution = excluded.execution, run = excluded.run,"
        " who = excluded.who, at_ms = excluded.at_ms",
        rows,
    )


def _refuse_unfinished(
    connection: sqlite3.Connection, uid: str, execution: int, kind: str, status: str, owner: str
) -> None:
    if status == "running" and not is_alive(owner):
        # Its process died, maybe behind the last run: as `queries` reads it, all that was planned has ended then.
        unended = connection.execute(
            "SELECT EXISTS (SELECT 1 FROM runs WHERE execution = ? AND status IN ('queued', 'running', 'grading'))",
            (execution,),
        ).fetchone()[0]
        status = "finished" if kind == "run" and not unended else "interrupted"
    if status == "finished":
        return
    state = "is still running" if status == "running" else f"did not finish ({status})"
    raise AgentevalError(
        f"execution {uid} can't be a baseline: it {state}",
        fix="wait until it ends" if status == "running" else "finish it with `agenteval resume`",
    )


def delete_baselines_of(connection: sqlite3.Connection, execution: int | None, runs: Sequence[int]) -> int:
    """Delete the baselines that rest on an execution or on runs that go (rowids). Gives how many there were."""
    removed = 0
    if execution is not None:
        removed += connection.execute("DELETE FROM baselines WHERE execution = ?", (execution,)).rowcount
    # Few baselines are single runs, and many runs may go.
    singles = {row[0] for row in connection.execute("SELECT run FROM baselines WHERE run IS NOT NULL")}
    for run in singles.intersection(runs):
        removed += connection.execute("DELETE FROM baselines WHERE run = ?", (run,)).rowcount
    return removed


# Each execution is walked once, however many of its tests have it as their baseline: `test` is unique here.
_RUNS_OF_EXECUTIONS = (
    "(SELECT DISTINCT execution FROM baselines WHERE execution IS NOT NULL) x"
    " CROSS JOIN runs r ON r.execution = x.execution CROSS JOIN baselines b ON b.test = r.test"
    " AND b.execution = r.execution"
)
KEPT_RUNS = f"SELECT r.id FROM {_RUNS_OF_EXECUTIONS} UNION SELECT run FROM baselines WHERE run IS NOT NULL"
"""A statement that gives the rowids of all runs that a baseline consists of: those are never pruned."""
_RUNS = (
    "WITH kept(baseline, run, single) AS ("
    f"SELECT b.id, r.id, 0 FROM {_RUNS_OF_EXECUTIONS}"
    " UNION ALL SELECT id, run, 1 FROM baselines WHERE run IS NOT NULL)"
)
_FROM = (
    " FROM kept CROSS JOIN runs r ON r.id = kept.run CROSS JOIN baselines b ON b.id = kept.baseline"
    " CROSS JOIN tests t ON t.id = b.test CROSS JOIN suites s ON s.id = t.suite"
)


def read_all(connection: sqlite3.Connection, keys: set[TestKey] | None = None) -> list[Baseline]:
    """All baselines (or those of `keys`), by suite and test. One whose runs are lost is none."""
    rows = connection.execute(
        f"{_RUNS} SELECT s.key, s.name, t.test_id, t.name, e.uid, CASE WHEN kept.single THEN r.uid ELSE '' END,"
        " b.who, b.at_ms, e.started_ms, count(*), sum(r.status = 'passed'), sum(r.status = 'error')"
        f"{_FROM} CROSS JOIN executions e ON e.id = r.execution GROUP BY b.id ORDER BY s.name, s.key, t.test_id"
    ).fetchall()
    return [Baseline(*row) for row in rows if keys is None or (row[0], row[2]) in keys]
