"""The rows of a history as SQL text, and back: what is committed can be read and compared.

The tables are those of the program that loads them: a column that is added to them has its default.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from agenteval_tui.history.schema import migrate


def dumped(path: Path) -> str:
    """All rows of a history file as SQL, one a line, in a fixed order.

    The hidden tables of the full-text index come last: the index has no contents to be made of again.
    """
    with sqlite3.connect(path) as connection:
        connection.execute("INSERT INTO search (search) VALUES ('optimize')")
        lines = list(_lines(connection))
        connection.rollback()
    return "\n".join(lines) + "\n"


def _lines(connection: sqlite3.Connection) -> Iterator[str]:
    made = connection.execute(
        "SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%' ORDER BY rowid"
    ).fetchall()
    virtual = [name for kind, name, sql in made if kind == "table" and sql.startswith("CREATE VIRTUAL")]
    hidden = {name for _, name, _ in made for owner in virtual if re.fullmatch(rf"{owner}_\w+", name)}
    tables = [name for kind, name, _ in made if kind == "table" and name not in hidden and name not in virtual]
    for table in sorted(tables):
        yield from _rows(connection, table)
    for table in sorted(hidden):
        yield f"DELETE FROM {table};"
        yield from _rows(connection, table)
    yield "DELETE FROM sqlite_sequence;"
    yield from _rows(connection, "sqlite_sequence")


def _rows(connection: sqlite3.Connection, table: str) -> Iterator[str]:
    columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
    quoted = ", ".join(f'quote("{name}")' for name in columns)
    rows = connection.execute(
        f"SELECT {quoted} FROM {table} ORDER BY {', '.join(map(str, range(1, len(columns) + 1)))}"
    )
    listed = [f"({','.join(row)})" for row in rows]
    if listed:
        yield f"INSERT INTO {table} ({', '.join(columns)}) VALUES\n" + ",\n".join(listed) + ";"


def loaded(text: str, path: Path) -> None:
    """Write the history that `dumped` gave this text of."""
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        migrate(connection)
        connection.executescript(f"BEGIN;\n{text}\nCOMMIT;")
    finally:
        connection.close()
