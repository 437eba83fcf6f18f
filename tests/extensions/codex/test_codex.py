"""Codex' sessions, and what `codex exec --json` prints."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from agenteval_tui.transcripts.observed import observes

Import = Callable[..., Any]
BEGIN = [{"type": "thread.started", "thread_id": "t"}, {"type": "turn.started"}]
USAGE = {"input_tokens": 100, "cached_input_tokens": 40, "output_tokens": 7}
END = {"type": "turn.completed", "usage": USAGE}
SAID = {"type": "agent_message", "text": "done"}

CALLS: dict[str, tuple[dict[str, Any], tuple[str, Any, str | None, str]]] = {
    "a command": (
        {"type": "command_execution", "command": "ls", "aggregated_output": "a.py", "exit_code": 0,
         "status": "completed"},
        ("command_execution", {"command": "ls"}, "a.py", "ok"),
    ),
    "a command that failed": (
        {"type": "command_execution", "command": "ls x", "aggregated_output": "no x", "exit_code": 2,
         "status": "failed"},
        ("command_execution", {"command": "ls x"}, "no x", "error"),
    ),
    "a tool of MCP": (
        {"type": "mcp_tool_call", "server": "shop", "tool": "cancel_order", "arguments": {"id": 1},
         "result": {"content": [{"type": "text", "text": "ok"}]}, "error": None, "status": "completed"},
        ("cancel_order", {"id": 1}, "ok", "ok"),
    ),
    "a tool of MCP that failed": (
        {"type": "mcp_tool_call", "server": "shop", "tool": "cancel_order", "arguments": {"id": 1}, "result": None,
         "error": {"message": "no order"}, "status": "failed"},
        ("cancel_order", {"id": 1}, "no order", "error"),
    ),
    "a change of files": (
        {"type": "file_change", "changes": [{"path": "a.py", "kind": "delete"}], "status": "completed"},
        ("file_change", {"changes": [{"path": "a.py", "kind": "delete"}]}, "", "ok"),
    ),
    "a search": ({"type": "web_search", "query": "x"}, ("web_search", {"query": "x"}, "", "ok")),
    "an agent": (
        {"type": "collab_tool_call", "tool": "spawn_agent", "prompt": "look", "receiver_thread_ids": ["t2"],
         "agents_states": {}, "status": "completed"},
        ("spawn_agent", {"prompt": "look", "receiver_thread_ids": ["t2"]}, "{}", "ok"),
    ),
}  # fmt: skip


def lines(*items: dict[str, Any], end: Any = END) -> str:
    told = [{"type": "item.completed", "item": {"id": f"item_{at}", **item}} for at, item in enumerate(items)]
    return "\n".join(map(json.dumps, [*BEGIN, *told, *([end] if end else [])]))


@pytest.mark.parametrize("what", CALLS)
def test_a_printed_item_is_a_call(imported: Import, what: str) -> None:
    item, called = CALLS[what]
    report, ((row, transcript),) = imported(lines({"type": "reasoning", "text": "hm"}, item, SAID))
    assert (report.format, row.test_id, row.agent) == ("codex", "t", "codex")
    (call,) = transcript.tool_calls
    assert (call.name, call.arguments, call.result, call.status) == called
    assert (transcript.final_output, transcript.error) == ("done", None)
    assert [one.reasoning for one in transcript.messages if one.reasoning] == ["hm"]
    usage = transcript.usage
    assert (usage.input_tokens, usage.cached_tokens, usage.output_tokens) == (100, 40, 7)


def test_an_item_that_started_and_ended_is_one(imported: Import) -> None:
    command, _ = CALLS["a command"]
    started = {**command, "id": "item_0", "aggregated_output": "", "exit_code": None, "status": "in_progress"}
    text = "\n".join(map(json.dumps, [*BEGIN, {"type": "item.started", "item": started}]))
    _, ((_, transcript),) = imported(text, "open.jsonl")
    assert [(one.result, one.status) for one in transcript.tool_calls] == [(None, "pending")]
    ended = [{"type": "item.started", "item": started}, {"type": "item.completed", "item": {**command, "id": "item_0"}}]
    _, ((_, transcript),) = imported("\n".join(map(json.dumps, [*BEGIN, *ended, END])), "whole.jsonl")
    assert [(one.result, one.status) for one in transcript.tool_calls] == [("a.py", "ok")]


def test_a_turn_that_failed_is_an_error(imported: Import) -> None:
    failed = {"type": "turn.failed", "error": {"message": "usage limit"}}
    _, ((row, transcript),) = imported(lines(CALLS["a command"][0], end=failed))
    assert (row.status, transcript.error.message) == ("error", "usage limit")


def test_an_error_before_the_turn_went_on_is_none(imported: Import) -> None:
    *before, end = lines(SAID).splitlines()
    broke = json.dumps({"type": "error", "message": "Reconnecting"})
    _, ((_, transcript),) = imported("\n".join([*before, broke, end]))
    assert (transcript.error, transcript.final_output) == (None, "done")


def test_an_item_of_tomorrow_may_be_a_call(imported: Import) -> None:
    _, ((_, transcript),) = imported(lines({"type": "browser_use", "url": "x"}, SAID))
    assert "tool_calls" not in observes(transcript)


def test_names_of_its_first_version(imported: Import) -> None:
    item = {"id": "item_0", "item_type": "assistant_message", "text": "done"}
    told = [{"type": "session.created", "session_id": "t"}, {"type": "item.completed", "item": item}]
    _, ((row, transcript),) = imported("\n".join(map(json.dumps, told)))
    assert (row.test_id, transcript.final_output) == ("t", "done")


def test_each_kind_of_call_of_a_session_is_read(imported: Import) -> None:
    items = [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "q"}]},
        {"type": "mcp_call", "id": "m", "name": "cancel_order", "arguments": '{"id": 1}', "output": "ok"},
        {"type": "local_shell_call", "call_id": "l", "action": {"type": "exec", "command": ["ls"]}},
        {"type": "local_shell_call_output", "call_id": "l", "output": "a.py"},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "done"}]},
    ]
    _, ((_, transcript),) = imported("\n".join(json.dumps({"type": "response_item", "payload": one}) for one in items))
    assert [(one.name, one.arguments, one.result) for one in transcript.tool_calls] == [
        ("cancel_order", {"id": 1}, "ok"), ("local_shell", {"command": ["ls"]}, "a.py"),
    ]  # fmt: skip
