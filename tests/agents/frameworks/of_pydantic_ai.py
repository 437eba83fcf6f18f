"""Agents of pydantic-ai, and everything that they and their results give, each as a function of an agent's prompt."""

from __future__ import annotations

import json

from pydantic import BaseModel
from pydantic_ai import Agent, ModelRetry, capture_run_messages
from pydantic_ai.messages import ModelMessagesTypeAdapter, ModelResponse, TextPart, ThinkingPart, ToolCallPart
from pydantic_ai.models.function import DeltaThinkingPart, DeltaToolCall, FunctionModel
from pydantic_ai.models.test import TestModel
from pydantic_ai.usage import RequestUsage


def whole(messages, info):
    if len(messages) % 4 == 1:
        return ModelResponse(
            parts=[
                ThinkingPart("hm"),
                TextPart("let me see"),
                ToolCallPart("find", {"q": "socks"}, tool_call_id="a"),
                ToolCallPart("bad", '{"x": 1}', tool_call_id="b"),
            ],
            finish_reason="tool_call",
        )
    return ModelResponse(parts=[TextPart("3 pairs")], finish_reason="length")


async def pieces(messages, info):
    if len(messages) % 4 == 1:
        yield {0: DeltaThinkingPart(content="h")}
        yield {0: DeltaThinkingPart(content="m")}
        yield "let me "
        yield "see"
        yield {2: DeltaToolCall(name="find", json_args='{"q": ', tool_call_id="a")}
        yield {2: DeltaToolCall(json_args='"socks"}', tool_call_id="a")}
        yield {3: DeltaToolCall(name="bad", json_args='{"x": 1}', tool_call_id="b")}
    else:
        yield "3 "
        yield "pairs"


async def quiet(messages, info):
    """What run_stream can show: it takes the first text for the answer."""
    async for piece in pieces(messages, info):
        if len(messages) % 4 != 1 or not isinstance(piece, str):
            yield piece


def find(q: str) -> list[str]:
    return [q]


def bad(x: int) -> str:
    raise ModelRetry("no such x")


def shop(**model):
    return Agent(FunctionModel(**model), system_prompt="be kind", tools=[find, bad])


agent = shop(function=whole, stream_function=pieces)
quiet_agent = shop(function=whole, stream_function=quiet)
whole_agent = shop(function=whole)
test_agent = Agent(TestModel(custom_output_text="hello"), tools=[find])


class City(BaseModel):
    name: str


structured = Agent(TestModel(custom_output_args={"name": "Bern"}), output_type=City)
not_one = {"a": 1}


def truth(prompt: str = "hello"):
    """What the framework reports of the same run."""
    result = agent.run_sync(prompt)
    used = result.usage
    return {"usage": [used.input_tokens, used.output_tokens], "output": result.output}


def result(prompt):
    return agent.run_sync(prompt)


async def later(prompt):
    return await agent.run(prompt)


def all_messages(prompt):
    return agent.run_sync(prompt).all_messages()


def new_messages(prompt):
    return agent.run_sync(prompt).new_messages()


def all_messages_json(prompt):
    return agent.run_sync(prompt).all_messages_json()


def dumped(prompt):
    return ModelMessagesTypeAdapter.dump_python(agent.run_sync(prompt).all_messages(), mode="json")


def adapted(prompt):
    return json.loads(ModelMessagesTypeAdapter.dump_json(agent.run_sync(prompt).all_messages()))


def one_by_one(prompt):
    yield from agent.run_sync(prompt).all_messages()


def growing(prompt):
    messages = agent.run_sync(prompt).all_messages()
    for number in range(1, len(messages) + 1):
        yield messages[:number]


def messages_then_result(prompt):
    made = agent.run_sync(prompt)
    yield made.new_messages()
    yield made.all_messages()
    yield made


def twice(prompt):
    made = agent.run_sync(prompt)
    yield made
    return made


async def events(prompt):
    async with agent.run_stream_events(prompt) as stream:
        async for event in stream:
            yield event


async def text_then_result(prompt):
    async with quiet_agent.run_stream(prompt) as streamed:
        async for text in streamed.stream_text(delta=True):
            yield text
        yield streamed


async def text_then_messages(prompt):
    async with quiet_agent.run_stream(prompt) as streamed:
        async for text in streamed.stream_text(delta=True):
            yield text
        yield streamed.all_messages()


async def nodes(prompt):
    async with agent.iter(prompt) as run:
        async for node in run:
            yield node
        yield run.result


async def run_of_nodes(prompt):
    async with agent.iter(prompt) as run:
        async for _ in run:
            pass
        return run


async def handled(prompt):
    kept = []

    async def handler(context, stream):
        kept.extend([event async for event in stream])

    made = await agent.run(prompt, event_stream_handler=handler)
    for event in kept:
        yield event
    yield made


def in_a_dict(prompt):
    return {"messages": agent.run_sync(prompt).all_messages()}


def in_a_list(prompt):
    return [agent.run_sync(prompt)]


SAME = [one.__name__ for one in (result, later, all_messages, new_messages, all_messages_json, dumped, adapted)]
SAME += [one.__name__ for one in (one_by_one, growing, messages_then_result, twice, events, text_then_result)]
SAME += [one.__name__ for one in (text_then_messages, nodes, run_of_nodes, handled, in_a_dict, in_a_list)]
SAME += ["agent", "whole_agent", "agent.run", "agent.run_sync"]


def output_alone(prompt):
    return structured.run_sync(prompt).output


def with_more(prompt):
    made = agent.run_sync(prompt)
    yield made
    yield object()


def nothing_known(prompt):
    return [object()]


def fails(prompt):
    with capture_run_messages() as messages:
        yield from agent.run_sync(prompt).new_messages()
        assert messages
        raise ValueError("after all")


# Models whose calls go wrong: what was used until then is known.


def failing(*calls, output_type=str):
    def answer(messages, info):
        number = sum(isinstance(message, ModelResponse) for message in messages)
        part = ToolCallPart(*calls[number], tool_call_id=str(number)) if number < len(calls) else TextPart("3 pairs")
        return ModelResponse(parts=[part], usage=RequestUsage(input_tokens=10, output_tokens=2))

    made = Agent(FunctionModel(answer), output_type=output_type)

    @made.tool_plain
    def picky(x: int) -> str:
        if x < 2:
            raise ModelRetry("too small")
        return "ok"

    @made.tool_plain
    def breaks(x: int) -> str:
        raise ValueError("no such x")

    return made


retries = failing(("picky", {"x": 1}), ("picky", {"x": 2}))
gives_up = failing(("picky", {"x": 1}), ("picky", {"x": 1}))
raises = failing(("picky", {"x": 2}), ("breaks", {"x": 1}))
wrong_output = failing(("final_result", {"nme": 1}), ("final_result", {"nme": 1}), output_type=City)
unknown = failing(("nope", {}), ("picky", {"x": 2}))


def raises_in_a_function(prompt):
    return raises.run_sync(prompt)


def joking(messages, info):
    return ModelResponse(parts=[TextPart("a joke about socks")])


def asking(messages, info):
    if len(messages) == 1:
        return ModelResponse(parts=[ToolCallPart("joke", {"topic": "socks"}, tool_call_id="a")])
    return ModelResponse(parts=[TextPart("here: a joke about socks")])


joker = Agent(FunctionModel(joking), name="joker", instructions="tell jokes")


async def joke(topic: str) -> str:
    return (await joker.run(f"joke about {topic}")).output


delegating = Agent(FunctionModel(asking), name="main", instructions="ask the joker", tools=[joke])


def delegates(prompt):
    return delegating.run_sync(prompt)


def only_text(prompt):
    return delegating.run_sync(prompt).output


# The last piece of a run alone.


def response_alone(prompt):
    return agent.run_sync(prompt).all_messages()[-1]


def response_dumped(prompt):
    return ModelMessagesTypeAdapter.dump_python(agent.run_sync(prompt).all_messages(), mode="json")[-1]


def response_in_a_list(prompt):
    return agent.run_sync(prompt).all_messages()[-1:]


def response_yielded(prompt):
    yield response_alone(prompt)


def text_and_usage(prompt):
    made = agent.run_sync(prompt)
    yield made.output
    yield made.usage


async def end_alone(prompt):
    async with agent.iter(prompt) as run:
        async for node in run:
            last = node
    return last
