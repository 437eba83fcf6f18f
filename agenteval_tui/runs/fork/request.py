"""What continuing a run asks of its model, written down."""

from __future__ import annotations

from agenteval_tui.agents.base import AgentRequest
from agenteval_tui.agents.http.written_request import WritesRequests, WrittenRequest
from agenteval_tui.agents.permission import Permission
from agenteval_tui.agents.registry import make_agent
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.runs.event_loop import run_in_thread
from agenteval_tui.runs.fork.plan import Source
from agenteval_tui.runs.plan.agents import expanded
from agenteval_tui.runs.plan.conversation import Conversation
from agenteval_tui.suites.environment import environment_for


def request_of(source: Source, conversation: Conversation, permission: Permission) -> WrittenRequest:
    """The request that asks the run's agent with this conversation. Nothing is sent.

    Raises `AgentevalError` where the agent does not ask a model by HTTP itself.
    """
    plan = source.agent
    env = environment_for(plan.base_dir)
    agent = make_agent(plan.name, plan.config, base_dir=plan.base_dir, env=env, permission=permission)
    if not isinstance(agent, WritesRequests):
        raise AgentevalError(
            f"agent {plan.name!r} of kind {plan.config.get('kind')} asks no model by HTTP itself",
            mend="its small case can be saved as a test: --save-test ID",
        )
    run = source.stored.run
    request = AgentRequest(
        conversation.messages,
        config=expanded(plan, env),
        context=source.context,
        test_id=run.ref.test,
        seed=run.seed,
        tool_calls=conversation.tool_calls,
        variables=run.variables,
    )

    async def written() -> WrittenRequest:
        try:
            return await agent.written_request(request)
        finally:
            await agent.close()

    return run_in_thread(written)
