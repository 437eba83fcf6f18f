"""A damaged file: everything that can still be read goes into a new one; the damaged one is kept beside it.

The rows of a damaged history file, found on its pages: a destroyed page costs what was on it, and nothing else.

The file's own list of tables says where each begins, as far as it can be read; from there its pages are followed. What
can't be reached from there (the page that led to it is destroyed) is known by its rows: no two of our tables look
alike, but for those whose blobs tell them apart. Nothing that was deleted comes back: pages that the file says are
free are left out, and rows that were deleted on a page are not in its list.
"""

# ruff: noqa: S608 - statements are put together from words of ours; values are always bound

from __future__ import annotations

import fcntl
import os
import re
import sqlite3
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from agenteval_tui.core.atomic_write import draft_path
from agenteval_tui.core.numbers import count
from agenteval_tui.history import import_validation, schema
from agenteval_tui.history.blobs import are_results, is_transcript
from agenteval_tui.history.connections import connect_reader
from agenteval_tui.history.errors import HistoryError, explain, is_foreign, refuse_unreleased
from agenteval_tui.history.rebuild_totals import REBUILT, RebuildResult, complete, reindex
from agenteval_tui.history.sqlite_pages import (
    CUT,
    INDEX_INNER,
    INDEX_LEAF,
    TABLE_INNER,
    TABLE_LEAF,
    Cut,
    Node,
    Pages,
    Row,
    Value,
    walk,
)

_ORDER = ("executions", "runs", "transcripts", "evidence", "labels", "baselines", "triage", "quarantines")
_NAMES = {
    "executions": ("title and settings of an execution", "titles and settings of executions"),
    "runs": ("run", "runs"),
    "transcripts": ("transcript", "transcripts"),
    "evidence": ("run's evidence", "runs' evidence"),
    "labels": ("label", "labels"),
    "baselines": ("baseline", "baselines"),
    "triage": ("decision", "decisions"),
    "quarantines": ("quarantine", "quarantines"),
    "criterion_results": ("criterion's result", "criteria's results"),
    "tool_calls": ("tool call", "tool calls"),
    "plans": ("prompt with its variables", "prompts with their variables"),
    "tests": ("test's name", "tests' names"),
    "suites": ("suite's name", "suites' names"),
    "criteria": ("version of a criterion", "versions of criteria"),
    "criterion_texts": ("criterion's text", "criteria's texts"),
    "judge_replies": ("judge's reply", "judges' replies"),
    "run_replies": ("reference to a judge's reply", "references to judges' replies"),
    "failed_attempts": ("failed attempt", "failed attempts"),
    "tapes": ("program's requests", "programs' requests"),
    "tasks": ("group of runs' inputs", "groups of runs' inputs"),
    "dataset_rows": ("row of a dataset", "rows of datasets"),
    "imports": ("record of an import", "records of imports"),
    "taken_back": ("record of what was taken back", "records of what was taken back"),
}
_TOGETHER = 1_000  # rows a statement
_NOT_OURS = ("sqlite_", "search")
"""Prefixes of the names of tables that are built again."""
_LATER = 1_000
"""The highest version that a newer program may have written. A higher number is damage."""
_ENTRY = 5  # values of a row in the list of tables
_OUTLINED = ("plans", "tasks", "transcripts", "evidence", "judge_replies", "tapes")
"""Tables whose rows are useless if a part is lost: the row's hash no longer fits, or the row can't be read."""
_NEUTRAL: dict[str, Value] = {"INTEGER": 0, "REAL": 0.0, "TEXT": "", "BLOB": b""}
_TYPES: dict[str, tuple[type, ...]] = {"INTEGER": (int,), "REAL": (int, float), "TEXT": (str,), "BLOB": (bytes,)}
_CONTENT: dict[str, Callable[[Mapping[str, Any]], bool]] = {
    "transcripts": lambda row: is_transcript(row["hash"], row["data"]),
    "tasks": lambda row: import_validation.is_packed(row["data"], row["hash"]),
    "evidence": lambda row: are_results(row["data"]),
    "judge_replies": lambda row: import_validation.is_packed(row["data"]),
    "tapes": lambda row: import_validation.is_packed(row["data"]),
}
"""For each table, whether the bytes of a row are valid."""


class Loss(Struct, frozen=True):
    """The losses of a table: whole rows, and parts of rows (`cut`). `pages`: destroyed pages with an unknown number of
    rows."""

    table: str
    rows: int = 0
    cut: int = 0
    pages: int = 0


class SalvageResult(Struct, frozen=True):
    """Rows that were saved (of executions, runs, transcripts), and everything that was lost."""

    rows: dict[str, int]
    lost: tuple[Loss, ...]


def rescue(path: Path, *, still_damaged: Callable[[], bool]) -> str:
    """Replace the damaged file by a new one with what could be saved. Returns the notice.

    Only one process does it; `still_damaged` is asked once the others are locked out.
    Raises HistoryError: no room, no permission; the damaged file then stays where it is.
    """
    new = Path(f"{path}.rescue")
    with Path(f"{path}.lock").open("ab") as lock:
        os.fchmod(lock.fileno(), 0o600)
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not still_damaged():
            return f"the history file was damaged; another agenteval has just repaired it: {path}"
        try:
            _remove(new)
            os.close(os.open(new, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
            saved = save_readable(path, new)
            aside = _free_name(f"{path}.damaged-{time.strftime('%Y%m%d-%H%M%S')}")
            for end in ("", "-wal", "-journal"):
                with suppress(FileNotFoundError):
                    Path(f"{path}{end}").rename(f"{aside}{end}")
            for end in ("-shm", ".check"):
                Path(f"{path}{end}").unlink(missing_ok=True)
            new.rename(path)
        except sqlite3.Error as error:
            raise explain(error, new, doing="written") from error
        except OSError as error:
            raise HistoryError(
                f"the damaged history file can't be repaired: {error.strerror}",
                where=str(path),
                mend="free some space, or give yourself write permission for the folder",
            ) from error
        finally:
            _remove(new)
    return (
        f"the history file was damaged; saved from it: {saved.rows['executions']} executions,"
        f" {saved.rows['runs']} runs, {saved.rows['transcripts']} transcripts; "
        + (
            f"lost: {', '.join(map(describe_loss, saved.lost))}; "
            if saved.lost
            else "nothing is lost; "
            if any(saved.rows.values())
            else ""
        )
        + f"the damaged file is kept as {aside}"
    )


def describe_loss(loss: Loss) -> str:
    """The loss in words."""
    what = _NAMES.get(loss.table, (loss.table, loss.table))
    parts = []
    if loss.rows:
        parts.append(f"{loss.rows:,} {what[loss.rows != 1]}")
    if loss.cut:
        parts.append(f"parts of {loss.cut:,} {what[loss.cut != 1]}")
    if loss.pages:
        parts.append(f"an unknown number of {what[1]} ({count(loss.pages, 'page')})")
    return ", ".join(parts)


def salvage(path: Path, new: Path) -> SalvageResult:
    """Write everything that can be read of a damaged (or whole) history file into the new file `new`; `path` stays as
    it is. Gives how many executions, runs and transcripts were saved.

    Raises HistoryError: there is a file `new`, no room, no permission, not a history file.
    """
    if not path.is_file() or is_foreign(path):
        raise HistoryError("this is not a history file", where=str(path), mend="name one that agenteval made")
    refuse_unreleased(path)
    if new.exists():
        raise _taken(new)
    draft = draft_path(new)
    try:
        try:
            os.close(os.open(draft, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
            saved = save_readable(path, draft)
            if not any(saved.rows.values()):
                raise HistoryError(
                    "this file has no readable part of a history", where=str(path), mend="no file was written"
                )
            os.link(draft, new)  # there when all of it is; fails where there is a file, also one that came this moment
        finally:
            _remove(draft)
    except FileExistsError:
        raise _taken(new) from None
    except OSError as error:
        raise HistoryError(f"what was saved can't be written: {error.strerror}", where=str(new)) from error
    except sqlite3.Error as error:
        raise explain(error, new, doing="written") from error
    return saved


def _taken(new: Path) -> HistoryError:
    return HistoryError("this file already exists and is not overwritten", where=str(new), mend="name another (--to)")


def save_readable(path: Path, new: Path) -> SalvageResult:
    """Copy what can be read of `path` into the empty file `new`."""
    with DamagedFile(path) as source, closing(sqlite3.connect(new, isolation_level=None)) as target:
        target.execute("PRAGMA synchronous = OFF")  # synced as a whole at the end
        schema.migrate(target, upto=source.version)
        target.execute("BEGIN")
        found = source.copy(target)
        target.execute("COMMIT")
        schema.migrate(target)
        target.execute("BEGIN")
        completed = complete(target, found.damaged)
        reindex(target)
        saved = {
            table: int(target.execute(f"SELECT count(*) FROM {table}").fetchone()[0])
            for table in ("executions", "runs", "transcripts")
        }
        target.execute("COMMIT")
    with new.open("rb") as file:
        os.fsync(file.fileno())
    return SalvageResult(saved, _losses(found, completed))


def _losses(found: Found, completed: RebuildResult) -> tuple[Loss, ...]:
    """By table: what its indexes know, what other rows name, or what is there and can't be used, whichever is more."""
    losses = []
    for table in sorted({*found.missing, *found.pages, *found.cut, *found.unreadable, *completed.lost}, key=_place):
        known = max(found.missing.get(table, 0), found.unreadable.get(table, 0)) - completed.rebuilt.get(table, 0)
        rows = max(known, completed.lost.get(table, 0), 0)
        pages = 0 if rows or table in found.missing or table in REBUILT else found.pages.get(table, 0)
        if rows or pages or found.cut.get(table):
            losses.append(Loss(table, rows, found.cut.get(table, 0), pages))
    return tuple(losses)


def _place(table: str) -> tuple[int, str]:
    """What matters most comes first."""
    return (_ORDER.index(table) if table in _ORDER else len(_ORDER)), table


def _free_name(wanted: str) -> Path:
    number, path = 1, Path(wanted)
    while path.exists():
        number += 1
        path = Path(f"{wanted}-{number}")
    return path


def _remove(file: Path) -> None:
    for end in ("", "-wal", "-shm", "-journal"):
        Path(f"{file}{end}").unlink(missing_ok=True)


# The rows of a damaged history file, found on its pages: a destroyed page costs what was on it, and nothing else


class _Column(Struct, frozen=True):
    name: str
    kind: str
    required: bool
    default: Value
    words: tuple[str, ...] = ()
    json: Callable[[str], bool] | None = None
    empty: str = ""
    """The replacement for lost JSON."""


class _Table(Struct, frozen=True):
    """A table of ours as the file has it. `alias`: the column that is the rowid; None: the table has no rowid."""

    name: str
    columns: tuple[_Column, ...]
    alias: int | None
    least: int
    keys: int
    """How many of the first columns are the key of a table without rowid."""

    @property
    def kinds(self) -> tuple[int, int]:
        """Of its inner pages and its leaves."""
        return (INDEX_INNER, INDEX_LEAF) if self.alias is None else (TABLE_INNER, TABLE_LEAF)


class Found(Struct):
    """What was found on the pages. `damaged`: tables of which something could not be read. `cut`: rows of which a part
    is lost, `unreadable`: rows with bytes that can't be unpacked, by table; `pages`: destroyed ones, by table.
    `missing`: rows that an index knows and that were not found, by table (only of tables that are damaged)."""

    version: int
    damaged: set[str] = field(default_factory=set)
    cut: dict[str, int] = field(default_factory=dict)
    unreadable: dict[str, int] = field(default_factory=dict)
    pages: dict[str, int] = field(default_factory=dict)
    missing: dict[str, int] = field(default_factory=dict)


class _Entry(Struct, frozen=True):
    kind: str
    name: str
    table: str
    root: int
    sql: str


class DamagedFile:
    """A damaged file (or a whole one), opened. A context manager. `version`: of its tables. Raises OSError."""

    def __init__(self, path: Path) -> None:
        self._reader = _hold(path)
        try:
            self._pages = Pages(path)
        except BaseException:
            self._let_go()
            raise
        self._used: set[int] = set()
        self._rootless: set[str] = set()
        self._free, self._free_known = self._pages.free()
        self._entries = self._list()
        self.version = self._version()
        known = _tables(self.version)
        self._tables = {name: self._as_stored(table) for name, table in known.items()}
        self.found = Found(self.version)
        self._writers: dict[str, _Writer] = {}

    def __enter__(self) -> DamagedFile:
        return self

    def __exit__(self, *_: object) -> None:
        self._pages.close()
        self._let_go()

    def _let_go(self) -> None:
        if self._reader is not None:
            self._reader.close()

    def copy(self, target: sqlite3.Connection) -> Found:
        """All rows into a file of the same version, within the caller's transaction."""
        if self._of_another_program():
            return self.found
        self._writers = {name: _Writer(target, table) for name, table in self._tables.items()}
        for table in self._tables.values():
            self._walk(table)
        for writer in self._writers.values():
            writer.flush()
        self._gather()
        for name in sorted(self.found.damaged):
            self._compare(target, self._tables[name])
        return self.found

    # The list of tables.

    def _list(self) -> dict[tuple[str, str], _Entry]:
        """What the file says of its tables and indexes, as far as that can be read."""
        found: dict[tuple[str, str], _Entry] = {}
        whole = True
        for number, _, node in walk(self._pages, 1):
            if node is None or node.kind not in (TABLE_LEAF, TABLE_INNER) or node.broken:
                whole = False
            if node is not None and node.kind in (TABLE_LEAF, TABLE_INNER):
                entries = [_entry(row) for row in node.rows]
                whole = whole and all(entries)
                if not node.rows or any(entries):
                    self._used.add(number)
                for entry in entries:
                    if entry is not None:
                        found.setdefault((entry.kind, entry.name), entry)
        if not whole:
            for number in self._pages.numbers():
                if number in self._used or number in self._free:
                    continue
                node = self._pages.node(number)
                if node is not None and node.kind == TABLE_LEAF and node.rows:
                    entries = [_entry(row) for row in node.rows]
                    if all(entries):
                        self._used.add(number)
                        for entry in entries:
                            assert entry is not None
                            found.setdefault((entry.kind, entry.name), entry)
        return found

    def _version(self) -> int:
        """The version in the file header, unless the header is destroyed or the tables are those of a newer version."""
        head = self._pages.header
        told = int.from_bytes(head[60:64], "big") if head else 0
        there = {name: set(_columns_of(entry)) for (kind, name), entry in self._entries.items() if kind == "table"}
        known = 0
        for number in range(schema.newest(), 0, -1):
            if all(columns <= there.get(name, set()) for name, columns in _columns_in(number).items()):
                known = number
                break
        if not 0 < told <= schema.newest():
            return known or schema.newest()
        # (Some migrations changed no table.)
        return known if known > told and _columns_in(known) != _columns_in(told) else told

    def _of_another_program(self) -> bool:
        """Whether the file lists tables, and none of ours."""
        head = self._pages.header
        if not head or int.from_bytes(head[68:72], "big") == schema.APPLICATION_ID:
            return False
        listed = {name for kind, name in self._entries if kind == "table"}
        return bool(listed) and not listed.intersection(self._tables)

    def _as_stored(self, table: _Table) -> _Table:
        """The table with the columns that the file has, in their order there."""
        entry = self._entries.get(("table", table.name))
        names = _columns_of(entry) if entry is not None else {}
        known = {column.name: column.kind for column in _tables(schema.newest())[table.name].columns}
        head = self._pages.header
        newer = bool(head) and schema.newest() < int.from_bytes(head[60:64], "big") < _LATER
        # A statement may be damaged too.
        if not names or not all(known.get(name, kind if newer else "") == kind for name, (kind, *_) in names.items()):
            return table
        stored = _table_of(names, table.name, table.least)
        return stored if (stored.alias is None) == (table.alias is None) else table

    # Rows.

    def _walk(self, table: _Table) -> None:
        """The rows that the file leads to."""
        entry = self._entries.get(("table", table.name))
        if entry is None:
            self.found.damaged.add(table.name)
            return
        leaves = -1  # how far they are from the root, all of them
        destroyed: list[int] = []
        last: tuple[Value | Cut, ...] | None = None
        writer = self._writers[table.name]
        for number, depth, node in walk(self._pages, entry.root):
            if node is None or node.kind not in table.kinds or number in self._used or number == 1:
                destroyed.append(depth)
                continue
            made = [_fitting(table, row) for row in node.rows]
            if made and not any(made):
                # Another table's page, or none of it can be read; what it is shows later.
                destroyed.append(depth)
                continue
            self._used.add(number)
            if node.broken:
                self.found.damaged.add(table.name)
            if node.leaf:
                leaves = depth
            for row, one in zip(node.rows, made, strict=True):
                if one is None:
                    self._unreadable(table.name)
                    continue
                if not row.whole:
                    self._count(self.found.cut, table.name)
                if node.leaf:
                    # A page that appears twice took a different page's place.
                    key = (row.key,) if table.alias is not None else row.values[: table.keys]
                    if last is not None and not _follows(last, key):
                        self.found.damaged.add(table.name)
                    last = key
                writer.add(one)
        if destroyed:
            # Of a table with rowids what is nearer to the root only led to others. (Where no leaf is left, what is
            # found later says so.)
            self.found.damaged.add(table.name)
            self.found.pages[table.name] = sum(depth >= leaves or table.alias is None for depth in destroyed)
            if leaves < 0 and table.alias is not None:
                self._rootless.add(table.name)

    def _gather(self) -> None:
        """The rows of pages that nothing leads to."""
        freed: set[int] | None = None
        if self._free_known:
            freed = {hash(self._pages.page(number)) for number in self._free}
        for number in self._pages.numbers():
            if number in self._used or number in self._free:
                continue
            node = self._pages.node(number)
            if node is None or not node.rows or node.kind == TABLE_INNER:
                continue
            table = self._owner(node)
            if table is None:
                continue
            if table.name not in self.found.damaged and (freed is None or hash(self._pages.page(number)) in freed):
                continue  # deleted long ago
            for row in node.rows:
                one = _fitting(table, row)
                if one is None:
                    self._unreadable(table.name)
                elif self._writers[table.name].add_missing(one):
                    self.found.damaged.add(table.name)
                    if table.name in self._rootless:
                        self.found.pages.pop(table.name, None)
                    if not row.whole:
                        self._count(self.found.cut, table.name)

    def _owner(self, node: Node) -> _Table | None:
        """The table that all rows of a page look like; None: there is none, or several."""
        fitting = []
        for table in self._tables.values():
            if node.kind not in table.kinds or not all(_has_shape(table, row) for row in node.rows):
                continue
            if any(_fitting(table, row) for row in node.rows):
                fitting.append(table)
        if len(fitting) > 1:
            fitting = [table for table in fitting if table.name in self.found.damaged]
        return fitting[0] if len(fitting) == 1 else None

    def _unreadable(self, table: str) -> None:
        self.found.damaged.add(table)
        self._count(self.found.unreadable, table)

    @staticmethod
    def _count(counts: dict[str, int], table: str) -> None:
        counts[table] = counts.get(table, 0) + 1

    # What is not there any more.

    def _compare(self, target: sqlite3.Connection, table: _Table) -> None:
        """Count the rows that an index of the table knows and that were not found."""
        for entry in sorted(self._entries.values(), key=lambda one: one.sql != ""):
            if entry.kind != "index" or entry.table != table.name or " WHERE " in entry.sql.upper():
                continue
            target.execute("CREATE TEMP TABLE indexed (id INTEGER PRIMARY KEY)")
            try:
                known = self._read_index(target, entry, table)
                if known is None:
                    continue
                name = table.columns[table.alias].name if table.alias is not None else ""
                self.found.missing[table.name] = (
                    max(known - target.execute(f"SELECT count(*) FROM {table.name}").fetchone()[0], 0)
                    if table.alias is None
                    else target.execute(
                        f"SELECT count(*) FROM temp.indexed WHERE id NOT IN (SELECT {name} FROM {table.name})"
                    ).fetchone()[0]
                )
                return
            finally:
                target.execute("DROP TABLE temp.indexed")

    def _read_index(self, target: sqlite3.Connection, entry: _Entry, table: _Table) -> int | None:
        """How many rows it knows; their rowids into `temp.indexed`. None: it is damaged itself."""
        known = 0
        for number, _, node in walk(self._pages, entry.root):
            if node is None or node.kind not in (INDEX_INNER, INDEX_LEAF) or node.broken or number in self._used:
                return None
            known += len(node.rows)
            if table.alias is not None:
                keys = [row.values[-1] for row in node.rows if row.whole and row.values]
                if not all(isinstance(key, int) for key in keys):
                    return None
                target.executemany("INSERT OR IGNORE INTO temp.indexed VALUES (?)", [(key,) for key in keys])
        return known


class _Writer:
    """Puts rows of a table into a file that may have other columns."""

    def __init__(self, target: sqlite3.Connection, table: _Table) -> None:
        self._target = target
        here = [column.name for column in table.columns]
        self._places: list[int] = []
        self._more: list[Value] = []
        names: list[str] = []
        for name, (kind, required, default, _) in _raw(target, table.name).items():
            if name in here:
                self._places.append(here.index(name))
                names.insert(len(self._places) - 1, name)
            elif required and default is None:
                self._more.append(_NEUTRAL.get(kind, ""))
                names.append(name)
        marks = ",".join("?" * len(names))
        self._statement = f"INSERT OR IGNORE INTO {table.name} ({', '.join(names)}) VALUES ({marks})"
        self._pending: list[list[Value]] = []

    def add(self, row: Sequence[Value]) -> None:
        """Write it, by and by."""
        self._pending.append(self._given(row))
        if len(self._pending) >= _TOGETHER:
            self.flush()

    def add_missing(self, row: Sequence[Value]) -> bool:
        """Write it now. Returns whether it was not there yet."""
        return self._target.execute(self._statement, self._given(row)).rowcount > 0

    def flush(self) -> None:
        """Write all."""
        self._target.executemany(self._statement, self._pending)
        self._pending.clear()

    def _given(self, row: Sequence[Value]) -> list[Value]:
        return [row[place] for place in self._places] + self._more


def _hold(path: Path) -> sqlite3.Connection | None:
    """A reader that keeps the log of a history in use from being removed; None: it is not in use."""
    if not Path(f"{path}-shm").exists():
        return None
    try:
        connection = connect_reader(path)
    except sqlite3.Error:
        return None
    try:
        connection.execute("BEGIN")
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.Error:
        connection.close()
        return None
    return connection


def _entry(row: Row) -> _Entry | None:
    """A row of the list of tables; None: it is none."""
    if not row.whole or len(row.values) != _ENTRY:
        return None
    kind, name, table, root, sql = row.values
    if kind not in ("table", "index") or not isinstance(name, str) or not isinstance(table, str):
        return None
    if not isinstance(root, int) or not (sql is None or isinstance(sql, str)):
        return None
    return _Entry(str(kind), name, table, root, sql or "")


def _has_shape(table: _Table, row: Row) -> bool:
    """Whether the values are of the kinds that the table's columns have."""
    values = row.values
    if not table.least <= len(values) <= len(table.columns):
        return False
    if table.alias is not None and (row.key is None or row.key <= 0 or values[table.alias] is not None):
        return False
    for place, (column, value) in enumerate(zip(table.columns, values, strict=False)):
        if value is None:
            if column.required and place != table.alias:
                return False
        elif value is not CUT and (
            not isinstance(value, _TYPES[column.kind]) or (column.words and value not in column.words)
        ):
            return False
    return values[0] is not CUT


def _fitting(table: _Table, row: Row) -> tuple[Value, ...] | None:
    """The row as the table has it, with what it leaves out; None: it is of another table, or can't be used."""
    if not _has_shape(table, row) or (not row.whole and table.name in _OUTLINED):
        return None
    made: list[Value] = []
    for place, column in enumerate(table.columns):
        value = row.values[place] if place < len(row.values) else column.default
        if place == table.alias:
            value = row.key
        elif isinstance(value, Cut):
            value = column.default if column.default is not None else column.empty if column.required else None
        if isinstance(value, str) and column.json is not None and not column.json(value):
            if table.name in _OUTLINED:
                return None
            value = column.empty if column.required else None
        if value is None and column.required and place != table.alias:
            value = _NEUTRAL[column.kind]
        made.append(value)
    check = _CONTENT.get(table.name)
    if check is not None and not check(dict(zip([column.name for column in table.columns], made, strict=True))):
        return None
    return tuple(made)


def _follows(before: Sequence[Value | Cut], key: Sequence[Value | Cut]) -> bool:
    try:
        return tuple(before) < tuple(key)
    except TypeError:
        return False


@lru_cache(maxsize=64)
def _tables(version: int) -> dict[str, _Table]:
    """Our tables as this version has them."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as made:
        least: dict[str, int] = {}
        for number in range(1, version + 1):
            schema.migrate(made, upto=number)
            for name in _names(made):
                least.setdefault(name, len(_raw(made, name)))
        return {name: _table_of(_raw(made, name), name, least[name]) for name in _names(made)}


@lru_cache(maxsize=64)
def _columns_in(version: int) -> dict[str, set[str]]:
    return {name: {column.name for column in table.columns} for name, table in _tables(version).items()}


def _names(connection: sqlite3.Connection) -> list[str]:
    rows = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
    return [name for (name,) in rows if not name.startswith(_NOT_OURS)]


def _raw(connection: sqlite3.Connection, table: str) -> dict[str, tuple[str, bool, str | None, int]]:
    """By column: its type, whether it must be there, its default as SQL, and its place in the key (from 1; 0: none)."""
    return {
        name: (kind.upper(), bool(required), default, key)
        for _, name, kind, required, default, key in connection.execute(f"PRAGMA table_info({table})")
    }


def _columns_of(entry: _Entry) -> dict[str, tuple[str, bool, str | None, int]]:
    """The columns that the file's own statement makes; nothing where it is not one that makes this table."""
    return _columns_made(entry.name, entry.sql)


@lru_cache(maxsize=64)
def _columns_made(name: str, statement: str) -> dict[str, tuple[str, bool, str | None, int]]:
    if not name.isidentifier() or not re.match(rf'CREATE TABLE "?{name}"?\s*\(', statement):
        return {}
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as made:
        try:
            made.execute(statement)
            return _raw(made, name)
        except sqlite3.Error:
            return {}


def _table_of(columns: Mapping[str, tuple[str, bool, str | None, int]], name: str, least: int) -> _Table:
    keys = [(place, kind) for place, (kind, _, _, key) in enumerate(columns.values()) if key]
    alias = keys[0][0] if len(keys) == 1 and keys[0][1] == "INTEGER" else None
    return _Table(
        name,
        tuple(_column(name, column, *rest[:3]) for column, rest in columns.items()),
        alias,
        min(least, len(columns)),
        len(keys),
    )


def _column(table: str, name: str, kind: str, required: bool, default: str | None) -> _Column:
    check, empty = None, ""
    if (table, name) in import_validation.LISTS:
        check, empty = import_validation.is_list, "[]"
    elif (table, name) in import_validation.OBJECTS:
        check, empty = import_validation.is_object, "{}"
    known = kind if kind in _TYPES else "TEXT"
    return _Column(
        name,
        kind=known,
        required=required,
        default=_literal(default),
        words=import_validation.WORDS.get((table, name), ()),
        json=check,
        empty=empty,
    )


def _literal(default: str | None) -> Value:
    """The value of a default: a number or a text in quotes."""
    if default is None or default.upper() == "NULL":
        return None
    if default.startswith("'") and default.endswith("'"):
        return default[1:-1].replace("''", "'")
    try:
        return int(default)
    except ValueError:
        return None
