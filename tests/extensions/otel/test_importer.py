"""Traces of OpenTelemetry as runs."""

from __future__ import annotations

import json
from typing import Any

from tests.formats.test_foreign_runs import said, weather


def otlp(*spans: dict[str, Any]) -> dict[str, Any]:
    return {"resourceSpans": [{"resource": {}, "scopeSpans": [{"scope": {}, "spans": list(spans)}]}]}


def span(
    trace: str, span_id: str, attributes: dict[str, Any], start: int = 0, end: int = 1, **more: Any
) -> dict[str, Any]:
    pairs = [
        {"key": key, "value": {"intValue": str(value)} if isinstance(value, int) else {"stringValue": value}}
        for key, value in attributes.items()
    ]
    return {"traceId": trace, "spanId": span_id, "name": span_id, "startTimeUnixNano": str(start * 10**6),
            "endTimeUnixNano": str(end * 10**6), "attributes": pairs, **more}  # fmt: skip


ASKED = [{"role": "user", "parts": [{"type": "text", "content": "Weather?"}]}]
LOOKED = {"role": "assistant", "parts": [
    {"type": "reasoning", "content": "Hm."}, {"type": "text", "content": "I look."},
    {"type": "tool_call", "id": "c1", "name": "get_weather", "arguments": {"city": "Oslo"}}]}  # fmt: skip
GIVEN = {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "response": "4 C"}]}
TOLD = {"role": "assistant", "parts": [{"type": "text", "content": "It is 4 C."}]}


def chat(trace: str, span_id: str, asked: list[Any], told: Any, at: int) -> dict[str, Any]:
    return span(trace, span_id, {
        "gen_ai.operation.name": "chat", "gen_ai.response.model": "m", "gen_ai.usage.input_tokens": 5,
        "gen_ai.usage.output_tokens": 2, "gen_ai.input.messages": json.dumps(asked),
        "gen_ai.output.messages": json.dumps([told]),
    }, at, at + 10)  # fmt: skip


def test_spans_of_a_trace_are_a_run_wherever_they_stand(imported) -> None:
    one = chat("t1", "s1", ASKED, LOOKED, 100)
    tool = span("t1", "s2", {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "get_weather",
                             "gen_ai.tool.call.id": "c1"}, 120, 150)  # fmt: skip
    two = chat("t1", "s3", [*ASKED, LOOKED, GIVEN], TOLD, 160)
    http = span("t1", "s4", {"http.method": "GET"})
    lines = "\n".join(json.dumps(otlp(*some)) for some in ([two], [http, chat("t2", "x", ASKED, TOLD, 5)], [tool, one]))
    report, runs = imported(lines, "spans.jsonl")
    assert (report.format, report.added) == ("otel", 2)
    assert "1 span is not about a model" in report.notes[0]
    transcript = runs[0][1]
    assert said(transcript) == weather()
    assert (transcript.usage.input_tokens, transcript.model, transcript.timing.total_ms) == (10, "m", 70.0)
    assert (transcript.tool_calls[0].started_ms, transcript.tool_calls[0].duration_ms) == (20.0, 30.0)
    assert imported(otlp(two, one, tool, http), "one.json")[1][0][1] == transcript


def test_older_instrumentations_and_traces_without_content(imported) -> None:
    old = span("t1", "s1", {
        "gen_ai.system": "openai", "gen_ai.prompt.0.role": "user", "gen_ai.prompt.0.content": "Weather?",
        "gen_ai.completion.0.role": "assistant", "gen_ai.completion.0.content": "Cold.",
        "gen_ai.completion.0.tool_calls.0.name": "f", "gen_ai.completion.0.tool_calls.0.arguments": "{}",
    })  # fmt: skip
    silent = span("t2", "s2", {"gen_ai.operation.name": "chat", "gen_ai.usage.input_tokens": 5})
    report, ((_, transcript),) = imported(otlp(old, silent))
    assert [m.content for m in transcript.messages] == ["Weather?", "Cold."]
    assert transcript.tool_calls[0].name == "f"
    assert "no span of this trace has messages or calls of tools" in report.skipped[0][0]


def test_conversations_in_the_events_of_spans_and_in_openinferences_words(imported) -> None:
    def event(name: str, attributes: dict[str, Any]) -> dict[str, Any]:
        return {"name": name, "attributes": span("", "", attributes)["attributes"]}

    calls = [{"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}]
    choice = {"role": "assistant", "content": "I look.", "tool_calls": calls}
    about = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"}
    said = [
        event("gen_ai.system.message", {"content": "Brief."}),
        event("gen_ai.user.message", {"content": "Weather?"}),
        event("gen_ai.choice", {"index": 0, "finish_reason": "tool_calls", "message": json.dumps(choice)}),
    ]
    older = [
        event("gen_ai.content.prompt", {"gen_ai.prompt": json.dumps([{"role": "user", "content": "Weather?"}])}),
        event("gen_ai.content.completion", {"gen_ai.completion": json.dumps([choice])}),
    ]
    message = "llm.{}_messages.0.message.{}".format
    phoenix = {
        "openinference.span.kind": "LLM", "llm.model_name": "m", "llm.token_count.prompt": 5, "input.value": "Weather?",
        message("input", "role"): "user", message("input", "content"): "Weather?",
        message("output", "role"): "assistant", message("output", "content"): "I look.",
        message("output", "tool_calls.0.tool_call.id"): "c1",
        message("output", "tool_calls.0.tool_call.function.name"): "f",
        message("output", "tool_calls.0.tool_call.function.arguments"): '{"a": 1}',
    }  # fmt: skip
    tool = span("t3", "s2", {"openinference.span.kind": "TOOL", "tool.name": "f", "tool_call.id": "c1"}, 20, 50)
    spans = [
        span("t1", "s1", about, events=said), span("t2", "s1", about, events=older), span("t3", "s1", phoenix), tool,
    ]  # fmt: skip
    _, runs = imported(otlp(*spans))
    assert [[m.role for m in transcript.messages][-2:] for _, transcript in runs] == [["user", "assistant"]] * 3
    for _, transcript in runs:
        (call,) = transcript.tool_calls
        assert (call.name, call.arguments, transcript.model) == ("f", {"a": 1}, "m")
        assert (transcript.messages[-2].content, transcript.final_output) == ("Weather?", "I look.")
    assert (runs[2][1].usage.input_tokens, runs[2][1].tool_calls[0].duration_ms) == (5, 30.0)


def test_values_of_the_wrong_kind_cost_what_has_them(imported) -> None:
    odd = chat("t1", "s1", ASKED, TOLD, 1)
    odd["attributes"] += [
        {"key": "gen_ai.x", "value": {kind: {"values": 1.5}}} for kind in ("arrayValue", "kvlistValue")
    ]
    assert len(imported(otlp(odd))[1]) == 1
    run = {"id": {"a": 1}, "trace_id": "t", "run_type": "chain", "inputs": {"input": "hi"}, "parent_run_id": {"b": 2}}
    assert len(imported({"post": [run], "patch": []}, "odd.json")[1]) == 1


def test_a_trace_that_failed_is_an_error(imported) -> None:
    agent = span("t", "a", {"gen_ai.operation.name": "invoke_agent", "error.type": "timeout"}, 0, 50,
                 status={"code": 2, "message": "too slow"})  # fmt: skip
    inner = {**chat("t", "c", ASKED, TOLD, 10), "parentSpanId": "a"}
    _, ((row_, _),) = imported(otlp(agent, inner))
    assert (row_.status, row_.error_kind, row_.error_message) == ("error", "timeout", "too slow")
