"""The kind `openai`: what servers want back within a loop of tool calls, and tools that can't be started."""

from __future__ import annotations

import sys
from typing import Any

from scripted import Answer, ScriptedServer, stream_of

DONE = {"choices": [{"index": 0, "delta": {"content": "done"}, "finish_reason": "stop"}]}
TOOLS = [{"name": "f", "sample_response": "F"}]


def chunk(**delta: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]}


async def sent_back(run_agent: Any, *chunks: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """The model's message as the second request holds it."""
    replies = [stream_of(*chunks), stream_of(DONE)]
    async with ScriptedServer(lambda _: replies.pop(0)) as server:
        ran = await run_agent({"kind": "openai", "base_url": server.url, "model": "m", "tools": TOOLS})
    return ran, server.requests[1].json["messages"][1]


CALL = {"index": 0, "id": "c", "function": {"name": "f", "arguments": "{}"}}


async def test_deepseek_gets_its_reasoning_content(run_agent: Any) -> None:
    ran, message = await sent_back(
        run_agent, chunk(reasoning_content="I "), chunk(reasoning_content="see."), chunk(tool_calls=[CALL])
    )
    assert message["reasoning_content"] == "I see."
    assert ran.transcript.messages[1].reasoning == "I see."


async def test_openrouter_gets_its_reasoning_details_in_one_piece(run_agent: Any) -> None:
    pieces = [
        {"type": "reasoning.text", "index": 0, "text": "I ", "format": "x"},
        {"type": "reasoning.text", "index": 0, "text": "see."},
        {"type": "reasoning.text", "index": 0, "signature": "sig"},
        {"type": "reasoning.encrypted", "index": 1, "data": "abc"},
    ]
    chunks = [chunk(reasoning="I see."), *(chunk(reasoning_details=[piece]) for piece in pieces)]
    _, message = await sent_back(run_agent, *chunks, chunk(tool_calls=[CALL]))
    assert message["reasoning_details"] == [
        {"type": "reasoning.text", "index": 0, "text": "I see.", "format": "x", "signature": "sig"},
        {"type": "reasoning.encrypted", "index": 1, "data": "abc"},
    ]
    assert "reasoning_content" not in message


async def test_gemini_gets_the_signature_of_its_call(run_agent: Any) -> None:
    extra = {"google": {"thought_signature": "sig"}}
    _, message = await sent_back(run_agent, chunk(tool_calls=[{**CALL, "extra_content": extra}]))
    assert message["tool_calls"] == [
        {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}, "extra_content": extra}
    ]


async def test_a_tool_that_cannot_be_started_is_an_error_of_its_own_kind(run_agent: Any) -> None:
    server_that_ends = [sys.executable, "-c", "raise SystemExit(1)"]
    async with ScriptedServer(lambda _: Answer()) as server:
        config = {"kind": "openai", "base_url": server.url, "model": "m"}
        ran = await run_agent({**config, "tools": [{"mcp": {"command": server_that_ends}}]})
    assert ran.transcript.error.kind == "tool"
    assert server.requests == []


async def test_a_body_that_is_no_json_is_never_sent(run_agent: Any) -> None:
    async with ScriptedServer(lambda _: Answer()) as server:
        config = {"kind": "openai", "base_url": server.url, "model": "m", "extra_body": {"x": float("nan")}}
        ran = await run_agent(config)
    assert ran.transcript.error.kind == "bad_request"
    assert "extra_body" in ran.transcript.error.fix
    assert server.requests == []


async def test_half_a_character_in_a_conversation_is_sent_as_a_question_mark(run_agent: Any) -> None:
    async with ScriptedServer(lambda _: stream_of(DONE)) as server:
        ran = await run_agent({"kind": "openai", "base_url": server.url, "model": "m"}, "a\ud800b")
    assert ran.transcript.error is None
    assert server.requests[0].json["messages"][0]["content"] == "a?b"
