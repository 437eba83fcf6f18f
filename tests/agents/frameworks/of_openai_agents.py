"""Agents of openai-agents against a server on loopback (its address is in OPENAI_BASE_URL), and what they give."""

from __future__ import annotations

import os

from agents import Agent, OpenAIChatCompletionsModel, OpenAIResponsesModel, Runner, function_tool, set_tracing_disabled
from openai import AsyncOpenAI, OpenAI

set_tracing_disabled(True)


@function_tool
def find(q: str) -> str:
    return f'["{q}"]'


@function_tool
def bad(x: int) -> str:
    raise ValueError("no such x")


def shop(model, path):
    client = AsyncOpenAI(base_url=os.environ["OPENAI_BASE_URL"] + path, api_key="x")
    return Agent(name="shop", instructions="be kind", tools=[find, bad], model=model("m", client))


agent = shop(OpenAIChatCompletionsModel, "")
responding = shop(OpenAIResponsesModel, "")


def truth(prompt: str = "hello"):
    """What the framework reports of the same run."""
    made = Runner.run_sync(agent, prompt)
    used = made.context_wrapper.usage
    return {"usage": [used.input_tokens, used.output_tokens], "output": made.final_output}


def result(prompt):
    return Runner.run_sync(agent, prompt)


async def later(prompt):
    return await Runner.run(agent, prompt)


async def of_responses(prompt):
    return await Runner.run(responding, prompt)


async def input_list(prompt):
    return (await Runner.run(agent, prompt)).to_input_list()


async def new_items(prompt):
    return (await Runner.run(agent, prompt)).new_items


async def items_one_by_one(prompt):
    for item in (await Runner.run(agent, prompt)).new_items:
        yield item


async def inputs_one_by_one(prompt):
    for item in (await Runner.run(agent, prompt)).to_input_list()[1:]:
        yield item


async def list_then_result(prompt):
    made = await Runner.run(agent, prompt)
    yield made.to_input_list()
    yield made


async def events(prompt):
    async for event in Runner.run_streamed(agent, prompt).stream_events():
        yield event


async def events_of_responses(prompt):
    async for event in Runner.run_streamed(responding, prompt).stream_events():
        yield event


async def events_then_result(prompt):
    running = Runner.run_streamed(agent, prompt)
    async for event in running.stream_events():
        yield event
    yield running


async def streaming_result(prompt):
    return Runner.run_streamed(agent, prompt)


async def items_of_stream(prompt):
    async for event in Runner.run_streamed(agent, prompt).stream_events():
        if event.type == "run_item_stream_event":
            yield event


async def text_then_list(prompt):
    running = Runner.run_streamed(agent, prompt)
    async for event in running.stream_events():
        if event.type == "raw_response_event" and event.data.type == "response.output_text.delta":
            yield event.data.delta
    yield running.to_input_list()


SAME = [one.__name__ for one in (result, later, of_responses, input_list, new_items, items_one_by_one)]
SAME += [one.__name__ for one in (inputs_one_by_one, list_then_result, events, events_of_responses)]
SAME += [one.__name__ for one in (events_then_result, streaming_result, items_of_stream, text_then_list)]
SAME += ["agent", "responding"]


def client(path=""):
    return OpenAI(base_url=os.environ["OPENAI_BASE_URL"] + path, api_key="x")


def completion(prompt):
    return client().chat.completions.create(
        model="m", messages=[{"role": "tool", "content": prompt, "tool_call_id": "1"}]
    )


def completion_message(prompt):
    return completion(prompt).choices[0].message


def completion_chunks(prompt):
    asked = [{"role": "tool", "content": prompt, "tool_call_id": "1"}]
    yield from client().chat.completions.create(model="m", messages=asked, stream=True)


def response(prompt):
    return client().responses.create(model="m", input=[{"type": "function_call_output", "call_id": "1", "output": "x"}])


ANSWER = [one.__name__ for one in (completion, completion_message, completion_chunks, response)]


shop_keeper = shop(OpenAIChatCompletionsModel, "")
desk = Agent(name="desk", instructions="hand over", handoffs=[shop_keeper], model=shop_keeper.model)


async def handed_result(prompt):
    return await Runner.run(desk, prompt)


async def handed_items(prompt):
    return (await Runner.run(desk, prompt)).new_items


# The last piece of a run alone.


async def item_alone(prompt):
    return (await Runner.run(agent, prompt)).new_items[-1]


async def input_alone(prompt):
    return (await Runner.run(agent, prompt)).to_input_list()[-1]


async def response_alone(prompt):
    return (await Runner.run(agent, prompt)).raw_responses[-1]


async def output_alone(prompt):
    return (await Runner.run(agent, prompt)).final_output


async def raw_events(prompt):
    """What models answered, without what came of it."""
    async for event in Runner.run_streamed(agent, prompt).stream_events():
        if event.type == "raw_response_event":
            yield event


async def raw_deltas(prompt):
    async for event in Runner.run_streamed(agent, prompt).stream_events():
        if event.type == "raw_response_event" and event.data.type == "response.output_text.delta":
            yield event


@function_tool(name_override="bad", needs_approval=True)
def guarded(x: int) -> str:
    return "never"


async def waiting(prompt):
    """A call that waits for a person."""
    return await Runner.run(agent.clone(tools=[find, guarded]), prompt)
