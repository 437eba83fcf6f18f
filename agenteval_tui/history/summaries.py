"""How the tests of a suite did recently, read from a window of runs by index: the size of the history does not
matter."""

from __future__ import annotations

import sqlite3
from typing import Any

from agenteval_tui.history.blobs import clean
from agenteval_tui.history.records import SUMMARY_WINDOW, CriterionSummary, TestSummary

_WINDOW = (
    "WITH recent AS (SELECT t.id AS test, t.test_id, t.ended, r.id AS run FROM tests t"
    " JOIN suites s ON s.id = t.suite JOIN runs r ON r.id IN ("
    "   SELECT w.id FROM runs w WHERE w.test = t.id"
    "   AND w.status IN ('passed', 'failed', 'error', 'skipped', 'needs_review') AND w.superseded = 0"
    "   ORDER BY w.id DESC LIMIT ?)"
    " WHERE s.key = ?)"
)
_RUNS = (
    " SELECT recent.test_id, recent.ended, r.status, r.started_ms, r.duration_ms, r.cost, r.execution,"
    " iif(r.agent_version = '', r.agent, r.agent_version) || char(31)"
    " || ifnull((SELECT group_concat(c.criterion) FROM criterion_results c WHERE c.run = r.id), '')"
    " FROM recent JOIN runs r ON r.id = recent.run ORDER BY recent.run"
)
# Without being told, SQLite counts them in the index of all runs of a test, and looks up each row.
_SUPERSEDED = (
    "SELECT t.test_id, count(*) FROM suites s JOIN tests t ON t.suite = s.id"
    " JOIN runs o INDEXED BY runs_superseded ON o.test = t.id WHERE s.key = ? AND o.superseded GROUP BY t.id"
)
# Of another agent, or of another version of the criterion, figures are others.
# SQLite promises: beside max() the other columns (here the outcome) are those of the row with the maximum,
# as long as there is no second min() or max().
_CRITERIA = (
    " SELECT recent.test_id, c.name, count(*), sum(c.outcome = 'passed'), c.outcome, max(c.run) AS newest"
    " FROM recent JOIN criterion_results c ON c.run = recent.run JOIN runs r ON r.id = recent.run"
    " GROUP BY recent.test, c.name, c.criterion, iif(r.agent_version = '', r.agent, r.agent_version)"
    " ORDER BY recent.test, avg(c.position), newest"
)
_SAID = (
    " SELECT recent.test_id,"
    " substr(coalesce(nullif(r.why, ''), nullif(r.error_message, ''), r.output_head), 1, 300), r.agent, max(r.id)"
    " FROM recent JOIN runs r ON r.id = recent.run GROUP BY recent.test"
)


def test_summaries(connection: sqlite3.Connection, suite_key: str) -> dict[str, TestSummary]:
    """By test id; tests that never ended a run are left out."""
    which = (SUMMARY_WINDOW, clean(suite_key))
    runs: dict[str, list[tuple[Any, ...]]] = {}
    for test, *row in connection.execute(_WINDOW + _RUNS, which).fetchall():
        runs.setdefault(test, []).append(tuple(row))
    criteria: dict[str, dict[str, CriterionSummary]] = {}
    newest: dict[tuple[str, str], int] = {}
    for test, name, n, passed, last, run in connection.execute(_WINDOW + _CRITERIA, which).fetchall():
        by_name = criteria.setdefault(test, {})
        if run >= newest.get((test, name), 0):  # of its versions and agents those of the last run
            newest[test, name], by_name[name] = run, CriterionSummary(n, passed, last)
    older = dict(connection.execute(_SUPERSEDED, which[1:]).fetchall())
    last_answers = {
        test: (words, agent) for test, words, agent, _ in connection.execute(_WINDOW + _SAID, which).fetchall()
    }
    return {
        test: _summary(test, rows, criteria.get(test, {}), older.get(test, 0), *last_answers.get(test, ("", "")))
        for test, rows in runs.items()
    }


def _median(numbers: list[float]) -> float | None:
    # Not from `statistics`: that module takes longer to load than a first page to read.
    ordered, half = sorted(numbers), len(numbers) // 2
    if not ordered:
        return None
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2


def _summary(
    test: str,
    runs: list[tuple[Any, ...]],
    criteria: dict[str, CriterionSummary],
    superseded: int,
    answer: str,
    agent: str,
) -> TestSummary:
    total, outcomes, started, durations, costs, executions, settings = zip(*runs, strict=True)
    measured = [duration for duration in durations if duration is not None]
    spent = [cost for cost in costs if cost is not None]
    return TestSummary(
        test_id=test,
        n=len(runs),
        passed=outcomes.count("passed"),
        errors=outcomes.count("error"),
        recent=outcomes,
        last_ms=max((moment for moment in started if moment is not None), default=None),
        p50_ms=_median(measured),
        cost=sum(spent) / len(spent) if spent else None,
        criteria=criteria,
        total=total[0] - superseded,
        settings=settings,
        executions=executions,
        said=answer,
        agent=agent,
    )
