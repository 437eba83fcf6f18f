"""Values that belong together but are apart in a file, collected on disk and not in memory."""

from __future__ import annotations

import json
import sqlite3
import tempfile
from collections.abc import Iterator
from itertools import groupby
from types import TracebackType
from typing import Any


class Spool:
    """Takes values with a key in any order, and gives them back key by key, in the order of the keys' first values.

    A context manager; what it wrote is gone with it.
    """

    def __init__(self) -> None:
        self._file = tempfile.TemporaryDirectory(prefix="agenteval-")
        self._rows = sqlite3.connect(f"{self._file.name}/spool.db", isolation_level=None)
        # A file for a moment: nothing of it has to survive a crash, so it is written as fast as it can be.
        self._rows.execute("PRAGMA journal_mode = OFF")
        self._rows.execute("PRAGMA synchronous = OFF")
        self._rows.execute("CREATE TABLE keys (id INTEGER PRIMARY KEY, key TEXT UNIQUE)")
        self._rows.execute("CREATE TABLE kept (key INTEGER, place INTEGER, value TEXT)")
        self._rows.execute("BEGIN")
        self._count = 0

    def __enter__(self) -> Spool:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._rows.close()
        self._file.cleanup()

    def put(self, key: str, value: Any) -> None:
        """Keep `value` (JSON) under `key`."""
        name = json.dumps(key)  # a lone surrogate has no UTF-8
        self._rows.execute("INSERT OR IGNORE INTO keys (key) VALUES (?)", (name,))
        self._rows.execute(
            "INSERT INTO kept SELECT id, ?, ? FROM keys WHERE key = ?", (self._count, json.dumps(value), name)
        )
        self._count += 1

    def groups(self) -> Iterator[tuple[str, list[Any]]]:
        """Each key with its values, in the order in which they came."""
        rows_by_key = self._rows.execute(
            "SELECT keys.key, kept.value FROM kept JOIN keys ON keys.id = kept.key ORDER BY keys.id, kept.place"
        )
        # In the order of keys: only the values of one key are in memory.
        for key, rows in groupby(rows_by_key, key=lambda row: row[0]):
            yield json.loads(key), [json.loads(row[1]) for row in rows]
