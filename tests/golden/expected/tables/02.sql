+ index judge_replies_by_request
CREATE INDEX judge_replies_by_request ON judge_replies (request, answerer);

+ index run_replies_by_reply
CREATE INDEX run_replies_by_reply ON run_replies (reply);

+ table judge_replies
CREATE TABLE judge_replies (
        id INTEGER PRIMARY KEY, request TEXT NOT NULL, answerer TEXT NOT NULL, data BLOB NOT NULL,
        model TEXT NOT NULL DEFAULT '', error TEXT NOT NULL DEFAULT '', input_tokens INTEGER, output_tokens INTEGER,
        cost REAL, at_ms INTEGER NOT NULL);

+ table run_replies
CREATE TABLE run_replies (run INTEGER NOT NULL, reply INTEGER NOT NULL, PRIMARY KEY (run, reply)) WITHOUT ROWID;
