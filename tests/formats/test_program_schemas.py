"""The published shapes of what programs are told and may say are those that the code uses."""

from __future__ import annotations

import json
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from agenteval_tui.agents.base import AgentRequest
from agenteval_tui.agents.process import python_conversation
from agenteval_tui.agents.process.protocol import EventError, EventReader, request_document
from agenteval_tui.formats.documents.registry import schema
from agenteval_tui.transcripts.model import Message, ToolCall

EVENTS: list[dict[str, Any]] = [
    {"type": "ready"},
    {"type": "text", "text": "x"},
    {"type": "reasoning", "text": "x"},
    {"type": "tool_call", "name": "f"},
    {"type": "tool_call", "id": "a", "name": "f", "arguments": {"x": 1}},
    {"type": "tool_result", "id": "a", "result": [1], "error": False, "duration_ms": 3.5},
    {"type": "tool_result", "error": "why"},
    {"type": "agent", "name": "desk"},
    {"type": "message_end"},
    {"type": "restart"},
    {"type": "note", "code": "mine", "what": "x"},
    {"type": "usage", "input_tokens": 1, "cost": 0.1},
    {"type": "model_request"},
    {"type": "model_request", "messages": [{"role": "user", "content": "x"}], "answer": None, "error": "busy"},
    {"type": "model_request", "messages": [0], "tools": [{"name": "f"}], "parameters": {}, "duration_ms": 1.5},
    {"type": "done", "model": "m", "more": "is passed over"},
    {"type": "error", "message": "m", "retry": True, "retry_after_s": 1},
]
NO_EVENTS: list[Any] = [
    {},
    {"type": "txt"},
    {"type": "text"},
    {"type": "text", "text": 3},
    {"type": "tool_call"},
    {"type": "error"},
    [],
    None,
]


def test_a_request_fits_its_schema() -> None:
    messages = (Message("user", "a"), Message("assistant", "", tool_calls=(0,)), Message("tool", "r", tool_call=0))
    request = AgentRequest(messages, context={"input_data": [1]}, tool_calls=(ToolCall("c", "f", {"x": 1}, "r"),))
    document = json.loads(json.dumps(request_document(request, {"temperature": 0.5})))
    validator = Draft202012Validator(schema("agent-request"))
    validator.validate(document)
    assert not validator.is_valid({**document, "more": 1})


def test_events_fit_their_schema_and_are_read() -> None:
    validator, reader = Draft202012Validator(schema("agent-event")), EventReader()
    for event in EVENTS:
        validator.validate(event)
        assert reader.read(event)
    assert {event["type"] for event in EVENTS} == set(python_conversation.EVENTS)
    assert {one["properties"]["type"]["const"] for one in schema("agent-event")["oneOf"]} == set(
        python_conversation.EVENTS
    )


@pytest.mark.parametrize("value", NO_EVENTS)
def test_what_is_no_event_is_refused_by_both(value: Any) -> None:
    assert not Draft202012Validator(schema("agent-event")).is_valid(value)
    with pytest.raises(EventError):
        EventReader().read(value)
