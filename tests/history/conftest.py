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
def old(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """A file with the old history that a test's module has as `OLD`."""
    path = tmp_path / "old.db"
    path.write_bytes(request.module.OLD)
    return path
