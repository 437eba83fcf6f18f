"""An agent whose runs happen on a cluster: to the engine it is an agent like any other."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any, Protocol, cast

from agenteval_tui.agents.interface import Agent, AgentEvent, AgentRequest, CheckReport
from agenteval_tui.agents.permission import Permission
from agenteval_tui.runs.plan_agents import AgentPlan


class Asked(Protocol):
    """Where its runs are asked for."""

    def ask(self, agent: AgentPlan, request: AgentRequest, permission: Permission) -> AsyncIterator[AgentEvent]:
        """One attempt: its events as they come."""
        ...


class ClusterAgent:
    """Sends each request to the cluster. `here` is the same agent on this machine, None where it can't be made."""

    def __init__(self, cluster: Asked, agent: AgentPlan, here: Agent | None, permission: Permission) -> None:
        self._cluster = cluster
        self._agent = agent
        self._here = here
        self._permission = permission

    async def run(self, request: AgentRequest) -> AsyncIterator[AgentEvent]:
        """One attempt on a worker."""
        asked = self._cluster.ask(self._agent, request, self._permission)
        async with aclosing(cast(Any, asked)) as events:
            async for event in events:
                yield event

    async def check(self, thorough: bool = False) -> CheckReport:
        """That of the agent on this machine."""
        if self._here is None:
            return CheckReport(False, "this agent can only be made on the workers of its cluster")
        return await self._here.check(thorough)

    async def close(self) -> None:
        """The connection is the executor's; what was made here is closed."""
        if self._here is not None:
            await self._here.close()
