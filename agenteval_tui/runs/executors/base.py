"""What an executor is: it runs agents elsewhere. Planning, limits, grading and the history stay in the execution."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, Protocol

from agenteval_tui.agents.base import Agent
from agenteval_tui.agents.permission import Permission
from agenteval_tui.runs.executors import executor_class
from agenteval_tui.runs.plan.agents import AgentPlan
from agenteval_tui.runs.plan.model import Plan

OnLost = Callable[[str], None]
"""Told once, with a sentence, when nothing can be run there any more."""


class Executor(Protocol):
    """Runs the agents of one execution elsewhere. Used in one event loop: `open`, then its agents, then `close`.

    `address_variable`: the environment variable that says where it is, when `--scheduler` does not.
    """

    address_variable: ClassVar[str]

    def takes(self, agent: AgentPlan) -> bool:
        """Whether runs of this agent happen elsewhere; otherwise they do in the execution's process."""
        ...

    def agent(self, agent: AgentPlan, here: Agent | None, *, permission: Permission) -> Agent:
        """The agent as the engine uses it. `here` is the same made on this machine (None: it can't be), for checks.

        Raises `AgentevalError` where it can't be sent.
        """
        ...

    async def open(self, on_lost: OnLost) -> int:
        """Connect; gives how many runs can happen at once. Raises `AgentevalError` in words."""
        ...

    async def close(self) -> None:
        """Let go of everything; what still runs there is ended."""
        ...


def executor_of(plan: Plan) -> Executor | None:
    """The plan's executor, not yet connected; None: runs happen in this process.

    Raises `AgentevalError` where what it needs is not installed.
    """
    if plan.cluster is None:
        return None
    executor: Executor = executor_class(plan.cluster.executor)(plan.cluster.scheduler)
    return executor
