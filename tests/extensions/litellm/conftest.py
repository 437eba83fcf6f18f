"""Running an agent once."""

from __future__ import annotations

from tests.agents.conftest import run_agent

__all__ = ("run_agent",)
