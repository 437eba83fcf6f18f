"""How the history file is: size, rows, and whether it is whole. For `agenteval doctor` and `agenteval db`."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from pathlib import Path

from agenteval_tui.history import schema, shape
from agenteval_tui.history.connect import READING_TRIES, connect_reader
from agenteval_tui.history.errors import explain
from agenteval_tui.history.upkeep import loose_decisions
from agenteval_tui.history.waiting import patiently


@dataclass(frozen=True, slots=True)
class Health:
    """`problems` is empty for a file that SQLite can read, `wrong` for one in which everything fits as far as a glance
    tells (`upkeep.check` looks closer). Sizes are bytes; `free` is what deleted rows left unused."""

    path: Path
    version: int
    newest_version: int
    size: int
    log_size: int
    free: int
    journal: str
    rows: dict[str, int]
    problems: tuple[str, ...]
    wrong: tuple[str, ...] = ()


def check_health(path: Path) -> Health:
    """Read the whole file and judge it: seconds for a large one. Raises HistoryError when it can't even be opened."""
    try:
        return patiently(path, lambda: _health(path), READING_TRIES)
    except sqlite3.Error as error:
        raise explain(error, path, doing="read") from error


def _health(path: Path) -> Health:
    from sqlite_utils import Database

    log = Path(f"{path}-wal")
    connection = connect_reader(path)
    try:
        problems = [str(row[0]) for row in connection.execute("PRAGMA quick_check(20)").fetchall()]
        database = Database(connection)
        tables = [name for name in database.table_names() if not name.startswith(("sqlite_", "search"))]
        figures = {
            name: connection.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("page_size", "freelist_count", "journal_mode")
        }
        version = schema.version_of(connection)
        sound = all(problem == "ok" for problem in problems)
        wrong: list[str] = []
        if sound and version == schema.newest():
            wrong += map(str, shape.differences(connection, version))
            wrong += loose_decisions(connection) if not wrong else []
        return Health(
            path=path,
            version=version,
            newest_version=schema.newest(),
            size=path.stat().st_size,
            log_size=log.stat().st_size if log.exists() else 0,
            free=figures["page_size"] * figures["freelist_count"],
            journal=figures["journal_mode"],
            rows={name: database[name].count for name in tables},
            problems=tuple(problem for problem in problems if problem != "ok"),
            wrong=tuple(wrong),
        )
    finally:
        connection.close()
