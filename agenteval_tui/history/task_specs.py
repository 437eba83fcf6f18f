"""The tasks of runs, by content hash, so that the missing runs of an execution can run without its suites.

A task is JSON of `runs.task_payload`; this module does not read it. The tasks of an execution are stored together,
because they are similar: a thousand tasks compress to a few kilobytes, in the time that fifty single rows would take.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from agenteval_tui.core.storable import storable
from agenteval_tui.history.blobs import json_text
from agenteval_tui.history.errors import HistoryError
from agenteval_tui.history.records import StoredTask

_TOGETHER = 1_000  # tasks in a row


class PackedTask(Struct, frozen=True):
    """JSON data as it is stored in the file: its hash (16 bytes) and its bytes."""

    hash: bytes
    data: bytes


class PackedTasks:
    """The tasks of an operation, each encoded once. Runs that share a task should share the object.

    `add` all, then `pack`.
    """

    def __init__(self) -> None:
        self.packed: list[PackedTask] = []
        self._tasks: list[Mapping[str, Any]] = []
        self._numbers: dict[int, int] = {}  # by identity, as long as `_tasks` holds the objects

    def add(self, tasks: Iterable[Mapping[str, Any] | None]) -> None:
        """Add the new tasks."""
        for task in tasks:
            if task is not None and id(task) not in self._numbers:
                self._numbers[id(task)] = len(self._tasks)
                self._tasks.append(task)

    def pack(self) -> None:
        """Encode all tasks. Raises ValueError or TypeError if a task can't be written as JSON."""
        self.packed = [pack(self._tasks[start : start + _TOGETHER]) for start in range(0, len(self._tasks), _TOGETHER)]

    def place_of(self, task: Mapping[str, Any] | None, ids: Mapping[bytes, int]) -> tuple[int | None, int]:
        """The row of a task that was added, and its number there; (None, 0) for no task."""
        if task is None:
            return None, 0
        row, number = divmod(self._numbers[id(task)], _TOGETHER)
        return ids[self.packed[row].hash], number


def pack(value: object) -> PackedTask:
    """Encode and compress JSON data. Raises ValueError or TypeError where JSON can't hold it."""
    data = json_text(value).encode("ascii")
    return PackedTask(hashlib.sha256(data).digest()[:16], zlib.compress(data, 1))


def unpack(data: bytes) -> Any:
    """The data in what `pack` made. Raises HistoryError when the bytes are something else."""
    try:
        return json.loads(zlib.decompress(data))
    except (zlib.error, ValueError, RecursionError) as wrong:
        raise HistoryError(f"what is stored to resume this can't be read: {wrong}") from wrong


def store_packed(connection: sqlite3.Connection, packed: Sequence[PackedTask]) -> dict[bytes, int]:
    """The ids of rows with this data, by hash; what is not stored yet is."""
    ids = {}
    for packed_task in packed:
        row = connection.execute("SELECT id FROM tasks WHERE hash = ?", (packed_task.hash,)).fetchone()
        if row is None:
            row = connection.execute(
                "INSERT INTO tasks (hash, data) VALUES (?, ?) RETURNING id", (packed_task.hash, packed_task.data)
            ).fetchone()
        ids[packed_task.hash] = int(row[0])
    return ids


def tasks_of(connection: sqlite3.Connection, execution_id: str) -> dict[str, StoredTask]:
    """The tasks of an execution's runs, by run id; runs that share one share the object."""
    uid = storable(execution_id)
    packed = connection.execute(
        "SELECT t.id, t.data FROM tasks t WHERE t.id IN"
        " (SELECT task FROM runs WHERE execution = (SELECT id FROM executions WHERE uid = ?))",
        (uid,),
    ).fetchall()
    tasks: dict[tuple[int, int], Mapping[str, Any]] = {}
    for row, data in packed:
        tasks.update(((row, number), task) for number, task in enumerate(unpack(data)))
    rows = connection.execute(
        "SELECT uid, task, task_number, seed FROM runs"
        " WHERE execution = (SELECT id FROM executions WHERE uid = ?) AND task IS NOT NULL",
        (uid,),
    ).fetchall()
    return {run: StoredTask(tasks[row, number], seed) for run, row, number, seed in rows if (row, number) in tasks}


def task_of(connection: sqlite3.Connection, run_id: str) -> Mapping[str, Any] | None:
    """The task of one run; None: it was imported."""
    row = connection.execute(
        "SELECT t.data, r.task_number FROM runs r JOIN tasks t ON t.id = r.task WHERE r.uid = ?", (storable(run_id),)
    ).fetchone()
    if row is None:
        return None
    listed = unpack(row[0])
    task: Mapping[str, Any] | None = listed[row[1]] if 0 <= row[1] < len(listed) else None
    return task


def setup_of(connection: sqlite3.Connection, execution_id: str) -> dict[str, Any] | None:
    """What the tasks of an execution have in common; None: it has no such thing, or it was lost."""
    row = connection.execute(
        "SELECT t.data FROM executions e JOIN tasks t ON t.id = e.setup WHERE e.uid = ?", (storable(execution_id),)
    ).fetchone()
    if row is None:
        return None
    setup: dict[str, Any] = unpack(row[0])
    return setup
