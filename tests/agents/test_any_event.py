"""Whatever an agent's program says, it is read or refused in words: no event ends an execution."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agenteval_tui.agents.process.protocol import EventError, EventReader
from agenteval_tui.agents.process.python_conversation import EVENTS
from agenteval_tui.agents.recorder import Recorder
from agenteval_tui.transcripts.codec import to_json
from agenteval_tui.transcripts.model import Message, Transcript

TEXTS = st.sampled_from(("", "a", "f", "tool", "\ud800"))
SCALARS = (
    st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from((10**30, float("nan"), float("inf"), 0.5)) | TEXTS
)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXTS, inner, max_size=2), max_leaves=4
)


def mostly(usual: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Mostly what is usual, sometimes any value: a fault of one field must not hide behind another's."""
    return st.integers(0, 7).flatmap(lambda number: usual if number else VALUES)


def objects(fields: dict[str, st.SearchStrategy[Any]], *needed: str) -> st.SearchStrategy[Any]:
    return mostly(
        st.fixed_dictionaries(
            {name: fields[name] for name in needed},
            optional={name: value for name, value in fields.items() if name not in needed},
        )
    )


IDS = mostly(st.sampled_from(("a", "b", 3)))
FUNCTIONS = objects({"name": mostly(st.just("f")), "arguments": mostly(st.just("{}"))})
CALLS = objects({"id": IDS, "function": FUNCTIONS, "name": VALUES, "type": VALUES}, "id", "function")
MESSAGES = objects(
    {
        "role": mostly(st.sampled_from(("user", "assistant", "tool", "system", "function"))),
        "content": mostly(TEXTS),
        "tool_calls": mostly(st.lists(CALLS, max_size=2)),
        "tool_call_id": IDS,
        "function_call": FUNCTIONS,
        **dict.fromkeys(("name", "reasoning_content", "is_error", "unread", "unread_parts", "attachments"), VALUES),
    },
    "role",
)
TOOLS = objects({"name": VALUES, "function": FUNCTIONS, "functionDeclarations": VALUES, "parameters": VALUES})
FIELDS = {
    "messages": mostly(st.lists(MESSAGES | st.integers(0, 2), max_size=3)),
    "answer": MESSAGES,
    "tools": mostly(st.lists(TOOLS, max_size=2)),
    "id": IDS,
    **dict.fromkeys(("text", "name", "code", "what", "message"), mostly(TEXTS)),
    **dict.fromkeys(("arguments", "result", "error", "duration_ms", "started_ms", "outputs", "parameters"), VALUES),
    **dict.fromkeys(("model", "agent", "previous", "finish_reason", "kind", "fix", "retry", "retry_after_s"), VALUES),
    **dict.fromkeys(("input_tokens", "output_tokens", "cost", "odd", "sums"), VALUES),
}


def events_of(kind: str) -> st.SearchStrategy[Any]:
    needed = {"model_request": ("messages",), "tool_call": ("name",)}.get(kind, ())
    return objects({"type": mostly(st.just(kind)), **FIELDS}, "type", *needed)


def transcript_of(*events: Any) -> Transcript:
    reader, recorder = EventReader(), Recorder((Message("user", "hello"),))
    for event in events:
        with suppress(EventError):
            for read in reader.read(event):
                recorder.apply(read)
    return recorder.stored()


@pytest.mark.sweep
@pytest.mark.parametrize("kind", EVENTS)
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_any_event_is_read_or_refused(kind: str, data: st.DataObject) -> None:
    before = data.draw(st.lists(events_of("tool_call") | events_of("model_request"), max_size=1))
    json.dumps(to_json(transcript_of(*before, data.draw(events_of(kind)))))


@settings(max_examples=100, deadline=None)
@given(st.lists(events_of("model_request"), min_size=1, max_size=3))
def test_any_requests_are_read_or_refused(events: list[Any]) -> None:
    json.dumps(to_json(transcript_of(*events)))


USER = {"role": "user", "content": "hello"}


def calling(**call: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "f"}, **call}]}


@pytest.mark.parametrize(
    ("event", "what"),
    [
        ({"type": ["text"]}, "no event of type"),
        ({"type": "tool_call", "name": "f", "id": ["a"]}, "an event of type 'tool_call' needs a text as `id`"),
        ({"type": "tool_result", "id": {}}, "an event of type 'tool_result' needs a text as `id`"),
        ({"type": "model_request", "messages": [{"role": 3}]}, "needs a text as `role`"),
        ({"type": "model_request", "messages": [{"role": ["user"]}]}, "needs a text as `role`"),
        ({"type": "model_request", "messages": [USER], "answer": {"role": True}}, "needs a text as `role`"),
        ({"type": "model_request", "messages": [USER, calling(id=[1])]}, "a call .* needs a text as `id`"),
        ({"type": "model_request", "messages": [{**calling(), "tool_calls": {"a": 1}}]}, "a list"),
        ({"type": "model_request", "messages": [{"role": "tool", "tool_call_id": ["a"]}]}, "`tool_call_id`"),
    ],
)
def test_a_wrong_shape_is_named(event: Any, what: str) -> None:
    with pytest.raises(EventError, match=what):
        EventReader().read(event)


@pytest.mark.parametrize("function", [{}, {"arguments": "{}"}, {"name": None}, {"name": 1}, None])
def test_a_call_without_a_name_may_have_its_result(function: Any) -> None:
    call = calling(id="a", function=function)
    result = {"role": "tool", "tool_call_id": "a", "content": "done"}
    done = {"role": "assistant", "content": "yes"}
    transcript = transcript_of(
        {"type": "model_request", "messages": [USER], "answer": call},
        {"type": "model_request", "messages": [0, call, result], "answer": done},
        {"type": "text", "text": "yes"},
    )
    assert transcript.requests is not None
    assert [request.answer for request in transcript.requests.all] == [None, 1]


def test_ids_that_are_numbers_are_read_as_text() -> None:
    result = {"role": "tool", "tool_call_id": 3, "content": "done"}
    transcript = transcript_of(
        {"type": "tool_call", "id": 3, "name": "f"},
        {"type": "tool_result", "id": "3", "result": "done"},
        {"type": "model_request", "messages": [USER, calling(id="3"), result]},
        {"type": "text", "text": "yes"},
    )
    assert transcript.tool_calls[0].result == "done"
    assert transcript.requests is not None
    assert transcript.requests.request(1).messages[-1]["tool_call_id"] == "3"


def test_an_image_that_was_asked_about_is_known_by_its_bytes() -> None:
    url = "data:image/png;base64,YWFhYQ=="
    asked = {"role": "user", "content": [{"type": "image_url", "image_url": {"url": url}}], "attachments": 3}
    transcript = transcript_of(
        {"type": "model_request", "messages": [asked], "answer": {"role": "assistant", "content": "yes"}},
        {"type": "text", "text": "yes"},
    )
    assert transcript.requests is not None
    (attachment,) = transcript.requests.request(1).messages[0]["attachments"]
    assert (attachment["mark"], attachment["media_type"], attachment["size"]) == ("[image_url]", "image/png", 4)
