"""What is known in a whole pytest session: the option about trust, and the executions that its last lines name."""

from __future__ import annotations

import pytest

TRUST = "--agenteval-trust"
_IDS = pytest.StashKey[list[str]]()


def session_executions(config: pytest.Config) -> list[str]:
    """The ids of the session's executions. A new one is appended to this list."""
    return config.stash.setdefault(_IDS, [])
