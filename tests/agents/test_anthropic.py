"""The kind `anthropic`: what is sent, and what is made of each kind of event."""

from __future__ import annotations

import json
from typing import Any

import pytest
from dialects import STREAM, event
from scripted import Answer, ScriptedServer

from agenteval_tui.agents.registry import option_problems
from agenteval_tui.transcripts.model import Usage

DONE = Answer(
    body=json.dumps(
        {
            "content": [{"type": "text", "text": "done"}],
            "stop_reason": "end_turn",
            "usage": {"input_tokens": 0, "output_tokens": 0},
        }
    )
)
KEY = "sk-ant-very-secret-0123"


def delta(index: int, **fields: Any) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": fields}


def start(index: int, **block: Any) -> dict[str, Any]:
    return {"type": "content_block_start", "index": index, "content_block": block}


async def ask(run_agent: Any, *replies: Answer, **options: Any) -> tuple[Any, list[Any]]:
    left = list(replies)
    async with ScriptedServer(lambda _: left.pop(0)) as server:
        config = {"kind": "anthropic", "base_url": server.url, "model": "claude", **options}
        ran = await run_agent({"tools": [{"name": "f", "sample_response": "F"}], **config}, env={"MY_KEY": KEY})
    return ran, server.requests


async def test_thinking_goes_back_with_its_signature(run_agent: Any) -> None:
    usage = {"input_tokens": 5, "cache_read_input_tokens": 100, "cache_creation_input_tokens": 20, "output_tokens": 1}
    first = Answer(
        body=b"".join(
            event(one)
            for one in (
                {"type": "message_start", "message": {"model": "claude-9", "usage": usage}},
                {"type": "ping"},
                start(0, type="thinking", thinking="", signature=""),
                delta(0, type="thinking_delta", thinking="Let me "),
                delta(0, type="thinking_delta", thinking="see."),
                delta(0, type="signature_delta", signature="EqQB"),
                {"type": "content_block_stop", "index": 0},
                start(1, type="redacted_thinking", data="xyz"),
                start(2, type="text", text=""),
                start(3, type="tool_use", id="t1", name="f", input={}),
                delta(3, type="input_json_delta", partial_json=""),
                delta(3, type="input_json_delta", partial_json='{"x": '),
                delta(3, type="input_json_delta", partial_json="1}"),
                {"type": "content_block_stop", "index": 3},
                {"type": "something_new", "data": 1},
                {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 40}},
                {"type": "message_stop"},
            )
        ),
        content_type=STREAM,
    )
    ran, sent = await ask(run_agent, first, DONE, thinking_budget=2000)
    assert ran.transcript.error is None
    assert ran.transcript.messages[1].reasoning == "Let me see."
    assert sent[0].json["thinking"] == {"type": "enabled", "budget_tokens": 2000}
    assert sent[1].json["messages"][1:] == [
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "Let me see.", "signature": "EqQB"},
                {"type": "redacted_thinking", "data": "xyz"},
                {"type": "tool_use", "id": "t1", "name": "f", "input": {"x": 1}},
            ],
        },
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "F"}]},
    ]
    assert ran.transcript.usage == Usage(125, 40, 100, cache_write_tokens=20)
    assert ran.transcript.model == ""  # the last reply, which counts, did not say


async def test_a_pause_of_the_servers_own_tools_is_gone_on_with(run_agent: Any) -> None:
    blocks = [
        {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "x"}},
        {"type": "web_search_tool_result", "tool_use_id": "s1", "content": []},
    ]
    paused = Answer(body=json.dumps({"content": blocks, "stop_reason": "pause_turn"}))
    ran, sent = await ask(run_agent, paused, DONE)
    assert sent[1].json["messages"][1:] == [{"role": "assistant", "content": blocks}]
    assert ran.transcript.final_output == "done"
    (call,) = ran.transcript.tool_calls
    assert (call.name, call.arguments, call.result) == ("web_search", {"query": "x"}, "")


@pytest.mark.parametrize(
    ("reason", "finish"),
    [
        ("end_turn", "stop"),
        ("max_tokens", "length"),
        ("refusal", "content_filter"),
        ("stop_sequence", "stop_sequence"),
        ("model_context_window_exceeded", "model_context_window_exceeded"),
    ],
)
async def test_why_it_ended_is_said_in_one_language(run_agent: Any, reason: str, finish: str) -> None:
    ran, _ = await ask(run_agent, Answer(body=json.dumps({"content": [], "stop_reason": reason})))
    assert ran.transcript.finish_reason == finish


async def test_headers_address_and_options(run_agent: Any) -> None:
    _, sent = await ask(
        run_agent,
        DONE,
        api_key_env="MY_KEY",
        betas=["one", "two"],
        headers={"X-Own": "y"},
        query={"a": "b c"},
        system="Be brief.",
        temperature=0.5,
        top_k=3,
        stop_sequences=["END"],
        tool_choice="f",
        parallel_tool_calls=False,
        extra_body={"metadata": {"user_id": "u"}},
        stream=False,
    )
    request = sent[0]
    assert request.path == "/v1/messages?a=b+c"
    held = {name: request.headers.get(name) for name in ("x-api-key", "anthropic-version", "anthropic-beta", "x-own")}
    assert held == {
        "x-api-key": KEY,
        "anthropic-version": "2023-06-01",
        "anthropic-beta": "one,two",
        "x-own": "y",
    }
    assert "authorization" not in request.headers
    body = request.json
    assert {key: value for key, value in body.items() if key not in ("messages", "tools")} == {
        "model": "claude",
        "max_tokens": 4096,
        "system": "Be brief.",
        "temperature": 0.5,
        "top_k": 3,
        "stop_sequences": ["END"],
        "tool_choice": {"type": "tool", "name": "f", "disable_parallel_tool_use": True},
        "metadata": {"user_id": "u"},
    }
    assert body["tools"][0]["input_schema"] == {"type": "object", "properties": {}}


async def test_anthropics_key_is_for_anthropic_alone(run_agent: Any) -> None:
    async with ScriptedServer(lambda _: DONE) as server:
        config = {"kind": "anthropic", "base_url": server.url, "model": "m"}
        await run_agent(config, env={"ANTHROPIC_API_KEY": KEY})
    assert "x-api-key" not in server.requests[0].headers
    ran = await run_agent({"kind": "anthropic", "model": "m"})
    assert ran.transcript.error.message == "the environment variable ANTHROPIC_API_KEY is not set"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"thinking_budget": 4096}, "`thinking_budget` (4096) must be less than `max_tokens` (4096)"),
        ({"thinking_budget": 2000, "thinking": "adaptive"}, "give `thinking_budget` or `thinking`, not both"),
        ({"thinking_budget": 2000, "temperature": 0.2}, "`temperature` and `top_k` can't be set"),
        ({"thinking_budget": 2000, "tool_choice": "any"}, "a model that thinks cannot be forced to call a tool"),
        ({"thinking_budget": 5}, "option `thinking_budget` must be greater than or equal to 1024, not 5"),
        ({"stop": "x"}, "unknown option `stop`"),
        ({"retries": 0}, "unknown option `retries`; there are: api_key_env, base_url, "),
    ],
)
def test_options_that_make_no_sense_are_said(options: dict[str, Any], said: str) -> None:
    ((_, message),) = option_problems("a", {"kind": "anthropic", "model": "m", **options})
    assert message.startswith(said)
