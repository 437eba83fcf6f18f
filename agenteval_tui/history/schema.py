"""The tables, as numbered migrations. A file's number is SQLite's `user_version`.

Statements of a migration never change once they are on main; what changes gets the next number, and a line in
`tests/history/test_migrations.py`, which keeps their hashes. `shape.py` compares files with what they make.
Every table has an integer as its first key column: the rescue of damaged files walks along it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable

from msgspec import Struct

from agenteval_tui.history.agent_signatures import code_agent_errors
from agenteval_tui.history.data_migrations import find_versions, upgrade_signatures
from agenteval_tui.history.dataset_rows import key_runs
from agenteval_tui.history.recordings import find_recordings
from agenteval_tui.history.scope import find_projects

APPLICATION_ID = 0x41474556  # "AGEV" in the file's header: says that the file is ours


class Migration(Struct, frozen=True):
    """Brings a file from version `number - 1` to `number`."""

    number: int
    title: str
    statements: tuple[str | Callable[[sqlite3.Connection], None], ...]
    """SQL, and functions for what SQL can't do."""


_FIRST = (
    "CREATE TABLE suites (id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, name TEXT NOT NULL)",
    # `ended` counts all ended runs of the test, so that no list has to count them.
    """CREATE TABLE tests (
        id INTEGER PRIMARY KEY, suite INTEGER NOT NULL, test_id TEXT NOT NULL, name TEXT NOT NULL,
        ended INTEGER NOT NULL DEFAULT 0, UNIQUE (suite, test_id))""",
    # Every version of every criterion, by content hash.
    "CREATE TABLE criteria (id INTEGER PRIMARY KEY, hash TEXT NOT NULL UNIQUE, spec TEXT, first_ms INTEGER NOT NULL)",
    # `owner` names the process that does the work (see liveness.py); totals are maintained with every commit.
    """CREATE TABLE executions (
        id INTEGER PRIMARY KEY AUTOINCREMENT, uid TEXT NOT NULL UNIQUE, title TEXT NOT NULL, kind TEXT NOT NULL,
        source TEXT NOT NULL, status TEXT NOT NULL, started_ms INTEGER NOT NULL, finished_ms INTEGER,
        message TEXT NOT NULL DEFAULT '', batch_id TEXT, options TEXT NOT NULL, suite_keys TEXT NOT NULL,
        suites TEXT NOT NULL DEFAULT '[]', agents TEXT NOT NULL DEFAULT '[]', owner TEXT NOT NULL,
        runs INTEGER NOT NULL DEFAULT 0, passed INTEGER NOT NULL DEFAULT 0, failed INTEGER NOT NULL DEFAULT 0,
        errors INTEGER NOT NULL DEFAULT 0, skipped INTEGER NOT NULL DEFAULT 0, cancelled INTEGER NOT NULL DEFAULT 0,
        needs_review INTEGER NOT NULL DEFAULT 0, input_tokens INTEGER NOT NULL DEFAULT 0,
        output_tokens INTEGER NOT NULL DEFAULT 0, cost REAL)""",
    "CREATE INDEX executions_running ON executions (status) WHERE status = 'running'",
    # What repetitions of a test have in common: stored once.
    """CREATE TABLE plans (
        id INTEGER PRIMARY KEY, hash BLOB NOT NULL UNIQUE, prompt TEXT NOT NULL, prompt_head TEXT NOT NULL,
        tags TEXT NOT NULL, variables TEXT NOT NULL, criteria TEXT NOT NULL)""",
    # AUTOINCREMENT: a number is never used again, so that a page key or a search hit never means another run.
    """CREATE TABLE runs (
        id INTEGER PRIMARY KEY AUTOINCREMENT, uid TEXT NOT NULL UNIQUE, execution INTEGER NOT NULL,
        position INTEGER NOT NULL, test INTEGER NOT NULL, plan INTEGER NOT NULL, variation TEXT NOT NULL,
        row INTEGER NOT NULL, repetition INTEGER NOT NULL, agent TEXT NOT NULL, status TEXT NOT NULL, score REAL,
        started_ms INTEGER, duration_ms REAL, attempts INTEGER NOT NULL DEFAULT 0, warnings INTEGER NOT NULL DEFAULT 0,
        input_tokens INTEGER, output_tokens INTEGER, cost REAL, transcript INTEGER,
        output_head TEXT NOT NULL DEFAULT '', why TEXT NOT NULL DEFAULT '', error_kind TEXT NOT NULL DEFAULT '',
        error_message TEXT NOT NULL DEFAULT '')""",
    "CREATE INDEX runs_of_execution ON runs (execution, position)",
    "CREATE INDEX runs_of_test ON runs (test)",
    "CREATE INDEX runs_of_transcript ON runs (transcript) WHERE transcript IS NOT NULL",
    # Holds all that lists filter by, so that a filter reads a narrow index and not 100,000 wide rows.
    "CREATE INDEX runs_facets ON runs (status, agent, test, execution)",
    "CREATE TABLE transcripts (id INTEGER PRIMARY KEY AUTOINCREMENT, hash BLOB NOT NULL UNIQUE, data BLOB NOT NULL)",
    """CREATE TABLE tool_calls (
        transcript INTEGER NOT NULL, position INTEGER NOT NULL, name TEXT NOT NULL, arguments TEXT NOT NULL,
        status TEXT NOT NULL, duration_ms REAL, PRIMARY KEY (transcript, position)) WITHOUT ROWID""",
    "CREATE INDEX tool_calls_by_name ON tool_calls (name)",
    """CREATE TABLE criterion_results (
        run INTEGER NOT NULL, position INTEGER NOT NULL, criterion INTEGER, name TEXT NOT NULL, outcome TEXT NOT NULL,
        score REAL, source TEXT NOT NULL DEFAULT '', PRIMARY KEY (run, position)) WITHOUT ROWID""",
    # All results of a run with their metric results and evidence: one compressed JSON.
    "CREATE TABLE evidence (run INTEGER PRIMARY KEY, data BLOB NOT NULL)",
    """CREATE TABLE labels (
        id INTEGER PRIMARY KEY, run INTEGER NOT NULL, criterion INTEGER, rating INTEGER,
        comment TEXT NOT NULL DEFAULT '', who TEXT NOT NULL DEFAULT '', at_ms INTEGER NOT NULL)""",
    "CREATE INDEX labels_of_run ON labels (run)",
    """CREATE TABLE baselines (
        id INTEGER PRIMARY KEY, test INTEGER NOT NULL UNIQUE, execution INTEGER, run INTEGER,
        who TEXT NOT NULL DEFAULT '', at_ms INTEGER NOT NULL)""",
    """CREATE TABLE triage (
        id INTEGER PRIMARY KEY, signature TEXT NOT NULL UNIQUE, decision TEXT NOT NULL, note TEXT NOT NULL DEFAULT '',
        who TEXT NOT NULL DEFAULT '', at_ms INTEGER NOT NULL)""",
    """CREATE TABLE quarantines (
        id INTEGER PRIMARY KEY, test INTEGER NOT NULL, criterion TEXT NOT NULL DEFAULT '',
        reason TEXT NOT NULL DEFAULT '', until_ms INTEGER, who TEXT NOT NULL DEFAULT '', at_ms INTEGER NOT NULL)""",
    """CREATE TABLE imports (
        id INTEGER PRIMARY KEY, digest TEXT NOT NULL UNIQUE, execution INTEGER NOT NULL, path TEXT NOT NULL,
        at_ms INTEGER NOT NULL)""",
    # Contentless: the texts are in the transcripts already. Rows are taken out by giving the same texts again
    # (blobs.search_document); runs are found by rowid, newest first, so no sizes are kept for ranking.
    """CREATE VIRTUAL TABLE search USING fts5 (
        prompt, answer, tools, content='', columnsize=0, tokenize="unicode61 remove_diacritics 2")""",
)

# What was asked of judges, embedders and others: question and raw reply, so that no result must be asked for again.
_REPLIES = (
    """CREATE TABLE judge_replies (
        id INTEGER PRIMARY KEY, request TEXT NOT NULL, answerer TEXT NOT NULL, data BLOB NOT NULL,
        model TEXT NOT NULL DEFAULT '', error TEXT NOT NULL DEFAULT '', input_tokens INTEGER, output_tokens INTEGER,
        cost REAL, at_ms INTEGER NOT NULL)""",
    "CREATE INDEX judge_replies_by_request ON judge_replies (request, answerer)",
    "CREATE TABLE run_replies (run INTEGER NOT NULL, reply INTEGER NOT NULL, PRIMARY KEY (run, reply)) WITHOUT ROWID",
    "CREATE INDEX run_replies_by_reply ON run_replies (reply)",
)

# What it takes to run later what an execution did not come to, to find an answer again, and to say what was paid for.
_RESUMING = (
    # What runs are made of (`runs.task_payload`): many tasks in a row, by their content hash, and a run says which
    # of them is its own (`task_number`). Repetitions share a task, and executions of a suite that did not change a row.
    "CREATE TABLE tasks (id INTEGER PRIMARY KEY, hash BLOB NOT NULL UNIQUE, data BLOB NOT NULL)",
    "ALTER TABLE executions ADD COLUMN setup INTEGER",
    "ALTER TABLE runs ADD COLUMN task INTEGER",
    "ALTER TABLE runs ADD COLUMN task_number INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE runs ADD COLUMN seed INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE runs ADD COLUMN request TEXT",
    "ALTER TABLE runs ADD COLUMN cached INTEGER NOT NULL DEFAULT 0",
    "CREATE INDEX runs_by_request ON runs (request) WHERE request IS NOT NULL",
    """CREATE TABLE failed_attempts (
        run INTEGER NOT NULL, number INTEGER NOT NULL, kind TEXT NOT NULL, message TEXT NOT NULL,
        duration_ms REAL NOT NULL, at_ms INTEGER NOT NULL, input_tokens INTEGER, output_tokens INTEGER, cost REAL,
        PRIMARY KEY (run, number)) WITHOUT ROWID""",
    # Which criterion of the run asked, and whether it was asked for this run (a reply that was known costs nothing).
    "ALTER TABLE run_replies ADD COLUMN criterion INTEGER",
    "ALTER TABLE run_replies ADD COLUMN paid INTEGER NOT NULL DEFAULT 0",
    "UPDATE run_replies SET paid = (run = (SELECT min(o.run) FROM run_replies o WHERE o.reply = run_replies.reply))",
)

# The totals say what was paid for, attempts that failed among it. From here on short transcripts and results are plain,
# and others refer to `blobs._WORDS`: a program that does not know that refuses the file by its version.
_PAID = (
    "UPDATE executions SET input_tokens = input_tokens + coalesce(paid.tokens_in, 0),"
    " output_tokens = output_tokens + coalesce(paid.tokens_out, 0),"
    " cost = CASE WHEN paid.cost IS NULL THEN executions.cost ELSE coalesce(executions.cost, 0) + paid.cost END FROM ("
    " SELECT r.execution, sum(a.input_tokens) AS tokens_in, sum(a.output_tokens) AS tokens_out, sum(a.cost) AS cost"
    " FROM failed_attempts a JOIN runs r ON r.id = a.run GROUP BY r.execution) AS paid"
    " WHERE paid.execution = executions.id",
)

# What people decide: verdicts beside ratings, triage that knows when it no longer holds, and the cause of each failure.
_DECISIONS = (
    "ALTER TABLE labels ADD COLUMN passed INTEGER",
    # What held when it was decided, as JSON: when it no longer does, the decision is open again.
    "ALTER TABLE triage ADD COLUMN context TEXT NOT NULL DEFAULT '{}'",
    "ALTER TABLE triage ADD COLUMN until_ms INTEGER",
    # The signature of a failed result (`grading.causes`): failures are grouped and counted without their evidence.
    # NULL: stored by an older program.
    "ALTER TABLE criterion_results ADD COLUMN cause TEXT",
    "CREATE INDEX results_by_cause ON criterion_results (cause) WHERE cause > ''",
    # How many tools a run called: trends read one narrow index, and no wide row is touched.
    "ALTER TABLE runs ADD COLUMN steps INTEGER",
    "UPDATE runs SET steps = (SELECT count(*) FROM tool_calls c WHERE c.transcript = runs.transcript)"
    " WHERE transcript IS NOT NULL",
    # Runs that have not ended are not in it: planning a run and starting it cost nothing here.
    """CREATE INDEX runs_over_time ON runs (started_ms, execution, test, variation, row, plan, agent, status, score,
        duration_ms, input_tokens, output_tokens, cost, steps, cached, error_kind)
        WHERE status IN ('passed', 'failed', 'error', 'needs_review')""",
    "CREATE INDEX plans_by_tags ON plans (tags)",
    # What a person took back (`taken_back.py`): it does not come again with another history that still has it.
    """CREATE TABLE taken_back (
        id INTEGER PRIMARY KEY, kind TEXT NOT NULL, name TEXT NOT NULL, at_ms INTEGER NOT NULL,
        UNIQUE (kind, name))""",
)

# A criterion is its test and its name. Until here two criteria of one name stood under that name, and a label named
# only the content of its criterion: where a run has several of that content, which one was meant is unknown.
_CRITERIA = (
    "UPDATE criterion_results SET name = 'criterion ' || (position + 1) WHERE trim(name) = ''",
    # As `core.ids.criterion_names` does it.
    """CREATE TEMP TABLE renamed AS
        SELECT run, position, name AS was, name || ' (' || nth || ')' AS name FROM (
            SELECT run, position, name, row_number() OVER (PARTITION BY run, name ORDER BY position) AS nth
            FROM criterion_results)
        WHERE nth > 1""",
    "UPDATE renamed SET name = name || char(39) WHERE EXISTS ("
    " SELECT 1 FROM criterion_results o WHERE o.run = renamed.run AND o.name = renamed.name)",
    "UPDATE criterion_results SET name = new.name FROM renamed AS new"
    " WHERE criterion_results.run = new.run AND criterion_results.position = new.position",
    # A quarantine of that name was one of each of them.
    """INSERT INTO quarantines (test, criterion, reason, until_ms, who, at_ms)
        SELECT DISTINCT q.test, n.name, q.reason, q.until_ms, q.who, q.at_ms
        FROM quarantines q JOIN runs r ON r.test = q.test JOIN renamed n ON n.run = r.id AND n.was = q.criterion""",
    "DROP TABLE renamed",
    "ALTER TABLE labels ADD COLUMN criterion_name TEXT",
    "UPDATE labels SET criterion_name = (SELECT min(o.name) FROM criterion_results o"
    " WHERE o.run = labels.run AND o.criterion = labels.criterion HAVING count(*) = 1) WHERE criterion IS NOT NULL",
)

# A row of a dataset is the same, wherever it is in its file (`dataset_rows.py`).
_DATASET_ROWS = (
    # `place`: where it stood last. `assumed`: the key was made of what a run had, by a program that knew no keys.
    """CREATE TABLE dataset_rows (
        id INTEGER PRIMARY KEY, test INTEGER NOT NULL, key TEXT NOT NULL, place INTEGER NOT NULL DEFAULT 0,
        assumed INTEGER NOT NULL DEFAULT 0, UNIQUE (key, test))""",
    "CREATE INDEX dataset_rows_assumed ON dataset_rows (test) WHERE assumed",
    "ALTER TABLE runs ADD COLUMN dataset_row INTEGER",
    key_runs,
    "DROP INDEX runs_over_time",
    """CREATE INDEX runs_over_time ON runs (started_ms, execution, test, variation, dataset_row, plan, agent, status,
        score, duration_ms, input_tokens, output_tokens, cost, steps, cached, error_kind)
        WHERE status IN ('passed', 'failed', 'error', 'needs_review')""",
)

# How each criterion of a test was written: two of equal content are written differently. Of before it is known where a
# version judged only one criterion.
_TEXTS = (
    """CREATE TABLE criterion_texts (
        id INTEGER PRIMARY KEY, test INTEGER NOT NULL, name TEXT NOT NULL, criterion INTEGER NOT NULL,
        spec TEXT NOT NULL, UNIQUE (test, name, criterion))""",
    """INSERT INTO criterion_texts (test, name, criterion, spec)
        SELECT max(o.test), max(o.name), o.criterion, c.spec FROM (
            SELECT DISTINCT r.test, p.name, p.criterion FROM criterion_results p JOIN runs r ON r.id = p.run
            WHERE p.criterion IS NOT NULL) AS o
        JOIN criteria c ON c.id = o.criterion AND c.spec IS NOT NULL
        GROUP BY o.criterion HAVING count(*) = 1""",
)

# What was recorded once counts once, however often it was graded (`recordings.py`).
_RECORDINGS = (
    "ALTER TABLE runs ADD COLUMN recording TEXT NOT NULL DEFAULT ''",
    "ALTER TABLE runs ADD COLUMN superseded INTEGER NOT NULL DEFAULT 0",
    "CREATE INDEX runs_of_recording ON runs (recording) WHERE recording != ''",
    "CREATE INDEX runs_superseded ON runs (test, status) WHERE superseded",
    find_recordings,
    "DROP INDEX runs_over_time",
    """CREATE INDEX runs_over_time ON runs (started_ms, execution, test, variation, dataset_row, plan, agent, status,
        score, duration_ms, input_tokens, output_tokens, cost, steps, cached, error_kind)
        WHERE status IN ('passed', 'failed', 'error', 'needs_review') AND superseded = 0""",
)

# Causes are made of codes and fields (version 2 of their signatures), and results are stored with them: a program that
# does not know the layout refuses the file by its version.
_SIGNATURES = (upgrade_signatures,)

# The causes of agents' errors are made of codes, too.
_AGENT_ERRORS = (code_agent_errors,)

# An agent is its configuration, whatever it is called ("": not known; `agents.agent_version`).
_AGENTS = (
    "ALTER TABLE runs ADD COLUMN agent_version TEXT NOT NULL DEFAULT ''",
    find_versions,
    "DROP INDEX runs_over_time",
    """CREATE INDEX runs_over_time ON runs (started_ms, execution, test, variation, dataset_row, plan, agent, status,
        score, duration_ms, input_tokens, output_tokens, cost, steps, cached, error_kind, agent_version)
        WHERE status IN ('passed', 'failed', 'error', 'needs_review') AND superseded = 0""",
)

# Which project an execution belongs to ("": not known, as of another tool's results that came in before).
_PROJECTS = (
    "ALTER TABLE executions ADD COLUMN project TEXT NOT NULL DEFAULT ''",
    find_projects,
    "CREATE INDEX executions_by_project ON executions (project)",
)

# What a test did before is one step away, however often it was executed.
_EXECUTIONS_OF_TESTS = ("CREATE INDEX runs_of_test_by_execution ON runs (test, execution)",)

# A run may continue another one (its id) from a step of it, with changes (JSON: `runs.fork.model`). It counts nowhere:
# `superseded` is 2 (`recordings.py`).
_FORKS = (
    "ALTER TABLE runs ADD COLUMN fork_of TEXT NOT NULL DEFAULT ''",
    "ALTER TABLE runs ADD COLUMN fork TEXT NOT NULL DEFAULT ''",
    "CREATE INDEX runs_of_fork ON runs (fork_of) WHERE fork_of != ''",
)

# What a run's program asked of models, and what it was answered: an execution's proxy kept it (`tapes.py`).
_TAPES = ("CREATE TABLE tapes (run INTEGER PRIMARY KEY, data BLOB NOT NULL)",)

MIGRATIONS: tuple[Migration, ...] = (
    Migration(1, "the first tables", _FIRST),
    Migration(2, "the replies of judges", _REPLIES),
    Migration(3, "resuming, answers known before, costs", _RESUMING),
    Migration(4, "totals of what was paid for, smaller transcripts", _PAID),
    Migration(5, "what people decide, and the causes of failures", _DECISIONS),
    Migration(6, "criteria by their names", _CRITERIA),
    Migration(7, "rows of datasets by what they are", _DATASET_ROWS),
    Migration(8, "how each criterion was written", _TEXTS),
    Migration(9, "recordings that were graded again", _RECORDINGS),
    Migration(10, "causes by codes, not by sentences", _SIGNATURES),
    Migration(11, "agents by their configuration", _AGENTS),
    Migration(12, "executions by their project", _PROJECTS),
    Migration(13, "the executions of each test", _EXECUTIONS_OF_TESTS),
    Migration(14, "agents' errors by codes", _AGENT_ERRORS),
    Migration(15, "runs that continue other runs", _FORKS),
    Migration(16, "what programs asked of models", _TAPES),
)


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
