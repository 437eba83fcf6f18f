"""The run history: one SQLite file with everything that was ever run, its criteria, verdicts and transcripts."""
