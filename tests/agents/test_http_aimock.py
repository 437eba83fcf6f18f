"""Chat Completions, Responses and Messages against somebody else's server (aimock, from npm), with fixtures of ours."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from aimock import Aimock, NotAvailable
from dialects import ANTHROPIC, MODELS, Dialect

from agenteval_tui.agents.base import Failed, TextDelta, ToolArgumentsDelta
from agenteval_tui.agents.permission import permission_for
from agenteval_tui.agents.registry import make_agent
from agenteval_tui.transcripts.model import Message, ToolCall

ALLOWED = permission_for((), everything=True)


LONG = "This sentence is long enough to come in several pieces, one after the other."
TOOLS = [
    {"name": "get_stock", "request_response_pairs": [{"arguments": {"article": "Pan"}, "response": "none"}]},
    {"name": "get_time", "sample_response": "12:00"},
]
FIXTURES: list[dict[str, Any]] = [
    # With a pause between the pieces: what comes together is one step.
    {"match": {"userMessage": "say something"}, "response": {"content": LONG}, "latency": 20},
    {"match": {"userMessage": "think"}, "response": {"content": "42", "reasoning": "Six times seven. That is it."}},
    {
        "match": {"userMessage": "compare", "hasToolResult": False},
        "response": {
            "content": "Let me look at both.",
            "reasoning": "I have to look.",
            "toolCalls": [
                {"name": "get_stock", "arguments": {"article": "Aurora Kettle", "warehouse": "north"}},
                {"name": "get_stock", "arguments": {"article": "Pan"}},
                {"name": "get_time", "arguments": {}},
            ],
        },
    },
    {"match": {"userMessage": "compare", "hasToolResult": True}, "response": {"content": "No pans."}},
    {"match": {"userMessage": "and then"}, "response": {"content": "And then nothing."}},
    {
        "match": {"userMessage": "busy"},
        "response": {"error": {"message": "Too many requests", "type": "rate_limit_error"}, "status": 429},
    },
    {
        "match": {"userMessage": "fall over"},
        "response": {"error": {"message": "It fell over", "type": "server_error"}, "status": 500},
    },
    {
        "match": {"userMessage": "broken off"},
        "response": {"content": LONG * 6},
        "truncateAfterChunks": 10,
        "latency": 20,
    },
    {"match": {"userMessage": "Answer with"}, "response": {"content": "ok"}},
    {
        "match": {"userMessage": "Call the tool"},
        "response": {"toolCalls": [{"name": "ping", "arguments": {"text": "hello"}}]},
    },
]
MODEL = {"chat": "gpt-4o", "responses": "o3", "anthropic": "claude-sonnet-4-5"}

models = pytest.mark.parametrize("dialect", MODELS, ids=[one.name for one in MODELS])


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Aimock]:
    try:
        with Aimock(FIXTURES, tmp_path_factory.mktemp("aimock"), "-c", "24") as running:
            yield running
    except NotAvailable as why:
        pytest.skip(f"aimock can't be had: {why}")


@pytest.fixture(scope="module")
def garbled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Aimock]:
    try:
        with Aimock(FIXTURES, tmp_path_factory.mktemp("garbled"), "--chaos-malformed", "1") as running:
            yield running
    except NotAvailable as why:
        pytest.skip(f"aimock can't be had: {why}")


def config(server: Aimock, dialect: Dialect, **more: Any) -> dict[str, Any]:
    return {**dialect.config(server.url), "model": MODEL[dialect.name], "tools": TOOLS, **more}


@models
@pytest.mark.parametrize("stream", [True, False])
async def test_an_answer(server: Aimock, run_agent: Any, dialect: Dialect, stream: bool) -> None:
    ran = await run_agent(config(server, dialect, stream=stream), "say something")
    assert ran.transcript.error is None
    assert ran.transcript.final_output == LONG
    assert ran.transcript.finish_reason == "stop"
    assert ran.transcript.model.startswith(MODEL[dialect.name])
    assert ran.transcript.usage.output_tokens is not None
    pieces = [event for event in ran.events if isinstance(event, TextDelta)]
    assert (len(pieces) > 1) is stream


@models
@pytest.mark.parametrize("stream", [True, False])
async def test_several_tools_in_one_turn(server: Aimock, run_agent: Any, dialect: Dialect, stream: bool) -> None:
    ran = await run_agent(config(server, dialect, stream=stream), "compare the two")
    transcript = ran.transcript
    assert transcript.error is None
    roles = [message.role for message in transcript.messages]
    assert roles == ["user", "assistant", "tool", "tool", "tool", "assistant"]
    assert transcript.messages[1].content == "Let me look at both."
    assert [(call.name, call.arguments, call.status) for call in transcript.tool_calls] == [
        ("get_stock", {"article": "Aurora Kettle", "warehouse": "north"}, "error"),
        ("get_stock", {"article": "Pan"}, "ok"),
        ("get_time", {}, "ok"),
    ]
    assert [call.result for call in transcript.tool_calls][1:] == ["none", "12:00"]
    assert transcript.final_output == "No pans."
    if stream:
        fragments = [event for event in ran.events if isinstance(event, ToolArgumentsDelta) and event.key == 0]
        assert len(fragments) > 1
        assert "".join(event.text for event in fragments) == '{"article":"Aurora Kettle","warehouse":"north"}'


@models
@pytest.mark.parametrize("stream", [True, False])
async def test_thinking_is_no_part_of_the_answer(
    server: Aimock, run_agent: Any, dialect: Dialect, stream: bool
) -> None:
    model = {"chat": "deepseek-reasoner"}.get(dialect.name, MODEL[dialect.name])
    ran = await run_agent(config(server, dialect, stream=stream, model=model), "think about it")
    assert ran.transcript.final_output == "42"
    assert ran.transcript.messages[-1].reasoning == "Six times seven. That is it."


@models
async def test_a_second_turn_after_calls_in_the_first(server: Aimock, run_agent: Any, dialect: Dialect) -> None:
    messages = (
        Message("system", "Be brief."),
        Message("user", "compare"),
        Message("assistant", "", tool_calls=(0, 1)),
        Message("tool", "none", tool_call=0),
        Message("tool", "12:00", tool_call=1),
        Message("assistant", "No pans."),
        Message("user", "and then?"),
    )
    calls = (ToolCall("", "get_stock", {"article": "Pan"}), ToolCall("", "get_time", {}))
    ran = await run_agent(config(server, dialect), messages=messages, tool_calls=calls)
    assert ran.transcript.error is None
    assert ran.transcript.final_output == "And then nothing."


@models
async def test_errors_in_the_words_of_the_server(server: Aimock, run_agent: Any, dialect: Dialect) -> None:
    for text, kind, words in (("busy?", "rate_limit", "Too many requests"), ("fall over", "server", "It fell over")):
        failed = (await run_agent(config(server, dialect), text)).events[-1]
        assert isinstance(failed, Failed)
        assert (failed.error.kind, failed.retry) == (kind, True)
        assert words in failed.error.message


@models
async def test_a_cut_stream_keeps_what_came(server: Aimock, run_agent: Any, dialect: Dialect) -> None:
    ran = await run_agent(config(server, dialect), "be broken off")
    failed = ran.events[-1]
    assert isinstance(failed, Failed), failed
    assert (failed.error.kind, failed.retry) == ("connection", True)
    assert ran.transcript.final_output
    assert (LONG * 6).startswith(ran.transcript.final_output)
    assert ran.transcript.final_output != LONG * 6


@models
@pytest.mark.parametrize("stream", [True, False])
async def test_what_is_no_json_is_a_protocol_error(
    garbled: Aimock, run_agent: Any, dialect: Dialect, stream: bool
) -> None:
    ran = await run_agent(config(garbled, dialect, stream=stream), "say something")
    assert ran.transcript.error.kind == "protocol"


@models
async def test_a_thorough_check(server: Aimock, dialect: Dialect, tmp_path: Path) -> None:
    agent = make_agent("a", config(server, dialect), base_dir=tmp_path, env={}, permission=ALLOWED)
    report = await agent.check(thorough=True)
    await agent.close()
    assert report.ok, report
    assert [(step.name, step.ok) for step in report.steps] == [
        ("reachable", True),
        ("key", True),
        ("model", True),
        ("streams", True),
        ("tools", True),
    ]
    assert all(step.latency_ms is not None for step in report.steps if step.name != "key")
    assert dialect is not ANTHROPIC or "not on the server's list" in report.steps[2].message
