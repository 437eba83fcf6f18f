- index runs_over_time
CREATE INDEX runs_over_time ON runs (started_ms, execution, test, variation, row, plan, agent, status, score,
        duration_ms, input_tokens, output_tokens, cost, steps, cached, error_kind)
        WHERE status IN ('passed', 'failed', 'error', 'needs_review');

- table runs
CREATE TABLE runs (
        id INTEGER PRIMARY KEY AUTOINCREMENT, uid TEXT NOT NULL UNIQUE, execution INTEGER NOT NULL,
        position INTEGER NOT NULL, test INTEGER NOT NULL, plan INTEGER NOT NULL, variation TEXT NOT NULL,
        row INTEGER NOT NULL, repetition INTEGER NOT NULL, agent TEXT NOT NULL, status TEXT NOT NULL, score REAL,
        started_ms INTEGER, duration_ms REAL, attempts INTEGER NOT NULL DEFAULT 0, warnings INTEGER NOT NULL DEFAULT 0,
        input_tokens INTEGER, output_tokens INTEGER, cost REAL, transcript INTEGER,
        output_head TEXT NOT NULL DEFAULT '', why TEXT NOT NULL DEFAULT '', error_kind TEXT NOT NULL DEFAULT '',
        error_message TEXT NOT NULL DEFAULT '', task INTEGER, task_number INTEGER NOT NULL DEFAULT 0, seed INTEGER NOT NULL DEFAULT 0, request TEXT, cached INTEGER NOT NULL DEFAULT 0, steps INTEGER);

+ index dataset_rows_assumed
CREATE INDEX dataset_rows_assumed ON dataset_rows (test) WHERE assumed;

+ index runs_over_time
CREATE INDEX runs_over_time ON runs (started_ms, execution, test, variation, dataset_row, plan, agent, status,
        score, duration_ms, input_tokens, output_tokens, cost, steps, cached, error_kind)
        WHERE status IN ('passed', 'failed', 'error', 'needs_review');

+ index sqlite_autoindex_dataset_rows_1
None;

+ table dataset_rows
CREATE TABLE dataset_rows (
        id INTEGER PRIMARY KEY, test INTEGER NOT NULL, key TEXT NOT NULL, place INTEGER NOT NULL DEFAULT 0,
        assumed INTEGER NOT NULL DEFAULT 0, UNIQUE (key, test));

+ table runs
CREATE TABLE runs (
        id INTEGER PRIMARY KEY AUTOINCREMENT, uid TEXT NOT NULL UNIQUE, execution INTEGER NOT NULL,
        position INTEGER NOT NULL, test INTEGER NOT NULL, plan INTEGER NOT NULL, variation TEXT NOT NULL,
        row INTEGER NOT NULL, repetition INTEGER NOT NULL, agent TEXT NOT NULL, status TEXT NOT NULL, score REAL,
        started_ms INTEGER, duration_ms REAL, attempts INTEGER NOT NULL DEFAULT 0, warnings INTEGER NOT NULL DEFAULT 0,
        input_tokens INTEGER, output_tokens INTEGER, cost REAL, transcript INTEGER,
        output_head TEXT NOT NULL DEFAULT '', why TEXT NOT NULL DEFAULT '', error_kind TEXT NOT NULL DEFAULT '',
        error_message TEXT NOT NULL DEFAULT '', task INTEGER, task_number INTEGER NOT NULL DEFAULT 0, seed INTEGER NOT NULL DEFAULT 0, request TEXT, cached INTEGER NOT NULL DEFAULT 0, steps INTEGER, dataset_row INTEGER);
