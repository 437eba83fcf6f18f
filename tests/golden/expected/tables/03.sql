- table executions
CREATE TABLE executions (
        id INTEGER PRIMARY KEY AUTOINCREMENT, uid TEXT NOT NULL UNIQUE, title TEXT NOT NULL, kind TEXT NOT NULL,
        source TEXT NOT NULL, status TEXT NOT NULL, started_ms INTEGER NOT NULL, finished_ms INTEGER,
        message TEXT NOT NULL DEFAULT '', batch_id TEXT, options TEXT NOT NULL, suite_keys TEXT NOT NULL,
        suites TEXT NOT NULL DEFAULT '[]', agents TEXT NOT NULL DEFAULT '[]', owner TEXT NOT NULL,
        runs INTEGER NOT NULL DEFAULT 0, passed INTEGER NOT NULL DEFAULT 0, failed INTEGER NOT NULL DEFAULT 0,
        errors INTEGER NOT NULL DEFAULT 0, skipped INTEGER NOT NULL DEFAULT 0, cancelled INTEGER NOT NULL DEFAULT 0,
        needs_review INTEGER NOT NULL DEFAULT 0, input_tokens INTEGER NOT NULL DEFAULT 0,
        output_tokens INTEGER NOT NULL DEFAULT 0, cost REAL);

- table run_replies
CREATE TABLE run_replies (run INTEGER NOT NULL, reply INTEGER NOT NULL, PRIMARY KEY (run, reply)) WITHOUT ROWID;

- table runs
CREATE TABLE runs (
        id INTEGER PRIMARY KEY AUTOINCREMENT, uid TEXT NOT NULL UNIQUE, execution INTEGER NOT NULL,
        position INTEGER NOT NULL, test INTEGER NOT NULL, plan INTEGER NOT NULL, variation TEXT NOT NULL,
        row INTEGER NOT NULL, repetition INTEGER NOT NULL, agent TEXT NOT NULL, status TEXT NOT NULL, score REAL,
        started_ms INTEGER, duration_ms REAL, attempts INTEGER NOT NULL DEFAULT 0, warnings INTEGER NOT NULL DEFAULT 0,
        input_tokens INTEGER, output_tokens INTEGER, cost REAL, transcript INTEGER,
        output_head TEXT NOT NULL DEFAULT '', why TEXT NOT NULL DEFAULT '', error_kind TEXT NOT NULL DEFAULT '',
        error_message TEXT NOT NULL DEFAULT '');

+ index runs_by_request
CREATE INDEX runs_by_request ON runs (request) WHERE request IS NOT NULL;

+ index sqlite_autoindex_tasks_1
None;

+ table executions
CREATE TABLE executions (
        id INTEGER PRIMARY KEY AUTOINCREMENT, uid TEXT NOT NULL UNIQUE, title TEXT NOT NULL, kind TEXT NOT NULL,
        source TEXT NOT NULL, status TEXT NOT NULL, started_ms INTEGER NOT NULL, finished_ms INTEGER,
        message TEXT NOT NULL DEFAULT '', batch_id TEXT, options TEXT NOT NULL, suite_keys TEXT NOT NULL,
        suites TEXT NOT NULL DEFAULT '[]', agents TEXT NOT NULL DEFAULT '[]', owner TEXT NOT NULL,
        runs INTEGER NOT NULL DEFAULT 0, passed INTEGER NOT NULL DEFAULT 0, failed INTEGER NOT NULL DEFAULT 0,
        errors INTEGER NOT NULL DEFAULT 0, skipped INTEGER NOT NULL DEFAULT 0, cancelled INTEGER NOT NULL DEFAULT 0,
        needs_review INTEGER NOT NULL DEFAULT 0, input_tokens INTEGER NOT NULL DEFAULT 0,
        output_tokens INTEGER NOT NULL DEFAULT 0, cost REAL, setup INTEGER);

+ table failed_attempts
CREATE TABLE failed_attempts (
        run INTEGER NOT NULL, number INTEGER NOT NULL, kind TEXT NOT NULL, message TEXT NOT NULL,
        duration_ms REAL NOT NULL, at_ms INTEGER NOT NULL, input_tokens INTEGER, output_tokens INTEGER, cost REAL,
        PRIMARY KEY (run, number)) WITHOUT ROWID;

+ table run_replies
CREATE TABLE run_replies (run INTEGER NOT NULL, reply INTEGER NOT NULL, criterion INTEGER, paid INTEGER NOT NULL DEFAULT 0, PRIMARY KEY (run, reply)) WITHOUT ROWID;

+ table runs
CREATE TABLE runs (
        id INTEGER PRIMARY KEY AUTOINCREMENT, uid TEXT NOT NULL UNIQUE, execution INTEGER NOT NULL,
        position INTEGER NOT NULL, test INTEGER NOT NULL, plan INTEGER NOT NULL, variation TEXT NOT NULL,
        row INTEGER NOT NULL, repetition INTEGER NOT NULL, agent TEXT NOT NULL, status TEXT NOT NULL, score REAL,
        started_ms INTEGER, duration_ms REAL, attempts INTEGER NOT NULL DEFAULT 0, warnings INTEGER NOT NULL DEFAULT 0,
        input_tokens INTEGER, output_tokens INTEGER, cost REAL, transcript INTEGER,
        output_head TEXT NOT NULL DEFAULT '', why TEXT NOT NULL DEFAULT '', error_kind TEXT NOT NULL DEFAULT '',
        error_message TEXT NOT NULL DEFAULT '', task INTEGER, task_number INTEGER NOT NULL DEFAULT 0, seed INTEGER NOT NULL DEFAULT 0, request TEXT, cached INTEGER NOT NULL DEFAULT 0);

+ table tasks
CREATE TABLE tasks (id INTEGER PRIMARY KEY, hash BLOB NOT NULL UNIQUE, data BLOB NOT NULL);
