"""Thinking between tags in the text of an answer: told apart, wherever the stream cuts it."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scripted import Answer, ScriptedServer, stream_of

from agenteval_tui.agents.base import (
    AgentEvent,
    Done,
    ReasoningDelta,
    TextDelta,
    TextWasReasoning,
    ToolCallStarted,
    TurnEnded,
)
from agenteval_tui.agents.think_tags import split_thinking, without_thinking

TEXT = "<think>\nIs 2 < 3? </th\n</think>\n\nYes, <think> is a tag."
THOUGHT, ANSWER = "\nIs 2 < 3? </th\n", "Yes, <think> is a tag."


async def told(*events: AgentEvent) -> list[AgentEvent]:
    async def source() -> AsyncGenerator[AgentEvent, None]:
        for event in events:
            yield event

    return [event async for event in without_thinking(source())]


def parts(events: list[AgentEvent]) -> tuple[str, str]:
    thought, answer = "", ""
    for event in events:
        if isinstance(event, TextWasReasoning):
            thought, answer = thought + event.reasoning, ""
        thought += event.text if isinstance(event, ReasoningDelta) else ""
        answer += event.text if isinstance(event, TextDelta) else ""
    return thought, answer


def run(coroutine: Any) -> Any:
    """What a coroutine that never waits gives."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        return end.value
    raise AssertionError("it waits")


def cut(text: str, places: list[int]) -> list[AgentEvent]:
    edges = [0, *sorted(min(place, len(text)) for place in places), len(text)]
    return [TextDelta(text[a:b]) for a, b in pairwise(edges)]


cuts = st.lists(st.integers(0, len(TEXT)), max_size=8)


@given(cuts)
def test_wherever_it_is_cut(places: list[int]) -> None:
    assert parts(run(told(*cut(TEXT, places), TurnEnded(), Done()))) == (THOUGHT, ANSWER)


@given(
    st.lists(st.sampled_from(["<", "<th", "think>", "</think>", "<think>", " ", "\n", "a", "ink>", "<b>"]), max_size=9)
)
def test_nothing_is_lost_and_pieces_do_not_matter(pieces: list[str]) -> None:
    whole = parts(run(told(TextDelta("".join(pieces)), TurnEnded())))
    assert split_thinking("".join(pieces)) == whole
    assert parts(run(told(*map(TextDelta, pieces), TurnEnded()))) == whole
    if not "".join(pieces).lstrip().startswith("<think>") and "</think>" not in "".join(pieces):
        assert whole == ("", "".join(pieces))


@pytest.mark.parametrize(("text", "expected"), [
    ("<think>a</think>b", ("a", "b")),
    ("\n <thinking>a</thinking>\nb", ("a", "b")),
    ("<thought>a</thought>b", ("a", "b")),
    ("<think>a</think>\n<think>b</think>c", ("ab", "c")),
    ("<think>a</thinking>b</think>c", ("a</thinking>b", "c")),
    ("<think></think>\n\nb", ("", "b")),
    ("<think>cut off", ("cut off", "")),
    ("<thinker>a</thinker>", ("", "<thinker>a</thinker>")),
    ("The tag <think>a</think>", ("", "The tag <think>a</think>")),
    ("  a", ("", "  a")),
    ("<thi", ("", "<thi")),
    ("a\n</think>\n\nb", ("a\n", "b")),
    ("a</thinking>b </think>", ("a", "b </think>")),
    ("</think>b", ("", "b")),
    ("a</think>\n<think>c</think>b", ("ac", "b")),
    ("`</think>` ends it", ("", "`</think>` ends it")),
    ("`<think>` begins, `</think>` ends, a</think>b", ("`<think>` begins, `</think>` ends, a", "b")),
    ("a <think>b</think>c", ("", "a <think>b</think>c")),
])  # fmt: skip
def test_what_is_thinking(text: str, expected: tuple[str, str]) -> None:
    assert parts(run(told(TextDelta(text), TurnEnded(), Done()))) == expected


def test_each_message_begins_anew_and_calls_come_behind_the_text() -> None:
    events = run(told(TextDelta("<thi"), ToolCallStarted(0, "c", "t"), TurnEnded(), TextDelta("<think>b</think>c")))
    assert events == [
        TextDelta("<thi"), ToolCallStarted(0, "c", "t"), TurnEnded(), ReasoningDelta("b"), TextDelta("c"),
    ]  # fmt: skip


def chat(text: str) -> Answer:
    message = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    return Answer(body=json.dumps({"model": "m", "choices": [message]}))


def chat_stream(text: str) -> Answer:
    pieces = [text[at : at + 3] for at in range(0, len(text), 3)]
    chunks = [{"model": "m", "choices": [{"index": 0, "delta": {"content": one}}]} for one in pieces]
    return stream_of(*chunks, {"model": "m", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})


def blocks(text: str) -> Answer:
    content = [{"type": "text", "text": text}]
    return Answer(body=json.dumps({"type": "message", "model": "m", "content": content, "stop_reason": "end_turn"}))


def candidates(text: str) -> Answer:
    content = {"role": "model", "parts": [{"text": text}]}
    return Answer(body=json.dumps({"candidates": [{"content": content, "finishReason": "STOP"}]}))


def output(text: str) -> Answer:
    item = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}
    return Answer(body=json.dumps({"object": "response", "status": "completed", "model": "m", "output": [item]}))


@pytest.mark.parametrize(("config", "answer"), [
    ({"kind": "openai", "stream": False}, chat),
    ({"kind": "openai"}, chat_stream),
    ({"kind": "openai", "api": "responses", "stream": False}, output),
    ({"kind": "anthropic", "stream": False}, blocks),
    ({"kind": "gemini", "stream": False}, candidates),
    ({"kind": "http", "answer": "choices[0].message.content"}, chat),
    ({"kind": "http", "stream": "sse", "delta": "choices[0].delta.content"}, chat_stream),
])  # fmt: skip
@pytest.mark.parametrize("text", [TEXT, TEXT.removeprefix("<think>")])
async def test_every_kind_that_asks_a_model(run_agent: Any, config: dict[str, Any], answer: Any, text: str) -> None:
    async with ScriptedServer(lambda _: answer(text)) as server:
        where = {"url": server.url} if config["kind"] == "http" else {"base_url": server.url, "model": "m"}
        ran = await run_agent({**config, **where})
    assert ran.transcript.error is None
    message = ran.transcript.messages[-1]
    assert (message.reasoning, message.content) == (THOUGHT, ANSWER)
    assert ran.transcript.final_output == ANSWER
