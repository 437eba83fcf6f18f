"""A file a format: runs, executions and tests for other tools and for people."""
