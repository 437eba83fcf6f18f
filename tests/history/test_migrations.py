"""Migrations, files whose tables are not those of their version, and files from before the first release."""

from __future__ import annotations

import sqlite3
import stat
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
from history_made import ended, planned, record

from agenteval_tui.history import schema, schema_check
from agenteval_tui.history.errors import UNRELEASED_ID, HistoryError
from agenteval_tui.history.maintenance import check, check_health
from agenteval_tui.history.merge import merge_history
from agenteval_tui.history.salvage import salvage
from agenteval_tui.history.store import Store


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


def test_a_new_file_has_the_right_tables(path: Path, whole: bytes, next_version: Callable[[], None]) -> None:
    path.write_bytes(whole)
    assert check(path).wrong == ()
    next_version()
    for version in range(1, schema.newest() + 1):
        with closing(sqlite3.connect(":memory:", isolation_level=None)) as made:
            for number in range(1, version + 1):  # one by one, as files that grew old did
                schema.migrate(made, upto=number)
            assert schema_check.looks_right(made, version)
            assert schema_check.differences(made, version) == ()


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
    with Store.open(path) as store:
        assert store.notices == ()


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


def test_a_column_is_added_by_the_tables_alone(path: Path, whole: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before the first release: in the midst of a table, with no migration. A file that lacks it gets it."""
    (first,) = schema.MIGRATIONS
    statements = tuple(
        one.replace("score REAL,", "score REAL, mood TEXT NOT NULL DEFAULT 'calm',")
        if isinstance(one, str) and one.startswith("CREATE TABLE runs")
        else one
        for one in first.statements
    )
    path.write_bytes(whole)
    schema_check._written.cache_clear()
    schema_check._shape_of.cache_clear()
    try:
        with monkeypatch.context() as patch:
            patch.setattr(schema, "MIGRATIONS", (schema.Migration(1, "", statements),))
            with Store.open(path) as store:
                assert "column runs.mood is missing" in store.notices[0]
                moods = store.read(lambda c: c.execute("SELECT mood, count(*) FROM runs GROUP BY mood").fetchall())
                assert moods == [("calm", 6)]
            with closing(sqlite3.connect(path)) as connection:
                assert schema_check.looks_right(connection, 1), "wherever the column stands in the statement"
            with Store.open(path.with_name("new.db")) as store:
                assert store.notices == ()
    finally:
        schema_check._written.cache_clear()
        schema_check._shape_of.cache_clear()


def test_an_older_file_is_migrated_after_a_copy(path: Path, whole: bytes, next_version: Callable[[], None]) -> None:
    path.write_bytes(whole)
    old = schema.newest()
    next_version()
    with pytest.raises(HistoryError, match="old version"):
        Store.open(path, read_only=True)
    with Store.open(path) as store:
        assert f"from version {old} to {old + 1}" in store.notices[0]
        assert store.counts().runs == 6
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (old + 1,)
        assert connection.execute("SELECT DISTINCT mood FROM runs").fetchall() == [("calm",)]
        assert connection.execute("SELECT name FROM moods").fetchall() == [("calm",)], "made by a function"
    (copy,) = path.parent.glob("history.db.version-*")
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    with closing(sqlite3.connect(copy)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (old,)
        assert connection.execute("SELECT count(*) FROM runs").fetchone() == (6,)
    with Store.open(path) as store:
        assert store.notices == ()
    assert check(path).wrong == ()


def test_a_migration_that_fails_changes_nothing(path: Path, whole: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    path.write_bytes(whole)
    broken = schema.Migration(
        schema.newest() + 1,
        "broken",
        ("ALTER TABLE runs ADD COLUMN mood TEXT", "ALTER TABLE nothing ADD COLUMN x TEXT"),
    )
    with monkeypatch.context() as patch:
        patch.setattr(schema, "MIGRATIONS", (*schema.MIGRATIONS, broken))
        with pytest.raises(HistoryError):
            Store.open(path)
    assert list(path.parent.glob("history.db.version-*")) == []
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (schema.newest(),)
        assert "mood" not in {row[1] for row in connection.execute("PRAGMA table_info(runs)")}
    with Store.open(path) as store:
        assert store.counts().runs == 6


def test_an_older_file_that_lacks_something_is_brought_up(
    path: Path, whole: bytes, next_version: Callable[[], None]
) -> None:
    changed(path, whole, "DROP INDEX runs_over_time", "ALTER TABLE runs DROP COLUMN steps")
    next_version()
    with Store.open(path) as store:
        (notice,) = store.notices
        assert "updated from version 1" in notice
        assert "column runs.steps is missing" in notice
    assert check(path).wrong == ()


def test_eight_openings_of_an_older_file_migrate_it_once(
    path: Path, whole: bytes, next_version: Callable[[], None]
) -> None:
    path.write_bytes(whole)
    next_version()
    with ThreadPoolExecutor(8) as pool:
        stores = list(pool.map(lambda _: Store.open(path), range(8)))
    assert sum(len(store.notices) for store in stores) == 1
    assert len(list(path.parent.glob("history.db.version-1-*"))) == 1
    for store in stores:
        store.close()


def test_a_damaged_file_of_an_older_version_is_salvaged(
    path: Path, whole: bytes, next_version: Callable[[], None]
) -> None:
    path.write_bytes(whole)
    next_version()
    new = path.with_name("new.db")
    assert salvage(path, new).rows["runs"] == 6
    assert check(new).wrong == ()
    with closing(sqlite3.connect(new)) as connection:
        assert connection.execute("SELECT DISTINCT mood FROM runs").fetchall() == [("calm",)]


REFUSED = {
    "opened": Store.open,
    "read": lambda path: Store.open(path, read_only=True),
    "checked": check,
    "looked at": check_health,
    "salvaged": lambda path: salvage(path, path.with_name("new.db")),
}


@pytest.mark.parametrize("version", [1, 2, 16, 17, 999])
@pytest.mark.parametrize("act", sorted(REFUSED))
def test_a_file_of_before_the_first_release_is_refused(path: Path, whole: bytes, act: str, version: int) -> None:
    changed(path, whole, f"PRAGMA application_id = {UNRELEASED_ID}", f"PRAGMA user_version = {version}")
    before = (path.read_bytes(), path.stat().st_mtime_ns, path.stat().st_mode)
    with pytest.raises(HistoryError, match=r"development version before agenteval 0\.1\.0") as refused:
        REFUSED[act](path)
    assert all(words in refused.value.mend for words in ("export", "the commit that wrote it", "--db"))
    assert (path.read_bytes(), path.stat().st_mtime_ns, path.stat().st_mode) == before
    assert [one.name for one in path.parent.iterdir()] == [path.name]


def test_a_file_of_before_the_first_release_is_refused_with_its_log(path: Path, whole: bytes) -> None:
    """The log beside it belongs to it: SQLite would write it into the file when it closes."""
    changed(path, whole, f"PRAGMA application_id = {UNRELEASED_ID}")
    with closing(sqlite3.connect(path, isolation_level=None)) as held:
        held.execute("UPDATE suites SET name = name || 'x'")
        copies = {name: path.with_name(f"history.db{name}").read_bytes() for name in ("", "-wal")}
    other = path.with_name("other.db")
    for name, data in copies.items():
        other.with_name(f"other.db{name}").write_bytes(data)
    assert copies["-wal"]
    with pytest.raises(HistoryError, match="development version"):
        Store.open(other)
    assert {name: other.with_name(f"other.db{name}").read_bytes() for name in copies} == copies


def test_a_file_of_before_the_first_release_is_not_merged(path: Path, whole: bytes, store: Store) -> None:
    old = path.with_name("old.db")
    changed(old, whole, f"PRAGMA application_id = {UNRELEASED_ID}", "PRAGMA user_version = 16")
    before = old.read_bytes()
    with pytest.raises(HistoryError, match="development version"):
        merge_history(store, old)
    assert old.read_bytes() == before
