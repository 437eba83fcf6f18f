"""Disks, file systems and clocks that misbehave: what is stored stays, and what is wrong is said."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from history_made import ended, planned, record

from agenteval_tui.core import ids
from agenteval_tui.history import connections, schema, writer
from agenteval_tui.history import store as store_module
from agenteval_tui.history.connections import connect_writer
from agenteval_tui.history.errors import HistoryError
from agenteval_tui.history.store import Store
from agenteval_tui.history.writer import Operation


def test_a_disk_that_is_full(small_disk: Path) -> None:
    path = small_disk / "history.db"
    with Store.open(path) as store:
        store.begin_execution(record(), [planned(n) for n in range(40)]).result()
        store.run_ended(ended(0)).result()
        filler = small_disk / "filler"
        with filler.open("wb", buffering=0) as file, pytest.raises(OSError, match="No space left"):  # noqa: PT012
            while True:
                file.write(b"x" * 4096)
        futures = [store.run_ended(ended(n, answer=f"{n} " * 9_000)) for n in range(1, 40)]
        errors = [error for future in futures if (error := future.exception())]
        assert errors
        assert {type(error) for error in errors} == {HistoryError}
        assert "the disk is full" in str(errors[0])
        assert "safe" in str(errors[0])
        stored = store.execution("last").passed
        assert 1 <= stored == 40 - len(errors)
    # A history on a full disk opens, to be read at least, and loses nothing.
    with Store.open_to_look(path) as store:
        assert store.execution("last").passed == stored
        assert store.transcript("EXECUTION-1-RUN-00000").final_output
    filler.unlink()
    with Store.open(path) as store:
        assert store.notices == ()
        for n, future in enumerate(futures, 1):
            if future.exception():
                store.run_ended(ended(n)).result()
        assert store.execution("last").passed == 40


class _HowCommitsAreSynced(Operation):
    def apply(self, connection: sqlite3.Connection, totals: writer.Totals) -> object:
        return connection.execute("PRAGMA synchronous").fetchone()[0]


def test_only_what_must_be_kept_waits_for_the_disk(tmp_path: Path) -> None:
    normal, full = 1, 2
    path = tmp_path / "history.db"
    with Store.open(path) as store, Store.open(path, durable=False) as free:
        assert store.write(_HowCommitsAreSynced()).result() == full
        assert free.write(_HowCommitsAreSynced()).result() == normal
        free.begin_execution(record(), [planned(0)]).result()
        assert store.execution("last").id == record().id
    # In another journal than the write-ahead log, a loss of power could damage the file.
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA journal_mode = TRUNCATE")
    connection.close()
    with connect_writer(path, durable=False) as connection:
        assert connection.execute("PRAGMA synchronous").fetchone()[0] == full


def test_an_older_file_that_can_not_be_copied_stays_as_it_is(
    small_disk: Path, next_version: Callable[[], None]
) -> None:
    path = small_disk / "history.db"
    with sqlite3.connect(path, isolation_level=None) as connection:
        schema.migrate(connection)
        connection.execute("INSERT INTO transcripts (hash, data) VALUES (x'00', zeroblob(2000000))")
    connection.close()
    next_version()
    with pytest.raises(HistoryError, match="the disk is full"):
        Store.open(path)
    assert list(small_disk.glob("history.db.version-*")) == []
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (1,)
        assert connection.execute("SELECT length(data) FROM transcripts").fetchone() == (2_000_000,)
    connection.close()


LOCKER = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN EXCLUSIVE")
print("locked", flush=True)
sys.stdin.readline()
connection.execute("ROLLBACK")
"""


def test_another_program_that_locks_the_file_is_waited_for(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tries = []
    begun = sqlite3.Connection.execute

    class Counted(connections.Connection):
        def execute(self, statement: str, *values: object) -> sqlite3.Cursor:  # type: ignore[override]
            if statement == "BEGIN IMMEDIATE":
                tries.append(statement)
            return begun(self, statement, *values)

    def connected(file: Path, **_: object) -> connections.Connection:
        return sqlite3.connect(file, timeout=0.01, isolation_level=None, check_same_thread=False, factory=Counted)

    monkeypatch.setattr(store_module, "connect_writer", connected)
    monkeypatch.setattr(writer, "_PATIENT_TRIES", 10**6)
    with Store.open(path) as store:
        store.begin_execution(record(), [planned(0), planned(1)]).result()
        with subprocess.Popen(
            [sys.executable, "-c", LOCKER, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as locker:
            assert locker.stdout is not None
            assert locker.stdout.readline() == b"locked\n"
            # What nobody paid for is given up soon, with a word; a run's end waits, however long it takes.
            refused = store.label("EXECUTION-1-RUN-00000", 5).exception()
            assert isinstance(refused, HistoryError)
            assert "keeps the history file locked" in str(refused)
            future = store.run_ended(ended(0))
            before = len(tries)
            deadline = time.monotonic() + 250
            while len(tries) < before + 10 and time.monotonic() < deadline:
                time.sleep(0.01)
            assert not future.done()
            assert store.execution("last").runs == 2  # who reads does not wait
            with Store.open(path) as other:  # nor who opens it
                assert other.execution("last").status == "running"
            locker.communicate(b"\n")
        future.result(60)
        assert store.execution("last").passed == 1


def test_who_ends_does_not_wait_for_a_lock_for_ever(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_module, "connect_writer", lambda file, **how: connect_writer(file, busy_s=0.01, **how))
    monkeypatch.setattr(writer, "_PATIENT_TRIES", 10**9)
    with Store.open(path) as store:
        store.begin_execution(record(), [planned(0)]).result()
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        future = store.run_ended(ended(0))
    assert isinstance(future.exception(), HistoryError)
    other.close()


def test_where_sqlite_has_no_write_ahead_log_it_says_so(path: Path) -> None:
    # This way of locking (one of SQLite's own) has no shared memory, as a file system without it.
    connection = sqlite3.connect(f"file:{path}?vfs=unix-dotfile", uri=True, isolation_level=None)
    try:
        notice = connections.use_wal(connection, path)
        assert "can't use its write-ahead log" in notice
        assert "one machine" in notice
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("delete",)
    finally:
        connection.close()


def test_a_clock_that_jumps_changes_no_order_and_loses_nothing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [2_000_000_000_000, 1_000_000_000_000, 3_000_000_000_000, 5_000]
    monkeypatch.setattr(ids.time, "time_ns", lambda: clock[0] * 1_000_000)
    names = []
    with Store.open(path) as store:
        while clock:
            names.append(ids.new_id())
            name = names[-1]
            store.begin_execution(record(name), [planned(0, name)])
            store.run_ended(ended(0, name)).result()
            store.label(f"{name}-RUN-00000", 4).result()
            if len(clock) == 1:
                break
            clock.pop(0)
            store.end_execution(name, "finished").result()
        assert names == sorted(names)  # ids grow all the same
        assert [row.id for row in store.executions()] == names[::-1]
        assert store.execution("last").id == names[-1]
        assert store.counts().passed == 4
        assert len(store.labels()) == 4
    with Store.open(path) as store:
        assert store.execution("last").status == "running"  # told from the process, not from a time
