"""Conversations with calls of tools, as each protocol is told of them: looked at where the server got them."""

from __future__ import annotations

from typing import Any

import pytest
from dialects import ANTHROPIC, CHAT, MODELS, RESPONSES, Call, Dialect, Text
from scripted import ScriptedServer

from agenteval_tui.transcripts.model import Message, ToolCall

models = pytest.mark.parametrize("dialect", MODELS, ids=[one.name for one in MODELS])

# Two turns; ids that are missing, that come twice, that are no good; results out of order, absent, of unknown calls.
MESSAGES = (
    Message("user", "first"),
    Message("assistant", "Looking.", tool_calls=(0, 1)),
    Message("tool", "result of g", tool_call=1),
    Message("tool", "result of f", tool_call=0),
    Message("assistant", "Found."),
    Message("user", "second"),
    Message("assistant", tool_calls=(2, 3, 4)),
    Message("tool", "found by its id", tool_call_id="a/b c"),
    Message("tool", "by its id", tool_call_id="same"),
    Message("user", "third"),
)
CALLS = (
    ToolCall("same", "f", {"x": 1}),
    ToolCall("same", "g", "{not json", status="error", malformed=True),
    ToolCall("", "f", {}),
    ToolCall("a/b c", "g", {"y": "ü"}, result="from the call itself"),
    ToolCall("", "f", None),
)


async def sent(run_agent: Any, dialect: Dialect, messages: Any = MESSAGES, calls: Any = CALLS, **options: Any) -> Any:
    """The JSON that the server got."""
    async with ScriptedServer(lambda _: dialect.stream(Text(["ok"]))) as server:
        ran = await run_agent(dialect.config(server.url, **options), messages=messages, tool_calls=calls)
    assert ran.transcript.error is None
    return server.requests[0].json


@models
async def test_every_call_has_an_id_of_its_own_and_its_result(run_agent: Any, dialect: Dialect) -> None:
    body = await sent(run_agent, dialect)
    calls, results = dialect.calls(body), dialect.results(body)
    ids = [call_id for call_id, _, _ in calls]
    assert [name for _, name, _ in calls] == ["f", "g", "f", "g", "f"]
    assert len(set(ids)) == 5
    assert all(ids)
    assert ids[0] == "same"
    assert [call_id for call_id, _ in results] == ids
    assert [text for _, text in results] == [
        "result of f",
        "result of g",
        "(no result was recorded)",
        "found by its id",
        "(no result was recorded)",
    ]


async def test_chat_completions(run_agent: Any) -> None:
    body = await sent(run_agent, CHAT)
    messages = body["messages"]
    assert [one["role"] for one in messages] == [
        *("user", "assistant", "tool", "tool", "assistant"),
        *("user", "assistant", "tool", "tool", "tool", "user", "user"),
    ]
    assert messages[1]["content"] == "Looking."
    assert [one["function"]["arguments"] for one in messages[1]["tool_calls"]] == ['{"x": 1}', "{not json"]
    assert messages[6]["content"] is None
    assert messages[10] == {"role": "user", "content": "Result of the tool same: by its id"}


async def test_responses(run_agent: Any) -> None:
    body = await sent(run_agent, RESPONSES)
    items = body["input"]
    assert items[:2] == [{"role": "user", "content": "first"}, {"role": "assistant", "content": "Looking."}]
    assert items[2] == {"type": "function_call", "call_id": "same", "name": "f", "arguments": '{"x": 1}'}
    assert items[3]["arguments"] == "{not json"
    assert items[4] == {"type": "function_call_output", "call_id": "same", "output": "result of f"}
    assert items[-2] == {"role": "user", "content": "Result of the tool same: by its id"}
    assert body["store"] is False


async def test_messages(run_agent: Any) -> None:
    system = Message("system", "Be brief."), Message("system", "Be kind.")
    body = await sent(run_agent, ANTHROPIC, messages=(*system, *MESSAGES))
    assert body["system"] == "Be brief.\n\nBe kind."
    messages = body["messages"]
    roles = [one["role"] for one in messages]
    # The same role never speaks twice, and empty texts, which the API refuses, are not sent.
    assert roles == ["user", "assistant", "user", "assistant", "user", "assistant", "user"]
    assert messages[1]["content"] == [
        {"type": "text", "text": "Looking."},
        {"type": "tool_use", "id": "same", "name": "f", "input": {"x": 1}},
        {"type": "tool_use", "id": messages[2]["content"][1]["tool_use_id"], "name": "g",
         "input": {"INVALID_JSON": "{not json"}},
    ]  # fmt: skip
    assert messages[2]["content"][0] == {"type": "tool_result", "tool_use_id": "same", "content": "result of f"}
    assert messages[2]["content"][1]["is_error"] is True
    # The user's words follow the results in one message.
    assert [block["type"] for block in messages[-1]["content"]] == [*["tool_result"] * 3, "text", "text"]
    assert messages[-1]["content"][-1]["text"] == "third"
    ids = [block["id"] for block in messages[5]["content"]]
    assert ids[1] == "a_b_c"


@models
async def test_results_go_back_in_the_order_of_the_calls(run_agent: Any, dialect: Dialect) -> None:
    replies = [dialect.stream(Call("a", "f"), Call("b", "g")), dialect.stream(Text(["ok"]))]
    tools = [{"name": "f", "sample_response": "F"}, {"name": "g"}]
    async with ScriptedServer(lambda _: replies.pop(0)) as server:
        await run_agent(dialect.config(server.url, tools=tools))
    body = server.requests[1].json
    assert dialect.results(body) == [("a", "F"), ("b", "the mock tool g has no answer to these arguments")]
    if dialect is ANTHROPIC:
        assert [block.get("is_error") for block in body["messages"][-1]["content"]] == [None, True]
