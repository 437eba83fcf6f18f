- table criterion_results
CREATE TABLE criterion_results (
        run INTEGER NOT NULL, position INTEGER NOT NULL, criterion INTEGER, name TEXT NOT NULL, outcome TEXT NOT NULL,
        score REAL, source TEXT NOT NULL DEFAULT '', PRIMARY KEY (run, position)) WITHOUT ROWID;

- table labels
CREATE TABLE labels (
        id INTEGER PRIMARY KEY, run INTEGER NOT NULL, criterion INTEGER, rating INTEGER,
        comment TEXT NOT NULL DEFAULT '', who TEXT NOT NULL DEFAULT '', at_ms INTEGER NOT NULL);

- table runs
CREATE TABLE runs (
        id INTEGER PRIMARY KEY AUTOINCREMENT, uid TEXT NOT NULL UNIQUE, execution INTEGER NOT NULL,
        position INTEGER NOT NULL, test INTEGER NOT NULL, plan INTEGER NOT NULL, variation TEXT NOT NULL,
        row INTEGER NOT NULL, repetition INTEGER NOT NULL, agent TEXT NOT NULL, status TEXT NOT NULL, score REAL,
        started_ms INTEGER, duration_ms REAL, attempts INTEGER NOT NULL DEFAULT 0, warnings INTEGER NOT NULL DEFAULT 0,
        input_tokens INTEGER, output_tokens INTEGER, cost REAL, transcript INTEGER,
        output_head TEXT NOT NULL DEFAULT '', why TEXT NOT NULL DEFAULT '', error_kind TEXT NOT NULL DEFAULT '',
        error_message TEXT NOT NULL DEFAULT '', task INTEGER, task_number INTEGER NOT NULL DEFAULT 0, seed INTEGER NOT NULL DEFAULT 0, request TEXT, cached INTEGER NOT NULL DEFAULT 0);

- table triage
CREATE TABLE triage (
        id INTEGER PRIMARY KEY, signature TEXT NOT NULL UNIQUE, decision TEXT NOT NULL, note TEXT NOT NULL DEFAULT '',
        who TEXT NOT NULL DEFAULT '', at_ms INTEGER NOT NULL);

+ index plans_by_tags
CREATE INDEX plans_by_tags ON plans (tags);

+ index results_by_cause
CREATE INDEX results_by_cause ON criterion_results (cause) WHERE cause > '';

+ index runs_over_time
CREATE INDEX runs_over_time ON runs (started_ms, execution, test, variation, row, plan, agent, status, score,
        duration_ms, input_tokens, output_tokens, cost, steps, cached, error_kind)
        WHERE status IN ('passed', 'failed', 'error', 'needs_review');

+ index sqlite_autoindex_taken_back_1
None;

+ table criterion_results
CREATE TABLE criterion_results (
        run INTEGER NOT NULL, position INTEGER NOT NULL, criterion INTEGER, name TEXT NOT NULL, outcome TEXT NOT NULL,
        score REAL, source TEXT NOT NULL DEFAULT '', cause TEXT, PRIMARY KEY (run, position)) WITHOUT ROWID;

+ table labels
CREATE TABLE labels (
        id INTEGER PRIMARY KEY, run INTEGER NOT NULL, criterion INTEGER, rating INTEGER,
        comment TEXT NOT NULL DEFAULT '', who TEXT NOT NULL DEFAULT '', at_ms INTEGER NOT NULL, passed INTEGER);

+ table runs
CREATE TABLE runs (
        id INTEGER PRIMARY KEY AUTOINCREMENT, uid TEXT NOT NULL UNIQUE, execution INTEGER NOT NULL,
        position INTEGER NOT NULL, test INTEGER NOT NULL, plan INTEGER NOT NULL, variation TEXT NOT NULL,
        row INTEGER NOT NULL, repetition INTEGER NOT NULL, agent TEXT NOT NULL, status TEXT NOT NULL, score REAL,
        started_ms INTEGER, duration_ms REAL, attempts INTEGER NOT NULL DEFAULT 0, warnings INTEGER NOT NULL DEFAULT 0,
        input_tokens INTEGER, output_tokens INTEGER, cost REAL, transcript INTEGER,
        output_head TEXT NOT NULL DEFAULT '', why TEXT NOT NULL DEFAULT '', error_kind TEXT NOT NULL DEFAULT '',
        error_message TEXT NOT NULL DEFAULT '', task INTEGER, task_number INTEGER NOT NULL DEFAULT 0, seed INTEGER NOT NULL DEFAULT 0, request TEXT, cached INTEGER NOT NULL DEFAULT 0, steps INTEGER);

+ table taken_back
CREATE TABLE taken_back (
        id INTEGER PRIMARY KEY, kind TEXT NOT NULL, name TEXT NOT NULL, at_ms INTEGER NOT NULL,
        UNIQUE (kind, name));

+ table triage
CREATE TABLE triage (
        id INTEGER PRIMARY KEY, signature TEXT NOT NULL UNIQUE, decision TEXT NOT NULL, note TEXT NOT NULL DEFAULT '',
        who TEXT NOT NULL DEFAULT '', at_ms INTEGER NOT NULL, context TEXT NOT NULL DEFAULT '{}', until_ms INTEGER);
