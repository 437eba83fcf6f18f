+ index runs_of_test_by_execution
CREATE INDEX runs_of_test_by_execution ON runs (test, execution);
