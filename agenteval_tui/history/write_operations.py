"""What else is written, and how a batch of operations is put together."""

# ruff: noqa: S608 - statements are put together from words of ours; values are always bound

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any, ClassVar

from msgspec import field

from agenteval_tui.core.ids import now_ms
from agenteval_tui.core.storable import storable
from agenteval_tui.history import baselines, queries
from agenteval_tui.history.blobs import json_text
from agenteval_tui.history.errors import HistoryError
from agenteval_tui.history.replies import forget_runs
from agenteval_tui.history.resume import forget_transcript
from agenteval_tui.history.run_writes import EndRuns, StartRun, end_runs, start_runs, withdraw
from agenteval_tui.history.writer import Operation, Totals


def apply_operations(connection: sqlite3.Connection, totals: Totals, waiting: Sequence[Operation]) -> list[Any]:
    """Apply a batch. Starts and ends of runs that lie between two other operations are written together.

    Starts go first: one that comes behind its run's end would change nothing anyway.
    """
    values: list[Any] = []
    starts: list[StartRun] = []
    ends: dict[str, EndRuns] = {}

    def write_runs() -> None:
        if starts:
            start_runs(connection, starts)
            starts.clear()
        if ends:
            end_runs(connection, totals, list(ends.values()))
            ends.clear()

    for operation in waiting:
        if isinstance(operation, StartRun):
            starts.append(operation)
            values.append(None)
        elif isinstance(operation, EndRuns):
            # Two ends of one run: `end_runs` takes each run once, and the later end replaces the earlier one.
            if operation.ended.run_id in ends:
                write_runs()
            ends[operation.ended.run_id] = operation
            values.append(None)
        else:
            write_runs()
            values.append(operation.apply(connection, totals))
    write_runs()
    return values


class EndExecution(Operation):
    """An execution is over."""

    patient: ClassVar[bool] = True
    execution_id: str
    status: str
    message: str = ""
    startup_ms: float | None = None
    around: str = ""
    at_ms: int = field(default_factory=now_ms)

    def prepare(self) -> None:
        """Refuse a status that no list knows."""
        if self.status not in ("finished", "cancelled", "stopped", "failed", "interrupted"):
            raise HistoryError(f"an execution can't end as {self.status!r}")

    def apply(self, connection: sqlite3.Connection, totals: Totals) -> None:
        """Set the status. Cancelled: what had not ended is cancelled too. Else it goes back to the queue, where a
        later process may take it up."""
        row = connection.execute("SELECT id FROM executions WHERE uid = ?", (self.execution_id,)).fetchone()
        if row is None:
            raise HistoryError(f"there is no execution {self.execution_id}")
        execution: int = row[0]
        connection.execute(
            "UPDATE executions SET status = ?1, finished_ms = ?2, message = ?3,"
            " startup_ms = coalesce(startup_ms + ?4, ?4, startup_ms), around = coalesce(?6, around) WHERE id = ?5",
            (self.status, self.at_ms, storable(self.message), self.startup_ms, execution, self.around or None),
        )
        condition = "execution = ? AND status IN ('queued', 'running', 'grading')"
        if self.status == "cancelled":
            cursor = connection.execute(f"UPDATE runs SET status = 'cancelled' WHERE {condition}", (execution,))
            totals.add(execution, "cancelled", cursor.rowcount)
        else:
            connection.execute(f"UPDATE runs SET status = 'queued' WHERE {condition}", (execution,))


class AlreadyImportedError(HistoryError):
    """A file with this digest is in the history already, as `execution_id`: another import of it was quicker."""

    def __init__(self, execution_id: str) -> None:
        super().__init__(f"this file was imported before, as execution {execution_id}")
        self.execution_id = execution_id


class EndImport(Operation):
    """An import has finished: the execution and the digest of its file go into the history together. `digest`: "" when
    the file should not be recognized again. `notes`: the notes on the import, a sentence each.
    """

    digest: str
    execution_id: str
    path: str
    notes: tuple[str, ...] = ()

    def apply(self, connection: sqlite3.Connection, totals: Totals) -> None:
        """End the execution. Raises `AlreadyImportedError`, under the lock, when another import of the file has ended:
        of two at the same time one comes in."""
        if self.digest:
            before = queries.imported(connection, self.digest)
            if before is not None and before != self.execution_id:
                raise AlreadyImportedError(before)
        EndExecution(self.execution_id, "finished").apply(connection, totals)
        if self.notes:
            connection.execute(
                "UPDATE executions SET options = json_set(options, '$.notes', json(?)) WHERE uid = ?",
                (json_text([storable(note) for note in self.notes]), self.execution_id),
            )
        if not self.digest:
            return
        connection.execute(
            "INSERT INTO imports (digest, execution, path, at_ms)"
            " SELECT ?, id, ?, ? FROM executions WHERE uid = ?"
            " ON CONFLICT (digest) DO UPDATE SET execution = excluded.execution, path = excluded.path,"
            " at_ms = excluded.at_ms",
            (self.digest, storable(self.path), now_ms(), self.execution_id),
        )


class DeleteExecution(Operation):
    """An execution with all its runs."""

    execution_id: str

    def apply(self, connection: sqlite3.Connection, totals: Totals) -> int:
        """Delete it and what only it used. Returns how many runs went."""
        row = connection.execute("SELECT id FROM executions WHERE uid = ?", (self.execution_id,)).fetchone()
        if row is None:
            return 0
        execution: int = row[0]
        rows = connection.execute("SELECT id, transcript FROM runs WHERE execution = ?", (execution,)).fetchall()
        for run, _ in rows:
            withdraw(connection, totals, run)
        forget_runs(connection, [row[0] for row in rows])
        baselines.delete_baselines_of(connection, execution, [row[0] for row in rows])
        run_ids = [(row[0],) for row in rows]
        connection.executemany("DELETE FROM failed_attempts WHERE run = ?", run_ids)
        connection.executemany("DELETE FROM tapes WHERE run = ?", run_ids)
        connection.execute("DELETE FROM runs WHERE execution = ?", (execution,))
        for transcript in {row[-1] for row in rows if row[-1] is not None}:
            forget_transcript(connection, transcript)
        connection.execute("DELETE FROM imports WHERE execution = ?", (execution,))
        connection.execute("DELETE FROM executions WHERE id = ?", (execution,))
        # Its row is gone: there is nothing to add to.
        totals.executions.pop(execution, None)
        return len(rows)


class Barrier(Operation):
    """Done when all before it is done."""

    def apply(self, connection: sqlite3.Connection, totals: Totals) -> None:
        """Nothing to write."""
