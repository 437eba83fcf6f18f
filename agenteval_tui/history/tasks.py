"""What runs are made of, by content hash, so that what is missing of an execution can be run without its suites.

A task is JSON of `runs.tasks`; nothing here looks into it. It is stored once, however many runs share it.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from agenteval_tui.history.blobs import clean, json_text
from agenteval_tui.history.bulk import look_up, write_rows
from agenteval_tui.history.errors import HistoryError
from agenteval_tui.history.rows import StoredTask

_SMALL = 600  # bytes that are stored as they are: compressing them would cost time and save next to nothing
_PLAIN = b"{"


@dataclass(frozen=True, slots=True)
class Packed:
    """A task as it lies in the file: its hash (16 bytes) and its bytes."""

    hash: bytes
    data: bytes


class PackedTasks:
    """The tasks of an operation, each encoded once. Runs that share a task should share the object."""

    def __init__(self) -> None:
        self.by_hash: dict[bytes, bytes] = {}
        self._hashes: dict[int, bytes] = {}  # by identity, as long as `_kept` holds the objects
        self._kept: list[Mapping[str, Any]] = []

    def add(self, tasks: Iterable[Mapping[str, Any] | None]) -> None:
        """Encode those that are new. Raises ValueError or TypeError where JSON can't hold one."""
        for task in tasks:
            if task is not None and id(task) not in self._hashes:
                self.add_one(task)

    def add_one(self, task: Mapping[str, Any] | None) -> Packed | None:
        """Encode one; None stays None."""
        if task is None:
            return None
        packed = pack_task(task)
        self._kept.append(task)
        self._hashes[id(task)] = packed.hash
        self.by_hash[packed.hash] = packed.data
        return packed

    def hash_of(self, task: Mapping[str, Any]) -> bytes:
        """The hash of a task that was added."""
        return self._hashes[id(task)]


def pack_task(task: Mapping[str, Any]) -> Packed:
    """Encode and, where it pays, compress."""
    data = json_text(dict(task)).encode("ascii")
    return Packed(hashlib.sha256(data).digest()[:16], data if len(data) <= _SMALL else zlib.compress(data, 1))


def unpack_task(data: bytes) -> dict[str, Any]:
    """The task in what `pack_task` made. Raises HistoryError when the bytes are something else."""
    try:
        found: dict[str, Any] = json.loads(data if data.startswith(_PLAIN) else zlib.decompress(data))
    except (zlib.error, ValueError) as wrong:
        raise HistoryError(f"what is stored to resume this can't be read: {wrong}") from wrong
    return found


def store_tasks(connection: sqlite3.Connection, tasks: PackedTasks) -> dict[bytes, int]:
    """The ids of the tasks, by hash; those that are not stored yet are."""
    if not tasks.by_hash:
        return {}
    ids: dict[bytes, int] = dict(
        look_up(connection, "SELECT hash, id FROM tasks WHERE hash IN {keys}", list(tasks.by_hash))
    )
    # The write lock is ours, so the next numbers are too.
    number = int(connection.execute("SELECT coalesce(max(id), 0) FROM tasks").fetchone()[0])
    new = []
    for content_hash, data in tasks.by_hash.items():
        if content_hash not in ids:
            number += 1
            ids[content_hash] = number
            new.append((number, content_hash, data))
    write_rows(connection, "INSERT INTO tasks (id, hash, data) {rows}", new)
    return ids


def tasks_of(connection: sqlite3.Connection, execution_id: str) -> dict[str, StoredTask]:
    """The tasks of an execution's runs, by run id; runs that share one share the object."""
    uid = clean(execution_id)
    packed = connection.execute(
        "SELECT t.id, t.data FROM tasks t WHERE t.id IN"
        " (SELECT task FROM runs WHERE execution = (SELECT id FROM executions WHERE uid = ?))",
        (uid,),
    ).fetchall()
    tasks = {number: unpack_task(data) for number, data in packed}
    rows = connection.execute(
        "SELECT uid, task, seed FROM runs WHERE execution = (SELECT id FROM executions WHERE uid = ?)", (uid,)
    ).fetchall()
    return {run: StoredTask(tasks[task], seed) for run, task, seed in rows if task in tasks}


def setup_of(connection: sqlite3.Connection, execution_id: str) -> dict[str, Any] | None:
    """What the tasks of an execution have in common; None: it has no such thing, or it was lost."""
    found = connection.execute(
        "SELECT t.data FROM executions e JOIN tasks t ON t.id = e.setup WHERE e.uid = ?", (clean(execution_id),)
    ).fetchone()
    return None if found is None else unpack_task(found[0])
