"""MLflow's traces: `info` with assessments, `data` with spans whose attributes are JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agenteval_tui.formats.importers.derived_criteria import criteria_of_target
from agenteval_tui.formats.importers.format import Format, run_per_value
from agenteval_tui.formats.importers.message_formats import as_object, objects_in, plain_text, value_at
from agenteval_tui.formats.importers.recording import Recording, as_id, first_user_text
from agenteval_tui.formats.importers.trace_conversation import Kind, Span, conversation_of, decoded
from agenteval_tui.formats.importers.trace_names import with_test_names
from agenteval_tui.formats.importers.usage_import import number
from agenteval_tui.grading.grade import foreign_result
from agenteval_tui.grading.results import CriterionResult

NAME = "mlflow"
_KINDS: dict[str, Kind] = {"LLM": "model", "CHAT_MODEL": "model", "TOOL": "tool", "AGENT": "agent"}


def can_read(value: Any) -> bool:
    """Whether a value of the file is a trace."""
    if not isinstance(value, Mapping) or not isinstance(value.get("info"), Mapping):
        return False
    return isinstance(value_at(value, "data", "spans"), list)


def _recording(value: Mapping[str, Any]) -> Recording:
    info, listed = value["info"], objects_in(value["data"]["spans"])
    ids = {plain_text(span.get("span_id")) for span in listed}
    spans = [_span(span, ids) for span in listed]
    notes: list[str] = []
    preview = Span("", "other", asked=info.get("request_preview"), answered=info.get("response_preview"))
    transcript = conversation_of(spans or [preview], NAME, notes)
    trace = plain_text(info.get("trace_id") or info.get("request_id"))
    results, expected = _assessments(objects_in(info.get("assessments")))
    name = next((span.name for span in spans if not span.parent), "")
    return Recording(
        test_id=as_id(trace or "trace"),
        test_name=name or trace,
        trace_name=name,
        transcript=transcript,
        prompt=first_user_text(transcript),
        agent=next((span.name for span in spans if span.kind == "agent"), "") or transcript.model,
        results=tuple(results),
        expected=criteria_of_target(expected),
        variables={} if expected is None else {"expected_value": expected},
        started_ms=number(info.get("timestamp_ms"))
        or min((span.started for span in spans if span.started), default=None),
        notes=tuple(notes),
        source=(("info", info), *(("data.spans[]", _readable(span)) for span in listed)),
    )


def _readable(span: Mapping[str, Any]) -> dict[str, Any]:
    """The span with its attributes as they are meant: texts of JSON."""
    return {**span, "attributes": {key: decoded(value) for key, value in as_object(span.get("attributes")).items()}}


def _span(span: Mapping[str, Any], ids: set[str]) -> Span:
    about = _readable(span)["attributes"]
    kind = _KINDS.get(plain_text(about.get("mlflow.spanType")), "other")
    status = as_object(span.get("status"))
    failed = "ERROR" in plain_text(status.get("code") or span.get("status_code"))
    parent = plain_text(span.get("parent_span_id") or span.get("parent_id"))
    inputs, answered = about.get("mlflow.spanInputs"), about.get("mlflow.spanOutputs")
    usage = about.get("mlflow.chat.tokenUsage")
    return Span(
        id=plain_text(span.get("span_id")),
        kind=kind,
        name=plain_text(span.get("name")),
        parent=parent if parent in ids else "",
        started=_ms(span.get("start_time_unix_nano")),
        ended=_ms(span.get("end_time_unix_nano")),
        asked=about.get("mlflow.chat.messages") if kind == "model" and not _has_messages(inputs) else inputs,
        answered=answered,
        model=plain_text(about.get("mlflow.llm.model")),
        usage=usage if kind == "model" else None,
        error=(plain_text(status.get("message")) or "failed") if failed else "",
    )


def _has_messages(inputs: Any) -> bool:
    return isinstance(inputs, Mapping) and "messages" in inputs


def _ms(nanoseconds: Any) -> float | None:
    value = number(nanoseconds)
    return None if value is None or value <= 0 else value / 1e6


def _assessments(listed: list[Mapping[str, Any]]) -> tuple[list[CriterionResult], Any]:
    """What people and judges said, and what was expected."""
    results, expected = [], None
    for assessment in listed:
        name = plain_text(assessment.get("assessment_name") or assessment.get("name")) or "assessment"
        why = plain_text(assessment.get("rationale"))
        if isinstance(assessment.get("expectation"), Mapping):
            expected = assessment["expectation"].get("value", expected)
        elif isinstance(assessment.get("feedback"), Mapping):
            value = assessment["feedback"].get("value")
            yes = {"yes": True, "no": False}.get(value.casefold()) if isinstance(value, str) else value
            passed = yes if isinstance(yes, bool) else None
            reason = "; ".join(filter(None, ("" if passed is not None else plain_text(value), why)))
            results.append(foreign_result(name, passed=passed, source=NAME, reason=reason))
    return results, expected


FORMAT = Format(
    name=NAME,
    title="MLflow traces",
    looks_like="an object with `info`, and `data` with `spans`",
    can_read=can_read,
    recordings=with_test_names(
        run_per_value(_recording, can_read=can_read, refusal="not a trace: it has no `info` and `data`")
    ),
    rank=68,
)
