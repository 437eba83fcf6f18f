"""The configuration of a criterion: its schema, its diagnostics, completion and hover."""
