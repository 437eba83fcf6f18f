"""Where the libraries of models keep the calls of tools: each place is read, and what can't be read is not judged."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agenteval_tui.formats.importers.message_formats import transcript_of
from agenteval_tui.grading.compile import compile_criterion
from agenteval_tui.grading.results import Outcome
from agenteval_tui.grading.spec import CriterionSpec
from agenteval_tui.transcripts.model import Transcript
from agenteval_tui.transcripts.observed import observes

FORBIDDEN = CriterionSpec(
    "no tool may be called", "ToolResponse", {"metrics": [{"type": "ToolCheck", "tool_call_forbidden": True}]}
)
USER = {"role": "user", "content": "cancel order 1"}
DONE = {"role": "assistant", "content": "done"}
FUNCTION = {"name": "cancel_order", "arguments": '{"id": 1}'}
OPENAI = {"id": "c", "type": "function", "function": FUNCTION}
PYTHON = "[{'id': 'c', 'type': 'function', 'function': {'name': 'cancel_order', 'arguments': {'id': 1}}}]"


def _langchain(content: Any, **more: Any) -> dict[str, Any]:
    return {"type": "ai", "content": content, **more}


def _text(role: str, said: str) -> dict[str, Any]:
    return {"role": role, "content": [{"type": "text", "text": said}]}


def _blocks(role: str, *blocks: dict[str, Any], **beside: Any) -> dict[str, Any]:
    return {"role": role, "additional_kwargs": beside, "blocks": list(blocks)}


LLAMA_TEXT = {"block_type": "text", "text": "ok"}
CALLS: dict[str, list[dict[str, Any]]] = {
    "LangChain, beside the message": [
        _langchain("", additional_kwargs={"tool_calls": [OPENAI]}),
        {"type": "tool", "content": "ok", "tool_call_id": "c"},
    ],
    "LangChain, both": [
        _langchain("", tool_calls=[{"id": "c", "name": "cancel_order", "args": {"id": 1}}],
                   additional_kwargs={"tool_calls": [OPENAI]}),
        {"type": "tool", "content": "ok", "tool_call_id": "c"},
    ],
    "LangChain, as a function": [
        _langchain("", additional_kwargs={"function_call": FUNCTION}),
        {"type": "function", "content": "ok", "name": "cancel_order"},
    ],
    "LangChain, in the content and beside it": [
        _langchain([{"type": "tool_use", "id": "c", "name": "cancel_order", "input": {"id": 1}}],
                   tool_calls=[{"id": "c", "name": "cancel_order", "args": {"id": 1}}]),
        {"type": "tool", "content": "ok", "tool_call_id": "c"},
    ],
    "LangChain, a server's tool": [
        _langchain([{"type": "server_tool_use", "id": "c", "name": "cancel_order", "input": {"id": 1}},
                    {"type": "web_search_tool_result", "tool_use_id": "c", "content": "ok"}]),
    ],
    "LangChain, a server's tool in standard blocks": [
        _langchain([{"type": "server_tool_call", "id": "c", "name": "cancel_order", "args": {"id": 1}},
                    {"type": "server_tool_result", "tool_call_id": "c", "output": "ok"}]),
    ],
    "LangChain, an item of a response": [
        _langchain([{"type": "mcp_call", "id": "c", "name": "cancel_order", "arguments": '{"id": 1}', "output": "ok"}]),
    ],
    "LangChain, an item of a response beside the content": [
        {"type": "ai", "content": "", "additional_kwargs": {"tool_outputs": [
            {"type": "mcp_call", "id": "c", "name": "cancel_order", "arguments": '{"id": 1}'}]}},
        {"type": "tool", "tool_call_id": "c", "content": "ok"},
    ],
    "LlamaIndex, in blocks": [
        _blocks("assistant", {"block_type": "tool_call", "tool_call_id": "c", "tool_name": "cancel_order",
                              "tool_kwargs": {"id": 1}}),
        _blocks("tool", LLAMA_TEXT, tool_call_id="c"),
    ],
    "LlamaIndex, beside the blocks": [
        _blocks("assistant", {"block_type": "text", "text": ""}, tool_calls=[OPENAI]),
        _blocks("tool", LLAMA_TEXT, tool_call_id="c"),
    ],
    "LlamaIndex, before it had blocks": [
        {"role": "assistant", "content": None, "additional_kwargs": {"tool_calls": [OPENAI]}},
        {"role": "tool", "content": "ok", "additional_kwargs": {"tool_call_id": "c"}},
    ],
    "smolagents": [_text("tool-call", f"Calling tools:\n{PYTHON}"), _text("tool-response", "Observation:\nok")],
    "smolagents, after a text": [
        _text("assistant", "I do it."), _text("tool-call", f"Calling tools:\n{PYTHON}"),
        _text("tool-response", "Observation:\nok"),
    ],
    "a role of calls, as JSON": [
        {"role": "tool_call", "content": '{"name": "cancel_order", "arguments": {"id": 1}}'},
        {"role": "tool_response", "content": "ok"},
    ],
    "a role of calls with OpenAI's": [
        {"role": "function_call", "content": "", "tool_calls": [OPENAI]}, {"role": "observation", "content": "ok"},
    ],
    "Bedrock": [
        {"role": "assistant", "content": [{"toolUse": {"toolUseId": "c", "name": "cancel_order", "input": {"id": 1}}}]},
        {"role": "user", "content": [{"toolResult": {"toolUseId": "c", "content": [{"text": "ok"}]}}]},
    ],
    "Inspect, a server's tool": [
        {"role": "assistant", "content": [
            {"type": "tool_use", "tool_type": "mcp_call", "id": "c", "name": "cancel_order", "arguments": '{"id": 1}',
             "result": "ok"}]},
    ],
}  # fmt: skip
UNREAD: dict[str, list[dict[str, Any]]] = {
    "a role that nobody knows": [{"role": "tool_runner", "content": "cancel_order(1)"}],
    "a role of calls that can't be read": [{"role": "tool-call", "content": "Calling tools: cancel_order"}],
    "a message with other fields": [{"role": "assistant", "actions": [{"name": "cancel_order"}]}],
    "a block of LangChain": [_langchain([{"type": "non_standard", "value": {"name": "cancel_order"}}])],
    "a block of LlamaIndex": [_blocks("assistant", {"block_type": "skill", "name": "cancel_order"})],
    "a result without its call": [{"role": "tool", "tool_call_id": "c", "content": "ok"}],
    "a result without an id, and no call": [{"role": "tool", "content": "ok"}],
    "a result without its call, of Anthropic": [
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": "ok"}]}
    ],
    "a result of a server's tool without its call": [
        {"role": "assistant", "content": [{"type": "web_search_tool_result", "tool_use_id": "c", "content": []}]}
    ],
    "a result without its call, of Bedrock": [
        {"role": "user", "content": [{"toolResult": {"toolUseId": "c", "content": [{"text": "ok"}]}}]}
    ],
    "a result without its call, of LangChain": [{"type": "tool", "tool_call_id": "c", "content": "ok"}],
    "a part of pydantic-ai": [
        {"kind": "response", "parts": [{"part_kind": "skill", "name": "cancel_order"}], "model_name": "m"}
    ],
}  # fmt: skip


def _read(messages: list[dict[str, Any]]) -> Transcript:
    if any("type" in one or "kind" in one for one in messages):
        return transcript_of([{"type": "human", "content": "q"}, *messages, {"type": "ai", "content": "done"}])
    return transcript_of([USER, *messages, DONE])


@pytest.mark.parametrize("where", CALLS)
def test_the_calls_are_read(where: str) -> None:
    transcript = _read(json.loads(json.dumps(CALLS[where])))
    assert [(one.name, one.arguments, one.result) for one in transcript.tool_calls] == [
        ("cancel_order", {"id": 1}, "ok")
    ]
    assert transcript.final_output == "done"
    assert transcript.notes == ()
    assert compile_criterion(FORBIDDEN).check(transcript).outcome is Outcome.FAILED


@pytest.mark.parametrize("what", UNREAD)
def test_what_can_not_be_read_is_not_judged(what: str) -> None:
    transcript = _read(UNREAD[what])
    assert "tool_calls" not in observes(transcript)
    assert compile_criterion(FORBIDDEN).check(transcript).outcome is Outcome.ERROR


def test_a_second_result_of_a_call_is_none_without_its_call() -> None:
    again = {"role": "tool", "tool_call_id": "c", "content": "ok"}
    transcript = transcript_of([USER, {"role": "assistant", "content": "", "tool_calls": [OPENAI]}, again, again, DONE])
    assert transcript.notes == ()
    assert "tool_calls" in observes(transcript)
