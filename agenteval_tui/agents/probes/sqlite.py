"""A query of a SQLite database: it reads, changes nothing, and ends in time."""

from __future__ import annotations

import contextlib
import json
import sqlite3
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from agenteval_tui.agents.probes.files import place_of, real_path
from agenteval_tui.agents.probes.limits import MOST_BYTES, MOST_ROWS, UnreadError, too_large
from agenteval_tui.transcripts.state import ReadingProblem

_STEPS = 1_000  # of SQLite's machine, between two looks at the clock
_BUSY_S = 2.0  # at most, for whoever writes
_SMALLEST, _LARGEST = -(2**63), 2**63 - 1
_READS = frozenset((sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE))
_PRAGMAS = frozenset(("table_info", "table_list", "table_xinfo", "index_list", "index_info", "foreign_key_list"))


def query(
    sql: str, name: str, folder: Path, variables: Mapping[str, Any], *, trusted: bool, until: float
) -> str | list[dict[str, Any]] | None:
    """The result of a query: one value as text (null is None), or a list with an object for each row.

    `name` is the database's path, relative to `folder`; outside of it only where that is `trusted`. `variables` are the
    parameters (`:name`). `until`: when to give up, on the monotonic clock. Raises `UnreadError`.
    """
    database = real_path(place_of(name, folder), name, folder, trusted=trusted)
    if not database.exists():
        raise UnreadError(ReadingProblem.NO_FILE, file=name)
    if not database.is_file():
        raise UnreadError(ReadingProblem.NOT_A_FILE, file=name)
    address = f"file:{quote(str(database.absolute()))}?mode=ro"
    wait_s = max(0.0, min(_BUSY_S, until - time.monotonic()))
    try:
        with contextlib.closing(
            sqlite3.connect(address, uri=True, timeout=wait_s, isolation_level=None, check_same_thread=False)
        ) as connection:
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 4 * MOST_BYTES)
            connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
            connection.execute("pragma schema_version")  # a query that reads no table would not look at the file
            connection.set_authorizer(_allowed)
            connection.set_progress_handler(lambda: int(time.monotonic() > until), _STEPS)
            cursor = connection.execute(sql, {name: _parameter(value) for name, value in variables.items()})
            return _result(cursor)
    except sqlite3.Error as error:
        raise _problem(error, name, until) from None
    except UnicodeDecodeError:
        raise UnreadError(ReadingProblem.NOT_TEXT, file=name) from None


def _parameter(value: object) -> object:
    """A variable as SQLite takes it: a list or an object as JSON, and a number beyond its integers as its digits."""
    fits = _SMALLEST <= value <= _LARGEST if isinstance(value, int) else isinstance(value, str | float | None)
    return value if fits else json.dumps(value, ensure_ascii=False)


def _allowed(action: int, first: str | None, *_: object) -> int:
    if action in _READS:
        return sqlite3.SQLITE_DENY if first == "load_extension" else sqlite3.SQLITE_OK
    if action == sqlite3.SQLITE_PRAGMA and (first or "").lower() in _PRAGMAS:
        return sqlite3.SQLITE_OK
    return sqlite3.SQLITE_DENY


def _result(cursor: sqlite3.Cursor) -> str | list[dict[str, Any]] | None:
    columns = [column[0] for column in cursor.description or ()]
    if not columns:
        raise UnreadError(ReadingProblem.SQL, message="this is not a query: it returns nothing")
    twice = next((name for number, name in enumerate(columns) if name in columns[:number]), None)
    if twice is not None:
        raise UnreadError(ReadingProblem.SAME_COLUMN, column=twice)
    rows: list[dict[str, Any]] = []
    size = 0
    for row in cursor:
        if len(rows) >= MOST_ROWS:
            raise UnreadError(ReadingProblem.TOO_MANY, most=MOST_ROWS, what="rows")
        for column, value in zip(columns, row, strict=True):
            if isinstance(value, bytes):
                raise UnreadError(ReadingProblem.NOT_TEXT, column=column)
            size += len(column) + (len(value) if isinstance(value, str) else 8)
        if size > MOST_BYTES:
            raise too_large()
        rows.append(dict(zip(columns, row, strict=True)))
    if len(rows) == 1 and len(columns) == 1:
        value = rows[0][columns[0]]
        return value if value is None else str(value)
    return rows


def _problem(error: sqlite3.Error, name: str, until: float) -> UnreadError:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code == sqlite3.SQLITE_INTERRUPT or (time.monotonic() > until and code != sqlite3.SQLITE_ERROR):
        raise TimeoutError from None
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return UnreadError(ReadingProblem.LOCKED, database=name)
    if code in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT):
        return UnreadError(ReadingProblem.NOT_A_DATABASE, database=name)
    if code == sqlite3.SQLITE_TOOBIG:
        return too_large()
    if code == sqlite3.SQLITE_AUTH:
        return UnreadError(ReadingProblem.SQL, message="a probe only reads: it may not change, attach or configure")
    return UnreadError(ReadingProblem.SQL, message=str(error))
