"""A history that another program keeps locked: said once after a moment, and ended in one sentence."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from agenteval_tui.history import backup, connections, lock_wait, maintenance, store, writer
from agenteval_tui.history.backup import copy_history
from agenteval_tui.history.errors import LockedError
from agenteval_tui.history.lock_wait import listen_for_waits
from agenteval_tui.history.maintenance import check, check_health, space, vacuum
from agenteval_tui.history.store import Store


@pytest.fixture
def locked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A history whose lock another connection holds; each wait is made short."""
    path = tmp_path / "h.db"
    Store.open(path).close()
    monkeypatch.setattr(connections, "BUSY_SECONDS", 0.01)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("PRAGMA locking_mode = EXCLUSIVE")
        other.execute("BEGIN EXCLUSIVE")
        other.execute("CREATE TABLE held (x)")
        yield path
        other.execute("ROLLBACK")


def test_who_opens_it_is_told_once(locked: Path) -> None:
    said: list[str] = []
    with listen_for_waits(said.append), pytest.raises(LockedError, match="keeps the history file locked"):
        Store.open(locked)
    assert said == [f"waiting for the history file, which another program keeps locked: {locked}"]


def test_only_the_innermost_listener_is_told(locked: Path) -> None:
    outer: list[str] = []
    inner: list[str] = []
    with listen_for_waits(outer.append):
        with listen_for_waits(inner.append), pytest.raises(LockedError):
            Store.open(locked)
        lock_wait.tell_waiting(locked)
    assert (len(outer), len(inner)) == (0, 1)


def test_who_writes_is_told_and_then_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, said = tmp_path / "h.db", list[str]()
    monkeypatch.setattr(connections, "BUSY_SECONDS", 0.01)
    monkeypatch.setattr(writer, "_TRIES", 2)
    with (
        Store.open(path) as opened,
        closing(sqlite3.connect(path, isolation_level=None)) as other,
        listen_for_waits(said.append),
    ):
        other.execute("BEGIN IMMEDIATE")
        error = opened.delete_execution("no such").exception()
        other.execute("ROLLBACK")
    assert isinstance(error, LockedError)
    assert len(said) == 1


@pytest.mark.parametrize("verb", [["history"], ["show", "last"], ["why", "last"], ["trends"], ["causes"], ["flaky"]])
def test_every_verb_says_that_it_waits(
    locked: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, verb: list[str]
) -> None:
    from agenteval_tui.cli.main import main

    monkeypatch.setattr(store, "READING_TRIES", 2)
    assert main(["--db", str(locked), *verb], launch_app=lambda start: 0) == 3
    shown = capsys.readouterr()
    assert shown.err.count("waiting for the history file") == 1
    assert "another program keeps the history file locked" in shown.err
    assert "Traceback" not in shown.err


@pytest.fixture
def plain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A history in the journal mode of network file systems: there a writer keeps readers out, too."""
    path = tmp_path / "plain.db"
    Store.open(path).close()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
    monkeypatch.setattr(connections, "BUSY_SECONDS", 0.01)
    return path


UPKEEP: dict[str, Callable[[Path], object]] = {
    "check": check,
    "deep check": lambda path: check(path, deep=True),
    "health": check_health,
    "space": space,
    "copy": lambda path: copy_history(path, path.with_name("copy.db")),
}


@pytest.mark.parametrize("name", UPKEEP)
def test_upkeep_says_that_it_waits_and_goes_on(plain: Path, name: str) -> None:
    said: list[str] = []
    with closing(sqlite3.connect(plain, isolation_level=None, check_same_thread=False)) as other:
        other.execute("BEGIN EXCLUSIVE")

        def listen(sentence: str) -> None:
            said.append(sentence)
            other.execute("ROLLBACK")

        with listen_for_waits(listen):
            UPKEEP[name](plain)
    assert said == [f"waiting for the history file, which another program keeps locked: {plain}"]


@pytest.mark.parametrize("name", ["check", "vacuum"])
def test_who_writes_for_upkeep_says_that_it_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """In the usual journal mode reading goes on, and only the writing part has to wait."""
    path, said = tmp_path / "h.db", list[str]()
    with (
        Store.open(path) as opened,
        closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as other,
    ):
        monkeypatch.setattr(connections, "BUSY_SECONDS", 0.01)
        other.execute("BEGIN IMMEDIATE")

        def listen(sentence: str) -> None:
            said.append(sentence)
            other.execute("ROLLBACK")

        with listen_for_waits(listen):
            vacuum(opened) if name == "vacuum" else check(path)
    assert len(said) == 1


@pytest.mark.parametrize("name", ["check", "vacuum"])
def test_what_stays_locked_is_no_whole_history(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """A check that could not ask the search index does not say that all is well."""
    path = tmp_path / "h.db"
    with Store.open(path) as opened, closing(sqlite3.connect(path, isolation_level=None)) as other:
        monkeypatch.setattr(connections, "BUSY_SECONDS", 0.01)
        monkeypatch.setattr(maintenance, "WRITING_TRIES", 2)
        monkeypatch.setattr(maintenance, "READING_TRIES", 1)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(LockedError):
            vacuum(opened) if name == "vacuum" else check(path)
        other.execute("ROLLBACK")


@pytest.mark.parametrize(
    "verb",
    [
        ["db", "prune", "--older-than", "0h", "--yes"], ["db", "vacuum"], ["db", "check"], ["db", "check", "--fix"],
        ["db"], ["db", "export", "copy.db"], ["db", "move", "nowhere", "."],
    ],
)  # fmt: skip
def test_every_db_verb_says_that_it_waits(
    locked: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, verb: list[str]
) -> None:
    from agenteval_tui.cli.main import main

    for module in (store, maintenance, backup, maintenance):
        monkeypatch.setattr(module, "READING_TRIES", 2)
    monkeypatch.chdir(locked.parent)
    assert main(["--db", str(locked), *verb], launch_app=lambda start: 0) == 3
    shown = capsys.readouterr()
    assert shown.err.count("waiting for the history file") == 1
    assert "another program keeps the history file locked" in shown.err
    assert "Traceback" not in shown.err
