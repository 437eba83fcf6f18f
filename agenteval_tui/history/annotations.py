"""What people left on runs and executions, for lists: labels, baselines. By row number, for a page of rows."""

# ruff: noqa: S608 - statements are put together from words of ours; values are always bound

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from msgspec import Struct

from agenteval_tui.history.baselines import KEPT_RUNS


class Note(Struct, frozen=True):
    """Of a run: whether a baseline has it, and the last rating and verdict that a person gave it as a whole (None:
    none). Of an execution: of how many tests it is the baseline, and how many of its runs are labelled."""

    baselines: int = 0
    labels: int = 0
    rating: int | None = None
    passed: bool | None = None


def notes_of_runs(connection: sqlite3.Connection, runs: Sequence[int]) -> dict[int, Note]:
    """Notes of those of these runs that have any."""
    marks = ",".join("?" * len(runs))
    noted = {
        row[0] for row in connection.execute(f"SELECT id FROM runs WHERE id IN ({marks}) AND id IN ({KEPT_RUNS})", runs)
    }
    labels: dict[int, tuple[int, int | None, bool | None]] = {}
    rows = connection.execute(
        "SELECT run, coalesce(criterion_name, criterion), rating, passed FROM labels"
        f" WHERE key = '' AND run IN ({marks}) ORDER BY at_ms, id",
        runs,
    ).fetchall()
    for run, criterion, rating, passed in rows:
        number, last, said = labels.get(run, (0, None, None))
        if criterion is None:
            last, said = rating, None if passed is None else bool(passed)
        labels[run] = (number + 1, last, said)
    return {run: Note(int(run in noted), *labels.get(run, (0, None, None))) for run in noted | labels.keys()}


def notes_of_executions(connection: sqlite3.Connection, executions: Sequence[int]) -> dict[int, Note]:
    """Notes of those of these executions that have any."""
    marks = ",".join("?" * len(executions))
    baselines = dict(
        connection.execute(
            "SELECT coalesce(b.execution, r.execution) AS of, count(*) FROM baselines b"
            f" LEFT JOIN runs r ON r.id = b.run WHERE of IN ({marks}) GROUP BY of",
            executions,
        ).fetchall()
    )
    labels = dict(
        connection.execute(
            "SELECT r.execution, count(DISTINCT r.id) FROM (SELECT DISTINCT run FROM labels WHERE key = '') l"
            f" CROSS JOIN runs r ON r.id = l.run WHERE r.execution IN ({marks}) GROUP BY r.execution",
            executions,
        ).fetchall()
    )
    return {
        execution: Note(baselines.get(execution, 0), labels.get(execution, 0))
        for execution in baselines.keys() | labels.keys()
    }
