"""Agents of Strands with a model that answers from a script, and what they give."""

from __future__ import annotations

import os

from strands import Agent, tool
from strands.models import Model
from strands.models.openai import OpenAIModel
from strands.multiagent import GraphBuilder

asked = []


@tool
def find(q: str) -> str:
    """Finds things."""
    return f'["{q}"]'


@tool
def bad(x: int) -> str:
    """Fails."""
    raise ValueError("no such x")


def text(words):
    for word in words:
        yield {"contentBlockDelta": {"delta": {"text": word}}}
    yield {"contentBlockStop": {}}


def call(key, name, arguments):
    yield {"contentBlockStart": {"start": {"toolUse": {"toolUseId": key, "name": name}}}}
    yield {"contentBlockDelta": {"delta": {"toolUse": {"input": arguments}}}}
    yield {"contentBlockStop": {}}


class Scripted(Model):
    breaks = False

    def update_config(self, **config):
        pass

    def get_config(self):
        return {}

    async def structured_output(self, *positional, **named):
        yield {}

    async def stream(self, messages, *positional, **named):
        asked.append([[m["role"], [next(iter(block)) for block in m["content"]]] for m in messages])
        done = "toolResult" in messages[-1]["content"][-1]
        if done and self.breaks:
            raise RuntimeError("the model is gone")
        yield {"messageStart": {"role": "assistant"}}
        if done:
            pieces = [*text(("3 ", "pairs"))]
        else:
            pieces = [*text(("let me", " see")), *call("a", "find", '{"q": "socks"}'), *call("b", "bad", '{"x": 1}')]
        for piece in pieces:
            yield piece
        yield {"messageStop": {"stopReason": "end_turn" if done else "tool_use"}}
        usage = {"inputTokens": 10, "outputTokens": 2, "totalTokens": 12, "cacheReadInputTokens": 3}
        yield {"metadata": {"usage": usage, "metrics": {"latencyMs": 1}}}


class Breaking(Scripted):
    breaks = True


def made(model=Scripted, **more):
    return Agent(model=model(), tools=[find, bad], system_prompt="be kind", callback_handler=None, **more)


agent = made()
broken = made(Breaking)


def result(prompt):
    return made()(prompt)


async def streamed(prompt):
    async for event in made().stream_async(prompt):
        if "data" in event:
            yield event["data"]


def graph():
    builder = GraphBuilder()
    builder.add_node(made(name="first"), "first")
    builder.add_node(made(name="second"), "second")
    builder.add_edge("first", "second")
    return builder.build()


def truth():
    """What the model was asked."""
    return {"asked": asked}


def served_agent():
    """Asks a server on loopback (its address is in OPENAI_BASE_URL)."""
    model = OpenAIModel(client_args={"api_key": "x", "base_url": os.environ["OPENAI_BASE_URL"]}, model_id="m")
    return Agent(model=model, tools=[find, bad], system_prompt="be kind", callback_handler=None)


def served(prompt):
    return served_agent()(prompt)


def message_alone(prompt):
    return made()(prompt).message


def all_messages(prompt):
    asked_agent = made()
    asked_agent(prompt)
    return asked_agent.messages


async def all_events(prompt):
    async for event in made().stream_async(prompt):
        yield event


async def only_texts(prompt):
    async for event in made().stream_async(prompt):
        if "data" in event:
            yield {"data": event["data"]}
