"""Limits that people set for what costs money or time."""

from __future__ import annotations

import math

from agenteval_tui.core.errors import AgentevalError

REPETITIONS = 100_000
"""How often a test runs in one execution, at most."""
CONCURRENCY = 10_000
"""Runs at the same time, at most."""


def require_limit(limit: float | None) -> None:
    """Raise `AgentevalError` if a limit is NaN: nothing would exceed it."""
    if limit is not None and math.isnan(limit):
        raise AgentevalError(f"a limit is a number, not {limit}")
