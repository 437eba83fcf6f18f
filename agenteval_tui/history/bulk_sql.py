"""Many rows in one statement.

Python's sqlite3 gives the interpreter's lock away for each step and must win it back: with a statement a row, the
writer and the program's main thread slow each other down. A statement for 64 rows is one step, which runs beside the
main thread. Statements come in three sizes, so that SQLite compiles each once.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import islice
from typing import Any, TypeVar

_SIZES = (64, 8, 1)
_T = TypeVar("_T")


def batches(items: Iterable[_T], size: int) -> Iterator[list[_T]]:
    """The items in their order, at most `size` at a time."""
    remaining = iter(items)
    while batch := list(islice(remaining, size)):
        yield batch


def write_rows(connection: sqlite3.Connection, statement: str, rows: Sequence[tuple[Any, ...]]) -> list[Any]:
    """Execute `statement` for all rows; `{rows}` in it is replaced by `VALUES (?, ...), ...`. Where it ends in
    RETURNING, gives what it returned, in any order."""
    returned: list[Any] = []
    for chunk in _chunks(rows):
        values = [value for row in chunk for value in row]
        returned += connection.execute(_expanded(statement, len(chunk), len(chunk[0])), values).fetchall()
    return returned


def look_up(connection: sqlite3.Connection, statement: str, keys: Sequence[Any]) -> list[Any]:
    """The rows of a query for many keys, which ends in `IN {keys}`."""
    rows: list[Any] = []
    for chunk in _chunks(keys):
        rows += connection.execute(statement.replace("{keys}", f"({_marks(len(chunk))})"), chunk).fetchall()
    return rows


def rows_among(connection: sqlite3.Connection, statement: str, keys: Iterable[Any]) -> list[Any]:
    """The same with one statement, however many keys there are: for queries that sort or group what they find. It has
    `{keys}` anywhere, and no other value."""
    among = statement.replace("{keys}", "(SELECT value FROM json_each(?))")
    return connection.execute(among, (json.dumps(list(keys)),)).fetchall()


def _chunks(items: Sequence[_T]) -> Iterator[Sequence[_T]]:
    """The items in their order, as many at a time as one of the statements takes."""
    position = 0
    for size in _SIZES:
        while len(items) - position >= size:
            yield items[position : position + size]
            position += size


@lru_cache(maxsize=256)
def _expanded(statement: str, rows: int, columns: int) -> str:
    return statement.replace("{rows}", "VALUES " + ", ".join([f"({_marks(columns)})"] * rows))


@lru_cache(maxsize=64)
def _marks(number: int) -> str:
    return ", ".join("?" * number)
