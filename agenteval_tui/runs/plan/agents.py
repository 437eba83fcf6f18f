"""An agent of a plan: its name, and its configuration as it will be used."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.suites.environment import expand


class AgentPlan(Struct, frozen=True):
    """An agent with a variation's configuration merged in; `${VAR}` is not yet expanded. Equal `hash`: same agent."""

    name: str
    config: Mapping[str, Any]
    base_dir: Path
    hash: str


def expanded(agent: AgentPlan, env: Mapping[str, str]) -> dict[str, Any]:
    """The agent's configuration with `${VAR}` put in. Raises `AgentevalError` naming the agent."""
    try:
        return dict(expand(agent.config, env))
    except AgentevalError as error:
        raise AgentevalError(error.what, where=error.where or f"agent {agent.name!r}", fix=error.fix) from error
