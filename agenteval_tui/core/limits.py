"""Limits that suite files and options of commands have in common."""

from __future__ import annotations

REPETITIONS = 100_000
"""How often a test runs in one execution, at most."""
CONCURRENCY = 10_000
"""Runs at the same time, at most."""
