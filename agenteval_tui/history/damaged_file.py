"""What SQLite can still read of a damaged history file.

It reads from a copy with a new list of tables. A range of rows that can't be read is halved until single rows are left.
Rows that no page leads to any more are read by naming the page they are on as the first of a table. So a destroyed page
costs what was on it, and nothing that was deleted comes back: indexes tell which rows there were. Where each index of
a table is destroyed, too, the rows of pages that are not free are taken.
"""

# ruff: noqa: S608 - statements are put together from words of ours; values are always bound

from __future__ import annotations

import os
import shutil
import sqlite3
import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, BinaryIO

from msgspec import Struct, field
from msgspec.structs import astuple, replace

from agenteval_tui.core.atomic_write import PRIVATE
from agenteval_tui.history import import_validation, schema
from agenteval_tui.history.blobs import are_results, is_transcript
from agenteval_tui.history.bulk_sql import batches
from agenteval_tui.history.connections import connect_reader
from agenteval_tui.history.errors import MAGIC, result_code

_SIZES = (4096, 1024, 512, 2048, 8192, 16384, 32768, 65536)
"""Of pages; that of our own files is the first."""
_ALL = (1, (1 << 63) - 1)  # rows
_TOGETHER = 200  # pages
_LOG_MAGIC = b"\x37\x7f\x06"
_PAGES_LOOKED_AT = 4_000
_PAGES = (2, 5, 10, 13)
"""The first byte of pages of tables and indexes."""
_INNER_ROWS, _LEAVES = 2, {True: 10, False: 13}
"""The first byte of pages with rows: those of a table without rowid that lead to others, and the others, by whether the
table has no rowid."""
_NEUTRAL = {"INTEGER": "0", "REAL": "0.0", "BLOB": "x''"}
_ENTRIES = (
    "SELECT type, name, tbl_name, rootpage, sql FROM {} WHERE rowid BETWEEN ? AND ? AND type IN ('table', 'index')"
    " AND typeof(name) = 'text' AND typeof(tbl_name) = 'text' AND typeof(rootpage) = 'integer'"
    " AND typeof(sql) IN ('text', 'null')"
)
_CONTENT: dict[str, tuple[str, Callable[..., bool]]] = {
    "transcripts": ("hash, data", is_transcript),
    "tasks": ("data, hash", import_validation.is_packed),
    "evidence": ("data", are_results),
    "judge_replies": ("data", import_validation.is_packed),
    "tapes": ("data", import_validation.is_packed),
}
"""For tables of packed data: the columns that tell whether a row is what was stored, and who knows it."""
_WHOLE = "plans"
"""The table of which a row is useless without its lists: its hash no longer fits."""
_OF = {
    **dict.fromkeys(("evidence", "tapes", "failed_attempts", "criterion_results"), ("run", "runs")),
    "quarantines": ("test", "tests"),
}
"""For tables without an index that knows all of their rows: which row of another table each is of."""
_TELLING = {_WHOLE, *_CONTENT, *(table for table, _ in import_validation.WORDS)}
"""Tables with rows that no other table's rows are taken for."""
_FEW = 4_000
_LEAST_PAGE_OF_ROWS = 0x0200_0000
"""The first four bytes of a page with rows, as a number, are not below: its first byte is the kind of the page."""
_SAMPLES = 64
_INDEXES = 3  # are read of a table: each takes memory for all rows, and a damaged one may lack some
_LATER = 1_000  # no program's version is higher: such a number is damage


class Found(Struct):
    """What was read. `damaged`: tables of which something can't be read; `missing`: how many rows an index knows that
    were not found, by table; `unknown`: damaged tables without such an index."""

    damaged: set[str] = field(default_factory=set)
    missing: dict[str, int] = field(default_factory=dict)
    unknown: set[str] = field(default_factory=set)


class _Entry(Struct, frozen=True):
    """A line of SQLite's list of tables and indexes. `sql` is None for the index of a UNIQUE rule."""

    type: str
    name: str
    table: str
    root: int
    sql: str | None


class _Column(Struct, frozen=True):
    name: str
    type: str
    required: bool
    default: str | None
    key: int
    """Its place in the primary key, from 1; 0: it is not part of it."""


class _Index(Struct, frozen=True):
    """What an index says of all rows: the key, and the columns that it is of."""

    columns: tuple[str, ...]
    rows: frozenset[tuple[Any, ...]]


class _Table(Struct, frozen=True):
    """A table of ours: the columns that it has now, and those that the file has."""

    name: str
    ours: tuple[_Column, ...]
    columns: tuple[_Column, ...]
    indexes: tuple[_Index, ...]


class _UnreadableError(Exception):
    """SQLite could not go on reading."""


def copy_readable(path: Path, target: sqlite3.Connection, scratch: Path) -> Found:
    """Copy all rows of `path` that can be read into the empty tables of `target`, within the caller's transaction.

    `scratch` is where the copy of the file is made; the caller removes it.
    Raises sqlite3.Error about `target`, OSError.
    """
    with closing(_Copy(path, scratch, _page_size(path))) as copy:
        copy.read(target)
        return copy.found


def _page_size(path: Path) -> int:
    """What the file or its log says; else the size by which most of it looks like pages."""
    with path.open("rb") as file:
        head = file.read(18)
        size = int.from_bytes(head[16:], "big")
        if head.startswith(MAGIC) and (size == 1 or size in _SIZES):
            return 65536 if size == 1 else size
        with suppress(OSError), Path(f"{path}-wal").open("rb") as log:
            start = log.read(12)
            size = int.from_bytes(start[8:], "big")
            if start.startswith(_LOG_MAGIC) and size in _SIZES:
                return size
        return max(_SIZES, key=lambda size: _share_of_pages(file, size))


def _share_of_pages(file: BinaryIO, size: int) -> float:
    """How many of some places in a file begin a page of this size."""
    pages = range(1, max(file.seek(0, os.SEEK_END) // size, 1))
    some = pages[:: max(len(pages) // _PAGES_LOOKED_AT, 1)]
    number = 0
    for page in some:
        file.seek(page * size)
        number += _is_page(file.read(size))
    return number / max(len(some), 1)


def _is_page(data: bytes) -> bool:
    """Whether this is a page of a table or an index: the places of its cells lie behind their list, up to its end."""
    cells = int.from_bytes(data[3:5], "big")
    start = 8 if data[0] in _LEAVES.values() else 12
    if data[0] not in _PAGES or not 0 < cells <= (len(data) - start) // 2:
        return False
    places: tuple[int, ...] = struct.unpack_from(f">{cells}H", data, start)
    return start + 2 * cells <= min(places) and len(data) // 2 <= max(places) < len(data)


class _Copy:
    """A copy of a damaged file that has pages of `size` bytes."""

    def __init__(self, path: Path, scratch: Path, size: int) -> None:
        self.found = Found()
        self._path, self._size = scratch, size
        with closing(_hold(path)):
            for end in ("", "-wal", "-journal"):
                Path(f"{scratch}{end}").unlink(missing_ok=True)
                if Path(f"{path}{end}").exists():
                    os.close(os.open(f"{scratch}{end}", os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE))
                    with suppress(FileNotFoundError):
                        shutil.copyfile(f"{path}{end}", f"{scratch}{end}")
        with scratch.open("r+b") as file:
            length = file.seek(0, os.SEEK_END)
            # The rest of a page that was cut off counts as a whole one: the number of pages is taken from the length.
            file.truncate(-(-length // size) * size)
        self.connection = self._open()
        try:
            stored_size = self.connection.execute("PRAGMA page_size").fetchone()[0]
            self.connection.execute("PRAGMA schema_version").fetchone()
        except sqlite3.DatabaseError as error:
            # Other damage is not in the head: the first page, with its list of tables, stays.
            stored_size = 0 if result_code(error) == sqlite3.SQLITE_NOTADB else size
        if stored_size != size:
            self.connection.close()
            self._write_first_page(log=Path(f"{scratch}-wal").exists())
            self.connection = self._open()
        with suppress(sqlite3.DatabaseError):  # what is in the log or the journal counts, as far as SQLite takes it
            self.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        self._pages = scratch.stat().st_size // size
        """Those of the file itself."""
        self._newer = False
        with suppress(sqlite3.DatabaseError):
            self._newer = schema.newest() < schema.version_of(self.connection) < _LATER

    def close(self) -> None:
        self.connection.close()

    def read(self, target: sqlite3.Connection) -> None:
        """Copy all rows that can be read."""
        entries = self._entries(target)
        self._list(entries)
        ours = _tables(target)
        tables = {
            name: _Table(name, columns, _as_stored(self.connection, name), self._indexes(name, entries))
            for name, columns in ours.items()
            if ("table", name) in entries
        }
        self.found.damaged |= ours.keys() - tables.keys()
        # Their rows are read without their indexes and rules.
        roots = [_entry(name, entries["table", name].root, table.columns) for name, table in tables.items()]
        self._list({(root.type, root.name): root for root in roots})
        for name, table in tables.items():
            # Without an index that tells the keys of a table, the lowest ones are tried.
            ids: Sequence[int] = range(1, _FEW)
            if table.indexes:
                ids = sorted({row[0] for row in table.indexes[0].rows})
            elif _OF.get(name, "")[1:] == ("runs",):
                ids = sorted(row[0] for row in target.execute("SELECT id FROM runs"))
            _Statement(self, target, table).copy(name, ids)
        for table in [table for table in tables.values() if self._misses_rows(target, table)]:
            self._gather(target, table)
            self._misses_rows(target, table, again=True)

    # The list of tables.

    def _entries(self, target: sqlite3.Connection) -> dict[tuple[str, str], _Entry]:
        """Our tables and indexes: as the file lists them, as parts of its list say that nothing leads to any more, or
        where they are in a new file."""
        with suppress(sqlite3.DatabaseError):  # the first statement may fail because of what follows it
            self.connection.execute("SELECT 1 FROM sqlite_master").fetchone()
        listed = list(self._lines("sqlite_master", range(1, 4096)))
        ours = {(entry.type, entry.name): entry for entry in _layout(self._size, schema.newest(), vacuumed=False)}
        foreign = bool(listed) and not {(entry.type, entry.name) for entry in listed} & ours.keys()
        entries: dict[tuple[str, str], _Entry] = {}
        self._take(entries, listed, ours)
        # Another program's file, or a whole list: there is nothing to be guessed.
        if foreign or entries.keys() == ours.keys():
            return entries
        for pages in batches(self._pages_of(_LEAVES[False]), _TOGETHER):
            self._list({("table", f"p{page}"): _entry(f"p{page}", page, _MASTER) for page in pages})
            for page in pages:
                self._take(entries, self._lines(f"p{page}"), ours)
        guesses = [
            {(entry.type, entry.name): entry for entry in _layout(self._size, schema.newest(), vacuumed=vacuumed)}
            | entries
            for vacuumed in (False, True)
        ]
        # A new file, and one that was rewritten by VACUUM, have their tables in other places: the guess that finds rows
        # in more of them is right.
        scores = []
        for guess in guesses:
            self._list(guess)
            scores.append(sum(self._has_rows(target, name) for type_, name in guess if type_ == "table"))
        return guesses[scores.index(max(scores))]

    def _lines(self, name: str, ids: Sequence[int] = ()) -> Iterator[_Entry]:
        """Lines of such a list; where SQLite can't go on, those from `ids` that it can read."""
        pending: list[Sequence[int]] = [_ALL]
        while pending:
            some = pending.pop()
            try:
                for row in _guarded(self.connection, _ENTRIES.format(name), (some[0], some[-1])):
                    yield _Entry(*row)
            except _UnreadableError:
                pending += _halves(some, ids)

    def _take(
        self,
        entries: dict[tuple[str, str], _Entry],
        lines: Iterable[_Entry],
        ours: dict[tuple[str, str], _Entry],
    ) -> None:
        """Add the lines that speak of what is ours. A statement that makes other columns than ours is damaged."""
        for line in lines:
            our = ours.get((line.type, line.name))
            if our is None or our.table != line.table or not 1 < line.root <= self._pages:
                continue
            fits = line.sql is not None and _makes_our_columns(line.name, line.sql, newer=self._newer)
            entries.setdefault(
                (line.type, line.name), line if our.type == "table" and fits else replace(our, root=line.root)
            )

    def _list(self, entries: dict[tuple[str, str], _Entry]) -> None:
        """Let the copy list these, and nothing else."""
        self.connection.close()
        # One that is left here could bring the former list back.
        for end in ("-wal", "-journal"):
            Path(f"{self._path}{end}").unlink(missing_ok=True)
        self._write_first_page()
        with closing(self._open()) as connection:
            connection.execute("BEGIN")
            connection.executemany(
                "INSERT INTO sqlite_master VALUES (?, ?, ?, ?, ?)", [astuple(entry) for entry in entries.values()]
            )
            connection.execute("COMMIT")
        self.connection = self._open()

    def _write_first_page(self, *, log: bool = False) -> None:
        """The first page of a history without tables, which has as many pages as this file."""
        with closing(sqlite3.connect(":memory:", isolation_level=None)) as empty:
            empty.execute(f"PRAGMA page_size = {self._size}")
            empty.execute(f"PRAGMA user_version = {schema.newest()}")
            page = bytearray(empty.serialize())
        # SQLite's format: at 18 how the file is written (2: with a log, which is read only then), at 28 how many pages
        # it has.
        page[18:20] = b"\2\2" if log else b"\1\1"
        page[28:32] = (self._path.stat().st_size // self._size).to_bytes(4, "big")
        with self._path.open("r+b") as file:
            file.write(page)

    def _open(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self._path, isolation_level=None)
        # Damaged bytes in a text must not end the statement that reads it.
        connection.text_factory = lambda data: data.decode("utf-8", "replace")
        connection.execute("PRAGMA writable_schema = ON")  # so tables can be read although others can't
        return connection

    def _pages_of(self, kind: int) -> list[int]:
        """The file's own pages that begin with this byte."""
        pages = []
        with self._path.open("rb") as file:
            for page in range(2, self._pages + 1):
                file.seek((page - 1) * self._size)
                if file.read(1)[0] == kind:
                    pages.append(page)
        return pages

    # Rows.

    def _has_rows(self, target: sqlite3.Connection, name: str) -> bool:
        ours = _tables(target).get(name)
        if ours is None:
            return False
        statement = _Statement(self, target, _Table(name, ours, _columns(self.connection, name), ()))
        try:
            return any(True for _ in _guarded(self.connection, f"{statement.select(name)} LIMIT 1", _ALL))
        except _UnreadableError:
            return False

    def _indexes(self, name: str, entries: dict[tuple[str, str], _Entry]) -> tuple[_Index, ...]:
        """The first of those that have all rows of a table and can be read, the longest first."""
        key, indexes = _key(_columns(self.connection, name)), list[_Index]()
        for entry in entries.values():
            whole = entry.type == "index" and entry.table == name and " WHERE " not in (entry.sql or "")
            if whole and len(indexes) < _INDEXES:
                with suppress(_UnreadableError):
                    info = _guarded(self.connection, f"SELECT name FROM pragma_index_info('{entry.name}')")
                    columns = (key, *[column for (column,) in info])
                    select = f"SELECT {', '.join(columns)} FROM {name} INDEXED BY {entry.name}"
                    rows = frozenset(_guarded(self.connection, select))
                    if all(isinstance(row[0], int) and row[0] > 0 for row in rows):
                        indexes.append(_Index(columns, rows))
        return tuple(sorted(indexes, key=lambda index: len(index.rows), reverse=True))

    def _misses_rows(self, target: sqlite3.Connection, table: _Table, *, again: bool = False) -> bool:
        """Note how many rows are missing, and tell whether any may be. `again`: SQLite was asked about the table."""
        name = table.name
        index = _index_of_all(target, table)
        if index is not None:
            missing = len(index.rows) - int(target.execute(f"SELECT count(*) FROM {name}").fetchone()[0])
            self.found.missing[name] = missing
            if missing:
                self.found.damaged.add(name)
            return missing > 0
        if name not in self.found.damaged and not again:
            with suppress(_UnreadableError):
                if list(_guarded(self.connection, f"PRAGMA integrity_check({name})")) == [("ok",)]:
                    return False
            self.found.damaged.add(name)
        if name in self.found.damaged:
            self.found.unknown.add(name)
        return name in self.found.unknown

    def _gather(self, target: sqlite3.Connection, table: _Table) -> None:
        """Copy lost rows of pages that nothing leads to: those that an index knows; without one, those of a run that is
        known, or that look like it, on pages that are not free."""
        index, key, several = _index_of_all(target, table), _key(table.columns), _has_no_rowid(table.columns)
        column, of = _OF.get(table.name, ("", ""))
        if index is not None:
            columns, is_lost, free = index.columns, _is_in(index.rows), set[int]()
        elif of or table.name in _TELLING:
            # Where rows share a key, that one is there says nothing of the others; those that are there are not
            # inserted twice.
            there = set() if several else {row[0] for row in target.execute(f"SELECT {key} FROM {table.name}")}
            others = {row[0] for row in target.execute(f"SELECT id FROM {of}")} if of else None
            columns, is_lost, free = (key, column or key), _is_new(there, others), self._free_pages()
        else:
            return
        for kind in (_INNER_ROWS, _LEAVES[True]) if several else (_LEAVES[False],):
            for pages in batches([page for page in self._pages_of(kind) if page not in free], _TOGETHER):
                self._list({("table", f"p{page}"): _entry(f"p{page}", page, table.columns) for page in pages})
                # `_list` opened a new connection, which does not know the function.
                self.connection.create_function("is_lost", len(columns), is_lost)
                statement = _Statement(self, target, table, f"is_lost({', '.join(columns)}) AND ")
                for page in pages:
                    statement.copy(f"p{page}", (), singly=kind != _INNER_ROWS)

    def _free_pages(self) -> set[int]:
        """The pages that hold nothing any more. What looks like a part of their list is one: it is numbers of pages."""
        free = set[int]()
        with self._path.open("rb") as file:
            for page in range(2, self._pages + 1):
                file.seek((page - 1) * self._size)
                following, count = struct.unpack(">II", file.read(8))
                if following < _LEAST_PAGE_OF_ROWS and 0 < count <= self._size // 4 - 2:
                    numbers = struct.unpack(f">{count}I", file.read(4 * count))
                    if all(1 < number < _LEAST_PAGE_OF_ROWS for number in numbers):
                        free.update((page, *numbers))
        return free

    @property
    def most_on_page(self) -> int:
        """No page has more rows."""
        return self._size // 4


class _Statement:
    """Reads rows of a table of ours from a file whose table may have other columns, and leaves out what is none."""

    def __init__(self, copy: _Copy, target: sqlite3.Connection, table: _Table, condition: str = "") -> None:
        name, ours, source = table.name, table.ours, table.columns
        self._copy, self._target, self._name = copy, target, name
        there = {column.name for column in source}
        key = _key(source)
        wrong = [f"{key} < 1"]
        values: dict[str, str] = {}
        for column in ours:
            damaged = import_validation.not_json(name, column.name)
            if column.name not in there:
                if column.required and column.default is None:
                    values[column.name] = _NEUTRAL.get(column.type, "''")
                continue
            values[column.name] = column.name
            wrong += import_validation.impossible(name, column.name, column.type)
            if damaged and name == _WHOLE:
                wrong.append(damaged)
            elif damaged:
                empty = "'[]'" if (name, column.name) in import_validation.LISTS else "'{}'"
                values[column.name] = f"iif({damaged}, {empty if column.required else 'NULL'}, {column.name})"
            if column.required and not column.key:
                wrong.append(f"{column.name} IS NULL")
        names, is_whole = _CONTENT.get(name, ("", None))
        connection = copy.connection
        import_validation.add_functions(connection)
        if is_whole is not None:
            connection.create_function(f"whole_{name}", -1, self._noting(is_whole))
            wrong.insert(0, f"NOT whole_{name}({names})")  # asked of each row
        self._values = ", ".join(values.values())
        # IS NOT TRUE, as a condition on a column without a value gives NULL: such a row is kept.
        self._right = f"{key} BETWEEN ? AND ? AND {condition}({' OR '.join(wrong)}) IS NOT TRUE"
        self._several = _has_no_rowid(source)
        """Whether several rows may have one key."""
        order = [part.name for part in source if part.key] if self._several else [key]
        self._backwards = f" ORDER BY {', '.join(f'{name} DESC' for name in order)}"
        self._insert = f"INSERT OR IGNORE INTO {name} ({', '.join(values)}) VALUES ({', '.join('?' * len(values))})"

    def select(self, source: str) -> str:
        """Reads the rows of a table of the file, between two keys."""
        return f"SELECT {self._values} FROM {source} NOT INDEXED WHERE {self._right}"

    def _noting(self, is_whole: Callable[..., bool]) -> Callable[..., bool]:
        def check(*values: Any) -> bool:
            whole = all(isinstance(value, bytes) for value in values) and is_whole(*values)
            if not whole:
                self._copy.found.damaged.add(self._name)
            return whole

        return check

    def copy(self, source: str, ids: Sequence[int], *, singly: bool = False) -> None:
        """All rows; where SQLite can't go on, those from `ids` that it can read; `singly`: those before and behind."""
        pending: list[Sequence[int]] = [_ALL]
        while pending:
            some = pending.pop()
            rows = _guarded(self._copy.connection, self.select(source), (some[0], some[-1]))
            try:
                self._target.executemany(self._insert, rows)
            except _UnreadableError:
                if ids:
                    self._copy.found.damaged.add(self._name)
                # Where no key can be looked up, halving would try each of them in vain.
                if some is not _ALL or self._leads_somewhere(source, ids):
                    pending += _halves(some, ids)
                if singly or (len(some) == 1 and self._several):
                    for order in ("", self._backwards):
                        self._copy_singly(source, order, some)

    def _leads_somewhere(self, source: str, ids: Sequence[int]) -> bool:
        """Whether any of some keys can be looked up; none can where the table's first page is destroyed."""
        for key in ids[:: max(len(ids) // _SAMPLES, 1)]:
            with suppress(_UnreadableError):
                list(_guarded(self._copy.connection, self.select(source), (key, key)))
                return True
        return False

    def _copy_singly(self, source: str, order: str, some: Sequence[int]) -> None:
        """Rows of a page, or with one key, up to what can't be read; one by one, as an error takes the row before it
        along."""
        with suppress(_UnreadableError):
            for number in range(self._copy.most_on_page):
                statement = f"{self.select(source)}{order} LIMIT 1 OFFSET {number}"
                rows = list(_guarded(self._copy.connection, statement, (some[0], some[-1])))
                if not rows:
                    return
                self._target.executemany(self._insert, rows)


def _halves(ids: Sequence[int], first: Sequence[int]) -> list[Sequence[int]]:
    """The parts of a range to try next, the last one first."""
    if ids is _ALL:
        return [first] if first else []
    return [ids[len(ids) // 2 :], ids[: len(ids) // 2]] if len(ids) > 1 else []


def _index_of_all(target: sqlite3.Connection, table: _Table) -> _Index | None:
    """The index with the fewest rows, of those that know all rows that were copied."""
    keys = {row[0] for row in target.execute(f"SELECT {_key(table.ours)} FROM {table.name}")}
    fitting = [index for index in table.indexes if keys <= {row[0] for row in index.rows}]
    return min(fitting, key=lambda index: len(index.rows), default=None)


def _is_new(there: set[Any], others: set[Any] | None) -> Callable[..., bool]:
    """Whether a row with this key, and of this other row, is not `there`, and the other one is (None: of none)."""
    return lambda key, other: key not in there and (others is None or other in others)


def _is_in(rows: frozenset[tuple[Any, ...]]) -> Callable[..., bool]:
    return lambda *values: values in rows


def _guarded(connection: sqlite3.Connection, statement: str, values: Sequence[int] = ()) -> Iterator[tuple[Any, ...]]:
    """The rows of the damaged file. Raises _UnreadableError where SQLite can't go on."""
    try:
        yield from connection.execute(statement, tuple(values))
    except (sqlite3.DatabaseError, MemoryError, OverflowError) as error:
        raise _UnreadableError from error


def _hold(path: Path) -> sqlite3.Connection:
    """A reader that keeps the log of a history in use from being removed while it is copied."""
    if Path(f"{path}-shm").exists():
        with suppress(sqlite3.Error):
            reader = connect_reader(path)
            try:
                reader.execute("BEGIN")
                reader.execute("SELECT count(*) FROM sqlite_master").fetchone()
            except sqlite3.Error:
                reader.close()
            else:
                return reader
    return sqlite3.connect(":memory:")


def _tables(connection: sqlite3.Connection) -> dict[str, tuple[_Column, ...]]:
    """Our tables, but for those that are built again."""
    rows = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY rowid").fetchall()
    return {name: _columns(connection, name) for (name,) in rows if not name.startswith(("sqlite_", "search"))}


def _columns(connection: sqlite3.Connection, table: str) -> tuple[_Column, ...]:
    return tuple(
        _Column(name, kind.upper(), bool(required), default, key)
        for _, name, kind, required, default, key in connection.execute(f"PRAGMA table_info({table})")
    )


def _as_stored(connection: sqlite3.Connection, table: str) -> tuple[_Column, ...]:
    """The columns that the file has. Only of those that a migration added may a row have the default unwritten."""
    written = {column.name for column in _our_columns(1).get(table, ())}
    columns = _columns(connection, table)
    return tuple(replace(column, default=None) if column.name in written else column for column in columns)


@lru_cache(maxsize=2)
def _our_columns(version: int) -> dict[str, tuple[_Column, ...]]:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as memory:
        schema.migrate(memory, upto=version)
        return _tables(memory)


def _has_no_rowid(columns: Sequence[_Column]) -> bool:
    return any(column.key > 1 for column in columns)


def _key(columns: Sequence[_Column]) -> str:
    """What rows are ordered by: the rowid, or the first column of a key that has several."""
    return columns[0].name if _has_no_rowid(columns) else "rowid"


_MASTER = tuple(
    _Column(name, "INTEGER" if name == "rootpage" else "TEXT", False, None, 0)
    for name in ("type", "name", "tbl_name", "rootpage", "sql")
)


def _entry(name: str, root: int, columns: Sequence[_Column]) -> _Entry:
    """A table that begins on this page, without rules."""
    keys = [column.name for column in columns if column.key]
    parts = [
        f"{column.name} {column.type}{' PRIMARY KEY' if [column.name] == keys and column.type == 'INTEGER' else ''}"
        + (f" DEFAULT {column.default}" if column.default is not None else "")
        for column in columns
    ]
    end = ""
    if len(keys) > 1:
        parts.append(f"PRIMARY KEY ({', '.join(keys)})")
        end = " WITHOUT ROWID"
    return _Entry("table", name, name, root, f"CREATE TABLE {name} ({', '.join(parts)}){end}")


@lru_cache(maxsize=2)
def _layout(size: int, version: int, *, vacuumed: bool) -> list[_Entry]:
    """Where tables and indexes begin in a file with pages of this size that our program made."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as memory:
        memory.execute(f"PRAGMA page_size = {size}")
        schema.migrate(memory, upto=version)
        if vacuumed:
            memory.execute("VACUUM")
        rows = memory.execute("SELECT type, name, tbl_name, rootpage, sql FROM sqlite_master").fetchall()
    return [_Entry(*row) for row in rows if not row[2].startswith("search")]


_MAKES_TABLES = (
    sqlite3.SQLITE_CREATE_TABLE,
    sqlite3.SQLITE_CREATE_INDEX,
    sqlite3.SQLITE_INSERT,
    sqlite3.SQLITE_UPDATE,
    sqlite3.SQLITE_READ,
)


def _allow_table(action: int, *_: str | None) -> int:
    """Allow what makes a table: a statement of a damaged file may say anything, such as `VACUUM INTO 'FILE'`."""
    return sqlite3.SQLITE_OK if action in _MAKES_TABLES else sqlite3.SQLITE_DENY


def _makes_our_columns(name: str, statement: str, *, newer: bool) -> bool:
    """Whether a statement makes a table with columns that are all ours; a newer program's may have more."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as memory:
        memory.set_authorizer(_allow_table)
        try:
            memory.execute(statement)
            # Reading the columns is a pragma, which it denies.
            memory.set_authorizer(None)
            columns = _columns(memory, name)
        except sqlite3.Error:
            return False
    ours = _our_columns(schema.newest()).get(name, ())
    types = {column.name: column.type for column in ours}
    return (
        bool(columns and ours)
        and _key(columns) == _key(ours)
        and all(types.get(column.name, column.type if newer else None) == column.type for column in columns)
    )
