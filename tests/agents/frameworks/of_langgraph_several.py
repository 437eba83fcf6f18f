"""A supervisor and a swarm of LangGraph against a server on loopback (its address is in OPENAI_BASE_URL)."""

from __future__ import annotations

from langchain.agents import create_agent
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from langgraph_supervisor import create_supervisor
from langgraph_swarm import create_handoff_tool, create_swarm

model = ChatOpenAI(model="m", api_key="x")


def find(q: str) -> str:
    """Finds things."""
    return f'["{q}"]'


def shop_with(*tools):
    return create_agent(model, tools=[find, *tools], system_prompt="be kind", name="shop")


desk = create_agent(model, tools=[create_handoff_tool(agent_name="shop")], system_prompt="hand over", name="desk")
swarm = create_swarm([desk, shop_with()], default_active_agent="desk").compile(checkpointer=InMemorySaver())
supervisor = create_supervisor([shop_with()], model=model, prompt="hand over", supervisor_name="desk").compile()


def streamed(messages):
    yield from supervisor.stream({"messages": messages}, stream_mode="updates", subgraphs=True)
