"""Published migrations never change; files whose tables are not those of their version are found and put right."""

from __future__ import annotations

import gzip
import hashlib
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from history_made import ended, planned, record

from agenteval_tui.history import schema, schema_check
from agenteval_tui.history.errors import HistoryError
from agenteval_tui.history.maintenance import check, check_health
from agenteval_tui.history.salvage import salvage
from agenteval_tui.history.store import Store

# A migration that is published never changes: files that went through it would differ from those to come. What a new
# one needs here is one new line.
PUBLISHED = {
    1: "621515e79613688d",
    2: "2d46414c3dbe5cd5",
    3: "40838be705639dee",
    4: "9da4676f0126e388",
    5: "b12e824a69d2c5fc",
    6: "46af984a0c385d26",
    7: "5af67fcb74ad821b",
    8: "2d7c0056dd0d61f2",
    9: "f0a46a992c0668b2",
    10: "9e6b2de1bdfd207e",
    11: "ecb25c686f82f58e",
    12: "5c1e039e758ffc47",
    13: "edc92ae0b10546cf",
    14: "cc279b5a9d70bd12",
    15: "4ee403e0d2a46f65",
    16: "1852a767f09f30be",
}


def digest(migration: schema.Migration) -> str:
    parts = [one if isinstance(one, str) else f"{one.__module__}.{one.__name__}" for one in migration.statements]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


def test_published_migrations_are_as_they_were() -> None:
    assert {one.number: digest(one) for one in schema.MIGRATIONS} == PUBLISHED, (
        "a published migration was changed: put it back, and write another one (or add the line of a new one here)"
    )


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("whole") / "history.db"
    with Store.open(path) as store:
        store.begin_execution(record(), [planned(n, row=n % 3, variables={"a": n % 3}) for n in range(6)])
        for n in range(6):
            store.run_ended(ended(n, passed=n % 2 == 0))
        store.end_execution("EXECUTION-1", "finished").result()
    return path.read_bytes()


def changed(path: Path, data: bytes, *statements: str) -> None:
    path.write_bytes(data)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def named(version: int) -> Iterator[tuple[str, str]]:
    """All tables and columns of ours."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as made:
        schema.migrate(made, upto=version)
        yield from made.execute(
            "SELECT m.name, c.name FROM sqlite_master m, pragma_table_info(m.name) c WHERE m.type = 'table'"
            " AND m.name NOT LIKE 'sqlite_%' AND m.name NOT LIKE 'search%'"
        ).fetchall()


def test_a_new_file_has_the_right_tables(path: Path, whole: bytes) -> None:
    for version in range(1, schema.newest() + 1):
        with closing(sqlite3.connect(":memory:", isolation_level=None)) as made:
            for number in range(1, version + 1):  # one by one, as files that grew old did
                schema.migrate(made, upto=number)
            assert schema_check.looks_right(made, version)
            assert schema_check.differences(made, version) == ()
    path.write_bytes(whole)
    assert check(path).wrong == ()


@pytest.mark.parametrize("old", sorted(Path(__file__).parent.rglob("*.db.gz")), ids=lambda one: one.name)
def test_old_files_have_the_tables_of_their_version(path: Path, old: Path) -> None:
    path.write_bytes(gzip.decompress(old.read_bytes()))
    with closing(sqlite3.connect(path)) as connection:
        assert schema_check.differences(connection, schema.version_of(connection)) == ()
    with Store.open(path) as store:
        assert "updated from version" in store.notices[0]
    assert check(path).wrong == ()


def test_every_column_that_is_missing_is_found(whole: bytes, path: Path) -> None:
    path.write_bytes(whole)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA writable_schema = ON")
        for table, column in named(schema.newest()):
            connection.execute("BEGIN")
            connection.execute(
                "UPDATE sqlite_master SET sql = replace(replace(replace(sql, ' ' || ?1 || ' ', ' x_y '),"
                " '(' || ?1 || ' ', '(x_y '), char(10) || ?1 || ' ', ' x_y ') WHERE type = 'table' AND name = ?2",
                (column, table),
            )
            changed_sql = connection.execute("SELECT sql FROM sqlite_master WHERE name = ?", (table,)).fetchone()[0]
            assert "x_y" in changed_sql
            assert not schema_check.looks_right(connection, schema.newest()), (table, column)
            connection.execute("ROLLBACK")


LACKING = {
    # What files lack that went through migrations 3 and 5 before those were changed.
    "task_number": (["ALTER TABLE runs DROP COLUMN task_number"], ["column runs.task_number is missing"]),
    "steps": (
        [
            *("DROP INDEX runs_over_time", "ALTER TABLE runs DROP COLUMN steps", "DROP INDEX plans_by_tags"),
            *("DROP INDEX results_by_cause", "DROP TABLE taken_back"),
        ],
        [
            "column runs.steps is missing",
            "table taken_back is missing",
            "index plans_by_tags of table plans is missing",
            "index results_by_cause of table criterion_results is missing",
            "index runs_over_time of table runs is missing",
        ],
    ),
    "an index": (["DROP INDEX runs_of_test"], ["index runs_of_test of table runs is missing"]),
    "another index": (
        ["DROP INDEX runs_of_test", "CREATE INDEX runs_of_test ON runs (status)"],
        ["index runs_of_test of table runs has another definition"],
    ),
    "a table": (["DROP TABLE criterion_texts"], ["table criterion_texts is missing"]),
    "a cause": (
        ["DROP INDEX results_by_cause", "ALTER TABLE criterion_results DROP COLUMN cause"],
        [
            "column criterion_results.cause is missing",
            "index results_by_cause of table criterion_results is missing",
        ],
    ),
    "the place in a dataset": (
        ["DROP INDEX runs_over_time", "ALTER TABLE runs DROP COLUMN dataset_row"],
        ["column runs.dataset_row is missing", "index runs_over_time of table runs is missing"],
    ),
    "paid": (["ALTER TABLE run_replies DROP COLUMN paid"], ["column run_replies.paid is missing"]),
    "two": (
        ["ALTER TABLE labels DROP COLUMN passed", "ALTER TABLE triage DROP COLUMN context"],
        ["column labels.passed is missing", "column triage.context is missing"],
    ),
}


@pytest.mark.parametrize("lacking", sorted(LACKING))
def test_what_tables_lack_is_said_and_added(path: Path, whole: bytes, lacking: str) -> None:
    statements, said = LACKING[lacking]
    changed(path, whole, *statements)
    before = path.read_bytes()
    found = check(path)
    assert sorted(found.wrong) == sorted(said)
    assert all(one.addable for one in found.shape)
    assert sorted(check_health(path).wrong) == sorted(said)
    with pytest.raises(HistoryError, match="has unexpected tables") as refused:
        Store.open(path, read_only=True)
    assert "with write permission" in refused.value.mend
    with Store.open(path) as store:
        (notice,) = store.notices
        assert all(one in notice for one in said)
        (copy,) = path.parent.glob("history.db.version-*")
        assert str(copy) in notice
        assert store.counts().runs == 6
        store.begin_execution(record("AFTER"), [planned(0, "AFTER")])
        store.run_ended(ended(0, "AFTER")).result()
    assert check(path) == type(found)((), ())
    assert copy.stat().st_size == len(before)
    with closing(sqlite3.connect(path)) as connection:
        # As the migration would have filled it.
        assert connection.execute("SELECT count(*) FROM runs WHERE steps = 1").fetchone()[0] == 7
        assert connection.execute("SELECT count(*) FROM runs WHERE row AND dataset_row IS NULL").fetchone()[0] == 0
        assert connection.execute("SELECT count(*) FROM criterion_texts").fetchone()[0] > 0
    with Store.open(path) as store:
        assert store.notices == ()


def test_an_older_file_that_lacks_something_is_brought_up(path: Path) -> None:
    data = gzip.decompress((Path(__file__).parent / "old" / "version5.db.gz").read_bytes())
    changed(path, data, "DROP INDEX runs_over_time", "ALTER TABLE runs DROP COLUMN steps")
    with Store.open(path) as store:
        (notice,) = store.notices
        assert "updated from version 5" in notice
        assert "column runs.steps is missing" in notice
    assert check(path).wrong == ()


BEYOND = {
    "a column that must be there": (["ALTER TABLE suites DROP COLUMN name"], "column suites.name is missing"),
    "a table of another kind": (
        [
            "ALTER TABLE labels RENAME TO old",
            "CREATE TABLE labels AS SELECT * FROM old",
            "DROP TABLE old",
            "CREATE INDEX labels_of_run ON labels (run)",
        ],
        "column labels.id has another type or rule",
    ),
    "no longer unique": (
        [
            "CREATE TABLE other (id INTEGER PRIMARY KEY, key TEXT NOT NULL, name TEXT NOT NULL)",
            "INSERT INTO other SELECT * FROM suites",
            "DROP TABLE suites",
            "ALTER TABLE other RENAME TO suites",
        ],
        "table suites does not keep (key) unique",
    ),
}


@pytest.mark.parametrize("beyond", sorted(BEYOND))
def test_what_can_not_be_added_is_refused_and_salvaged(path: Path, whole: bytes, beyond: str) -> None:
    statements, said = BEYOND[beyond]
    changed(path, whole, *statements)
    before = path.read_bytes()
    assert said in check(path).wrong
    with pytest.raises(HistoryError, match="has unexpected tables") as refused:
        Store.open(path)
    assert "db salvage" in refused.value.mend
    assert path.read_bytes() == before
    assert list(path.parent.glob("history.db.version-*")) == []
    new = path.with_name("new.db")
    assert salvage(path, new).rows["runs"] == 6
    assert check(new).wrong == ()


def test_a_damaged_list_of_suites_keeps_nobody_from_opening(tmp_path: Path) -> None:
    """Which project an execution is of is found out by a migration: one that can't be read has none."""
    path = tmp_path / "h.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        schema.migrate(connection, upto=11)
        for number, keys in enumerate(["", "{", "7", '["/somewhere/a.suite.yaml"]']):
            connection.execute(
                "INSERT INTO executions (uid, title, kind, source, status, started_ms, options, suite_keys, owner)"
                " VALUES (?, '', 'run', '', 'finished', 1, '{}', ?, '')",
                (f"E{number}", keys),
            )
        schema.migrate(connection)
        found = connection.execute("SELECT project FROM executions ORDER BY id").fetchall()
    assert [one[0] for one in found] == ["", "", "", "/somewhere"]
