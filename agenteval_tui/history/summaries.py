"""How the tests of a suite did lately, read from a window of runs by index: the size of the history is no matter."""

# ruff: noqa: S608 - statements are put together from words of ours; values are always bound

from __future__ import annotations

import sqlite3
from statistics import median
from typing import Any

from agenteval_tui.history.blobs import clean
from agenteval_tui.history.rows import SUMMARY_WINDOW, CriterionSummary, TestSummary

_WINDOW = (
    "SELECT t.id, t.test_id, t.ended, r.id, r.status, r.started_ms, r.duration_ms, r.cost FROM tests t"
    " JOIN suites s ON s.id = t.suite JOIN runs r ON r.id IN ("
    "   SELECT w.id FROM runs w WHERE w.test = t.id"
    "   AND w.status IN ('passed', 'failed', 'error', 'skipped', 'needs_review') ORDER BY w.id DESC LIMIT ?)"
    " WHERE s.key = ?"
)


def test_summaries(connection: sqlite3.Connection, suite_key: str) -> dict[str, TestSummary]:
    """By test id; tests that never ended a run are left out."""
    rows = connection.execute(_WINDOW, (SUMMARY_WINDOW, clean(suite_key))).fetchall()
    by_test: dict[str, list[tuple[Any, ...]]] = {}
    test_of: dict[int, str] = {}
    for row in rows:
        by_test.setdefault(row[1], []).append(row)
        test_of[row[3]] = row[1]
    criteria = _criteria(connection, test_of)
    return {test: _summary(test, sorted(runs, key=_rowid), criteria.get(test, {})) for test, runs in by_test.items()}


def _rowid(row: tuple[Any, ...]) -> int:
    return int(row[3])


def _criteria(connection: sqlite3.Connection, test_of: dict[int, str]) -> dict[str, dict[str, CriterionSummary]]:
    out: dict[str, dict[str, CriterionSummary]] = {}
    runs = sorted(test_of)
    for start in range(0, len(runs), 1000):
        chunk = runs[start : start + 1000]
        results = connection.execute(
            "SELECT run, name, outcome FROM criterion_results"
            f" WHERE run IN ({','.join('?' * len(chunk))}) ORDER BY run, position",
            chunk,
        ).fetchall()
        for run, name, outcome in results:
            of_test = out.setdefault(test_of[run], {})
            old = of_test.get(name)
            n, passed = (0, 0) if old is None else (old.n, old.passed)
            of_test[name] = CriterionSummary(n + 1, passed + (outcome == "passed"), outcome)
    return out


def _summary(test: str, runs: list[tuple[Any, ...]], criteria: dict[str, CriterionSummary]) -> TestSummary:
    outcomes = tuple(row[4] for row in runs)
    durations = [row[6] for row in runs if row[6] is not None]
    costs = [row[7] for row in runs if row[7] is not None]
    return TestSummary(
        test_id=test,
        n=len(runs),
        passed=outcomes.count("passed"),
        errors=outcomes.count("error"),
        recent=outcomes,
        last_ms=max((row[5] for row in runs if row[5] is not None), default=None),
        p50_ms=median(durations) if durations else None,
        cost=sum(costs) / len(costs) if costs else None,
        criteria=criteria,
        total=runs[0][2],
    )
