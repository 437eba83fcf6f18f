"""The kind `openai` against somebody else's server (aimock, from npm), with fixtures of ours."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from aimock import Aimock, NotAvailable

from agenteval_tui.agents.base import AgentSetup, Failed, TextDelta, ToolArgumentsDelta
from agenteval_tui.agents.models.openai import OpenAIChatAgent

LONG = "This sentence is long enough to come in several pieces, one after the other."
FIXTURES: list[dict[str, Any]] = [
    {"match": {"userMessage": "say something"}, "response": {"content": LONG}, "latency": 20},
    {
        "match": {"userMessage": "compare", "hasToolResult": False},
        "response": {
            "content": "Let me look at both.",
            "toolCalls": [
                {"name": "get_stock", "arguments": {"article": "Aurora Kettle", "warehouse": "north"}},
                {"name": "get_stock", "arguments": {"article": "Copper Pan", "warehouse": "north"}},
                {"name": "get_time", "arguments": {}},
            ],
        },
    },
    {"match": {"userMessage": "compare", "hasToolResult": True}, "response": {"content": "12 kettles, no pans."}},
    {
        "match": {"userMessage": "busy"},
        "response": {"error": {"message": "Too many requests", "type": "rate_limit_error"}, "status": 429},
    },
    {
        "match": {"userMessage": "broken off"},
        "response": {"content": LONG},
        "truncateAfterChunks": 3,
        "latency": 30,
    },
    {"match": {"userMessage": "for ever"}, "response": {"toolCalls": [{"name": "get_time", "arguments": {}}]}},
]
TOOLS = [
    {
        "name": "get_stock",
        "description": "How many of an article there are.",
        "parameters": {"type": "object", "properties": {"article": {"type": "string"}}},
        "request_response_pairs": [
            {"arguments": {"article": "Aurora Kettle"}, "response": {"count": 12}},
            {"request": "Copper Pan", "response": "none"},
        ],
    },
    {"name": "get_time", "sample_response": "12:00"},
]


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Aimock]:
    try:
        with Aimock(FIXTURES, tmp_path_factory.mktemp("aimock"), "-c", "24") as running:
            yield running
    except NotAvailable as why:
        pytest.skip(f"aimock can't be had: {why}")


@pytest.fixture
def config(server: Aimock) -> dict[str, Any]:
    return {"kind": "openai", "base_url": server.url, "model": "gpt-test", "tools": TOOLS}


@pytest.mark.parametrize("stream", [True, False])
async def test_an_answer(config: dict[str, Any], run_agent: Any, stream: bool) -> None:
    ran = await run_agent({**config, "stream": stream}, "say something")
    assert ran.transcript.final_output == LONG
    assert ran.transcript.finish_reason == "stop"
    assert ran.transcript.usage.output_tokens
    pieces = [event for event in ran.events if isinstance(event, TextDelta)]
    assert (len(pieces) > 1) is stream


@pytest.mark.parametrize("stream", [True, False])
async def test_several_tools_in_one_turn_in_fragments(config: dict[str, Any], run_agent: Any, stream: bool) -> None:
    ran = await run_agent({**config, "stream": stream}, "compare the two")
    transcript = ran.transcript
    assert transcript.error is None
    assert [message.role for message in transcript.messages] == [
        "user",
        "assistant",
        "tool",
        "tool",
        "tool",
        "assistant",
    ]
    assert transcript.messages[1].content == "Let me look at both."
    assert [(call.name, call.arguments, call.result) for call in transcript.tool_calls] == [
        ("get_stock", {"article": "Aurora Kettle", "warehouse": "north"}, '{"count": 12}'),
        ("get_stock", {"article": "Copper Pan", "warehouse": "north"}, "none"),
        ("get_time", {}, "12:00"),
    ]
    assert transcript.final_output == "12 kettles, no pans."
    if stream:
        fragments = [event for event in ran.events if isinstance(event, ToolArgumentsDelta) and event.key == 0]
        assert len(fragments) > 1


async def test_a_busy_server_is_a_rate_limit(config: dict[str, Any], run_agent: Any) -> None:
    ran = await run_agent(config, "are you busy?")
    failed = ran.events[-1]
    assert isinstance(failed, Failed)
    assert (failed.error.kind, failed.retry) == ("rate_limit", True)
    assert "Too many requests" in failed.error.message


async def test_a_cut_stream_is_a_connection_error_that_keeps_what_came(config: dict[str, Any], run_agent: Any) -> None:
    ran = await run_agent(config, "be broken off")
    failed = ran.events[-1]
    assert isinstance(failed, Failed)
    assert (failed.error.kind, failed.retry) == ("connection", True)
    assert LONG.startswith(ran.transcript.final_output)
    assert ran.transcript.final_output != LONG


async def test_a_loop_of_tool_calls_is_ended(config: dict[str, Any], run_agent: Any) -> None:
    ran = await run_agent({**config, "max_steps": 3}, "go on for ever")
    assert ran.transcript.error.kind == "max_steps"
    assert len(ran.transcript.tool_calls) == 3


async def test_an_error_is_said_in_the_words_of_the_server(config: dict[str, Any], run_agent: Any) -> None:
    ran = await run_agent(config, "quantum chromodynamics")
    assert ran.transcript.error.kind == "server"
    assert "no fixture matched" in ran.transcript.error.message.lower()


async def test_check_says_that_it_answers(config: dict[str, Any], tmp_path: Any) -> None:
    agent = OpenAIChatAgent(AgentSetup("a", {**config, "model": "gpt-4o"}, tmp_path))
    report = await agent.check()
    await agent.close()
    assert report.ok, report
    assert report.latency_ms is not None
