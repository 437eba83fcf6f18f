"""Langfuse: a trace with its observations and scores, as the app and its API export it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from agenteval_tui.formats.importers.format import Format, run_per_value
from agenteval_tui.formats.importers.message_formats import as_object, objects_in, plain_text, value_at
from agenteval_tui.formats.importers.recording import Recording, as_id, first_user_text
from agenteval_tui.formats.importers.trace_conversation import Kind, Span, conversation_of, decoded, request_messages
from agenteval_tui.formats.importers.trace_names import with_test_names
from agenteval_tui.formats.importers.usage_import import moment_ms, number
from agenteval_tui.grading.grade import foreign_result
from agenteval_tui.grading.results import CriterionResult

NAME = "langfuse"
_ASKED = re.compile(r"llm\.input_messages\.(\d{1,4})\.message\.(role|content|tool_call_id)")
_ROLES = ("system", "developer", "user", "tool")
"""Of the messages that are in attributes; what the model said is in its answers, with its calls."""
_KINDS: dict[str, Kind] = {"GENERATION": "model", "TOOL": "tool", "AGENT": "agent"}


def can_read(value: Any) -> bool:
    """Whether a value of the file is a trace with its observations."""
    if not isinstance(value, Mapping):
        return False
    if isinstance(value.get("trace"), Mapping) and isinstance(value.get("observations"), list):
        return True
    return isinstance(value.get("observations"), list) and "timestamp" in value and "id" in value


def _recording(value: Mapping[str, Any]) -> Recording:
    trace = value["trace"] if isinstance(value.get("trace"), Mapping) else value
    listed = objects_in(value.get("observations"))
    ids = {plain_text(observation.get("id")) for observation in listed}
    spans = [_span(observation, ids) for observation in listed]
    root = Span("", "other", asked=trace.get("input"), answered=trace.get("output"))
    notes: list[str] = []
    transcript = conversation_of(spans or [root], NAME, notes, root=root)
    name, trace_id = plain_text(trace.get("name")) or "trace", plain_text(trace.get("id"))
    agent = next((span.name for span in spans if span.kind == "agent"), "")
    # The trace repeats what its observations say, and an export has these twice.
    about = {key: value for key, value in trace.items() if key != "observations"}
    return Recording(
        test_id=as_id(trace_id or name),
        test_name=name,
        trace_name=plain_text(trace.get("name")) or agent,
        transcript=transcript,
        prompt=first_user_text(transcript),
        agent=agent or name,
        results=tuple(_scores(objects_in(trace.get("scores")))),
        started_ms=moment_ms(trace.get("timestamp")),
        notes=tuple(notes),
        source=(("trace", about), *(("observations[]", observation) for observation in listed)),
    )


def _span(observation: Mapping[str, Any], ids: set[str]) -> Span:
    about = as_object(value_at(decoded(observation.get("metadata")), "attributes"))
    kind = _KINDS.get(plain_text(observation.get("type")), "other")
    tool = next(
        (plain_text(about[key]) for key in ("gen_ai.tool.name", "ai.toolCall.name", "tool.name") if about.get(key)), ""
    )
    if tool and kind == "other":
        kind = "tool"
    inputs = observation.get("input")
    if kind == "tool" and isinstance(inner := decoded(inputs), Mapping) and inner.keys() == {"input"}:
        inputs = inner["input"]
    if kind == "model" and not request_messages(inputs):
        inputs = _of_openinference(about) or inputs
    parent = plain_text(observation.get("parentObservationId"))
    failed = observation.get("level") == "ERROR"
    return Span(
        id=plain_text(observation.get("id")),
        kind=kind,
        name=tool or plain_text(observation.get("name")).removeprefix("execute_tool ").removeprefix("running tool: "),
        parent=parent if parent in ids else "",
        started=moment_ms(observation.get("startTime")),
        ended=moment_ms(observation.get("endTime")),
        asked=inputs,
        answered=observation.get("output"),
        call_id=next(
            (plain_text(about[key]) for key in ("gen_ai.tool.call.id", "ai.toolCall.id") if about.get(key)), ""
        ),
        model=plain_text(observation.get("model")),
        usage=_usage(observation) if kind == "model" else None,
        error=(plain_text(observation.get("statusMessage")) or "failed") if failed else "",
    )


def _of_openinference(attributes: Mapping[str, Any]) -> list[dict[str, Any]]:
    """What a model was asked, where OpenInference wrote it into the attributes, and the input is something else."""
    by_number: dict[int, dict[str, Any]] = {}
    for key, value in attributes.items():
        named = _ASKED.fullmatch(key)
        if named is not None:
            by_number.setdefault(int(named[1]), {})[named[2]] = value
    messages = [by_number[number] for number in sorted(by_number) if by_number[number].get("role") in _ROLES]
    return [{**message, "content": message.get("content") or ""} for message in messages]


def _usage(observation: Mapping[str, Any]) -> dict[str, Any]:
    """The details; of older exports, in which 0 means that it is not known, the two sides."""
    details = decoded(observation.get("usageDetails"))
    if not isinstance(details, Mapping) or not details:
        details = {"input": observation.get("inputUsage") or None, "output": observation.get("outputUsage") or None}
    return {**details, "cost": observation.get("totalCost") or None}


def _scores(scores: Iterable[Mapping[str, Any]]) -> Iterator[CriterionResult]:
    """What people and evaluators gave. Only a boolean says whether it is enough."""
    for score in scores:
        name, value = plain_text(score.get("name")) or "score", score.get("value")
        comment = plain_text(score.get("comment"))
        if score.get("dataType") == "BOOLEAN" and number(value) in (0.0, 1.0):
            yield foreign_result(name, passed=number(value) == 1.0, source=NAME, reason=comment)
        elif score.get("dataType") == "CATEGORICAL" or number(value) is None:
            text = plain_text(score.get("stringValue") or value)
            yield foreign_result(name, source=NAME, reason="; ".join(filter(None, (text, comment))))
        else:
            # Whether a high figure is good is not said: toxicity and correctness look alike.
            text = f"Langfuse has {number(value):g}"
            yield foreign_result(name, source=NAME, reason="; ".join(filter(None, (text, comment))))


FORMAT = Format(
    name=NAME,
    title="a Langfuse export",
    looks_like="an object with `trace` and `observations`",
    can_read=can_read,
    recordings=with_test_names(
        run_per_value(_recording, can_read=can_read, refusal="not a trace: it has no `observations`")
    ),
    rank=61,
)
