"""What continuing a run tells its model: the tools, and the whole request written down."""

from __future__ import annotations

from agenteval_tui.agents.base import Agent, AgentRequest, OffersTools, ToolSpec
from agenteval_tui.agents.http.exported_request import WritesRequests, WrittenRequest
from agenteval_tui.agents.permission import Permission
from agenteval_tui.agents.registry import make_agent
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.runs.event_loop import run_in_thread
from agenteval_tui.runs.fork.plan import Source, takes_tools
from agenteval_tui.runs.plan.agents import expanded
from agenteval_tui.runs.plan.conversation import Conversation
from agenteval_tui.suites.environment import environment_for


def request_of(source: Source, conversation: Conversation, permission: Permission) -> WrittenRequest:
    """The request that asks the run's agent with this conversation. Nothing is sent.

    Raises `AgentevalError` where the agent does not ask a model by HTTP itself.
    """
    plan = source.agent
    agent, request = _asked(source, conversation, permission)
    if not isinstance(agent, WritesRequests):
        raise AgentevalError(
            f"agent {plan.name!r} of kind {plan.config.get('kind')} asks no model by HTTP itself",
            fix="its small case can be saved as a test: --save-test ID",
        )

    async def written() -> WrittenRequest:
        try:
            return await agent.written_request(request)
        finally:
            await agent.close()

    return run_in_thread(written)


def tools_of(source: Source, conversation: Conversation, permission: Permission) -> tuple[ToolSpec, ...] | None:
    """What the run's agent tells its model of its tools; None: it is of a kind that brings its own.

    Servers of tools are started and asked which they have. Raises `AgentevalError` where they can't be.
    """
    if not takes_tools(source.agent):
        return None
    agent, request = _asked(source, conversation, permission)
    assert isinstance(agent, OffersTools)

    async def offered() -> tuple[ToolSpec, ...]:
        try:
            return tuple(await agent.offered_tools(request))
        finally:
            await agent.close()

    return run_in_thread(offered)


def _asked(source: Source, conversation: Conversation, permission: Permission) -> tuple[Agent, AgentRequest]:
    plan, run = source.agent, source.stored.run
    env = environment_for(plan.base_dir, config=plan.config)
    agent = make_agent(plan.name, plan.config, base_dir=plan.base_dir, env=env, permission=permission)
    request = AgentRequest(
        conversation.messages,
        config=expanded(plan, env),
        context=conversation.context(source.context),
        test_id=run.ref.test,
        seed=run.seed,
        tool_calls=conversation.tool_calls,
        variables=run.variables,
    )
    return agent, request
