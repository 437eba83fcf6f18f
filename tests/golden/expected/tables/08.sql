+ index sqlite_autoindex_criterion_texts_1
None;

+ table criterion_texts
CREATE TABLE criterion_texts (
        id INTEGER PRIMARY KEY, test INTEGER NOT NULL, name TEXT NOT NULL, criterion INTEGER NOT NULL,
        spec TEXT NOT NULL, UNIQUE (test, name, criterion));
