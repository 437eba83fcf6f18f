"""Agents and pipelines of Haystack against a server on loopback (its address is in OPENAI_BASE_URL)."""

from __future__ import annotations

import os
from typing import Annotated

from haystack import Pipeline, component, default_to_dict
from haystack.components.agents import Agent
from haystack.components.builders import ChatPromptBuilder
from haystack.components.generators.chat import OpenAIChatGenerator
from haystack.dataclasses import ChatMessage
from haystack.tools import tool


@tool
def find(q: Annotated[str, "what"]) -> str:
    """Finds things."""
    return f'["{q}"]'


@tool
def bad(x: Annotated[int, "which"]) -> str:
    """Fails."""
    raise ValueError("no such x")


def made(**more):
    generator = OpenAIChatGenerator(model="m", api_base_url=os.environ["OPENAI_BASE_URL"])
    return Agent(chat_generator=generator, tools=[find, bad], system_prompt="be kind", **more)


agent = made()
broken = made(raise_on_tool_invocation_failure=True)
with_agent = Pipeline()
with_agent.add_component("prompt", ChatPromptBuilder([ChatMessage.from_user("{{question}}")], required_variables="*"))
with_agent.add_component("agent", made())
with_agent.connect("prompt.prompt", "agent.messages")
talking = Pipeline()
talking.add_component("prompt", ChatPromptBuilder([ChatMessage.from_user("{{question}}")], required_variables="*"))
talking.add_component("llm", OpenAIChatGenerator(model="m", api_base_url=os.environ["OPENAI_BASE_URL"]))
talking.connect("prompt.prompt", "llm.messages")


def result(prompt):
    return agent.run(messages=[ChatMessage.from_user(prompt)])


def messages(prompt):
    return result(prompt)["messages"]


def last_message(prompt):
    return result(prompt)["last_message"]


def of_pipeline(prompt):
    return with_agent.run({"prompt": {"question": prompt}})


def replies(prompt):
    return talking.run({"prompt": {"question": prompt}})["llm"]


def truth():
    """What Haystack itself reports of the same run."""
    told = agent.run(messages=[ChatMessage.from_user("hello")])
    results = [one for message in told["messages"] for one in message.tool_call_results]
    tools = [[one.origin.tool_name, one.origin.arguments, one.error, one.result] for one in results]
    return {"tools": tools, "last": told["last_message"].text}


@component
class Whole:
    """A model that can't stream."""

    def __init__(self):
        self.inner = OpenAIChatGenerator(model="m", api_base_url=os.environ["OPENAI_BASE_URL"])

    def to_dict(self):
        return default_to_dict(self)

    @component.output_types(replies=list[ChatMessage])
    def run(self, messages: list[ChatMessage], tools: list | None = None):
        return self.inner.run(messages, tools=tools)


whole = Agent(chat_generator=Whole(), tools=[find, bad], system_prompt="be kind")


def whole_result(prompt):
    return whole.run(messages=[ChatMessage.from_user(prompt)])


tools_in_a_pipeline = Pipeline()
tools_in_a_pipeline.add_component("agent", made())


def without_the_messages(prompt):
    """What other components of a pipeline leave of an agent's answer."""
    return {"llm": {"replies": [last_message(prompt)]}}
