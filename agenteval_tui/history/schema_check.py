"""Whether a file has the tables that its version has, and adding what is missing.

A file's number says which migrations it went through. A development version may have written the file before a column
was added to the tables; other programs may have changed it too.
"""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from functools import lru_cache
from typing import Literal, NamedTuple

from agenteval_tui.history import schema

Kind = Literal["table", "column", "index", "other column", "other index", "unique"]


class Difference(NamedTuple):
    """What a file lacks, or has otherwise. `name`: of the column or index; the columns of a lost UNIQUE."""

    kind: Kind
    table: str
    name: str = ""
    addable: bool = True
    """Whether it can be added to the file as it is."""

    def __str__(self) -> str:
        return {
            "table": f"table {self.table} is missing",
            "column": f"column {self.table}.{self.name} is missing",
            "index": f"index {self.name} of table {self.table} is missing",
            "other column": f"column {self.table}.{self.name} has another type or rule",
            "other index": f"index {self.name} of table {self.table} has another definition",
            "unique": f"table {self.table} does not keep ({self.name}) unique",
        }[self.kind]


class _Column(NamedTuple):
    kind: str
    required: bool
    default: str | None
    key: int


class _Shape(NamedTuple):
    columns: dict[str, dict[str, _Column]]
    unique: dict[str, set[str]]
    made: dict[str, str]
    """Statements of tables and indexes."""
    indexes: dict[str, str]
    """Of each index its table."""


def looks_right(connection: sqlite3.Connection, version: int) -> bool:
    """Whether the file's own statements hold what the migrations wrote. Next to no time; `differences` knows better."""
    tables, indexes = _written(version)
    rows = connection.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL").fetchall()
    there = {name: _plain(sql) for name, sql in rows}
    return all(there.get(name) == sql for name, sql in indexes.items()) and all(
        all(part in there.get(name, "") for part in parts) for name, parts in tables.items()
    )


def differences(connection: sqlite3.Connection, version: int) -> tuple[Difference, ...]:
    """The tables, columns and indexes of its version that the file lacks. Additional ones are not a fault."""
    ours, there = _shape_of(version), _read(connection)
    found = []
    for table, columns in ours.columns.items():
        if table not in there.columns:
            found.append(Difference("table", table))
            continue
        for name, column in columns.items():
            if name not in there.columns[table]:
                addable = not column.key and (not column.required or column.default is not None)
                found.append(Difference("column", table, name, addable))
            elif there.columns[table][name] != column:
                found.append(Difference("other column", table, name, False))
        found += [
            Difference("unique", table, names, False) for names in sorted(ours.unique[table] - there.unique[table])
        ]
    for name, table in ours.indexes.items():
        if table in there.columns:
            if name not in there.made:
                found.append(Difference("index", table, name))
            elif _plain(there.made[name]) != _plain(ours.made[name]):
                found.append(Difference("other index", table, name))
    return tuple(found)


def add_missing(connection: sqlite3.Connection, version: int) -> tuple[Difference, ...]:
    """Add what is missing; a new column has its default. Gives what was added, and what was not.

    Within the caller's transaction. Raises sqlite3.Error; nothing is changed where something can't be added.
    """
    found = differences(connection, version)
    if not all(one.addable for one in found):
        return found
    ours = _shape_of(version)
    for one in found:
        if one.kind == "table":
            connection.execute(ours.made[one.table])
        elif one.kind == "column":
            column = ours.columns[one.table][one.name]
            rule = f" DEFAULT {column.default}" if column.default is not None else ""
            connection.execute(
                f"ALTER TABLE {one.table} ADD COLUMN {one.name} {column.kind}{' NOT NULL' * column.required}{rule}"
            )
    for one in found:
        if one.kind == "other index":
            connection.execute(f"DROP INDEX {one.name}")
    lost = {one.table for one in found if one.kind == "table"}
    for name, table in ours.indexes.items():
        if table in lost or any(one.name == name and one.kind.endswith("index") for one in found):
            connection.execute(ours.made[name])
    return found


_ADD = re.compile(r"ALTER TABLE (\w+) ADD COLUMN (\w+)")
_TABLE = re.compile(r"CREATE (?:VIRTUAL )?TABLE (\w+)")
_COMMA = re.compile(r", (?![^(]*\))")  # not within parentheses
_INDEX = re.compile(r"CREATE INDEX (\w+) ON (\w+)")
_DROP = re.compile(r"DROP INDEX (\w+)")


@lru_cache(maxsize=2)
def _written(version: int) -> tuple[dict[str, list[str]], dict[str, str]]:
    """By table: what its statement must hold. By index: its statement."""
    tables: dict[str, list[str]] = {}
    indexes: dict[str, str] = {}
    for migration in schema.MIGRATIONS[:version]:
        for statement in migration.statements:
            if not isinstance(statement, str):
                continue
            if table := _TABLE.match(statement):
                # What a file got later stands between its columns and the rules for several of them.
                beginning, _, rest = _plain(statement).partition("(")
                tables[table[1]] = [beginning, *_COMMA.split(rest.rpartition(")")[0].strip())]
            elif added := _ADD.match(statement):
                tables[added[1]].append(_plain(statement.partition(" ADD COLUMN ")[2]))
            elif index := _INDEX.match(statement):
                indexes[index[1]] = _plain(statement)
            elif dropped := _DROP.match(statement):
                indexes.pop(dropped[1], None)
    return tables, indexes


def _plain(statement: str) -> str:
    return " ".join(statement.replace('"', "").split())


@lru_cache(maxsize=2)
def _shape_of(version: int) -> _Shape:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as made:
        schema.migrate(made, upto=version)
        return _read(made)


def _read(connection: sqlite3.Connection) -> _Shape:
    rows = connection.execute(
        "SELECT type, name, tbl_name, sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%'"
    ).fetchall()
    # The tables behind the search index are FTS5's own.
    tables = [name for kind, name, *_ in rows if kind == "table" and not name.startswith("search_")]
    columns: dict[str, dict[str, _Column]] = {}
    unique: dict[str, set[str]] = {}
    for table in tables:
        named = '"' + table.replace('"', '""') + '"'
        columns[table] = {
            name: _Column(kind.upper(), bool(required), default, key)
            for _, name, kind, required, default, key in connection.execute(f"PRAGMA table_info({named})")
        }
        unique[table] = {
            ", ".join(str(row[2]) for row in connection.execute(f'PRAGMA index_info("{index}")'))
            for _, index, only, origin, *_ in connection.execute(f"PRAGMA index_list({named})")
            if only and origin == "u"
        }
    return _Shape(
        columns,
        unique,
        {name: sql for _, name, _, sql in rows},
        {name: table for kind, name, table, _ in rows if kind == "index"},
    )
