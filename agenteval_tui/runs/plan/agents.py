"""Who answers in a plan: its agents, with their configuration as it will be used, and who plays a simulated user."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict

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


class UserBrief(Struct, frozen=True):
    """What a simulated user is told, with the variables of its row put in. `knows`: a text, a list, an object, or None.

    `stop_when` "": when the goal is reached, or out of reach. It speaks at most `max_turns` times.
    """

    goal: str
    persona: str = ""
    knows: Any = None
    stop_when: str = ""
    max_turns: int = 10

    def as_dict(self) -> dict[str, Any]:
        """The same as JSON data."""
        return asdict(self)


class UserPlan(Struct, frozen=True):
    """A simulated user: the agent that plays it, and its brief."""

    agent: AgentPlan
    brief: UserBrief
