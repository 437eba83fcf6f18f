"""Tests of this folder share what they store: `history_made`."""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from agenteval_tui.history import connections, open_database, salvage, schema
from agenteval_tui.history.store import Store

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "history.db"


@pytest.fixture(autouse=True)
def histories_are_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the program, as tests of this folder are about that. Only what `store` gives is a copy."""
    monkeypatch.setattr(open_database, "prepare_file", connections.prepare_file)


TABLES: dict[int | None, sqlite3.Connection] = {}


@pytest.fixture
def tables_are_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is saved of a damaged file goes into tables that were made once: for tests that save hundreds of files."""

    def migrate(connection: sqlite3.Connection, *, upto: int | None = None) -> list[int]:
        if schema.version_of(connection) or connection.execute("SELECT 1 FROM sqlite_master").fetchone():
            return schema.migrate(connection, upto=upto)
        if upto not in TABLES:
            TABLES[upto] = sqlite3.connect(":memory:", isolation_level=None)
            schema.migrate(TABLES[upto], upto=upto)
        TABLES[upto].backup(connection)
        return []

    monkeypatch.setattr(salvage, "schema", SimpleNamespace(**{**vars(schema), "migrate": migrate}))


@pytest.fixture
def store(path: Path, copy_history: Callable[[Path], None]) -> Iterator[Store]:
    copy_history(path)
    with Store.open(path) as opened:
        yield opened


@pytest.fixture
def filled(store: Store) -> Store:
    """A history with an execution of three runs that have ended."""
    from history_made import ended, planned, record

    store.begin_execution(record(), [planned(n) for n in range(3)])
    for number in range(3):
        store.run_ended(ended(number))
    store.end_execution("EXECUTION-1", "finished").result()
    return store


@pytest.fixture
def next_version(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Calling it makes this program one whose tables have a version more: what was written before is then older."""

    def add() -> None:
        monkeypatch.setattr(schema, "MIGRATIONS", (*schema.MIGRATIONS, SECOND))

    return add


def _name_moods(connection: sqlite3.Connection) -> None:
    connection.execute("INSERT INTO moods (name) SELECT DISTINCT mood FROM runs")


SECOND = schema.Migration(
    schema.newest() + 1,
    "a test's",
    (
        "ALTER TABLE runs ADD COLUMN mood TEXT NOT NULL DEFAULT 'calm'",
        "CREATE INDEX runs_by_mood ON runs (mood)",
        "CREATE TABLE moods (id INTEGER PRIMARY KEY, name TEXT)",
        _name_moods,
    ),
)
