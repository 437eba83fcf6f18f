"""Tools that a server runs itself are calls of the run: live, in recordings, in requests and in files alike."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agenteval_tui.agents.base import ToolArgumentsDelta, ToolCallFinished, ToolCallStarted
from agenteval_tui.agents.http.sse import ServerEvent
from agenteval_tui.agents.models.anthropic import MessagesReply
from agenteval_tui.agents.models.gemini_reply import GeminiReply
from agenteval_tui.agents.models.openai_chat import ChatReply
from agenteval_tui.agents.models.openai_responses import ResponsesReply
from agenteval_tui.agents.models.stream import ModelReply
from agenteval_tui.agents.process import python_pieces
from agenteval_tui.agents.recording.exchange import Answer, Question
from agenteval_tui.agents.recording.protocols import read_reply, read_request
from agenteval_tui.formats.importers.message_formats import is_message, transcript_of

ITEMS: dict[str, tuple[dict[str, Any], str, str, str | None]] = {
    # An item of a response: its tool, its arguments as JSON, what came back (None: the program is to answer).
    "web search": (
        {"type": "web_search_call", "id": "w", "status": "completed", "action": {"type": "search", "query": "x"}},
        "web_search", '{"query": "x"}', "",
    ),
    "code": (
        {"type": "code_interpreter_call", "id": "c", "code": "print(1)", "container_id": "k",
         "outputs": [{"type": "logs", "logs": "1"}]},
        "code_interpreter", '{"code": "print(1)"}', "1",
    ),
    "MCP": (
        {"type": "mcp_call", "id": "m", "server_label": "shop", "name": "cancel_order", "arguments": '{"id": 1}',
         "output": "ok", "error": None},
        "cancel_order", '{"id": 1}', "ok",
    ),
    "files": (
        {"type": "file_search_call", "id": "f", "queries": ["q"], "results": [{"file_id": "1"}]},
        "file_search", '{"queries": ["q"]}', '[{"file_id": "1"}]',
    ),
    "shell": (
        {"type": "local_shell_call", "id": "l", "call_id": "l1", "action": {"type": "exec", "command": ["ls"]}},
        "local_shell", '{"command": ["ls"]}', None,
    ),
}  # fmt: skip
SAID = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "done"}]}


def _events(reply: ModelReply, value: Any) -> list[tuple[str, str, str | None]]:
    """(name, arguments, result) of each call that a whole reply tells."""
    names: dict[int, str] = {}
    given: dict[int, str] = {}
    results: dict[int, str] = {}
    for event in (*reply.take_whole(json.dumps(value)), *reply.rest()):
        if isinstance(event, ToolCallStarted):
            names[event.key] = event.name
        elif isinstance(event, ToolArgumentsDelta):
            given[event.key] = given.get(event.key, "") + event.text
        elif isinstance(event, ToolCallFinished):
            results[event.key] = event.result
    return [(name, given.get(key, ""), results.get(key)) for key, name in names.items()]


@pytest.mark.parametrize("what", ITEMS)
def test_the_items_of_a_response(what: str) -> None:
    item, name, arguments, result = ITEMS[what]
    response = {"object": "response", "status": "completed", "output": [item, SAID]}
    reply = ResponsesReply(3)
    assert _events(reply, response) == [(name, arguments, result)]
    assert reply.calls == []  # nobody runs it a second time
    assert reply.next_key == 4
    transcript = transcript_of(response["output"])
    (call,) = transcript.tool_calls
    assert (call.name, call.arguments, call.result) == (name, json.loads(arguments), result)
    assert transcript.final_output == "done"


MESSAGE = {
    "role": "assistant",
    "content": [
        {"type": "text", "text": "I look. "},
        {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"query": "x"}},
        {"type": "web_search_tool_result", "tool_use_id": "s", "content": "found"},
        {"type": "mcp_tool_use", "id": "t", "name": "cancel", "server_name": "shop", "input": {}},
        {"type": "mcp_tool_result", "tool_use_id": "t", "is_error": True, "content": [{"type": "text", "text": "no"}]},
        {"type": "text", "text": "done"},
    ],
    "stop_reason": "end_turn",
    "model": "m",
}


APPROVED: list[dict[str, Any]] = [
    {"role": "user", "content": "pay"},
    {"type": "mcp_list_tools", "id": "l", "server_label": "bank", "tools": [{"name": "pay", "input_schema": {}}]},
    {"type": "mcp_approval_request", "id": "r", "server_label": "bank", "name": "pay", "arguments": '{"n": 1}'},
    {"type": "mcp_approval_response", "approval_request_id": "r", "approve": True},
    {"type": "mcp_call", "id": "m", "server_label": "bank", "name": "pay", "arguments": '{"n": 1}', "output": "paid",
     "approval_request_id": "r"},
    {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Done."}]},
]  # fmt: skip


def test_what_comes_around_a_call_of_a_hosted_server_is_no_call() -> None:
    assert all(map(is_message, APPROVED)), "or a list of them is not one conversation"
    told = python_pieces.from_items(APPROVED, lambda code, what: None)
    asked = read_request(Question("POST", "openai/v1/responses", {}, {"model": "m", "input": APPROVED}))
    assert asked is not None
    in_request = transcript_of(asked.messages)
    for transcript in (in_request, transcript_of(APPROVED)):
        assert [(call.name, call.arguments, call.result) for call in transcript.tool_calls] == [
            ("pay", {"n": 1}, "paid")
        ]
        assert transcript.final_output == "Done."
    assert [call["name"] for message in told for call in message.get("calls", ())] == ["pay"]
    assert [message["text"] for message in told if message["role"] != "assistant"] == ["pay", "paid"]


def test_the_blocks_of_a_message() -> None:
    reply = MessagesReply()
    assert _events(reply, MESSAGE) == [("web_search", '{"query": "x"}', "found"), ("cancel", "{}", "no")]
    assert reply.calls == []


def test_a_call_and_its_answer_without_an_id_belong_together() -> None:
    call, answer = (
        {key: value for key, value in block.items() if "id" not in key} for block in MESSAGE["content"][1:3]
    )
    told = {**MESSAGE, "content": [call, answer]}
    assert _events(MessagesReply(), told) == [("web_search", '{"query": "x"}', "found")]


def test_a_call_that_the_server_has_not_answered_is_there() -> None:
    told = {**MESSAGE, "content": MESSAGE["content"][:2], "stop_reason": "pause_turn"}
    assert _events(MessagesReply(), told) == [("web_search", '{"query": "x"}', None)]


def test_a_recorded_answer_and_the_next_request_tell_the_same() -> None:
    url = "anthropic/v1/messages"
    question = Question("POST", url, {}, {"model": "m", "messages": [{"role": "user", "content": "q"}]})
    reply = read_reply(question, Answer(200, "application/json", MESSAGE))
    assert reply.message is not None
    told = [*reply.before, reply.message]
    again = Question("POST", url, {}, {"model": "m", "messages": [MESSAGE, {"role": "user", "content": "and?"}]})
    request = read_request(again)
    assert request is not None
    assert list(request.messages[:-1]) == told
    assert [one["role"] for one in told] == ["assistant", "tool", "assistant", "tool", "assistant"]
    assert told[3]["is_error"] is True
    assert told[-1]["content"] == "done"


CONTENT = {
    "role": "model",
    "parts": [
        {"text": "I count. "},
        {"executableCode": {"language": "PYTHON", "code": "print(1)"}},
        {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}},
        {"executableCode": {"language": "PYTHON", "code": "no"}},
        {"codeExecutionResult": {"outcome": "OUTCOME_FAILED", "output": "NameError"}},
        {"text": "done"},
    ],
}
CODE = '{"language": "PYTHON", "code": "%s"}'


def test_code_that_gemini_ran() -> None:
    reply = GeminiReply()
    told = [("code_execution", CODE % "print(1)", "1"), ("code_execution", CODE % "no", "NameError")]
    assert _events(reply, {"candidates": [{"content": CONTENT, "finishReason": "STOP"}]}) == told
    assert reply.calls == []
    assert [one.failed for one in reply.hosted] == [False, True]
    transcript = transcript_of([{"role": "user", "parts": [{"text": "q"}]}, CONTENT])
    assert [(one.name, one.arguments, one.result) for one in transcript.tool_calls] == [
        (name, json.loads(arguments), result) for name, arguments, result in told
    ]
    assert [one.status for one in transcript.tool_calls] == ["ok", "error"]
    assert transcript.final_output == "done"


def test_code_whose_result_never_came() -> None:
    parts = CONTENT["parts"][:2]
    told = {"candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "MAX_TOKENS"}]}
    assert _events(GeminiReply(), told) == [("code_execution", CODE % "print(1)", None)]


def test_a_recorded_answer_of_gemini_and_the_next_request_tell_the_same() -> None:
    path = "gemini/v1beta/models/m:generateContent"
    asked = {"role": "user", "parts": [{"text": "q"}]}
    answer = Answer(200, "application/json", {"candidates": [{"content": CONTENT, "finishReason": "STOP"}]})
    reply = read_reply(Question("POST", path, {}, {"contents": [asked]}), answer)
    assert reply.message is not None
    request = read_request(Question("POST", path, {}, {"contents": [asked, CONTENT, asked]}))
    assert request is not None
    assert list(request.messages[1:-1]) == [*reply.before, reply.message]
    assert [one["role"] for one in reply.before] == ["assistant", "tool", "assistant", "tool"]


def test_a_custom_tool_of_chat_completions() -> None:
    call = {"index": 0, "id": "a", "type": "custom", "custom": {"name": "code_exec", "input": "print(1)"}}
    reply = ChatReply()
    chunks = [{"choices": [{"index": 0, "delta": {"tool_calls": [call]}, "finish_reason": None}]},
              {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}]  # fmt: skip
    for chunk in chunks:
        list(reply.take(ServerEvent("", json.dumps(chunk))))
    list(reply.rest())
    assert [(one.name, one.arguments_text, one.custom) for one in reply.calls] == [("code_exec", "print(1)", True)]


@pytest.mark.shared
def test_each_reply_of_the_report(shared: Path) -> None:
    replies = json.loads((shared / "data" / "reports" / "01-hosted-tools-unseen" / "replies.json").read_text())
    for name, (first, *_) in replies.items():
        reply: ModelReply = MessagesReply() if name.startswith("an_") else ResponsesReply()
        started = []
        for sent in first["sse"]:
            data = sent.removeprefix("RAW:").partition("data: ")[2].strip()
            started += [one for one in reply.take(ServerEvent("", data)) if isinstance(one, ToolCallStarted)]
        assert len(started) == 1, name
