"""The run history: one SQLite file."""
