"""A file a format: recordings of other tools as runs."""
