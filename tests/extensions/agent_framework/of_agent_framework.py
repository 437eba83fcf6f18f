"""Agents of Agent Framework with a model on loopback, and what they give."""

from __future__ import annotations

from agent_framework import Agent, WorkflowBuilder, chat_middleware, tool
from agent_framework.openai import OpenAIChatClient, OpenAIChatCompletionClient
from pydantic import BaseModel


@tool(approval_mode="never_require")
def find(q: str) -> str:
    """Finds things."""
    return f'["{q}"]'


@tool(approval_mode="never_require")
def bad(x: int) -> str:
    """Fails."""
    raise ValueError("no such x")


def made(client=OpenAIChatCompletionClient, name=None, **more):
    return Agent(client=client(model="m"), instructions="be kind", tools=[find, bad], name=name, **more)


agent = made()


async def by_responses(prompt):
    return await made(OpenAIChatClient, default_options={"store": False}).run(prompt)


def make_agent():
    return made()


async def result(prompt):
    return await made().run(prompt)


async def streamed(prompt):
    async for update in made().run(prompt, stream=True):
        yield update


async def messages(prompt):
    return (await made().run(prompt)).messages


async def text(prompt):
    return (await made().run(prompt)).text


async def last_message(prompt):
    return (await made().run(prompt)).messages[-1]


def workflow():
    first, second = made(name="first"), made(name="second")
    return WorkflowBuilder(start_executor=first).add_edge(first, second).build()


class Pairs(BaseModel):
    pairs: int


@chat_middleware
async def gone(context, call_next):
    if any(message.role == "tool" for message in context.messages):
        raise RuntimeError("the model is gone")
    await call_next()


broken = made(middleware=[gone])
structured = made(default_options={"response_format": Pairs})
