"""A damaged file: what can be read is saved, the file itself is kept, and a person is told."""

from __future__ import annotations

import os
import random
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from history_made import SUITE, ended, planned, record, results, transcript

from agenteval_tui.history import open_database
from agenteval_tui.history.connections import rescued_path
from agenteval_tui.history.errors import DamagedError, HistoryError
from agenteval_tui.history.maintenance import check
from agenteval_tui.history.merge import merge_history
from agenteval_tui.history.records import RunFilter
from agenteval_tui.history.salvage import salvage as salvaged
from agenteval_tui.history.store import Store

NUMBER = 400
MANY = 800


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A history of 400 runs in 8 executions, as bytes."""
    path = tmp_path_factory.mktemp("whole") / "history.db"
    with Store.open(path) as store:
        for execution in range(8):
            name = f"EXECUTION-{execution}"
            store.begin_execution(record(name), [planned(n, name) for n in range(NUMBER // 8)])
            for n in range(NUMBER // 8):
                store.run_ended(ended(n, name, passed=n % 4 != 0))
            store.end_execution(name, "finished").result()
    return path.read_bytes()


def pages_of(data: bytes, name: str, tmp_path: Path) -> list[int]:
    """The numbers (from 1) of the pages that hold table `name`."""
    path = tmp_path / "look.db"
    path.write_bytes(data)
    with closing(sqlite3.connect(path)) as connection:
        return [row[0] for row in connection.execute("SELECT pageno FROM dbstat WHERE name = ?", (name,))]


def leaves_of(data: bytes, name: str, tmp_path: Path) -> list[tuple[int, int]]:
    """The pages that hold its rows, in their order, and how many rows each holds."""
    path = tmp_path / "look.db"
    path.write_bytes(data)
    leaves = "SELECT pageno, ncell FROM dbstat WHERE name = ? AND pagetype = 'leaf' ORDER BY path"
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(leaves, (name,)).fetchall()


def roots(data: bytes, tmp_path: Path) -> set[int]:
    """The pages that lead to all others of a table: what hangs on a broken one can't be reached."""
    path = tmp_path / "look.db"
    path.write_bytes(data)
    with closing(sqlite3.connect(path)) as connection:
        return {row[0] for row in connection.execute("SELECT rootpage FROM sqlite_master")}


def overwrite(data: bytes, pages: list[int], size: int = 4096) -> bytes:
    changed = bytearray(data)
    for page in pages:
        changed[(page - 1) * size : page * size] = random.Random(page).randbytes(size)
    return bytes(changed)


def check_is_sound(path: Path) -> None:
    """Whole for SQLite, totals right, everything that is listed can be opened."""
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        connection.execute("INSERT INTO search (search) VALUES ('integrity-check')")
    with Store.open(path) as store:
        assert store.notices == ()
        for row in store.executions():
            runs = store.runs_of_execution(row.id)
            assert row.runs == len(runs)
            assert row.passed == sum(run.status == "passed" for run in runs)
            for run in runs:
                store.results(run.id)
        store.begin_execution(record("AFTER"), [planned(0, "AFTER")])
        store.run_ended(ended(0, "AFTER", answer="afterwards")).result()
        assert len(store.run_ids(RunFilter(text="afterwards"))) == 1


def rescued(path: Path, data: bytes) -> Store:
    path.write_bytes(data)
    store = Store.open(path)
    assert "was damaged" in store.notices[0]
    (aside,) = path.parent.glob("history.db.damaged-*")
    assert str(aside) in store.notices[0]
    assert aside.read_bytes() == data
    assert aside.stat().st_mode & 0o777 in (0o600, 0o644)  # as it was
    assert path.stat().st_mode & 0o777 == 0o600
    return store


@pytest.mark.parametrize("vacuumed", [False, True])
def test_a_cut_off_file(path: Path, whole: bytes, vacuumed: bool) -> None:
    if vacuumed:  # tables begin at other pages then
        path.write_bytes(whole)
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("VACUUM")
        whole = path.read_bytes()
    with rescued(path, whole[: len(whole) * 3 // 4]) as store:
        saved = store.counts()
        assert 0 < saved.runs <= NUMBER
        found = [run for row in store.executions() for run in store.runs_of_execution(row.id)]
        assert len(found) == saved.runs
    check_is_sound(path)


def test_a_broken_page_of_runs_loses_only_that_page(path: Path, whole: bytes, tmp_path: Path) -> None:
    pages = pages_of(whole, "runs", tmp_path)
    assert len(pages) > 10
    with rescued(path, overwrite(whole, [pages[len(pages) // 2]])) as store:
        assert NUMBER - 60 < store.counts().runs < NUMBER
        assert len(store.run_ids(RunFilter(text="way"))) == store.counts().runs
        assert store.transcript("EXECUTION-0-RUN-00001") == transcript("It is on its way, number 1.")
        assert store.results(f"EXECUTION-7-RUN-{NUMBER // 8 - 1:05}") == results(True)
    check_is_sound(path)


@pytest.mark.sweep
@pytest.mark.parametrize("shares", [[0.5], [1], [0, 0.5, 1]])
def test_runs_are_found_though_each_index_of_them_is_broken(
    path: Path, whole: bytes, tmp_path: Path, shares: list[float]
) -> None:
    """Their numbers are those of a long history."""
    path.write_bytes(whole)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        tables = [row[0] for row in connection.execute("SELECT name FROM pragma_table_list WHERE type = 'table'")]
        columns = {table: {row[1] for row in connection.execute(f"PRAGMA table_info({table})")} for table in tables}
        connection.execute("UPDATE runs SET id = id + 100000")
        for table in tables:
            if "run" in columns[table]:
                connection.execute(f"UPDATE {table} SET run = run + 100000")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        indexes = [row[1] for row in connection.execute("PRAGMA index_list(runs)")]
    data = path.read_bytes()
    broken = [pages_of(data, name, tmp_path)[-1] for name in indexes]
    runs = leaves_of(data, "runs", tmp_path)
    destroyed = [runs[round(share * (len(runs) - 1))] for share in shares]
    with rescued(path, overwrite(data, [*broken, *[page for page, _ in destroyed]])) as store:
        assert store.counts().runs == NUMBER - sum(cells for _, cells in destroyed)
    check_is_sound(path)


def test_a_destroyed_beginning_costs_what_was_in_it(path: Path, whole: bytes, tmp_path: Path) -> None:
    last = max(roots(whole, tmp_path))
    in_it = sum(cells for page, cells in leaves_of(whole, "runs", tmp_path) if page > last)
    with rescued(path, overwrite(whole, list(range(1, last + 1)))) as store:
        assert store.counts().runs == in_it > NUMBER // 2
    check_is_sound(path)


@pytest.fixture(scope="module")
def deep(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A history whose pages are so small that three of them lead to each run, as in one of many runs; the first
    execution was deleted."""
    path = tmp_path_factory.mktemp("deep") / "history.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA page_size = 512")
        connection.execute("VACUUM")
    with Store.open(path) as store:
        for execution in range(4):
            name = f"EXECUTION-{execution}"
            store.begin_execution(record(name), [planned(n, name) for n in range(MANY // 8)])
            for n in range(MANY // 8):
                store.run_ended(ended(n, name))
            store.end_execution(name, "finished").result()
        store.delete_execution("EXECUTION-0").result()
    return path.read_bytes()


@pytest.mark.sweep
@pytest.mark.parametrize("share", [0.4, 0.6, 0.8, 0.95])
def test_a_cut_off_file_of_many_runs_has_all_runs_that_are_in_it(
    path: Path, deep: bytes, tmp_path: Path, share: float
) -> None:
    end = int(len(deep) // 512 * share) * 512
    path.write_bytes(deep)
    with closing(sqlite3.connect(path)) as connection:
        uids = {row[0] for row in connection.execute("SELECT uid FROM runs")}
        rows = "SELECT total(ncell) FROM dbstat WHERE name = 'runs' AND pagetype = 'leaf' AND pageno <= ?"
        in_it = connection.execute(rows, (end // 512,)).fetchone()[0]
        deepest = "SELECT max(length(path)) FROM dbstat WHERE name = 'runs'"
        assert connection.execute(deepest).fetchone()[0] == len("/000/000/")
    path.unlink()
    with rescued(path, deep[:end]) as store:
        saved = {run.id for row in store.executions() for run in store.runs_of_execution(row.id)}
    assert len(saved) >= in_it > 0
    assert saved <= uids
    check_is_sound(path)


def test_broken_pages_of_transcripts_lose_no_run(path: Path, whole: bytes, tmp_path: Path) -> None:
    # The same hundred transcripts are shared by all executions: few pages, many runs.
    pages = pages_of(whole, "transcripts", tmp_path)
    with rescued(path, overwrite(whole, pages[1:3])) as store:
        assert store.counts().runs == NUMBER
        runs = [run.id for run in store.runs_of_execution("EXECUTION-3")]
        there = [run for run, _ in store.transcripts(runs)]
        assert 0 < len(there) < 100
        lost = next(run for run in runs if run not in there)
        with pytest.raises(HistoryError, match="was lost"):
            store.transcript(lost)
        assert store.results("EXECUTION-3-RUN-00001") == results(True)
    check_is_sound(path)
    found = check(path)
    assert (found.damage, found.wrong) == ((), ())
    assert 0 < found.lost < NUMBER
    # What was saved comes into another history, with its gaps.
    with Store.open(tmp_path / "other.db") as other:
        assert merge_history(other, path).runs == NUMBER + 1, "and the one that was stored to see that it is sound"
        with pytest.raises(HistoryError, match="was lost"):
            other.transcript(lost)
        assert len(list(other.transcripts(runs))) == len(there)
        assert check(other.path).lost == found.lost


@pytest.mark.sweep
@pytest.mark.parametrize("table", ["executions", "plans", "tests", "suites"])
def test_what_runs_need_is_put_back_in_outline(path: Path, whole: bytes, tmp_path: Path, table: str) -> None:
    with rescued(path, overwrite(whole, pages_of(whole, table, tmp_path))) as store:
        assert store.counts().runs == NUMBER
        assert len(store.run_rows(store.run_ids())) == NUMBER
        assert len(store.run_ids(RunFilter(text="way"))) == NUMBER
    check_is_sound(path)


def test_a_broken_search_index_is_made_anew(path: Path, whole: bytes, tmp_path: Path) -> None:
    path.write_bytes(overwrite(whole, pages_of(whole, "search_data", tmp_path)))
    with Store.open(path) as store:
        assert store.counts().runs == NUMBER
        assert len(store.run_ids(RunFilter(text="way"))) == NUMBER
    check_is_sound(path)


@pytest.mark.sweep
@pytest.mark.parametrize("start", [0, 16, 50])
def test_a_broken_beginning(path: Path, whole: bytes, start: int) -> None:
    data = whole[:start] + random.Random(start).randbytes(200) + whole[start + 200 :]
    with rescued(path, data) as store:
        assert store.counts().runs == NUMBER
        assert store.test_summaries(SUITE)["test-1"].total > 0
    check_is_sound(path)


def test_a_broken_first_page(path: Path, whole: bytes) -> None:
    with rescued(path, overwrite(whole, [1])) as store:
        assert store.counts().runs == NUMBER
    check_is_sound(path)


@pytest.mark.parametrize("data", [b"garb\0age", b"\0" * 10_000, b"SQLite format 3\0" + b"x" * 5_000])
def test_nothing_can_be_read(path: Path, data: bytes) -> None:
    with rescued(path, data) as store:
        assert "0 runs" in store.notices[0]
        assert store.executions() == []
    check_is_sound(path)


@pytest.mark.parametrize("data", [b"garbage", b"somebody's notes\n" * 1_000])
def test_a_text_in_our_own_data_folder_was_a_history(path: Path, data: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENTEVAL_DATA_DIR", str(path.parent))
    with rescued(path, data) as store:
        assert "0 runs" in store.notices[0]
        assert store.executions() == []
    check_is_sound(path)


@pytest.mark.sweep
@pytest.mark.parametrize("seed", range(6))
def test_random_damage(path: Path, whole: bytes, tmp_path: Path, seed: int) -> None:
    dice = random.Random(seed)
    leading = roots(whole, tmp_path)
    pages = dice.sample([page for page in range(2, len(whole) // 4096 + 1) if page not in leading], 4)
    path.write_bytes(overwrite(whole, pages))
    # The first opening may not see it: reading does, and then the next opening fixes.
    for _ in range(3):
        try:
            with Store.open(path) as store:
                for row in store.executions():
                    for run in store.runs_of_execution(row.id):
                        store.results(run.id)
                        store.run_ids(RunFilter(text=f"number {run.position}"))
                runs = store.counts().runs
                break
        except DamagedError:
            continue
    else:
        pytest.fail("still damaged at the third opening")
    assert runs > NUMBER // 2


def test_damage_met_while_reading_is_fixed_by_the_next_opening(
    path: Path, whole: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(open_database, "_SMALL", 0)  # a large file is not checked as a whole when it is opened
    pages = pages_of(whole, "evidence", tmp_path)
    path.write_bytes(overwrite(whole, pages[len(pages) // 2 :][:3]))
    with Store.open(path) as store:
        assert store.notices == ()
        runs = [run.id for row in store.executions() for run in store.runs_of_execution(row.id)]
        with pytest.raises(DamagedError, match="start agenteval again"):
            list(map(store.results, runs))
    with Store.open(path) as store:
        assert "was damaged" in store.notices[0]
        assert store.counts().runs == NUMBER
    check_is_sound(path)


def test_what_is_only_in_the_log_is_saved_too(path: Path, whole: bytes, tmp_path: Path) -> None:
    source = tmp_path / "source.db"
    source.write_bytes(whole)
    with Store.open(source) as store:
        store.begin_execution(record("IN-THE-LOG"), [planned(0, "IN-THE-LOG")])
        store.run_ended(ended(0, "IN-THE-LOG")).result()
        # As a crash leaves it: the log beside the file.
        page = pages_of(whole, "plans", tmp_path)[0]
        path.write_bytes(overwrite(source.read_bytes(), [page]))
        Path(f"{path}-wal").write_bytes(Path(f"{source}-wal").read_bytes())
    with Store.open(path) as store:
        assert store.execution("IN-THE-LOG").passed == 1
        assert store.counts().runs == NUMBER + 1


@pytest.mark.sweep
@pytest.mark.parametrize("renamed", range(4))
def test_a_rescue_that_is_killed_is_finished_by_the_next_opening(
    path: Path, whole: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, renamed: int
) -> None:
    """Killed before each of its renamings: the new file to its name, the damaged one and its log aside, the new one in
    its place."""
    damaged = overwrite(whole, pages_of(whole, "plans", tmp_path)[:1])
    path.write_bytes(damaged)
    Path(f"{path}-journal").write_bytes(b"a log")
    rename, left = Path.rename, [renamed]

    def killed(file: Path, target: object) -> Path:
        if file.name.startswith(path.name):
            if not left[0]:
                raise KeyboardInterrupt
            left[0] -= 1
        return rename(file, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", killed)
        with pytest.raises(KeyboardInterrupt):
            Store.open(path)
    with Store.open(path) as store:
        assert store.counts().runs == NUMBER
    check_is_sound(path)
    files = {file.name: file.read_bytes() for file in path.parent.iterdir() if ".damaged-" in file.name}
    assert damaged in files.values(), "the damaged file is kept"
    assert not [name for name in os.listdir(path.parent) if "rescue" in name]


def test_who_only_reads_finds_what_a_killed_rescue_had_saved(path: Path, whole: bytes) -> None:
    rescued_path(path).write_bytes(whole)
    with Store.open(path, read_only=True) as store:
        assert store.counts().runs == NUMBER
    assert not rescued_path(path).exists()


def test_a_rescue_that_cant_be_finished_says_why(path: Path, whole: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    rescued_path(path).write_bytes(whole)

    def refused(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "rename", refused)
    with pytest.raises(HistoryError, match="can't be repaired: Permission denied"):
        Store.open(path)
    assert rescued_path(path).read_bytes() == whole


def test_a_rescue_that_fails_leaves_the_damaged_file(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from agenteval_tui.history import salvage

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    path.write_bytes(b"garb\0age")
    with pytest.raises(HistoryError, match="no readable part of a history"):
        salvage.salvage(path, path.with_name("saved.db"))
    monkeypatch.setattr(salvage, "save_readable", full)
    with pytest.raises(HistoryError, match="No space left"):
        Store.open(path)
    assert path.read_bytes() == b"garb\0age"
    assert {file for file in os.listdir(path.parent) if file.startswith("history")} == {"history.db", "history.db.lock"}
    # Salvaged into a file: that is there when all of it is.
    with pytest.raises(HistoryError, match="No space left"):
        salvage.salvage(path, path.with_name("saved.db"))

    def killed(_: Path, draft: Path) -> None:
        assert draft.exists()
        assert not path.with_name("saved.db").exists()
        raise KeyboardInterrupt

    monkeypatch.setattr(salvage, "save_readable", killed)
    with pytest.raises(KeyboardInterrupt):
        salvage.salvage(path, path.with_name("saved.db"))
    assert [file for file in os.listdir(path.parent) if "saved" in file] == []


def test_a_statement_in_the_file_makes_a_table_or_is_not_followed(path: Path, whole: bytes, tmp_path: Path) -> None:
    written, source = tmp_path / "written.db", tmp_path / "source.db"
    numbers = "WITH RECURSIVE n(id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM n LIMIT 1000000) SELECT id FROM n"
    statements = {
        "labels": f"VACUUM INTO '{written}'",
        "suites": f"ATTACH '{written}' AS other",
        "tests": f"CREATE TABLE tests AS {numbers}",
        "plans": "CREATE TABLE plans (id INTEGER PRIMARY KEY, prompt TEXT AS (hex(randomblob(1000000))))",
        "runs": "PRAGMA temp_store_directory = '/'",
    }
    source.write_bytes(whole)
    with closing(sqlite3.connect(source, isolation_level=None)) as connection:
        connection.execute("PRAGMA writable_schema = ON")
        for table, statement in statements.items():
            connection.execute("UPDATE sqlite_master SET sql = ? WHERE name = ?", (statement, table))
    saved = salvaged(source, path)
    assert (saved.rows["runs"], saved.lost) == (NUMBER, ())
    assert {file.name for file in tmp_path.iterdir()} == {"source.db", "history.db"}
    check_is_sound(path)


def test_nobody_else_can_read_the_copies_of_a_damaged_file(
    path: Path, whole: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, modes = tmp_path / "source.db", set[int]()
    source.write_bytes(whole)

    def watched(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            modes.update(file.stat().st_mode & 0o777 for file in tmp_path.glob(".*"))
            return function(*args, **options)

        return call

    with Store.open(source) as store:  # as long as it is open, there is a log
        store.begin_execution(record("IN-THE-LOG"), [planned(0, "IN-THE-LOG")])
        store.run_ended(ended(0, "IN-THE-LOG")).result()
        monkeypatch.setattr(sqlite3, "connect", watched(sqlite3.connect))
        monkeypatch.setattr(Path, "chmod", watched(Path.chmod))
        assert salvaged(source, path).rows["runs"] == NUMBER + 1
    assert modes == {0o600}
