"""Prototype classes: what part of a transcript a criterion looks at."""
