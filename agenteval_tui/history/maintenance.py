"""Looking after the history file: what takes its space, whether it is whole and counts right, giving space back."""

# ruff: noqa: S608 - statements are put together from words of ours; values are always bound

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from msgspec import Struct

from agenteval_tui.core.ids import now_ms
from agenteval_tui.core.numbers import count, file_size
from agenteval_tui.history import schema
from agenteval_tui.history.blobs import is_transcript, unpack_results, unpack_transcript
from agenteval_tui.history.connections import (
    READING_TRIES,
    WRITING_TRIES,
    Connection,
    connect_to_look,
    connect_writer,
    file_bytes,
    free_bytes,
    on_network,
)
from agenteval_tui.history.delete_runs import orphan_rows, running_executions
from agenteval_tui.history.errors import HistoryError, explain, is_busy, is_damage, is_foreign
from agenteval_tui.history.lock_wait import retry_while_locked
from agenteval_tui.history.open_database import mark_damaged, tables_of_ours
from agenteval_tui.history.rebuild_totals import (
    LOST,
    WITHOUT_EVIDENCE,
    admit_losses,
    forget_lost_examples,
    lost_examples,
    recount,
    reindex,
)
from agenteval_tui.history.run_writes import TOTAL_OF
from agenteval_tui.history.store import Store
from agenteval_tui.history.writer import Operation, Totals

_MOST = 20  # problems of a kind that are listed
_PARTS = (
    ("transcripts", ("transcripts",)),
    ("results and evidence", ("evidence", "criterion_results")),
    ("search index", ("search",)),
    ("runs", ("runs", "plans", "dataset_rows", "tasks", "executions", "tests", "suites", "failed_attempts")),
    ("criteria", ("criteria", "criterion_texts")),
    ("tool calls", ("tool_calls",)),
    ("replies of judges", ("judge_replies", "run_replies")),
    ("requests of programs", ("tapes",)),
)
_LIST, _MAPPING = "json_type({0}) != 'array'", "json_type({0}) != 'object'"
_JSON = (
    ("criteria", "spec", _MAPPING, "NULL"),
    ("criterion_texts", "spec", _MAPPING, ""),
    ("executions", "options", _MAPPING, "'{}'"),
    ("executions", "suite_keys", _LIST, "'[]'"),
    ("executions", "suites", _LIST, "'[]'"),
    ("executions", "agents", _LIST, "'[]'"),
    ("plans", "tags", _LIST, "'[]'"),
    ("plans", "variables", _MAPPING, "'{}'"),
    ("plans", "criteria", _LIST, "'[]'"),
)
"""Columns with JSON: the condition for a wrong value, and the value that replaces it; "": the row is removed."""
_NAMED = (
    ("runs", "execution", "executions"),
    ("runs", "test", "tests"),
    ("runs", "plan", "plans"),
    ("runs", "dataset_row", "dataset_rows"),
    ("runs", "transcript", "transcripts"),
    ("tests", "suite", "suites"),
    ("criterion_results", "run", "runs"),
    ("evidence", "run", "runs"),
    ("failed_attempts", "run", "runs"),
    ("tapes", "run", "runs"),
    ("run_replies", "reply", "judge_replies"),
    ("criterion_texts", "test", "tests"),
    ("criterion_texts", "criterion", "criteria"),
)
_DECIDED = (
    ("labels", "run", "runs"),
    ("baselines", "test", "tests"),
    ("baselines", "execution", "executions"),
    ("baselines", "run", "runs"),
    ("quarantines", "test", "tests"),
)
"""What people decided, and about what."""


class DiskUsage(Struct, frozen=True):
    """The parts of the file: (name, bytes with indexes), the largest first. "unused" is the space of deleted rows."""

    parts: tuple[tuple[str, int], ...]
    total: int


class CheckResult(Struct, frozen=True):
    """The result of a check. `damage`: SQLite can't read a part of the file. `wrong`: the file is readable, but its
    contents contradict each other.

    `repair` fixes what is `wrong`; damage needs `salvage`. `lost`: the number of runs whose transcript is lost, and
    `lost_evidence`: the number of runs whose evidence is lost. `other_tables`: they are not those of its version,
    so the check does not look further.
    """

    damage: tuple[str, ...]
    wrong: tuple[str, ...]
    lost: int = 0
    lost_evidence: int = 0
    other_tables: bool = False


class VacuumResult(Struct, frozen=True):
    """Sizes of the file in bytes."""

    before: int
    after: int


def space(path: Path) -> DiskUsage:
    """Which tables the pages of the file belong to. Walks the whole file. Raises HistoryError."""
    try:
        return retry_while_locked(path, lambda: _space(path), READING_TRIES)
    except sqlite3.Error as error:
        raise explain(error, path, doing="read") from error


def _space(path: Path) -> DiskUsage:
    with closing(connect_to_look(path)) as connection:
        table_of = dict(connection.execute("SELECT name, tbl_name FROM sqlite_master").fetchall())
        sizes: dict[str, int] = {}
        try:
            pages = connection.execute("SELECT name, pgsize FROM dbstat WHERE aggregate = TRUE").fetchall()
        except sqlite3.OperationalError:  # a SQLite that was built without it
            pages = []
        for name, number in pages:
            sizes[table_of.get(name, name)] = sizes.get(table_of.get(name, name), 0) + int(number)
        total, unused = file_bytes(connection), free_bytes(connection)
    parts = {}
    for part, tables in _PARTS:
        parts[part] = sum(
            number for name, number in sizes.items() if name in tables or name.startswith(f"{tables[0]}_")
        )
    parts["unused"] = unused
    parts["other"] = max(total - sum(parts.values()), 0)
    listed = sorted(((part, number) for part, number in parts.items() if number), key=lambda pair: -pair[1])
    return DiskUsage(tuple(listed), total)


def check(path: Path, *, deep: bool = False) -> CheckResult:
    """Read the whole file: every page, the search index, the totals, what rows name. `deep`: unpack every transcript.

    The file is not changed; where damage is found the next opening saves what it can. Raises HistoryError when it
    can't be opened at all, or is locked.
    """
    try:
        return retry_while_locked(path, lambda: _checked(path, deep), READING_TRIES)
    except sqlite3.DatabaseError as error:
        raise explain(error, path, doing="read") from error


def _checked(path: Path, deep: bool) -> CheckResult:
    damage: list[str] = []
    wrong: list[str] = []
    lost = evidence = 0
    try:
        with closing(connect_to_look(path)) as connection:
            tables_of_ours(connection, path)
            version = schema.version_of(connection)
            if not version and not path.stat().st_size:
                raise HistoryError(
                    "the file is empty: nothing was ever stored in it, or everything is lost", where=str(path)
                )
            if version != schema.newest():
                raise HistoryError(
                    f"the history file has version {version}, and this program checks version {schema.newest()}",
                    where=str(path),
                    fix="open it once with write permission" if version < schema.newest() else "update agenteval",
                )
            damage += [
                str(row[0])
                for row in connection.execute(f"PRAGMA integrity_check({_MOST})").fetchall()
                if row[0] != "ok"
            ]
            if not damage and (differences := schema.differences(connection, version)):
                return CheckResult((), differences, other_tables=True)
            if not damage:
                connection.execute("BEGIN")  # one moment of the file, whoever writes meanwhile
                wrong += _wrong_totals(connection)
                wrong += _loose_rows(connection)
                wrong += _loose_decisions(connection)
                wrong += _not_json(connection)
                lost = int(connection.execute("SELECT count(*) FROM runs WHERE transcript = ?", (LOST,)).fetchone()[0])
                evidence = int(connection.execute(f"SELECT count(*) FROM ({WITHOUT_EVIDENCE})").fetchone()[0])
                damage += _unreadable(connection) if deep else []
                connection.execute("ROLLBACK")
        # Last, and on a connection that writes: FTS5 checks itself in a statement that does.
        if not damage:
            damage += _broken_index(path)
    except sqlite3.DatabaseError as error:
        if not is_damage(error) or is_foreign(path):
            raise
        damage.append(str(error))
    if damage:
        mark_damaged(path)
    return CheckResult(tuple(damage), tuple(wrong), lost, evidence)


def repair(store: Store) -> None:
    """Recount the totals, remove rows that nothing needs, rebuild the search index. Blocks, and others wait."""
    store.write(_Fix()).result()


def vacuum(store: Store) -> VacuumResult:
    """Rewrite the file without unused pages. Needs as much free space again as the file takes. Blocks.

    Raises HistoryError: an execution is running, no room, another program keeps the file locked.
    """
    path = store.path
    if store.read_only:
        raise HistoryError("the history is read-only here", where=str(path))
    if store.read(running_executions):
        raise HistoryError(
            "an execution is running, and would have to wait until the file is rewritten",
            where=str(path),
            fix="wait until it ends (agenteval ps)",
        )
    _refuse_without_room(path, store.read(file_bytes))
    # What waits in this process would wait for the rewriting, or hold it up.
    store.flush()
    try:
        return retry_while_locked(path, lambda: _vacuumed(path), WRITING_TRIES)
    except sqlite3.Error as error:
        raise explain(error, path, doing="written") from error


def _vacuumed(path: Path) -> VacuumResult:
    with closing(connect_writer(path)) as connection:
        before = file_bytes(connection)
        connection.execute("INSERT INTO search (search) VALUES ('optimize')")
        connection.execute("VACUUM")
        connection.execute("PRAGMA optimize")
        # There is no log there.
        if not on_network(path):
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return VacuumResult(before, file_bytes(connection))


def _refuse_without_room(path: Path, size: int) -> None:
    """`size`: bytes of the pages, also of those that are only in the log yet."""
    import shutil

    free = shutil.disk_usage(path.parent).free
    # Once for the copy, and once for the log through which it comes back.
    if free < 2 * size:
        raise HistoryError(
            f"there is not enough space to rewrite the file: this takes {file_size(size)} twice, and"
            f" {file_size(free)} are free",
            where=str(path),
            fix="free some space, or copy it to another disk: agenteval db export FILE",
        )


def _wrong_totals(connection: Connection) -> list[str]:
    """Executions and tests whose figures are not those of their runs."""
    columns = (
        ("runs", "count(r.id)"),
        *((c, f"count(r.id) FILTER (WHERE r.status = '{s}')") for s, c in TOTAL_OF.items()),
    )
    sums = ", ".join(f"{count} AS counted_{name}" for name, count in columns)
    differs = " OR ".join(f"{name} != counted_{name}" for name, _ in columns)
    rows = connection.execute(
        f"SELECT uid FROM (SELECT e.*, {sums} FROM executions e LEFT JOIN runs r ON r.execution = e.id GROUP BY e.id)"
        f" WHERE {differs}"
    ).fetchall()
    sentences = [f"the totals of {len(rows)} executions do not match their runs ({rows[0][0]}, ...)"] if rows else []
    tests = connection.execute(
        "SELECT count(*) FROM (SELECT t.ended, count(r.id) FILTER (WHERE r.status IN"
        " ('passed', 'failed', 'error', 'skipped', 'needs_review')) AS counted FROM tests t"
        " LEFT JOIN runs r ON r.test = t.id GROUP BY t.id) WHERE ended != counted"
    ).fetchone()[0]
    if tests:
        sentences.append(f"the stored number of runs is wrong for {tests} tests")
    return sentences


def _loose_decisions(connection: sqlite3.Connection) -> list[str]:
    """What people decided about runs, executions and tests that are not in the history."""
    sentences = []
    for table, column, other in _DECIDED:
        number = connection.execute(
            f"SELECT count(*) FROM {table} WHERE {column} IS NOT NULL AND {column} NOT IN (SELECT id FROM {other})"
        ).fetchone()[0]
        if number:
            named = f"name {other}"
            if number == 1:
                named = f"names {'an' if other == 'executions' else 'a'} {other[:-1]}"
            sentences.append(f"{number} {table[:-1] if number == 1 else table} {named} not in the history")
    examples = lost_examples(connection)
    if examples:
        number = len(examples)
        sentences.append(
            f"{number} triage {'decision names' if number == 1 else 'decisions name'} runs not in the history"
        )
    return sentences


def _loose_rows(connection: Connection) -> list[str]:
    """Rows that name others which are not there, and rows that nothing names."""
    sentences = []
    for table, column, other in _NAMED:
        number = connection.execute(
            f"SELECT count(*) FROM {table} WHERE {column} IS NOT NULL AND {column} NOT IN (SELECT id FROM {other})"
            f" AND {column} != {LOST}"
        ).fetchone()[0]
        if number:
            sentences.append(f"{number} rows of {table} name a row of {other} that does not exist")
    for table, where in orphan_rows():
        if table in ("tool_calls", "run_replies"):
            number = connection.execute(f"SELECT count(*) FROM {table} WHERE {where}").fetchone()[0]
            if number:
                sentences.append(f"{number} rows of {table} belong to nothing")
    return sentences


def _unreadable(connection: Connection) -> list[str]:
    """Transcripts and results whose bytes can't be unpacked, and transcripts that are not what was stored."""
    sentences: list[str] = []
    for number, content_hash, data in connection.execute("SELECT id, hash, data FROM transcripts"):
        try:
            unpack_transcript(data)
            if is_transcript(content_hash, data):
                continue
            sentences.append(f"transcripts {number}: its bytes have changed since they were stored")
        except ValueError as error:
            sentences.append(f"transcripts {number}: {error}")
        if len(sentences) >= _MOST:
            return sentences
    for number, data in connection.execute("SELECT run, data FROM evidence"):
        try:
            unpack_results(data)
        except ValueError as error:
            sentences.append(f"evidence {number}: {error}")
            if len(sentences) >= _MOST:
                return sentences
    return sentences


def _not_json(connection: Connection) -> list[str]:
    """Columns whose text is not what they hold: damaged, or written by something else."""
    sentences = []
    for table, column, wrong, _ in _JSON:
        (number,) = connection.execute(f"SELECT count(*) FROM {table} WHERE {_damaged(column, wrong)}").fetchone()
        if number:
            sentences.append(f"{count(number, 'row')} of {table} can't be read: {column}")
    return sentences


def _damaged(column: str, wrong: str) -> str:
    """A condition: what a row's column holds is not what it should."""
    return f"CASE WHEN {column} IS NULL THEN 0 WHEN json_valid({column}) THEN {wrong.format(column)} ELSE 1 END"


def _broken_index(path: Path) -> list[str]:
    """What FTS5 says of its own tables. It asks by writing, so a file that can't be written is not asked."""

    def ask() -> None:
        with closing(connect_writer(path)) as connection:
            connection.execute("INSERT INTO search (search) VALUES ('integrity-check')")

    try:
        retry_while_locked(path, ask, WRITING_TRIES)
    except sqlite3.DatabaseError as error:
        if is_busy(error):
            raise  # unknown: "whole" would be untrue
        return [f"the search index is broken: {error}"] if is_damage(error) else []
    return []


class _Fix(Operation):
    at_ms: int = 0

    def prepare(self) -> None:
        """Know the time."""
        self.at_ms = now_ms()

    def apply(self, connection: sqlite3.Connection, totals: Totals) -> None:
        """Count, take out, index."""
        admit_losses(connection)
        forget_lost_examples(connection)
        for table, column, other in (*_NAMED, *_DECIDED):
            # A run stays, whatever it has lost.
            if table not in ("runs", "tests"):
                connection.execute(
                    f"DELETE FROM {table} WHERE {column} IS NOT NULL AND {column} NOT IN (SELECT id FROM {other})"
                )
        for table, where in orphan_rows():
            connection.execute(f"DELETE FROM {table} WHERE {where}")
        for table, column, wrong, instead in _JSON:
            change = f"UPDATE {table} SET {column} = {instead}" if instead else f"DELETE FROM {table}"
            connection.execute(f"{change} WHERE {_damaged(column, wrong)}")
        recount(connection)
        reindex(connection)


# How the history file is: size, rows, and whether it is whole. For `agenteval doctor` and `agenteval db`.


class Health(Struct, frozen=True):
    """`problems` is empty for a file that SQLite can read, `wrong` for one in which everything fits as far as a glance
    tells (`check` looks closer). Sizes are bytes; `free` is what deleted rows left unused."""

    path: Path
    version: int
    newest_version: int
    size: int
    log_size: int
    free: int
    journal: str
    rows: dict[str, int]
    problems: tuple[str, ...]
    wrong: tuple[str, ...] = ()


def check_health(path: Path) -> Health:
    """Read the whole file and judge it: seconds for a large one. Raises HistoryError when it can't even be opened."""
    try:
        return retry_while_locked(path, lambda: _health(path), READING_TRIES)
    except sqlite3.Error as error:
        raise explain(error, path, doing="read") from error


def _health(path: Path) -> Health:
    from sqlite_utils import Database

    log = Path(f"{path}-wal")
    connection = connect_to_look(path)
    try:
        tables_of_ours(connection, path)
        problems = [str(row[0]) for row in connection.execute("PRAGMA quick_check(20)").fetchall()]
        database = Database(connection)
        tables = [name for name in database.table_names() if not name.startswith(("sqlite_", "search"))]
        version = schema.version_of(connection)
        sound = all(problem == "ok" for problem in problems)
        wrong: list[str] = []
        if sound and version == schema.newest():
            wrong += schema.differences(connection, version)
            wrong += _loose_decisions(connection) if not wrong else []
        return Health(
            path=path,
            version=version,
            newest_version=schema.newest(),
            size=path.stat().st_size,
            log_size=log.stat().st_size if log.exists() else 0,
            free=free_bytes(connection),
            journal=connection.execute("PRAGMA journal_mode").fetchone()[0],
            rows={name: database[name].count for name in tables},
            problems=tuple(problem for problem in problems if problem != "ok"),
            wrong=tuple(wrong),
        )
    finally:
        connection.close()
