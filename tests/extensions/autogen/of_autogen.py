"""Agents of AutoGen with its own model that replays answers, and what they give."""

from __future__ import annotations

import os

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.conditions import MaxMessageTermination, TextMentionTermination
from autogen_agentchat.teams import RoundRobinGroupChat
from autogen_core import FunctionCall
from autogen_core.models import CreateResult, ModelInfo, RequestUsage
from autogen_ext.models.replay import ReplayChatCompletionClient

INFO = ModelInfo(vision=False, function_calling=True, json_output=True, family="fake", structured_output=True)
asked = []


def find(q: str) -> str:
    """Finds things."""
    return f'["{q}"]'


def bad(x: int) -> str:
    """Fails."""
    raise ValueError("no such x")


class Again(ReplayChatCompletionClient):
    """Begins again with each run: the answer follows from what was said since the last message of the user."""

    def _at(self, messages):
        asked.append([[type(m).__name__, str(m.content)] for m in messages])
        last = max(n for n, m in enumerate(messages) if type(m).__name__ == "UserMessage")
        self._current_index = min(len(messages) - 1 - last, 2) // 2

    async def create(self, messages, **options):
        self._at(messages)
        return await super().create(messages, **options)

    async def create_stream(self, messages, **options):
        self._at(messages)
        if self._current_index == 0:  # the replaying model streams no text beside calls
            yield "let me "
            yield "see"
            yield self.chat_completions[0]
            return
        async for piece in super().create_stream(messages, **options):
            yield piece


def model():
    calls = [FunctionCall("a", '{"q": "socks"}', "find"), FunctionCall("b", '{"x": 1}', "bad")]
    first = CreateResult(
        finish_reason="function_calls", content=calls, usage=RequestUsage(10, 5), cached=False, thought="let me see"
    )
    second = CreateResult(
        finish_reason="stop", content="3 pairs", usage=RequestUsage(20, 2), cached=False, thought="hm"
    )
    return Again([first, second], model_info=INFO)


def made(stream):
    return AssistantAgent(
        "shop",
        model(),
        tools=[find, bad],
        reflect_on_tool_use=True,
        system_message="be kind",
        model_client_stream=stream,
    )


agent = made(False)
streaming = made(True)
summing = AssistantAgent("shop", model(), tools=[find, bad], reflect_on_tool_use=False)
team = RoundRobinGroupChat([made(False)], termination_condition=MaxMessageTermination(2))


async def result(prompt):
    return await made(False).run(task=prompt)


async def response(prompt):
    from autogen_agentchat.messages import TextMessage
    from autogen_core import CancellationToken

    return await made(False).on_messages([TextMessage(content=prompt, source="user")], CancellationToken())


async def streamed(prompt):
    async for piece in made(True).run_stream(task=prompt):
        yield piece


async def truth():
    """What the framework reports of the same run, and what the model was asked before."""
    before = list(asked)
    messages = (await made(False).run(task="hello")).messages
    used = [one.models_usage for one in messages if one.models_usage]
    figures = [sum(one.prompt_tokens for one in used), sum(one.completion_tokens for one in used)]
    return {"usage": figures, "asked": before}


def handing():
    """A swarm, with a model on loopback."""
    from autogen_agentchat.teams import Swarm
    from autogen_ext.models.openai import OpenAIChatCompletionClient

    client = OpenAIChatCompletionClient(model="m", model_info=INFO, base_url=os.environ["OPENAI_BASE_URL"])
    shop = AssistantAgent("shop", client, tools=[find, bad], reflect_on_tool_use=True)
    desk = AssistantAgent("desk", client, handoffs=["shop"])
    return Swarm([desk, shop], termination_condition=TextMentionTermination("pairs"))


async def message_alone(prompt):
    return (await result(prompt)).messages[-1]


async def messages_alone(prompt):
    return (await result(prompt)).messages[-1:]


async def summary_alone(prompt):
    made = AssistantAgent("shop", model(), tools=[find, bad], reflect_on_tool_use=False)
    return (await made.run(task=prompt)).messages[-1]
