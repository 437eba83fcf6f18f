+ table tapes
CREATE TABLE tapes (run INTEGER PRIMARY KEY, data BLOB NOT NULL);
