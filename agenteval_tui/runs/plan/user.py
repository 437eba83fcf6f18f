"""The simulated user of a run: what it is told, and the agent that plays it."""

from __future__ import annotations

from typing import Any

from msgspec import Struct
from msgspec.structs import asdict

from agenteval_tui.runs.plan.agents import AgentPlan


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
