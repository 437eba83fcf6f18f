- table executions
CREATE TABLE executions (
        id INTEGER PRIMARY KEY AUTOINCREMENT, uid TEXT NOT NULL UNIQUE, title TEXT NOT NULL, kind TEXT NOT NULL,
        source TEXT NOT NULL, status TEXT NOT NULL, started_ms INTEGER NOT NULL, finished_ms INTEGER,
        message TEXT NOT NULL DEFAULT '', batch_id TEXT, options TEXT NOT NULL, suite_keys TEXT NOT NULL,
        suites TEXT NOT NULL DEFAULT '[]', agents TEXT NOT NULL DEFAULT '[]', owner TEXT NOT NULL,
        runs INTEGER NOT NULL DEFAULT 0, passed INTEGER NOT NULL DEFAULT 0, failed INTEGER NOT NULL DEFAULT 0,
        errors INTEGER NOT NULL DEFAULT 0, skipped INTEGER NOT NULL DEFAULT 0, cancelled INTEGER NOT NULL DEFAULT 0,
        needs_review INTEGER NOT NULL DEFAULT 0, input_tokens INTEGER NOT NULL DEFAULT 0,
        output_tokens INTEGER NOT NULL DEFAULT 0, cost REAL, setup INTEGER);

+ index executions_by_project
CREATE INDEX executions_by_project ON executions (project);

+ table executions
CREATE TABLE executions (
        id INTEGER PRIMARY KEY AUTOINCREMENT, uid TEXT NOT NULL UNIQUE, title TEXT NOT NULL, kind TEXT NOT NULL,
        source TEXT NOT NULL, status TEXT NOT NULL, started_ms INTEGER NOT NULL, finished_ms INTEGER,
        message TEXT NOT NULL DEFAULT '', batch_id TEXT, options TEXT NOT NULL, suite_keys TEXT NOT NULL,
        suites TEXT NOT NULL DEFAULT '[]', agents TEXT NOT NULL DEFAULT '[]', owner TEXT NOT NULL,
        runs INTEGER NOT NULL DEFAULT 0, passed INTEGER NOT NULL DEFAULT 0, failed INTEGER NOT NULL DEFAULT 0,
        errors INTEGER NOT NULL DEFAULT 0, skipped INTEGER NOT NULL DEFAULT 0, cancelled INTEGER NOT NULL DEFAULT 0,
        needs_review INTEGER NOT NULL DEFAULT 0, input_tokens INTEGER NOT NULL DEFAULT 0,
        output_tokens INTEGER NOT NULL DEFAULT 0, cost REAL, setup INTEGER, project TEXT NOT NULL DEFAULT '');
