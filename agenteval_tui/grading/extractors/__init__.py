"""Extractors, a file each: which part of a transcript a criterion looks at. Suites call them prototype classes."""
