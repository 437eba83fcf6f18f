"""Processes that die, processes that write at the same time, disks that are full."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest
from history_made import ended, planned, record

from agenteval_tui.core.open_histories import is_of_open_history
from agenteval_tui.history import store as store_module
from agenteval_tui.history.connections import Connection, connect_writer
from agenteval_tui.history.errors import HistoryError
from agenteval_tui.history.process_liveness import is_alive, owner_name
from agenteval_tui.history.records import RunFilter
from agenteval_tui.history.store import Store

ROOT = Path(__file__).resolve().parents[2]

# Plans runs, ends them one after the other, and says of each that it is acknowledged.
WRITER = """
import sys
sys.path[:0] = [{root!r}, {here!r}]
from history_made import ended, planned, record
from agenteval_tui.history.store import Store
store = Store.open({path!r})
name, number = {name!r}, {number}
store.begin_execution(record(name), [planned(n, name) for n in range(number)]).result()
print("begun", flush=True)
waiting = []
for n in range(number):
    store.run_started(f"{{name}}-RUN-{{n:05}}", 1, 5)
    future = store.run_ended(ended(n, name))
    future.add_done_callback(lambda f, n=n: print(n, flush=True) if f.exception() is None else None)
    waiting.append(future)
    if n % 7 == 0:
        waiting[-1].result()
store.flush()
store.end_execution(name, "finished").result()
print("ended", flush=True)
"""


def writer(path: Path, name: str, number: int) -> subprocess.Popen[bytes]:
    script = WRITER.format(root=str(ROOT), here=str(Path(__file__).parent), path=str(path), name=name, number=number)
    return subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE)


@pytest.mark.sweep
@pytest.mark.parametrize("seed", range(5))
def test_kill_loses_no_acknowledged_run(path: Path, seed: int) -> None:
    process = writer(path, "VICTIM", 2_000)
    assert process.stdout is not None
    wanted = random.Random(seed).randrange(1, 600)
    acknowledged = []
    for line in process.stdout:
        if line.strip().isdigit():
            acknowledged.append(int(line))
            if len(acknowledged) == wanted:
                os.kill(process.pid, signal.SIGKILL)
        elif line.strip() == b"ended":
            pytest.fail("it ended before it was killed")
    process.wait()
    with Store.open(path) as store:
        assert store.notices == ()
        runs = {run.position: run for run in store.runs_of_execution("VICTIM")}
        assert len(acknowledged) >= wanted
        assert all(runs[position].status == "passed" for position in acknowledged)
        done = [run for run in runs.values() if run.status == "passed"]
        assert {run.status for run in runs.values()} == {"passed", "queued"}
        # Each stored run is whole, and the totals are those of the rows.
        assert all(store.results(run.id) and store.transcript(run.id).messages for run in done)
        row = store.execution("VICTIM")
        assert (row.status, row.passed, row.runs) == ("interrupted", len(done), 2_000)
        assert len(store.run_ids(RunFilter(text="way"))) == len(done)
        store.end_execution("VICTIM", "cancelled").result()
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        connection.execute("INSERT INTO search (search) VALUES ('integrity-check')")


def test_two_processes_write_at_once(path: Path) -> None:
    Store.open(path).close()
    processes = [writer(path, name, 300) for name in ("FIRST", "SECOND")]
    with Store.open(path) as store:
        store.begin_execution(record("HERE"), [planned(n, "HERE") for n in range(300)]).result()
        for n in range(300):
            store.run_ended(ended(n, "HERE"))
            store.executions()
        store.flush()
        for process in processes:
            out, _ = process.communicate(timeout=250)
            assert out.endswith(b"ended\n")
        for name in ("FIRST", "SECOND", "HERE"):
            assert store.execution(name).passed == 300
        assert len(store.run_ids(RunFilter(text="way"))) == 900


def test_an_execution_of_a_dead_process_is_interrupted(path: Path) -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    with Store.open(path) as store:
        store.begin_execution(record(pid=child.pid), [planned(0), planned(1)]).result()
        store.run_started("EXECUTION-1-RUN-00000", 1, 5).result()
        assert store.execution("last").status == "running"
        child.communicate(b"\n")
        assert store.execution("last").status == "interrupted"  # seen at once, by any reader
    with Store.open(path) as store:
        assert store.execution("last").message
        assert [run.status for run in store.runs_of_execution("EXECUTION-1")] == ["queued", "queued"]
    with sqlite3.connect(path) as connection:
        assert connection.execute("SELECT status FROM executions").fetchone() == ("interrupted",)


def test_opening_leaves_a_live_execution_alone(path: Path) -> None:
    with Store.open(path) as store:
        store.begin_execution(record(), [planned(0)]).result()
        with Store.open(path) as other:
            assert other.execution("last").status == "running"
        assert store.execution("last").status == "running"


def test_a_process_is_known_by_more_than_its_number() -> None:
    me = owner_name()
    host, boot, number, start = me.rsplit("/", 3)
    assert is_alive(me)
    assert is_alive(f"elsewhere/{boot}/1/1")  # another machine can't be asked
    assert not is_alive(f"{host}/another-boot/{number}/{start}")
    assert not is_alive(f"{host}/{boot}/{number}/{start}1")  # the number was given to a new process
    assert not is_alive(f"{host}/{boot}/{2**22 + 1}/1")
    assert not is_alive("")
    assert not is_alive("nonsense")


def test_a_zombie_is_dead() -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    name = owner_name(child.pid)
    assert is_alive(name)
    assert child.stdin is not None
    child.stdin.close()
    while Path(f"/proc/{child.pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z":
        time.sleep(0.001)
    assert not is_alive(name)
    child.wait()


def test_a_full_disk_is_said_and_loses_nothing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    limit = {"pages": 2**30}

    class Limited(Connection):
        def execute(self, statement: str, *values: object) -> sqlite3.Cursor:  # type: ignore[override]
            if statement == "BEGIN IMMEDIATE":
                super().execute(f"PRAGMA max_page_count = {limit['pages']}")
            return super().execute(statement, *values)

    def connect(file: Path, **_: object) -> Connection:
        connection = sqlite3.connect(file, isolation_level=None, check_same_thread=False, factory=Limited)
        connection.execute("PRAGMA synchronous = FULL")
        return connection

    monkeypatch.setattr(store_module, "connect_writer", connect)
    with Store.open(path) as store:
        store.begin_execution(record(), [planned(n) for n in range(50)]).result()
        store.run_ended(ended(0)).result()
        limit["pages"] = 1  # SQLite takes the present size then: no page more
        futures = [store.run_ended(ended(n, answer=f"{n} " * 4_000)) for n in range(1, 50)]
        errors = [error for future in futures if (error := future.exception())]
        assert errors
        assert all(isinstance(error, HistoryError) and "disk is full" in str(error) for error in errors)
        assert store.execution("last").passed == 50 - len(errors)
        limit["pages"] = 2**30  # room again: the same store goes on
        for n, future in enumerate(futures, 1):
            if future.exception():
                store.run_ended(ended(n)).result()
        assert store.execution("last").passed == 50


def test_a_locked_file_is_said(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_module, "connect_writer", lambda file, **how: connect_writer(file, busy_s=0.01, **how))
    with Store.open(path) as store:
        store.begin_execution(record(), [planned(0)]).result()
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        error = store.run_ended(ended(0)).exception()
        assert isinstance(error, HistoryError)
        assert "locked" in str(error)
        assert store.execution("last").runs == 1  # readers do not care
        other.execute("ROLLBACK")
        other.close()
        store.run_ended(ended(0)).result()
        assert store.execution("last").passed == 1


def test_readers_do_not_wait_for_a_writer(path: Path) -> None:
    with Store.open(path) as store:
        store.begin_execution(record(), [planned(0)]).result()
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        other.execute("UPDATE runs SET status = 'passed'")
        assert store.run("EXECUTION-1-RUN-00000").status == "queued"
        other.execute("COMMIT")
        other.close()
        assert store.run("EXECUTION-1-RUN-00000").status == "passed"


def test_an_execution_whose_last_run_ended_before_its_process_died_is_finished(path: Path) -> None:
    """Killed between the last run's end and its own: nothing is missing, so there is nothing to resume."""
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    with Store.open(path) as store:
        store.begin_execution(record(pid=child.pid), [planned(0)]).result()
        store.run_ended(ended(0)).result()
        assert store.execution("last").status == "running"
        child.communicate(b"\n")
        assert store.execution("last").status == "finished"  # seen at once, by any reader
    with Store.open(path) as store:
        assert store.execution("last").status == "finished"
    with sqlite3.connect(path) as connection:
        assert connection.execute("SELECT status, message FROM executions").fetchone() == ("finished", "")


def test_which_files_are_left_to_sqlite(path: Path) -> None:
    link = path.with_name("link.db")
    link.symlink_to(path)
    beside = [path.with_name(path.name + end) for end in ("", "-wal", "-shm", "-journal")]
    assert not any(map(is_of_open_history, beside))
    with Store.open(path), Store.open(link, read_only=True) as second:
        second.close()
        second.close()
        assert all(map(is_of_open_history, [*beside, link]))
        assert not is_of_open_history(path.with_name("other.db"))
    assert not any(map(is_of_open_history, beside))


@pytest.mark.parametrize("look", ["open_to_look", "open", "open_read_only"])
def test_a_second_look_at_an_open_history_loses_nothing(path: Path, look: str) -> None:
    """POSIX drops all locks of a process when it closes any descriptor of the file, also one that SQLite knows nothing
    of. Another process would then remove the write-ahead log, and what is written after that would be lost."""
    looks = {
        "open_to_look": lambda: Store.open_to_look(path),
        "open": lambda: Store.open(path),
        "open_read_only": lambda: Store.open(path, read_only=True),
    }
    script = (
        f"import sqlite3; c = sqlite3.connect({str(path)!r}); c.execute('SELECT * FROM runs').fetchall(); c.close()"
    )
    with Store.open(path) as store:
        store.begin_execution(record("FIRST"), [planned(0, "FIRST")]).result()
        looks[look]().close()
        subprocess.run([sys.executable, "-c", script], check=True, timeout=60)
        store.run_ended(ended(0, "FIRST")).result()
        count = "SELECT count(*) FROM runs WHERE status = 'passed'"
        script = f"import sqlite3; print(*sqlite3.connect({str(path)!r}).execute({count!r}).fetchone())"
        seen = subprocess.run([sys.executable, "-c", script], check=True, timeout=60, capture_output=True, text=True)
    assert seen.stdout == "1\n"
