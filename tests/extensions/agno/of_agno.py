"""Agents of Agno against a server on loopback (its address is in OPENAI_BASE_URL), and what they give."""

from __future__ import annotations

from agno.agent import Agent
from agno.db.in_memory import InMemoryDb
from agno.models.openai import OpenAIChat
from agno.team import Team
from agno.tools import tool
from agno.workflow import Workflow
from pydantic import BaseModel


def find(q: str) -> str:
    """Finds things."""
    return f'["{q}"]'


def bad(x: int) -> str:
    """Fails."""
    raise ValueError("no such x")


class Pairs(BaseModel):
    pairs: int


def model(**more):
    return OpenAIChat(id="m", **more)


agent = Agent(name="shop", role="sells", model=model(), tools=[find, bad], instructions="be kind", telemetry=False)
team = Team(name="desk", model=model(), members=[agent], telemetry=False)
workflow = Workflow(name="steps", steps=[agent], telemetry=False)
gone = Agent(name="gone", model=model(base_url="http://127.0.0.1:9/v1", max_retries=0), telemetry=False)


def result(prompt):
    return agent.run(prompt)


async def later(prompt):
    return await agent.arun(prompt)


def streamed(prompt):
    yield from agent.run(prompt, stream=True, stream_events=True)


def of_team(prompt):
    return team.run(prompt)


def of_workflow(prompt):
    return workflow.run(prompt)


def gone_result(prompt):
    return gone.run(prompt)


def truth():
    """What Agno itself reports of the same runs."""
    made, both = agent.run("hello"), team.run("hello")
    tools = [[one.tool_name, one.tool_args, bool(one.tool_call_error), one.result] for one in made.tools]
    used = [made.metrics.input_tokens, made.metrics.output_tokens]
    return {"tools": tools, "usage": used, "team": [both.metrics.input_tokens, both.metrics.output_tokens]}


def typed(prompt):
    return Agent(model=model(), output_schema=Pairs, telemetry=False).run(prompt)


@tool(name="find", requires_confirmation=True)
def guarded(q: str) -> str:
    """Finds things."""
    return "never"


waiting = Agent(name="shop", model=model(), tools=[guarded], db=InMemoryDb(), telemetry=False)


def waiting_result(prompt):
    return waiting.run(prompt)


def message_alone(prompt):
    return agent.run(prompt).messages[-1]


def content_alone(prompt):
    return agent.run(prompt).content


def only_texts(prompt):
    yield from agent.run(prompt, stream=True)


def last_event(prompt):
    return list(agent.run(prompt, stream=True, stream_events=True))[-1]


def without_messages(prompt):
    made = agent.run(prompt)
    made.messages = None
    return made
