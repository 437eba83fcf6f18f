"""Taking runs out of the history: their rows, search entries, replies, labels, and what nothing else needs.

Runs go in small batches, so that an execution which writes at the same time waits for milliseconds. An execution goes
with its last run.
"""

# ruff: noqa: S608 - statements are put together from words of ours; values are always bound

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from msgspec import Struct

from agenteval_tui.core.groups import grouped
from agenteval_tui.history import baselines
from agenteval_tui.history.bulk_sql import batches
from agenteval_tui.history.connections import free_bytes
from agenteval_tui.history.process_liveness import is_alive
from agenteval_tui.history.recordings import mark_superseded
from agenteval_tui.history.replies import forget_runs
from agenteval_tui.history.resume import forget_transcript
from agenteval_tui.history.run_writes import withdraw
from agenteval_tui.history.store import Store
from agenteval_tui.history.workdirs import sweep_workdirs
from agenteval_tui.history.writer import Operation, Totals

PRUNED = "some of its runs were removed"
"""What an execution says of which only some runs are left."""
_BATCH = 200  # runs in the first transaction
_SMALLEST, _LARGEST = 25, 800
_LONGEST = 0.15  # seconds that a transaction should take at most: so long others wait for the lock
_LONGEST_REST = 0.25  # seconds between two batches while others write


class DeleteResult(Struct, frozen=True):
    """How many of each are gone. `free_bytes` is what lies unused in the file now, for new rows or for `vacuum`."""

    runs: int = 0
    executions: int = 0
    orphans: int = 0
    free_bytes: int = 0


Progress = Callable[[int, int], bool]
"""Told how many runs are gone and how many there were to be; True: stop here."""


def remove_runs(
    store: Store,
    runs: Sequence[int],
    *,
    executions: Sequence[int] = (),
    unless: str = "",
    on_progress: Progress | None = None,
) -> DeleteResult:
    """Remove runs by rowid, and `executions` (rowids) as far as they have no run left. Blocks.

    What belongs to an execution that is running stays, and what `unless` names: an SQL condition over table `runs`,
    asked at the moment of removal. Baselines that rest on what goes, go. Raises HistoryError.
    """
    removed_runs = removed_executions = at = 0
    size = _BATCH
    while at < len(runs):
        began = time.monotonic()
        batch: tuple[int, int] = store.write(_Remove(runs[at : at + size], (), unless)).result()
        took = time.monotonic() - began
        removed_runs += batch[0]
        removed_executions += batch[1]
        at = min(at + size, len(runs))
        size = (
            max(size // 2, _SMALLEST) if took > _LONGEST else min(size * 2, _LARGEST) if took < _LONGEST / 4 else size
        )
        if on_progress is not None and on_progress(at, len(runs)):
            break
        if store.read(running_executions):
            # SQLite's locks are not fair: without a rest others would seldom come between two batches.
            time.sleep(min(took, _LONGEST_REST))
    else:
        for some in batches(executions, _BATCH):
            removed_executions += store.write(_Remove((), some, unless)).result()[1]
    # Once, behind all batches: it walks over all runs.
    orphans = int(store.write(_Sweep()).result()) if removed_runs or removed_executions else 0
    sweep_workdirs(store)
    return DeleteResult(removed_runs, removed_executions, orphans, store.read(free_bytes))


def running_executions(connection: sqlite3.Connection) -> list[int]:
    """Rowids of executions whose process is alive."""
    rows = connection.execute("SELECT id, owner FROM executions WHERE status = 'running'").fetchall()
    return [rowid for rowid, owner in rows if is_alive(owner)]


def runs_of(connection: sqlite3.Connection, executions: Sequence[int]) -> list[int]:
    """Rowids of all runs of these executions."""
    runs: list[int] = []
    for execution in executions:
        runs += [row[0] for row in connection.execute("SELECT id FROM runs WHERE execution = ?", (execution,))]
    return runs


class _Remove(Operation):
    """A batch of runs, and executions that may be empty. Gives how many runs and executions went."""

    runs: Sequence[int]
    executions: Sequence[int]
    unless: str

    def apply(self, connection: sqlite3.Connection, totals: Totals) -> tuple[int, int]:
        """Delete them, and take their share out of the totals."""
        # Asked under the lock: an execution may have been resumed since the runs were chosen.
        busy = set(running_executions(connection))
        rows = [row for row in self._rows(connection) if row[1] not in busy]
        runs = [row[0] for row in rows]
        attempts = spent_by_attempts(connection, runs)
        for run, execution, *_ in rows:
            withdraw(connection, totals, run)
            totals.add(execution, "runs", -1)
            for column, number in attempts.get(run, ()):
                totals.add(execution, column, -number)
        forget_runs(connection, runs)
        baselines.delete_baselines_of(connection, None, runs)
        run_ids = [(run,) for run in runs]
        connection.executemany("DELETE FROM failed_attempts WHERE run = ?", run_ids)
        connection.executemany("DELETE FROM tapes WHERE run = ?", run_ids)
        connection.executemany("DELETE FROM runs WHERE id = ?", run_ids)
        # Another grading of the same recording may count from now on.
        mark_superseded(connection, [row[-2] or row[-1] for row in rows])
        for transcript in {row[-3] for row in rows if row[-3] is not None}:
            forget_transcript(connection, transcript)
        touched = {row[1] for row in rows}
        removed_executions = 0
        for execution in touched.union(self.executions) - busy:
            if connection.execute("SELECT 1 FROM runs WHERE execution = ? LIMIT 1", (execution,)).fetchone():
                connection.execute(
                    "UPDATE executions SET message = ? WHERE id = ? AND message = '' AND status != 'running'",
                    (PRUNED, execution),
                )
                continue
            connection.execute("DELETE FROM imports WHERE execution = ?", (execution,))
            baselines.delete_baselines_of(connection, execution, ())
            removed_executions += connection.execute("DELETE FROM executions WHERE id = ?", (execution,)).rowcount
            # Its row is gone: there is nothing to add to.
            totals.executions.pop(execution, None)
        return len(runs), removed_executions

    def _rows(self, connection: sqlite3.Connection) -> list[tuple[Any, ...]]:
        if not self.runs:
            return []
        unless = f" AND NOT ({self.unless})" if self.unless else ""
        return connection.execute(
            "SELECT id, execution, transcript, recording, uid FROM runs"
            f" WHERE id IN ({','.join('?' * len(self.runs))}){unless}",
            list(self.runs),
        ).fetchall()


def spent_by_attempts(connection: sqlite3.Connection, runs: Sequence[int]) -> dict[int, list[tuple[str, float]]]:
    """What failed attempts of these runs put into the totals, by run."""
    if not runs:
        return {}
    rows = connection.execute(
        "SELECT run, input_tokens, output_tokens, cost FROM failed_attempts"
        f" WHERE run IN ({','.join('?' * len(runs))})",
        list(runs),
    ).fetchall()
    return grouped(
        (run, (column, number))
        for run, *spent in rows
        for column, number in zip(("input_tokens", "output_tokens", "cost"), spent, strict=True)
        if number is not None
    )


class _Sweep(Operation):
    """What no run needs any more: plans, tasks, transcripts, replies, versions of criteria. Gives the number of rows.

    One walk over the runs a table: an index of its own for each would cost every run that is stored more than that.
    """

    def apply(self, connection: sqlite3.Connection, totals: Totals) -> int:
        """Delete them."""
        return sum(connection.execute(f"DELETE FROM {table} WHERE {where}").rowcount for table, where in orphan_rows())


def orphan_rows() -> Iterator[tuple[str, str]]:
    """(table, condition) of rows that nothing needs, in the order in which they can go."""
    yield "plans", "id NOT IN (SELECT plan FROM runs)"
    yield "dataset_rows", "id NOT IN (SELECT dataset_row FROM runs WHERE dataset_row IS NOT NULL)"
    yield (
        "tasks",
        "id NOT IN (SELECT task FROM runs WHERE task IS NOT NULL"
        " UNION SELECT setup FROM executions WHERE setup IS NOT NULL)"
        " AND lower(hex(hash)) NOT IN (SELECT one.value FROM executions, json_each(executions.programs) AS one)",
    )
    yield "transcripts", "id NOT IN (SELECT transcript FROM runs WHERE transcript IS NOT NULL)"
    yield "tool_calls", "transcript NOT IN (SELECT id FROM transcripts)"
    yield "run_replies", "run NOT IN (SELECT id FROM runs)"
    yield "judge_replies", "id NOT IN (SELECT reply FROM run_replies)"
    yield "criterion_texts", "test NOT IN (SELECT test FROM runs)"
    # A version that no stored verdict, label, reply or plan speaks of can't be told to belong to any test.
    yield (
        "criteria",
        "id NOT IN (SELECT criterion FROM criterion_results WHERE criterion IS NOT NULL"
        " UNION SELECT criterion FROM labels WHERE criterion IS NOT NULL"
        " UNION SELECT criterion FROM run_replies WHERE criterion IS NOT NULL)"
        " AND hash NOT IN (SELECT one.value FROM plans, json_each(plans.criteria) AS one)",
    )
    yield "criterion_texts", "criterion NOT IN (SELECT id FROM criteria)"
