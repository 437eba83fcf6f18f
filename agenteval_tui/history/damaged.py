"""Reading a damaged file: SQLite stops at the first broken page of a table.

So each table is read in ranges of its key, and a range that can't be read is halved until only what is broken is left
out. Where the first page, which lists the tables, is broken, a new one is put in its place, in a copy.
"""

# ruff: noqa: S608 - statements are put together from words of ours; values are always bound

from __future__ import annotations

import shutil
import sqlite3
import struct
from contextlib import suppress
from pathlib import Path
from typing import Any

from agenteval_tui.history import schema
from agenteval_tui.history.errors import is_damage

_PROBES = 20_000  # unreadable ranges a table, before the rest of it is given up
_UNKNOWN_END = 1 << 24


def open_damaged(path: Path, repaired: Path) -> sqlite3.Connection | None:
    """The damaged file, readable at least as far as its list of tables; None: not even that. `repaired` is a name for a
    copy that may be needed."""
    for first_page in (None, _with_true_size, _as_we_make_it):
        file = path
        if first_page is not None:
            page = first_page(path, repaired)
            if page is None:
                continue
            _copy_with(page, path, repaired)
            file = repaired
        source = sqlite3.connect(file, isolation_level=None)
        source.text_factory = lambda data: data.decode("utf-8", "replace")
        try:
            source.execute("PRAGMA query_only = 1")
            if source.execute("SELECT count(*) FROM sqlite_master WHERE name = 'runs'").fetchone()[0]:
                return source
        except sqlite3.DatabaseError:
            pass
        source.close()
    return None


def _with_true_size(path: Path, repaired: Path) -> bytes | None:
    """The file's own first page, with as many pages as there are: SQLite reads nothing of a file that was cut off.

    It knows where the tables of this very file begin, which is somewhere else after `vacuum` and in copies.
    """
    with path.open("rb") as file:
        head = file.read(100)
        size = int.from_bytes(head[16:18], "big")
        if not head.startswith(b"SQLite format 3\0") or size < 512 or size & (size - 1):
            return None
        file.seek(0)
        return _sized(file.read(size), head[24:28], path, size)


def _as_we_make_it(path: Path, repaired: Path) -> bytes | None:
    """The first page, which lists the tables, as this program makes it.

    Our tables are always made in the same order, so they start at the same pages. Where that is not so, the ranges
    read nothing or rows that don't fit, and those are left out.
    """
    template = Path(f"{repaired}-template")
    try:
        made = sqlite3.connect(template, isolation_level=None)
        try:
            schema.migrate(made)
            size = int(made.execute("PRAGMA page_size").fetchone()[0])
        finally:
            made.close()
        page = template.read_bytes()[:size]
    finally:
        for end in ("", "-wal", "-shm", "-journal"):
            Path(f"{template}{end}").unlink(missing_ok=True)
    return _sized(page, page[24:28], path, size)


def _sized(first: bytes, counter: bytes, path: Path, size: int) -> bytes | None:
    """The page with the number of pages that the file has, none of them free; None: there are no others."""
    length, page = path.stat().st_size, bytearray(first)
    if length < 2 * size:
        return None
    page[28:32] = struct.pack(">I", length // size)
    page[32:40] = bytes(8)  # free pages: none that we know of
    page[92:96] = counter
    return bytes(page)


def _copy_with(page: bytes, path: Path, repaired: Path) -> None:
    """A copy of the file with this first page."""
    shutil.copyfile(path, repaired)
    repaired.chmod(0o600)
    with repaired.open("r+b") as file:
        file.write(page)
    with suppress(FileNotFoundError):
        shutil.copyfile(f"{path}-wal", f"{repaired}-wal")


def copy_readable(source: sqlite3.Connection, target: sqlite3.Connection) -> None:
    """Everything of our tables that can be read, within the caller's transaction; the search index is left out."""
    from sqlite_utils import Database

    into = Database(target)
    for name in into.table_names():
        if name.startswith(("sqlite_", "search")):
            continue
        wanted = [column.name for column in into[name].columns]
        try:
            there = {row[1] for row in source.execute(f"PRAGMA table_info({name})")}
        except sqlite3.DatabaseError:
            there = set(wanted)
        columns = [column for column in wanted if column in there]
        if columns:
            _copy_table(source, target, name, columns)


def _copy_table(source: sqlite3.Connection, target: sqlite3.Connection, table: str, columns: list[str]) -> None:
    names = ", ".join(columns)
    key = columns[0]  # schema.py promises: an integer, the first of the key
    read = f"SELECT {names} FROM {table} NOT INDEXED WHERE {key} BETWEEN ? AND ?"
    write = f"INSERT OR IGNORE INTO {table} ({names}) VALUES ({','.join('?' * len(columns))})"
    low, high = _bounds(source, table, key)
    probes = 0
    pending = [(low, high)]
    while pending and probes < _PROBES:
        low, high = pending.pop()
        rows: list[tuple[Any, ...]] = []
        try:
            for row in source.execute(read, (low, high)):
                rows.append(row)
                if len(rows) >= 1000:
                    target.executemany(write, rows)
                    rows.clear()
        except sqlite3.DatabaseError as error:
            if not is_damage(error) and not isinstance(error, sqlite3.OperationalError):
                raise
            probes += 1
            if low < high:
                middle = (low + high) // 2
                # The end first onto the pile: ranges are read from the start.
                pending += [(middle + 1, high), (low, middle)]
        target.executemany(write, rows)


def _bounds(source: sqlite3.Connection, table: str, key: str) -> tuple[int, int]:
    bounds = []
    for function, unknown in (("min", 0), ("max", _UNKNOWN_END)):
        try:
            # With a plus sign SQLite reads an index if it can: the table itself may be what is broken.
            found = source.execute(f"SELECT {function}(+{key}) FROM {table}").fetchone()[0]
            bounds.append(int(found or 0))
        except (sqlite3.DatabaseError, ValueError, TypeError):
            bounds.append(unknown)
    return bounds[0], bounds[1]
