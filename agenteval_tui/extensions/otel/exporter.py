"""A run as a trace of OpenTelemetry's GenAI spans (OTLP JSON)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from agenteval_tui.formats.agenteval_run import own_fields
from agenteval_tui.formats.exporters.exporter import (
    ATTACHED,
    LABELS,
    Exporter,
    StoredRun,
    codes_of,
    json_line,
    of_execution,
)
from agenteval_tui.formats.json_sanitize import replace_non_finite
from agenteval_tui.grading import sentences
from agenteval_tui.grading.codec import result_to_json
from agenteval_tui.grading.results import CriterionResult
from agenteval_tui.transcripts.model import Message, Step, ToolCall, Transcript

LOSSES = (LABELS, ATTACHED)
_INTERNAL, _CLIENT, _ERROR = 1, 3, 2
_AGENT = "agent"


def _otlp_of(run: StoredRun, not_kept: Sequence[str]) -> dict[str, Any]:
    """An export with one trace: a span of the agent with the conversation, below it those of its steps and tools.

    `not_kept`: codes of what the format can't keep of the run, which the span of the agent says. The ids are made from
    the run's id, so that the same run gives the same trace.
    """
    row, transcript = run.row, run.transcript
    total = transcript.timing.total_ms or row.duration_ms or 0.0
    error = transcript.error
    about = {
        **_about_run(run),
        "agenteval.not_kept": list(not_kept) or None,
        "error.type": None if error is None else error.kind,
    }
    agent = {
        **_span(run, _AGENT, f"invoke_agent {row.agent}".strip(), 0.0, total, about),
        "events": [_evaluation(result, _begin(run) + int(total * 1e6)) for result in run.results],
        "status": {} if error is None else {"code": _ERROR, "message": error.message},
    }
    tools = [
        _tool(run, index, call)
        for index, call in enumerate(transcript.tool_calls)
        if call.duration_ms is not None or call.result is not None
    ]
    # A step of a tool has its span among `tools`: a second one would be a second call.
    names = {call.name for call in transcript.tool_calls}
    models = [_step(run, index, step) for index, step in enumerate(transcript.timing.steps) if step.name not in names]
    spans = [agent, *models, *tools]
    scope = {"scope": {"name": "agenteval"}, "spans": spans}
    return {
        "resourceSpans": [{"resource": {"attributes": _pairs({"service.name": "agenteval"})}, "scopeSpans": [scope]}]
    }


def _about_run(run: StoredRun) -> dict[str, Any]:
    row, transcript = run.row, run.transcript
    usage = transcript.usage
    messages = [_message(transcript, message) for message in transcript.messages]
    # The last answer is what came out, all before it what went in.
    last = len(messages) - 1 if messages and messages[-1]["role"] == "assistant" else len(messages)
    return {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": row.agent,
        "gen_ai.response.model": transcript.model,
        "gen_ai.response.finish_reasons": [transcript.finish_reason] if transcript.finish_reason else None,
        "gen_ai.usage.input_tokens": usage.input_tokens,
        "gen_ai.usage.output_tokens": usage.output_tokens,
        "gen_ai.usage.cache_read.input_tokens": usage.cached_tokens,
        "gen_ai.usage.cache_creation.input_tokens": usage.cache_write_tokens,
        "gen_ai.usage.reasoning.output_tokens": usage.reasoning_tokens,
        "operation.cost": usage.cost,
        "gen_ai.input.messages": _text(messages[:last]),
        "gen_ai.output.messages": _text(messages[last:]) if messages[last:] else None,
        "agenteval.run": _text(replace_non_finite({**own_fields(row, transcript, ()), **of_execution(run)})),
        "agenteval.run.id": row.id,
        "agenteval.run.outcome": row.status,
        "agenteval.run.repetition": row.repetition,
        "agenteval.run.variation": row.variation or None,
        "agenteval.test.id": row.test_id,
        "agenteval.test.name": row.test_name,
        "agenteval.test.variables": _text(replace_non_finite(dict(row.variables))) if row.variables else None,
    }


def _message(transcript: Transcript, message: Message) -> dict[str, Any]:
    parts: list[dict[str, Any]] = []
    if message.reasoning:
        parts.append({"type": "reasoning", "content": message.reasoning})
    if message.role == "tool":
        call = transcript.tool_calls[message.tool_call] if message.tool_call is not None else None
        answer: dict[str, Any] = {"type": "tool_call_response", "response": message.content}
        answer["id"] = call.id if call is not None else message.tool_call_id
        if call is not None and call.status == "error":
            answer["is_error"] = True
        parts.append(answer)
    elif message.content:
        parts.append({"type": "text", "content": message.content})
    for index in message.tool_calls:
        tool_call = transcript.tool_calls[index]
        parts.append(
            {"type": "tool_call", "id": tool_call.id, "name": tool_call.name, "arguments": tool_call.arguments}
        )
    fields: dict[str, Any] = {"role": message.role, "parts": parts}
    return {**fields, "name": message.name} if message.name is not None else fields


def _tool(run: StoredRun, index: int, call: ToolCall) -> dict[str, Any]:
    arguments = call.arguments if isinstance(call.arguments, str) else _text(call.arguments)
    about = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": call.name,
        "gen_ai.tool.call.id": call.id,
        "gen_ai.tool.call.arguments": arguments,
        "gen_ai.tool.call.result": call.result,
        "error.type": "tool_error" if call.status == "error" else None,
    }
    span = _span(run, f"tool:{index}", f"execute_tool {call.name}", call.started_ms, call.duration_ms, about)
    return {**span, "status": {"code": _ERROR} if call.status == "error" else {}}


def _step(run: StoredRun, index: int, step: Step) -> dict[str, Any]:
    about = {"gen_ai.operation.name": "chat", "gen_ai.response.model": run.transcript.model or None}
    span = _span(run, f"step:{index}", step.name, step.started_ms, step.duration_ms, about, kind=_CLIENT)
    return {**span, "status": {}}


def _span(
    run: StoredRun,
    part: str,
    name: str,
    started_ms: float | None,
    duration_ms: float | None,
    about: dict[str, Any],
    *,
    kind: int = _INTERNAL,
) -> dict[str, Any]:
    """A span without its status. `part`: of the run; all but the agent are below it. `started_ms`: in the run."""
    start = _begin(run) + int((started_ms or 0.0) * 1e6)
    parent = {} if part == _AGENT else {"parentSpanId": _hex(f"{run.row.id}:{_AGENT}", 16)}
    return {
        "traceId": _hex(run.row.id, 32),
        "spanId": _hex(f"{run.row.id}:{part}", 16),
        **parent,
        "name": name,
        "kind": kind,
        "startTimeUnixNano": str(start),
        "endTimeUnixNano": str(start + int((duration_ms or 0.0) * 1e6)),
        "attributes": _pairs(about),
    }


def _begin(run: StoredRun) -> int:
    return int((run.row.started_ms or 0) * 1_000_000)


def _evaluation(result: CriterionResult, at: int) -> dict[str, Any]:
    return {
        "name": "gen_ai.evaluation.result",
        "timeUnixNano": str(at),
        "attributes": _pairs(
            {
                "gen_ai.evaluation.name": result.criterion,
                "gen_ai.evaluation.score.value": result.score,
                "gen_ai.evaluation.score.label": str(result.outcome),
                "gen_ai.evaluation.explanation": sentences.criterion_sentence(result) or None,
                "agenteval.evaluation.severity": result.severity,
                "agenteval.evaluation.weight": result.weight,
                "agenteval.evaluation.negate": result.negate,
                "agenteval.evaluation.result": _text(replace_non_finite(result_to_json(result))),
            }
        ),
    }


def _pairs(values: dict[str, Any]) -> list[dict[str, Any]]:
    """OTLP's attributes; what is None is left out."""
    return [{"key": key, "value": _any(value)} for key, value in values.items() if value is not None]


def _any(value: Any) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value}
    if isinstance(value, list):
        return {"arrayValue": {"values": [_any(item) for item in value]}}
    return {"stringValue": str(value)}


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _hex(text: str, length: int) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:length]


def _pieces(runs: Iterable[StoredRun]) -> Iterator[str]:
    for run in runs:
        yield json_line(_otlp_of(run, codes_of(run, LOSSES))) + "\n"


EXPORTER = Exporter(
    name="otel",
    title="OpenTelemetry spans (OTLP)",
    about="OpenTelemetry GenAI spans, one trace per line (OTLP JSON)",
    suffix=".otlp.jsonl",
    pieces=_pieces,
    losses=LOSSES,
    rank=30,
)
