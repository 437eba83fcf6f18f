"""The executions of a pytest session, in the order in which they started: what its last lines name."""

from __future__ import annotations

import pytest

_IDS = pytest.StashKey[list[str]]()


def session_executions(config: pytest.Config) -> list[str]:
    """The ids of the session's executions. A new one is appended to this list."""
    return config.stash.setdefault(_IDS, [])
