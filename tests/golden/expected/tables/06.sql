- table labels
CREATE TABLE labels (
        id INTEGER PRIMARY KEY, run INTEGER NOT NULL, criterion INTEGER, rating INTEGER,
        comment TEXT NOT NULL DEFAULT '', who TEXT NOT NULL DEFAULT '', at_ms INTEGER NOT NULL, passed INTEGER);

+ table labels
CREATE TABLE labels (
        id INTEGER PRIMARY KEY, run INTEGER NOT NULL, criterion INTEGER, rating INTEGER,
        comment TEXT NOT NULL DEFAULT '', who TEXT NOT NULL DEFAULT '', at_ms INTEGER NOT NULL, passed INTEGER, criterion_name TEXT);
