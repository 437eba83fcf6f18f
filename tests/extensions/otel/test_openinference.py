"""OpenInference's spans in the forms in which Phoenix exports them, and what only a span's input and output tell."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agenteval_tui.transcripts.observed import observes

Import = Callable[..., Any]
CALL = {"function": {"name": "cancel_order", "arguments": '{"id": 1}'}, "id": "c1"}
AGENT = {"input.value": "cancel 1", "output.value": "done"}
MODEL = {
    "llm.model_name": "gpt-4o",
    "llm.input_messages.0.message.role": "user",
    "llm.input_messages.0.message.content": "cancel 1",
    "llm.output_messages.0.message.role": "assistant",
    "llm.output_messages.0.message.tool_calls.0.tool_call.function.name": "cancel_order",
    "llm.output_messages.0.message.tool_calls.0.tool_call.function.arguments": '{"id": 1}',
    "llm.token_count.prompt": 10,
    "llm.token_count.completion": 2,
}
TOOL = {"tool.name": "cancel_order", "input.value": '{"id": 1}', "output.value": "ok"}


def span(number: int, kind: str, attributes: dict[str, Any], parent: int = 1, **more: Any) -> dict[str, Any]:
    return {
        "id": f"U3Bhbjo{number}", "name": f"span {number}", "context": {"trace_id": "t1", "span_id": f"s{number}"},
        "span_kind": kind, "parent_id": f"s{parent}" if number > 1 else None,
        "start_time": f"2026-01-01T00:00:0{number}+00:00", "end_time": f"2026-01-01T00:00:0{number}.5+00:00",
        "status_code": "OK", "status_message": "", "attributes": attributes, "events": [], **more,
    }  # fmt: skip


SPANS = [span(1, "AGENT", AGENT), span(2, "LLM", MODEL), span(3, "TOOL", TOOL)]


def nested(attributes: dict[str, Any]) -> dict[str, Any]:
    """The attributes as objects and lists."""
    found: dict[str, Any] = {}
    for key, value in attributes.items():
        here = found
        *way, last = key.split(".")
        for name in way:
            here = here.setdefault(name, {})
        here[last] = value

    def lists(value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        if value and all(key.isdecimal() for key in value):
            return [lists(one) for one in value.values()]
        return {key: lists(one) for key, one in value.items()}

    plain: dict[str, Any] = lists(found)
    return plain


def row(given: dict[str, Any]) -> dict[str, Any]:
    """A row of the table that `get_spans_dataframe` gives."""
    about = nested(given["attributes"])
    columns = {f"context.{key}": value for key, value in given["context"].items()}
    rest = {key: value for key, value in given.items() if key not in ("context", "attributes")}
    llm = about.get("llm", {})
    flat = {key: value for key, value in given["attributes"].items() if "_messages." not in key}
    lists = {f"llm.{key}": value for key, value in llm.items() if isinstance(value, list)}
    return {**columns, **rest, **{f"attributes.{key}": value for key, value in {**flat, **lists}.items()}}


FORMS: dict[str, Any] = {
    "spans": SPANS,
    "lines": "\n".join(map(json.dumps, SPANS)),
    "a page of the REST API": {"data": SPANS, "next_cursor": None},
    "a trace": {"traceId": "t1", "status": "OK", "spans": SPANS, "rootSpan": SPANS[0]},
    "nested attributes": [{**one, "attributes": nested(one["attributes"])} for one in SPANS],
    "rows of a table": list(map(row, SPANS)),
    "the kind among the attributes": [
        {**one, "span_kind": None, "attributes": {**one["attributes"], "openinference.span.kind": one["span_kind"]}}
        for one in SPANS
    ],
}


@pytest.mark.parametrize("form", FORMS)
def test_an_export_of_phoenix_is_a_run(imported: Import, form: str) -> None:
    report, ((_, transcript),) = imported(FORMS[form])
    assert report.format == "otel"
    assert [(one.role, one.content) for one in transcript.messages] == [
        ("user", "cancel 1"), ("assistant", ""), ("tool", "ok"), ("assistant", "done"),
    ]  # fmt: skip
    assert [(one.name, one.arguments, one.result, one.duration_ms) for one in transcript.tool_calls] == [
        ("cancel_order", {"id": 1}, "ok", 500)
    ]
    assert (transcript.usage.input_tokens, transcript.usage.output_tokens) == (10, 2)
    assert transcript.model == "gpt-4o"


def test_a_failed_tool_has_failed(imported: Import) -> None:
    failed = span(3, "TOOL", {"tool.name": "cancel_order", "input.value": '{"id": 1}'}, status_code="ERROR",
                  status_message="no such order")  # fmt: skip
    _, ((_, transcript),) = imported([*SPANS[:2], failed])
    assert [one.status for one in transcript.tool_calls] == ["error"]


def test_a_tool_without_a_model_is_a_call(imported: Import) -> None:
    _, ((_, transcript),) = imported([SPANS[0], SPANS[2]])
    assert [(one.name, one.arguments, one.result) for one in transcript.tool_calls] == [
        ("cancel_order", {"id": 1}, "ok")
    ]
    assert (transcript.messages[0].content, transcript.final_output) == ("cancel 1", "done")


def test_texts_alone_say_nothing_of_calls(imported: Import) -> None:
    for spans in ([SPANS[0]], [span(1, "CHAIN", AGENT)], [span(1, "LLM", AGENT)]):
        _, ((_, transcript),) = imported(spans, f"{len(spans)}{spans[0]['span_kind']}.json")
        assert [(one.role, one.content) for one in transcript.messages] == [("user", "cancel 1"), ("assistant", "done")]
        assert "tool_calls" not in observes(transcript)


def test_a_reply_in_the_output_of_a_model_says_what_was_called(imported: Import) -> None:
    reply = {"choices": [{"message": {"role": "assistant", "content": None, "tool_calls": [CALL]}}]}
    _, ((_, transcript),) = imported([span(1, "LLM", {"input.value": "q", "output.value": json.dumps(reply)})])
    assert [one.name for one in transcript.tool_calls] == ["cancel_order"]
    assert "tool_calls" in observes(transcript)


def test_all_parts_of_a_message_are_kept(imported: Import) -> None:
    prefix = "llm.input_messages.0.message"
    parts = {
        f"{prefix}.role": "user",
        f"{prefix}.contents.0.message_content.type": "text",
        f"{prefix}.contents.0.message_content.text": "first",
        f"{prefix}.contents.1.message_content.type": "text",
        f"{prefix}.contents.1.message_content.text": "second",
        "llm.output_messages.0.message.content": "done",
    }
    _, ((_, transcript),) = imported([span(1, "LLM", parts)])
    assert transcript.messages[0].content == "first\nsecond"
    assert (transcript.messages[1].role, transcript.final_output) == ("assistant", "done")


@pytest.mark.shared
def test_the_export_of_the_report(imported: Import, shared: Path) -> None:
    _, ((_, transcript),) = imported(shared / "data" / "reports" / "07-phoenix-spans-refused" / "spans.json")
    assert [(one.name, one.arguments, one.result) for one in transcript.tool_calls] == [
        ("cancel_order", {"id": 1}, "ok")
    ]
    assert transcript.final_output == "done"
