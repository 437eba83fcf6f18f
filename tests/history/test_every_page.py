"""Every page of a history file destroyed, one at a time: what is saved lacks what was on that page, and nothing else.

SQLite itself says what is on which page (`dbstat`). With AGENTEVAL_EVERY_PAGE=1 every page is destroyed in every way.
"""

from __future__ import annotations

import os
import random
import sqlite3
import zlib
from collections import Counter
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from history_made import ended, planned, record
from msgspec.structs import replace

from agenteval_tui.history.blobs import json_text
from agenteval_tui.history.connections import connect_writer
from agenteval_tui.history.delete_runs import remove_runs
from agenteval_tui.history.errors import HistoryError
from agenteval_tui.history.maintenance import check
from agenteval_tui.history.rebuild_totals import recount
from agenteval_tui.history.salvage import SalvageResult, salvage
from agenteval_tui.history.store import Store
from tests.sweeps import share

SIZE = 1024
RUNS = 36
KINDS = ("zeros", "random", "another", "free")
SHARDS = 4
# What is counted, or made anew.
NOT_COMPARED = {
    "executions": ("runs", "passed", "failed", "input_tokens", "output_tokens", "cost"),
    "tests": ("ended",),
    "criteria": ("first_ms",),
    "criterion_results": ("cause",),
    "dataset_rows": ("id",),
    "runs": ("transcript", "dataset_row", "task", "superseded"),
}
Rows = dict[str, set[tuple[Any, ...]]]


@dataclass(frozen=True)
class Page:
    number: int
    table: str
    kind: str
    cells: int


@dataclass(frozen=True)
class History:
    data: bytes
    pages: tuple[Page, ...]
    rows: Rows
    free: tuple[int, ...]


def make(path: Path, size: int = SIZE) -> None:
    """A history with something in every table, of which some was deleted."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(f"PRAGMA page_size = {size}")
        connection.execute("VACUUM")
    with Store.open(path) as store:
        for execution in range(3):
            name = f"EXECUTION-{execution}"
            runs = [
                planned(
                    n,
                    name,
                    test_id=f"test-{n % 20}",
                    test_name=f"A test of some length {n % 20}",
                    prompt=f"Where is my order? {n} " + "Please look it up. " * (n % 6 // 5 * 80),
                    row=n % 5,
                    variables={"order": n, "text": "x" * 20},
                    criteria=(f"hash-{n % 15}", "hash-b"),
                    specs=({"name": "polite", "text": "y" * 150}, {"name": "looks it up"}),
                    task={"number": n, "execution": execution, "text": random.Random(n).randbytes(40).hex()},
                )
                for n in range(RUNS // 3)
            ]
            store.begin_execution(record(name), runs)
            for n in range(RUNS // 3):
                long = random.Random(f"{name} {n}").randbytes(900 if n % 6 == 5 else 30).hex()
                made = ended(n, name, passed=n % 4 != 0, answer=f"It is on its way, {n} of {name}. {long}")
                store.run_ended(replace(made, tape=({"request": {"n": n}, "answer": long},)))
            store.end_execution(name, "finished").result()
        store.flush()
        with closing(connect_writer(path)) as connection:
            connection.execute("BEGIN")
            for run in range(1, RUNS + 1):
                connection.execute(
                    "INSERT INTO labels (run, rating, comment, who, at_ms, passed) VALUES (?, ?, ?, 'me', ?, 1)",
                    (run, run % 5 + 1, f"comment {run} " * (run % 9), 5_000 + run),
                )
                data = zlib.compress(json_text([1, {"n": run}, "reply " * run]).encode())
                connection.execute(
                    "INSERT INTO judge_replies (id, request, answerer, data, model, at_ms)"
                    " VALUES (?, ?, 'j', ?, 'm', 7)",
                    (run, f"request {run}", data),
                )
                connection.execute("INSERT INTO run_replies VALUES (?, ?, 1, 1)", (run, run))
                for number in (1, 2):
                    connection.execute(
                        "INSERT INTO failed_attempts VALUES (?, ?, 'timeout', ?, 1.5, 9, 1, NULL, 0.5)",
                        (run, number, f"no answer came from {run} " * 2),
                    )
                at = (f"name {run}", run)
                connection.execute("INSERT INTO taken_back (kind, name, at_ms) VALUES ('label', ?, ?)", at)
                connection.execute(
                    "INSERT INTO triage (signature, decision, note, who, at_ms, context)"
                    " VALUES (?, 'ignore', ?, 'me', 1, ?)",
                    (f'["failed", "{run}"]', f"note {run}", json_text({"examples": [], "tests": []})),
                )
                connection.execute(
                    "INSERT INTO imports (digest, execution, path, at_ms) VALUES (?, 1, '/a/file', 5)",
                    (f"digest {run}",),
                )
            for test in range(1, RUNS // 3 + 1):
                connection.execute(
                    "INSERT INTO quarantines (test, criterion, reason, until_ms, who, at_ms)"
                    " VALUES (?, '', ?, 9, 'me', 1)",
                    (test, f"it is flaky {test} " * 6),
                )
                connection.execute("INSERT INTO baselines (test, execution, at_ms) VALUES (?, 1, 3)", (test,))
            recount(connection)
            connection.execute("COMMIT")
        for n in (3, *range(14, 24)):
            remove_runs(store, [n])


def rows_of(path: Path) -> Rows:
    """All rows of our tables, by their names: what stands in others' place for numbers is followed."""
    with closing(sqlite3.connect(path)) as connection:
        names = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        found: Rows = {}
        for name in names:
            if name.startswith(("sqlite_", "search")):
                continue
            columns = [row[1] for row in connection.execute(f"PRAGMA table_info({name})")]
            wanted = [column for column in columns if column not in NOT_COMPARED.get(name, ())]
            if name == "runs":
                found["links"] = set(connection.execute("SELECT uid, transcript, task FROM runs").fetchall())
            found[name] = set(connection.execute(f"SELECT {', '.join(wanted)} FROM {name}").fetchall())
        return found


def pages_of(path: Path) -> tuple[Page, ...]:
    """What SQLite says of each page."""
    with closing(sqlite3.connect(path)) as connection:
        rows = connection.execute(
            "SELECT d.pageno, coalesce(m.tbl_name, d.name), m.type, d.pagetype, d.ncell, d.path FROM dbstat d"
            " LEFT JOIN sqlite_master m ON m.name = d.name ORDER BY d.pageno"
        ).fetchall()
        # An index has no rows of its own; an overflow page is a part of one row.
        return tuple(
            Page(number, table, f"{of} {kind}", 0 if of == "index" else 1 if kind == "overflow" else cells)
            for number, table, of, kind, cells, _ in rows
        )


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> History:
    path = tmp_path_factory.mktemp("made") / "history.db"
    make(path)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    data = path.read_bytes()
    listed = pages_of(path)
    free = set(range(1, len(data) // SIZE + 1)) - {page.number for page in listed}
    assert len(free) >= 2
    # All that there is to be destroyed is in it.
    kinds = Counter((page.table, page.kind) for page in listed)
    for table in ("runs", "transcripts", "evidence", "criterion_results", "tool_calls", "plans", "labels"):
        assert kinds[table, "table internal"] >= 1, table
    assert kinds["sqlite_schema", "None leaf"] > 5
    return History(data, listed, rows_of(path), tuple(sorted(free)))


def destroyed(history: History, page: int, kind: str) -> bytes:
    dice = random.Random(f"{page} {kind}")
    if kind == "zeros":
        new = bytes(SIZE)
    elif kind == "random":
        new = dice.randbytes(SIZE)
    else:
        others = history.free if kind == "free" else range(2, len(history.data) // SIZE + 1)
        other = dice.choice([one for one in others if one != page])
        new = history.data[(other - 1) * SIZE : other * SIZE]
    return history.data[: (page - 1) * SIZE] + new + history.data[page * SIZE :]


# What goes with a row of a table.
DEPENDENT: dict[str, tuple[str, ...]] = {
    "runs": ("evidence", "criterion_results", "labels", "failed_attempts", "run_replies", "tapes"),
    "transcripts": ("tool_calls",),
    "judge_replies": ("run_replies",),
    "evidence": (),
    "tests": ("suites", "criterion_texts"),
}


def judge(history: History, how: str, page: Page | None, new: Path, saved: SalvageResult) -> None:
    """What was saved is what there was, but for what was on this page."""
    found = rows_of(new)
    said = {loss.table: loss for loss in saved.lost}
    for table, before in history.rows.items():
        if table == "links":
            continue
        lost, more = before - found[table], found[table] - before
        about = f"{how} of {page}: {table}: {sorted(lost, key=str)[:3]} instead of {sorted(more, key=str)[:3]}"
        here = page is not None and table == page.table
        dependent = page is not None and table in DEPENDENT.get(page.table, ())
        if not here and not dependent:
            assert not lost, about
            assert not more, about
        elif here:
            assert page is not None
            assert len(lost) <= page.cells, about
            assert len(more) <= len(lost), about  # in outline
        if lost and here:
            assert table in said, about
            assert said[table].rows in (0, len(lost)), about
            assert said[table].rows or said[table].unknown, about
        elif not lost and table != "dataset_rows":  # made anew by what their variables say
            # Who does not know how many there were says so.
            assert table not in said or (here and said[table].unknown), about
    checked = check(new, deep=True)
    assert (checked.damage, checked.wrong) == ((), ())
    if page is None or page.table not in ("transcripts", "tasks"):
        assert found["links"] <= history.rows["links"]


def all_kinds() -> bool:
    return os.environ.get("AGENTEVAL_EVERY_PAGE") == "1"


@pytest.mark.usefixtures("tables_are_copied")
@pytest.mark.parametrize("shard", range(SHARDS))
def test_a_destroyed_page_costs_what_was_on_it(history: History, tmp_path: Path, shard: int) -> None:
    path, new = tmp_path / "history.db", tmp_path / "new.db"
    known = {page.number: page for page in history.pages}
    numbers = range(1 + shard, len(history.data) // SIZE + 1, SHARDS)
    for number in share(numbers, lambda number: known[number].table if number in known else ""):
        for kind in KINDS if all_kinds() else (KINDS[(number // SHARDS) % len(KINDS)],):
            path.write_bytes(destroyed(history, number, kind))
            saved = salvage(path, new)
            page = known.get(number)
            judge(history, kind, page, new, saved)
            new.unlink()


def count(path: Path, table: str) -> int:
    with closing(sqlite3.connect(path)) as connection:
        return int(connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0])


def salvaged(path: Path, data: bytes, log: bytes = b"") -> tuple[SalvageResult, Rows]:
    """What is saved of these bytes; it is sound."""
    new = path.with_name("new.db")
    new.unlink(missing_ok=True)
    path.write_bytes(data)
    Path(f"{path}-wal").unlink(missing_ok=True)
    if log:
        Path(f"{path}-wal").write_bytes(log)
    saved = salvage(path, new)
    checked = check(new, deep=True)
    assert (checked.damage, checked.wrong) == ((), ())
    return saved, rows_of(new)


def test_a_whole_file_is_saved_whole(history: History, path: Path) -> None:
    saved, found = salvaged(path, history.data)
    assert saved.lost == ()
    assert found == history.rows


@pytest.mark.usefixtures("tables_are_copied")
def test_deleted_runs_do_not_come_back(history: History, path: Path) -> None:
    # Not even where the list of free pages is lost with the first page, or is destroyed itself.
    there = {row[1] for row in history.rows["runs"]}
    for number in (1, *history.free):
        _, found = salvaged(path, destroyed(history, number, "zeros"))
        assert {row[1] for row in found["runs"]} == there
        assert found["labels"] == history.rows["labels"]


@pytest.mark.sweep
@pytest.mark.usefixtures("tables_are_copied")
@pytest.mark.parametrize("seed", range(12))
def test_two_destroyed_pages(history: History, path: Path, seed: int) -> None:
    dice = random.Random(seed)
    # Pages that lead to others, and the list of tables, are destroyed more often than by chance.
    leading = [page for page in history.pages if "internal" in page.kind or page.table == "sqlite_schema"]
    pages = [dice.choice(leading), dice.choice(history.pages)]
    data = history.data
    for page in pages:
        new = destroyed(history, page.number, dice.choice(KINDS))[(page.number - 1) * SIZE : page.number * SIZE]
        data = data[: (page.number - 1) * SIZE] + new + data[page.number * SIZE :]
    saved, found = salvaged(path, data)
    cells = sum(page.cells for page in pages if page.table == "runs" and "leaf" in page.kind)
    before = {row[1] for row in history.rows["runs"]}
    there = {row[1] for row in found["runs"]}
    assert there <= before
    assert len(before - there) <= cells
    assert sum(loss.rows for loss in saved.lost if loss.table == "runs") == len(before - there)


@pytest.mark.usefixtures("tables_are_copied")
def test_what_is_in_the_log_counts(history: History, path: Path) -> None:
    source = path.with_name("source.db")
    source.write_bytes(history.data)
    with Store.open(source) as store:
        store.begin_execution(record("IN-THE-LOG"), [planned(n, "IN-THE-LOG") for n in range(4)])
        for n in range(4):
            store.run_ended(ended(n, "IN-THE-LOG", answer=f"in the log {n}")).result()
        data, log = source.read_bytes(), Path(f"{source}-wal").read_bytes()
        with closing(sqlite3.connect(source)) as connection:
            assert connection.execute("SELECT count(*) FROM runs").fetchone()[0] == count(source, "runs")
        before = rows_of(source)
        cells = {page.number: page.cells for page in pages_of(source) if page.table == "runs" and "leaf" in page.kind}
    assert len(log) > 20 * SIZE
    saved, found = salvaged(path, data, log)
    assert (saved.lost, found) == ((), before)
    # What was not committed does not count, nor does what an older log left behind.
    for end in (log[:0], bytes(SIZE + 24), log[32 : 32 + 3 * (SIZE + 24)], b"x" * 100):
        assert salvaged(path, data, log + end)[1] == before
    for number in share(range(1, len(data) // SIZE + 1, 13)):
        broken = data[: (number - 1) * SIZE] + b"\xff" * SIZE + data[number * SIZE :]
        _, found = salvaged(path, broken, log)
        lost = {row[1] for row in before["runs"]} - {row[1] for row in found["runs"]}
        assert not any(one.startswith("IN-THE-LOG") for one in lost)
        assert len(lost) <= cells.get(number, 0)
    # A destroyed place in the log: no more than what was on that page is lost, and nothing is made up.
    for place in share(range(0, len(log), 37 * (SIZE + 24) + 5)):
        broken = log[:place] + b"\xff" * 200 + log[place + 200 :]
        _, found = salvaged(path, data, broken)
        there = {row[1] for row in found["runs"]}
        assert there <= {row[1] for row in before["runs"]}
        assert len(there) >= len(before["runs"]) - 2 * max(cells.values())


@pytest.mark.sweep
@pytest.mark.parametrize("vacuumed", [False, True])
@pytest.mark.parametrize("part", [0.9, 0.5, 0.2])
def test_a_file_that_was_cut_off(history: History, path: Path, vacuumed: bool, part: float) -> None:
    path.write_bytes(history.data)
    if vacuumed:
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            connection.execute("VACUUM")
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    with closing(sqlite3.connect(path)) as connection:
        end = int(path.stat().st_size * part) // SIZE * SIZE - 100
        rows = connection.execute(
            "SELECT sum(ncell) FROM dbstat WHERE name = 'runs' AND pagetype = 'leaf' AND pageno * ? <= ?", (SIZE, end)
        ).fetchone()
    saved, found = salvaged(path, path.read_bytes()[:end])
    assert len(found["runs"]) >= (rows[0] or 0)
    assert len(found["runs"]) + sum(one.rows for one in saved.lost if one.table == "runs") == len(history.rows["runs"])


@pytest.mark.sweep
@pytest.mark.parametrize("size", [512, 1024, 2048, 8192, 65536])
def test_pages_of_other_sizes(path: Path, size: int) -> None:
    """The size is known without the head of the file too."""
    source = path.with_name("source.db")
    make(source, size)
    with closing(sqlite3.connect(source)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    data, before = source.read_bytes(), rows_of(source)
    assert salvaged(path, data)[1] == before
    _, found = salvaged(path, bytes(100) + data[100:])
    assert found == before
    if size <= 2048:  # else the first page has tables of its own
        _, found = salvaged(path, b"\xff" * size + data[size:])
        assert found["runs"] == before["runs"]
        assert found["evidence"] == before["evidence"]


@pytest.mark.parametrize("table", ["transcripts", "evidence", "judge_replies", "tasks"])
def test_what_can_not_be_unpacked_is_not_copied_and_said(history: History, path: Path, table: str) -> None:
    path.write_bytes(history.data)
    with closing(sqlite3.connect(path)) as connection:
        key, data = connection.execute(f"SELECT rowid, data FROM {table} ORDER BY length(data) LIMIT 1").fetchone()
        # A letter of a text, where it is not compressed: only the hash of a transcript knows of that.
        place = data.find(b"way") if table == "transcripts" and b"way" in data else len(data) // 2
        changed = data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]
        connection.execute(f"UPDATE {table} SET data = ? WHERE rowid = ?", (changed, key))
        connection.commit()
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    saved, found = salvaged(path, path.read_bytes())
    assert [(loss.table, loss.rows) for loss in saved.lost if loss.table == table] == [(table, 1)]
    assert len(found[table]) == len(history.rows[table]) - 1
    assert found["runs"] == history.rows["runs"]


def test_what_was_not_committed_is_rolled_back(history: History, path: Path) -> None:
    """A crash in the middle of writing, where there is no log: the journal has the pages as they were."""
    source = path.with_name("source.db")
    source.write_bytes(history.data)
    with closing(sqlite3.connect(source, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = TRUNCATE")
    with closing(sqlite3.connect(source, isolation_level=None)) as connection:
        connection.execute("PRAGMA cache_size = 2")  # pages are written before the commit
        connection.execute("BEGIN")
        connection.execute("UPDATE runs SET why = why || 'changed' || hex(randomblob(300))")
        connection.execute("DELETE FROM labels")
        connection.execute("INSERT INTO tests (suite, test_id, name) VALUES (1, 'more', 'more')")
        data, journal = source.read_bytes(), Path(f"{source}-journal").read_bytes()
        connection.execute("ROLLBACK")
    assert data != history.data
    assert len(journal) > 10 * SIZE
    Path(f"{path}-journal").write_bytes(journal)
    saved, found = salvaged(path, data)
    assert (saved.lost, found) == ((), history.rows)


def test_a_history_in_use_is_saved_as_it_is_at_one_moment(path: Path, tmp_path: Path) -> None:
    with Store.open(path) as store:
        store.begin_execution(record(), [planned(n) for n in range(200)])
        for n in range(200):
            store.run_ended(ended(n)).result()
            if n % 40 == 0:
                new = tmp_path / f"new-{n}.db"
                saved = salvage(path, new)
                assert saved.lost == ()
                assert count(new, "evidence") == n + 1
                checked = check(new, deep=True)
                assert (checked.damage, checked.wrong) == ((), ())
    assert check(path).damage == ()


@pytest.mark.parametrize("version", [1, 5, 11, 2**31])
def test_a_version_that_is_not_that_of_the_tables(history: History, path: Path, version: int) -> None:
    data = history.data[:60] + version.to_bytes(4, "big") + history.data[64:]
    assert salvaged(path, data)[1] == history.rows


def test_another_programs_database(history: History, path: Path) -> None:
    # Its tables may look like ours.
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("CREATE TABLE projects (id INTEGER PRIMARY KEY, key TEXT NOT NULL, name TEXT NOT NULL)")
        connection.executemany("INSERT INTO projects (key, name) VALUES (?, ?)", [("a", "b")] * 500)
    with pytest.raises(HistoryError, match="no readable part of a history"):
        salvage(path, path.with_name("new.db"))


@pytest.mark.usefixtures("tables_are_copied")
def test_a_letter_of_the_statement_that_made_a_table(history: History, path: Path) -> None:
    start = history.data.index(b"CREATE TABLE runs (")
    for place in share(range(start, start + 400, 41)):
        changed = bytes([history.data[place] ^ 3])
        _, found = salvaged(path, history.data[:place] + changed + history.data[place + 1 :])
        assert found == history.rows, history.data[place - 20 : place + 20]


@pytest.mark.sweep
@pytest.mark.usefixtures("tables_are_copied")
@pytest.mark.parametrize("seed", range(6))
def test_bytes_that_are_anything(history: History, path: Path, seed: int) -> None:
    """Whatever is changed, salvage ends, says what it did, and makes nothing up that SQLite would not take."""
    dice = random.Random(seed)
    data = bytearray(history.data)
    leading = [page.number for page in history.pages if "internal" in page.kind or "overflow" in page.kind]
    for _ in range(60):
        # Most of all where pages name others: in their heads, and in the numbers at the start of overflow pages.
        page = dice.choice(leading) if dice.random() < 0.7 else dice.randrange(1, len(data) // SIZE + 1)
        place = (page - 1) * SIZE + dice.randrange(SIZE if dice.random() < 0.5 else 24)
        data[place] = dice.randrange(256)
    saved, found = salvaged(path, bytes(data))
    assert len(found["runs"]) > len(history.rows["runs"]) // 3
    assert saved.rows["runs"] == len(found["runs"])
