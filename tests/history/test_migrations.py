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

from agenteval_tui.history import schema
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
            assert schema.differences(made, version) == ()


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
            assert schema.differences(connection, schema.newest()) == (f"table {table} has another definition",), column
            connection.execute("ROLLBACK")


BEYOND = {
    "a column": (["ALTER TABLE suites DROP COLUMN name"], "table suites has another definition"),
    "a column of many": (
        ["DROP INDEX runs_over_time", "ALTER TABLE runs DROP COLUMN steps"],
        "table runs has another definition",
    ),
    "a table": (["DROP TABLE criterion_texts"], "table criterion_texts is missing"),
    "an index": (["DROP INDEX runs_of_test"], "index runs_of_test is missing"),
    "another index": (
        ["DROP INDEX runs_of_test", "CREATE INDEX runs_of_test ON runs (status)"],
        "index runs_of_test has another definition",
    ),
    "a table of another kind": (
        [
            "ALTER TABLE labels RENAME TO old",
            "CREATE TABLE labels AS SELECT * FROM old",
            "DROP TABLE old",
            "CREATE INDEX labels_of_run ON labels (run)",
        ],
        "table labels has another definition",
    ),
    "no longer unique": (
        [
            "CREATE TABLE other (id INTEGER PRIMARY KEY, key TEXT NOT NULL, name TEXT NOT NULL)",
            "INSERT INTO other SELECT * FROM suites",
            "DROP TABLE suites",
            "ALTER TABLE other RENAME TO suites",
        ],
        "table suites has another definition",
    ),
}


@pytest.mark.parametrize("beyond", sorted(BEYOND))
def test_other_tables_are_refused_and_salvaged(path: Path, whole: bytes, beyond: str) -> None:
    statements, said = BEYOND[beyond]
    changed(path, whole, *statements)
    before = path.read_bytes()
    found = check(path)
    assert (said in found.wrong, found.other_tables) == (True, True)
    assert said in check_health(path).wrong
    for read_only in (False, True):
        with pytest.raises(HistoryError, match="has unexpected tables") as refused:
            Store.open(path, read_only=read_only)
        assert "db salvage" in refused.value.fix
    assert path.read_bytes() == before
    assert list(path.parent.glob("history.db.version-*")) == []
    new = path.with_name("new.db")
    assert salvage(path, new).rows["runs"] == 6
    assert check(new).wrong == ()


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


def test_an_older_file_with_other_tables_is_refused(path: Path, whole: bytes, next_version: Callable[[], None]) -> None:
    changed(path, whole, "DROP INDEX runs_over_time", "ALTER TABLE runs DROP COLUMN steps")
    before = path.read_bytes()
    next_version()
    with pytest.raises(HistoryError, match="has unexpected tables"):
        Store.open(path)
    assert path.read_bytes() == before
    assert list(path.parent.glob("history.db.version-*")) == []


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
    assert all(words in refused.value.fix for words in ("export", "the commit that wrote it", "--db"))
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
