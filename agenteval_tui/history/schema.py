"""The tables, as numbered migrations. A file's number is SQLite's `user_version`.

Until 0.1.0 is released there is one, the tables themselves: to add a column or an index, write it there, and nothing
else. What a released version wrote never changes: after that each change is one more migration, which
`tests/history/test_migrations.py` keeps. A file whose tables are not those of its version is refused.

sqlite-utils has migrations too, from 4.0 on: each in a transaction of its own, and known by a table in the file. Here
a file is brought up completely or not at all, its number is known without importing that library, and older releases
of it are enough.

Every table has an integer as its first key column: the rescue of damaged files walks along it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from functools import lru_cache

from msgspec import Struct

APPLICATION_ID = 0x41474548  # "AGEH" in the file's header: says that the file is ours


class Migration(Struct, frozen=True):
    """Brings a file from version `number - 1` to `number`."""

    number: int
    title: str
    statements: tuple[str | Callable[[sqlite3.Connection], None], ...]
    """SQL, and functions for what SQL can't do."""


_TABLES = (
    "CREATE TABLE suites (id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, name TEXT NOT NULL)",
    # `ended` counts all ended runs of the test, so that no list has to count them.
    """CREATE TABLE tests (
        id INTEGER PRIMARY KEY, suite INTEGER NOT NULL, test_id TEXT NOT NULL, name TEXT NOT NULL,
        ended INTEGER NOT NULL DEFAULT 0, UNIQUE (suite, test_id))""",
    # Every version of every criterion, by content hash.
    "CREATE TABLE criteria (id INTEGER PRIMARY KEY, hash TEXT NOT NULL UNIQUE, spec TEXT, first_ms INTEGER NOT NULL)",
    # How each criterion of a test was written: two of equal content are written differently.
    """CREATE TABLE criterion_texts (
        id INTEGER PRIMARY KEY, test INTEGER NOT NULL, name TEXT NOT NULL, criterion INTEGER NOT NULL,
        spec TEXT NOT NULL, UNIQUE (test, name, criterion))""",
    # `owner` names the process that does the work (`process_liveness.py`); totals are maintained with every commit, and
    # say what was paid for, failed attempts among it. `project`: "" is not known, as of another tool's results.
    # `around`: its services and the hooks that belong to no single run (`runs.around.record`), as JSON. `name`, `note`
    # and `meta` (JSON): what a person called it (`execution_names`). `commits`: by repository, what it began with,
    # as JSON (`suites.commits`). `programs` (JSON): by agent, the hash of the row of `tasks` with
    # the files of its project (`programs`).
    """CREATE TABLE executions (
        id INTEGER PRIMARY KEY AUTOINCREMENT, uid TEXT NOT NULL UNIQUE, title TEXT NOT NULL, kind TEXT NOT NULL,
        source TEXT NOT NULL, status TEXT NOT NULL, started_ms INTEGER NOT NULL, finished_ms INTEGER,
        message TEXT NOT NULL DEFAULT '', batch_id TEXT, options TEXT NOT NULL, suite_keys TEXT NOT NULL,
        suites TEXT NOT NULL DEFAULT '[]', agents TEXT NOT NULL DEFAULT '[]', owner TEXT NOT NULL,
        runs INTEGER NOT NULL DEFAULT 0, passed INTEGER NOT NULL DEFAULT 0, failed INTEGER NOT NULL DEFAULT 0,
        errors INTEGER NOT NULL DEFAULT 0, skipped INTEGER NOT NULL DEFAULT 0, cancelled INTEGER NOT NULL DEFAULT 0,
        needs_review INTEGER NOT NULL DEFAULT 0, input_tokens INTEGER NOT NULL DEFAULT 0,
        output_tokens INTEGER NOT NULL DEFAULT 0, cost REAL, setup INTEGER, project TEXT NOT NULL DEFAULT '',
        startup_ms REAL, around TEXT NOT NULL DEFAULT '', name TEXT NOT NULL DEFAULT '',
        note TEXT NOT NULL DEFAULT '', meta TEXT NOT NULL DEFAULT '{}', commits TEXT NOT NULL DEFAULT '{}',
        programs TEXT NOT NULL DEFAULT '{}')""",
    "CREATE INDEX executions_running ON executions (status) WHERE status = 'running'",
    "CREATE INDEX executions_by_project ON executions (project)",
    "CREATE INDEX executions_by_name ON executions (name) WHERE name != ''",
    # What repetitions of a test have in common: stored once.
    """CREATE TABLE plans (
        id INTEGER PRIMARY KEY, hash BLOB NOT NULL UNIQUE, prompt TEXT NOT NULL, prompt_head TEXT NOT NULL,
        tags TEXT NOT NULL, variables TEXT NOT NULL, criteria TEXT NOT NULL)""",
    "CREATE INDEX plans_by_tags ON plans (tags)",
    # What runs are made of (`runs.task_payload`): many tasks in a row, by their content hash, and a run says which
    # of them is its own (`task_number`). Repetitions share a task, and executions of a suite that did not change a row.
    "CREATE TABLE tasks (id INTEGER PRIMARY KEY, hash BLOB NOT NULL UNIQUE, data BLOB NOT NULL)",
    # A row of a dataset is the same, wherever it is in its file (`dataset_rows.py`). `place`: where it stood last.
    # `assumed`: the key was made of what a run had, as that came without one.
    """CREATE TABLE dataset_rows (
        id INTEGER PRIMARY KEY, test INTEGER NOT NULL, key TEXT NOT NULL, place INTEGER NOT NULL DEFAULT 0,
        assumed INTEGER NOT NULL DEFAULT 0, UNIQUE (key, test))""",
    "CREATE INDEX dataset_rows_assumed ON dataset_rows (test) WHERE assumed",
    # AUTOINCREMENT: a number is never used again, so that a page key or a search hit never means another run.
    # `steps`: how many tools it called, so that trends read one narrow index. `recording`: what was recorded once
    # counts once, however often it was graded (`recordings.py`). `agent_version`: an agent is its configuration,
    # whatever it is called ("": not known; `agents.stored_config`). `fork_of`: it continues another run (its id) from a
    # step of it, with changes (`fork`, JSON: `runs.fork.model`); it counts nowhere, and `superseded` is 2.
    """CREATE TABLE runs (
        id INTEGER PRIMARY KEY AUTOINCREMENT, uid TEXT NOT NULL UNIQUE, execution INTEGER NOT NULL,
        position INTEGER NOT NULL, test INTEGER NOT NULL, plan INTEGER NOT NULL, variation TEXT NOT NULL,
        row INTEGER NOT NULL, repetition INTEGER NOT NULL, agent TEXT NOT NULL, status TEXT NOT NULL, score REAL,
        started_ms INTEGER, duration_ms REAL, attempts INTEGER NOT NULL DEFAULT 0, warnings INTEGER NOT NULL DEFAULT 0,
        input_tokens INTEGER, output_tokens INTEGER, cost REAL, transcript INTEGER,
        output_head TEXT NOT NULL DEFAULT '', why TEXT NOT NULL DEFAULT '', error_kind TEXT NOT NULL DEFAULT '',
        error_message TEXT NOT NULL DEFAULT '', task INTEGER, task_number INTEGER NOT NULL DEFAULT 0,
        seed INTEGER NOT NULL DEFAULT 0, request TEXT, cached INTEGER NOT NULL DEFAULT 0, steps INTEGER,
        dataset_row INTEGER, recording TEXT NOT NULL DEFAULT '', superseded INTEGER NOT NULL DEFAULT 0,
        agent_version TEXT NOT NULL DEFAULT '', fork_of TEXT NOT NULL DEFAULT '', fork TEXT NOT NULL DEFAULT '')""",
    "CREATE INDEX runs_of_execution ON runs (execution, position)",
    "CREATE INDEX runs_of_test ON runs (test)",
    # What a test did before is one step away, however often it was executed.
    "CREATE INDEX runs_of_test_by_execution ON runs (test, execution)",
    "CREATE INDEX runs_of_transcript ON runs (transcript) WHERE transcript IS NOT NULL",
    "CREATE INDEX runs_by_request ON runs (request) WHERE request IS NOT NULL",
    "CREATE INDEX runs_of_recording ON runs (recording) WHERE recording != ''",
    "CREATE INDEX runs_superseded ON runs (test, status) WHERE superseded",
    "CREATE INDEX runs_of_fork ON runs (fork_of) WHERE fork_of != ''",
    # Holds all that lists filter by, so that a filter reads a narrow index and not 100,000 wide rows.
    "CREATE INDEX runs_facets ON runs (status, agent, test, execution)",
    # Runs that have not ended are not in it: planning a run and starting it cost nothing here.
    """CREATE INDEX runs_over_time ON runs (started_ms, execution, test, variation, dataset_row, plan, agent, status,
        score, duration_ms, input_tokens, output_tokens, cost, steps, cached, error_kind, agent_version)
        WHERE status IN ('passed', 'failed', 'error', 'needs_review') AND superseded = 0""",
    """CREATE TABLE failed_attempts (
        run INTEGER NOT NULL, number INTEGER NOT NULL, kind TEXT NOT NULL, message TEXT NOT NULL,
        duration_ms REAL NOT NULL, at_ms INTEGER NOT NULL, input_tokens INTEGER, output_tokens INTEGER, cost REAL,
        PRIMARY KEY (run, number)) WITHOUT ROWID""",
    "CREATE TABLE transcripts (id INTEGER PRIMARY KEY AUTOINCREMENT, hash BLOB NOT NULL UNIQUE, data BLOB NOT NULL)",
    # What a run's program asked of models, and what it was answered: an execution's proxy kept it (`tapes.py`).
    "CREATE TABLE tapes (run INTEGER PRIMARY KEY, data BLOB NOT NULL)",
    """CREATE TABLE tool_calls (
        transcript INTEGER NOT NULL, position INTEGER NOT NULL, name TEXT NOT NULL, arguments TEXT NOT NULL,
        status TEXT NOT NULL, duration_ms REAL, PRIMARY KEY (transcript, position)) WITHOUT ROWID""",
    "CREATE INDEX tool_calls_by_name ON tool_calls (name)",
    # `cause`: the signature of a failed result (`grading.causes`), so that failures are grouped and counted without
    # their evidence. NULL: not made yet.
    """CREATE TABLE criterion_results (
        run INTEGER NOT NULL, position INTEGER NOT NULL, criterion INTEGER, name TEXT NOT NULL, outcome TEXT NOT NULL,
        score REAL, source TEXT NOT NULL DEFAULT '', cause TEXT, PRIMARY KEY (run, position)) WITHOUT ROWID""",
    "CREATE INDEX results_by_cause ON criterion_results (cause) WHERE cause > ''",
    # All results of a run with their metric results and evidence: one compressed JSON.
    "CREATE TABLE evidence (run INTEGER PRIMARY KEY, data BLOB NOT NULL)",
    # What was asked of judges, embedders and others: question and raw reply, so that no result must be asked for again.
    """CREATE TABLE judge_replies (
        id INTEGER PRIMARY KEY, request TEXT NOT NULL, answerer TEXT NOT NULL, data BLOB NOT NULL,
        model TEXT NOT NULL DEFAULT '', error TEXT NOT NULL DEFAULT '', input_tokens INTEGER, output_tokens INTEGER,
        cost REAL, at_ms INTEGER NOT NULL)""",
    "CREATE INDEX judge_replies_by_request ON judge_replies (request, answerer)",
    # Which criterion of the run asked, and whether it was asked for this run (a reply that was known costs nothing).
    """CREATE TABLE run_replies (
        run INTEGER NOT NULL, reply INTEGER NOT NULL, criterion INTEGER, paid INTEGER NOT NULL DEFAULT 0,
        PRIMARY KEY (run, reply)) WITHOUT ROWID""",
    "CREATE INDEX run_replies_by_reply ON run_replies (reply)",
    # One with a `key` is feedback (`labels.Label`): a score, and a verdict on nothing.
    """CREATE TABLE labels (
        id INTEGER PRIMARY KEY, run INTEGER NOT NULL, criterion INTEGER, rating INTEGER,
        comment TEXT NOT NULL DEFAULT '', who TEXT NOT NULL DEFAULT '', at_ms INTEGER NOT NULL, passed INTEGER,
        criterion_name TEXT, key TEXT NOT NULL DEFAULT '', score REAL)""",
    "CREATE INDEX labels_of_run ON labels (run)",
    "CREATE INDEX labels_by_key ON labels (key) WHERE key != ''",
    """CREATE TABLE baselines (
        id INTEGER PRIMARY KEY, test INTEGER NOT NULL UNIQUE, execution INTEGER, run INTEGER,
        who TEXT NOT NULL DEFAULT '', at_ms INTEGER NOT NULL)""",
    # `context`: what held when it was decided, as JSON; when it no longer does, the decision is open again.
    """CREATE TABLE triage (
        id INTEGER PRIMARY KEY, signature TEXT NOT NULL UNIQUE, decision TEXT NOT NULL, note TEXT NOT NULL DEFAULT '',
        who TEXT NOT NULL DEFAULT '', at_ms INTEGER NOT NULL, context TEXT NOT NULL DEFAULT '{}', until_ms INTEGER)""",
    """CREATE TABLE quarantines (
        id INTEGER PRIMARY KEY, test INTEGER NOT NULL, criterion TEXT NOT NULL DEFAULT '',
        reason TEXT NOT NULL DEFAULT '', until_ms INTEGER, who TEXT NOT NULL DEFAULT '', at_ms INTEGER NOT NULL)""",
    # What a person took back (`tombstones.py`): it does not come again with another history that still has it.
    """CREATE TABLE taken_back (
        id INTEGER PRIMARY KEY, kind TEXT NOT NULL, name TEXT NOT NULL, at_ms INTEGER NOT NULL,
        UNIQUE (kind, name))""",
    """CREATE TABLE imports (
        id INTEGER PRIMARY KEY, digest TEXT NOT NULL UNIQUE, execution INTEGER NOT NULL, path TEXT NOT NULL,
        at_ms INTEGER NOT NULL)""",
    # Contentless: the texts are in the transcripts already. Rows are taken out by giving the same texts again
    # (blobs.search_document); runs are found by rowid, newest first, so no sizes are kept for ranking.
    """CREATE VIRTUAL TABLE search USING fts5 (
        prompt, answer, tools, content='', columnsize=0, tokenize="unicode61 remove_diacritics 2")""",
)

MIGRATIONS: tuple[Migration, ...] = (Migration(1, "the first tables", _TABLES),)


def newest() -> int:
    """The version that this program writes."""
    return MIGRATIONS[-1].number


def version_of(connection: sqlite3.Connection) -> int:
    """The file's version; 0 for a new file."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def migrate(connection: sqlite3.Connection, *, upto: int | None = None) -> list[int]:
    """Bring the file up to `upto` (default: `newest()`) in one transaction, all of it or nothing.

    Returns the numbers applied.

    The connection must be in autocommit mode. Raises sqlite3.Error; the file is then as it was.
    """
    connection.execute("BEGIN IMMEDIATE")
    try:
        # Asked again under the lock: another process may have migrated in the meantime.
        version = version_of(connection)
        applied = []
        for migration in MIGRATIONS:
            if version < migration.number <= (newest() if upto is None else upto):
                for statement in migration.statements:
                    if isinstance(statement, str):
                        connection.execute(statement)
                    else:
                        statement(connection)
                applied.append(migration.number)
        if applied:
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {applied[-1]}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    return applied


def differences(connection: sqlite3.Connection, version: int) -> tuple[str, ...]:
    """The tables and indexes of a version that a file lacks, or that were made by another statement, in words.

    Additional ones aren't errors. Raises sqlite3.Error.
    """
    there = _statements(connection)
    return tuple(
        f"{kind} {name} {'has another definition' if (kind, name) in there else 'is missing'}"
        for (kind, name), statement in _statements_of(version).items()
        if there.get((kind, name)) != statement
    )


@lru_cache(maxsize=2)
def _statements_of(version: int) -> dict[tuple[str, str], str]:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as fresh:
        migrate(fresh, upto=version)
        return _statements(fresh)


def _statements(connection: sqlite3.Connection) -> dict[tuple[str, str], str]:
    """What made each table and index, but for the tables behind the search index, which are SQLite's own."""
    rows = connection.execute(
        "SELECT type, name, sql FROM sqlite_master WHERE type IN ('table', 'index') AND sql IS NOT NULL"
    ).fetchall()
    return {
        (kind, name): " ".join(sql.replace('"', "").split())
        for kind, name, sql in rows
        if not name.startswith(("sqlite_", "search_"))
    }
