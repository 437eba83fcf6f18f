"""Requests of one program, read one after another: what they repeat is read once, and they are as read alone."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from agenteval_tui.agents.models.requests import RequestReader, read_body

Items = list[dict[str, Any]]


def chat(number: int) -> Items:
    call = {"id": f"c{number}", "type": "function", "function": {"name": "look", "arguments": f'{{"n": {number}}}'}}
    return [
        {"role": "user", "content": f"order {number}?"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": f"c{number}", "content": "shipped"},
        {"role": "developer", "content": f"be short {number}"},
        {"role": "assistant", "content": f"it is shipped {number}"},
    ]


def responses(number: int) -> Items:
    return [
        {"role": "user", "content": f"order {number}?"},
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": f"I look {number}"}]},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "I look"}]},
        {"type": "function_call", "call_id": f"a{number}", "name": "look", "arguments": f'{{"n": {number}}}'},
        {"type": "function_call", "call_id": f"b{number}", "name": "look", "arguments": "{}"},
        {"type": "function_call_output", "call_id": f"a{number}", "output": "shipped"},
        {"type": "reasoning", "summary": []},
    ]


def messages(number: int) -> Items:
    return [
        {"role": "user", "content": f"order {number}?"},
        {"role": "assistant", "content": [{"type": "thinking", "thinking": f"I look {number}"}]},
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "I look"},
                {"type": "tool_use", "id": f"t{number}", "name": "look", "input": {"n": number}},
            ],
        },
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": f"t{number}", "content": "shipped"}]},
    ]


def contents(number: int) -> Items:
    return [
        {"role": "user", "parts": [{"text": f"order {number}?"}]},
        {"role": "model", "parts": [{"text": "hm", "thought": True}]},
        {"role": "model", "parts": [{"text": "I look"}, {"functionCall": {"name": "look", "args": {"n": number}}}]},
        {"role": "user", "parts": [{"functionResponse": {"name": "look", "response": {"result": "shipped"}}}]},
    ]


def blocks(number: int) -> Items:
    return [
        {"role": "user", "content": [{"text": f"order {number}?"}]},
        {
            "role": "assistant",
            "content": [
                {"reasoningContent": {"reasoningText": {"text": "hm"}}},
                {"toolUse": {"toolUseId": f"t{number}", "name": "look", "input": {"n": number}}},
            ],
        },
        {
            "role": "user",
            "content": [{"toolResult": {"toolUseId": f"t{number}", "content": [{"text": "shipped"}]}}],
        },
    ]


PROTOCOLS = {
    "openai/v1/chat/completions": ("messages", chat),
    "openai/v1/responses": ("input", responses),
    "anthropic/v1/messages": ("messages", messages),
    "gemini/v1beta/models/g:generateContent": ("contents", contents),
    "ollama/api/chat": ("messages", chat),
    "bedrock/model/m/converse": ("messages", blocks),
}


@pytest.mark.parametrize("path", PROTOCOLS)
def test_a_request_is_read_as_if_it_was_the_only_one(path: str) -> None:
    key, turn = PROTOCOLS[path]
    chance = random.Random(path)
    reader = RequestReader()
    items: Items = []
    for number in range(60):
        # It goes on, or an earlier place is taken up, or the beginning is left out.
        items = [items + turn(number), items[: chance.randrange(len(items) + 1)], items[chance.randrange(3) :]][
            chance.choice((0, 0, 0, 1, 2))
        ]
        prompt = (
            [{"role": "system", "content": [{"type": "text", "text": f"{number} o'clock"}]}]
            if chance.random() < 0.5
            else []
        )
        # As a server gets it: nothing is the same object as before.
        body = json.loads(json.dumps({"model": "m", key: prompt + items[: chance.randrange(len(items) + 1)]}))
        request = reader.read(path, body)
        assert request is not None
        assert request == read_body(path, body)


@pytest.mark.parametrize("path", PROTOCOLS)
def test_what_a_request_repeats_is_the_same_objects(path: str) -> None:
    key, turn = PROTOCOLS[path]
    reader = RequestReader()
    first, second = (
        reader.read(path, json.loads(json.dumps({"model": "m", key: [*turn(1), *turn(2)][:count]})))
        for count in (len(turn(1)) + 1, len(turn(1)) + 2)
    )
    assert first is not None
    assert second is not None
    # The "developer" of Chat Completions is renamed in each.
    assert all(
        message is again
        for message, again in zip(first.messages, second.messages, strict=False)
        if message["role"] != "system"
    )


def test_a_request_that_can_t_be_read_leaves_nothing_behind() -> None:
    reader = RequestReader()
    path, body = "openai/v1/chat/completions", {"messages": chat(1)}
    assert reader.read(path, {"messages": [*chat(1), "no message"]}) is None
    assert reader.read(path, body) == read_body(path, body)
