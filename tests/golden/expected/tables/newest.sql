index dataset_rows_assumed
CREATE INDEX dataset_rows_assumed ON dataset_rows (test) WHERE assumed;

index executions_by_name
CREATE INDEX executions_by_name ON executions (name) WHERE name != '';

index executions_by_project
CREATE INDEX executions_by_project ON executions (project);

index executions_running
CREATE INDEX executions_running ON executions (status) WHERE status = 'running';

index judge_replies_by_request
CREATE INDEX judge_replies_by_request ON judge_replies (request, answerer);

index labels_by_key
CREATE INDEX labels_by_key ON labels (key) WHERE key != '';

index labels_of_run
CREATE INDEX labels_of_run ON labels (run);

index plans_by_tags
CREATE INDEX plans_by_tags ON plans (tags);

index results_by_cause
CREATE INDEX results_by_cause ON criterion_results (cause) WHERE cause > '';

index run_replies_by_reply
CREATE INDEX run_replies_by_reply ON run_replies (reply);

index runs_by_request
CREATE INDEX runs_by_request ON runs (request) WHERE request IS NOT NULL;

index runs_facets
CREATE INDEX runs_facets ON runs (status, agent, test, execution);

index runs_of_execution
CREATE INDEX runs_of_execution ON runs (execution, position);

index runs_of_fork
CREATE INDEX runs_of_fork ON runs (fork_of) WHERE fork_of != '';

index runs_of_recording
CREATE INDEX runs_of_recording ON runs (recording) WHERE recording != '';

index runs_of_test
CREATE INDEX runs_of_test ON runs (test);

index runs_of_test_by_execution
CREATE INDEX runs_of_test_by_execution ON runs (test, execution);

index runs_of_transcript
CREATE INDEX runs_of_transcript ON runs (transcript) WHERE transcript IS NOT NULL;

index runs_over_time
CREATE INDEX runs_over_time ON runs (started_ms, execution, test, variation, dataset_row, plan, agent, status,
        score, duration_ms, input_tokens, output_tokens, cost, steps, cached, error_kind, agent_version)
        WHERE status IN ('passed', 'failed', 'error', 'needs_review') AND superseded = 0;

index runs_superseded
CREATE INDEX runs_superseded ON runs (test, status) WHERE superseded;

index sqlite_autoindex_baselines_1
None;

index sqlite_autoindex_criteria_1
None;

index sqlite_autoindex_criterion_texts_1
None;

index sqlite_autoindex_dataset_rows_1
None;

index sqlite_autoindex_executions_1
None;

index sqlite_autoindex_imports_1
None;

index sqlite_autoindex_plans_1
None;

index sqlite_autoindex_runs_1
None;

index sqlite_autoindex_suites_1
None;

index sqlite_autoindex_taken_back_1
None;

index sqlite_autoindex_tasks_1
None;

index sqlite_autoindex_tests_1
None;

index sqlite_autoindex_transcripts_1
None;

index sqlite_autoindex_triage_1
None;

index tool_calls_by_name
CREATE INDEX tool_calls_by_name ON tool_calls (name);

table baselines
CREATE TABLE baselines (
        id INTEGER PRIMARY KEY, test INTEGER NOT NULL UNIQUE, execution INTEGER, run INTEGER,
        who TEXT NOT NULL DEFAULT '', at_ms INTEGER NOT NULL);

table criteria
CREATE TABLE criteria (id INTEGER PRIMARY KEY, hash TEXT NOT NULL UNIQUE, spec TEXT, first_ms INTEGER NOT NULL);

table criterion_results
CREATE TABLE criterion_results (
        run INTEGER NOT NULL, position INTEGER NOT NULL, criterion INTEGER, name TEXT NOT NULL, outcome TEXT NOT NULL,
        score REAL, source TEXT NOT NULL DEFAULT '', cause TEXT, PRIMARY KEY (run, position)) WITHOUT ROWID;

table criterion_texts
CREATE TABLE criterion_texts (
        id INTEGER PRIMARY KEY, test INTEGER NOT NULL, name TEXT NOT NULL, criterion INTEGER NOT NULL,
        spec TEXT NOT NULL, UNIQUE (test, name, criterion));

table dataset_rows
CREATE TABLE dataset_rows (
        id INTEGER PRIMARY KEY, test INTEGER NOT NULL, key TEXT NOT NULL, place INTEGER NOT NULL DEFAULT 0,
        assumed INTEGER NOT NULL DEFAULT 0, UNIQUE (key, test));

table evidence
CREATE TABLE evidence (run INTEGER PRIMARY KEY, data BLOB NOT NULL);

table executions
CREATE TABLE executions (
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
        programs TEXT NOT NULL DEFAULT '{}');

table failed_attempts
CREATE TABLE failed_attempts (
        run INTEGER NOT NULL, number INTEGER NOT NULL, kind TEXT NOT NULL, message TEXT NOT NULL,
        duration_ms REAL NOT NULL, at_ms INTEGER NOT NULL, input_tokens INTEGER, output_tokens INTEGER, cost REAL,
        PRIMARY KEY (run, number)) WITHOUT ROWID;

table imports
CREATE TABLE imports (
        id INTEGER PRIMARY KEY, digest TEXT NOT NULL UNIQUE, execution INTEGER NOT NULL, path TEXT NOT NULL,
        at_ms INTEGER NOT NULL);

table judge_replies
CREATE TABLE judge_replies (
        id INTEGER PRIMARY KEY, request TEXT NOT NULL, answerer TEXT NOT NULL, data BLOB NOT NULL,
        model TEXT NOT NULL DEFAULT '', error TEXT NOT NULL DEFAULT '', input_tokens INTEGER, output_tokens INTEGER,
        cost REAL, at_ms INTEGER NOT NULL);

table labels
CREATE TABLE labels (
        id INTEGER PRIMARY KEY, run INTEGER NOT NULL, criterion INTEGER, rating INTEGER,
        comment TEXT NOT NULL DEFAULT '', who TEXT NOT NULL DEFAULT '', at_ms INTEGER NOT NULL, passed INTEGER,
        criterion_name TEXT, key TEXT NOT NULL DEFAULT '', score REAL);

table plans
CREATE TABLE plans (
        id INTEGER PRIMARY KEY, hash BLOB NOT NULL UNIQUE, prompt TEXT NOT NULL, prompt_head TEXT NOT NULL,
        tags TEXT NOT NULL, variables TEXT NOT NULL, criteria TEXT NOT NULL);

table quarantines
CREATE TABLE quarantines (
        id INTEGER PRIMARY KEY, test INTEGER NOT NULL, criterion TEXT NOT NULL DEFAULT '',
        reason TEXT NOT NULL DEFAULT '', until_ms INTEGER, who TEXT NOT NULL DEFAULT '', at_ms INTEGER NOT NULL);

table run_replies
CREATE TABLE run_replies (
        run INTEGER NOT NULL, reply INTEGER NOT NULL, criterion INTEGER, paid INTEGER NOT NULL DEFAULT 0,
        PRIMARY KEY (run, reply)) WITHOUT ROWID;

table runs
CREATE TABLE runs (
        id INTEGER PRIMARY KEY AUTOINCREMENT, uid TEXT NOT NULL UNIQUE, execution INTEGER NOT NULL,
        position INTEGER NOT NULL, test INTEGER NOT NULL, plan INTEGER NOT NULL, variation TEXT NOT NULL,
        row INTEGER NOT NULL, repetition INTEGER NOT NULL, agent TEXT NOT NULL, status TEXT NOT NULL, score REAL,
        started_ms INTEGER, duration_ms REAL, attempts INTEGER NOT NULL DEFAULT 0, warnings INTEGER NOT NULL DEFAULT 0,
        input_tokens INTEGER, output_tokens INTEGER, cost REAL, transcript INTEGER,
        output_head TEXT NOT NULL DEFAULT '', why TEXT NOT NULL DEFAULT '', error_kind TEXT NOT NULL DEFAULT '',
        error_message TEXT NOT NULL DEFAULT '', task INTEGER, task_number INTEGER NOT NULL DEFAULT 0,
        seed INTEGER NOT NULL DEFAULT 0, request TEXT, cached INTEGER NOT NULL DEFAULT 0, steps INTEGER,
        dataset_row INTEGER, recording TEXT NOT NULL DEFAULT '', superseded INTEGER NOT NULL DEFAULT 0,
        agent_version TEXT NOT NULL DEFAULT '', fork_of TEXT NOT NULL DEFAULT '', fork TEXT NOT NULL DEFAULT '');

table search
CREATE VIRTUAL TABLE search USING fts5 (
        prompt, answer, tools, content='', columnsize=0, tokenize="unicode61 remove_diacritics 2");

table search_config
CREATE TABLE 'search_config'(k PRIMARY KEY, v) WITHOUT ROWID;

table search_data
CREATE TABLE 'search_data'(id INTEGER PRIMARY KEY, block BLOB);

table search_idx
CREATE TABLE 'search_idx'(segid, term, pgno, PRIMARY KEY(segid, term)) WITHOUT ROWID;

table sqlite_sequence
CREATE TABLE sqlite_sequence(name,seq);

table suites
CREATE TABLE suites (id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, name TEXT NOT NULL);

table taken_back
CREATE TABLE taken_back (
        id INTEGER PRIMARY KEY, kind TEXT NOT NULL, name TEXT NOT NULL, at_ms INTEGER NOT NULL,
        UNIQUE (kind, name));

table tapes
CREATE TABLE tapes (run INTEGER PRIMARY KEY, data BLOB NOT NULL);

table tasks
CREATE TABLE tasks (id INTEGER PRIMARY KEY, hash BLOB NOT NULL UNIQUE, data BLOB NOT NULL);

table tests
CREATE TABLE tests (
        id INTEGER PRIMARY KEY, suite INTEGER NOT NULL, test_id TEXT NOT NULL, name TEXT NOT NULL,
        ended INTEGER NOT NULL DEFAULT 0, UNIQUE (suite, test_id));

table tool_calls
CREATE TABLE tool_calls (
        transcript INTEGER NOT NULL, position INTEGER NOT NULL, name TEXT NOT NULL, arguments TEXT NOT NULL,
        status TEXT NOT NULL, duration_ms REAL, PRIMARY KEY (transcript, position)) WITHOUT ROWID;

table transcripts
CREATE TABLE transcripts (id INTEGER PRIMARY KEY AUTOINCREMENT, hash BLOB NOT NULL UNIQUE, data BLOB NOT NULL);

table triage
CREATE TABLE triage (
        id INTEGER PRIMARY KEY, signature TEXT NOT NULL UNIQUE, decision TEXT NOT NULL, note TEXT NOT NULL DEFAULT '',
        who TEXT NOT NULL DEFAULT '', at_ms INTEGER NOT NULL, context TEXT NOT NULL DEFAULT '{}', until_ms INTEGER);
