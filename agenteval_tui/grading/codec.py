"""Results as JSON, in the shape that `agenteval grade --json` prints, and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from msgspec import UNSET, Meta, UnsetType, to_builtins

from agenteval_tui.core.document import Count, Document, Rating, extended, one_of
from agenteval_tui.grading import sentences
from agenteval_tui.grading.codes import Code
from agenteval_tui.grading.results import (
    CriterionFigures,
    CriterionResult,
    Evidence,
    MetricFigures,
    MetricResult,
    Outcome,
    Span,
)
from agenteval_tui.grading.spec import json_like

_CODES = frozenset(Code)


_Code = Annotated[
    Annotated[str, one_of(*Code)] | UnsetType | None,
    Meta(description="what holds or what is wrong; null: what is below says all."),
]
_FieldsOfCode = Annotated[
    dict[str, Any] | UnsetType,
    Meta(description="what the code speaks of: tool, path, key, line, counts, bounds, ..."),
]
_Reason = Annotated[
    str, Meta(description="the code and its fields in words: for people, and may be reworded at any time")
]


class SpanDocument(Document, frozen=True, kw_only=True):
    """A place in a run."""

    kind: Annotated[str, one_of("message", "arguments", "tool", "value", "state", "request")]
    index: Count
    start: Count | UnsetType = UNSET
    end: Count | UnsetType = UNSET
    path: str | UnsetType = UNSET


AnySpan = Annotated[
    SpanDocument,
    Meta(
        description="A place: characters of a message, of the extracted value, of what a probe read or of a request "
        "to a model as text (`index`: its number from 1), a tool call, or an argument of one."
    ),
]


class EvidenceDocument(Document, frozen=True, kw_only=True):
    """A condition that a metric looked at."""

    condition: str
    passed: bool | None
    reason: _Reason
    code: _Code = UNSET
    fields: _FieldsOfCode = UNSET
    expected: Any
    found: Any
    spans: tuple[AnySpan, ...]
    near: Annotated[tuple[AnySpan, ...], Meta(description="where the closest miss is")]
    group: str


class MetricDocument(MetricFigures, frozen=True, kw_only=True):
    """What a metric said."""

    rating: Rating
    evidence: tuple[EvidenceDocument, ...]
    reason: _Reason
    code: _Code = UNSET
    fields: _FieldsOfCode = UNSET


class CriterionDocument(CriterionFigures, frozen=True, kw_only=True):
    """What a criterion said of a run: `agenteval grade` prints a list of these."""

    rating: Rating
    metrics: tuple[MetricDocument, ...]
    reason: _Reason
    code: _Code = UNSET
    fields: _FieldsOfCode = UNSET
    value_spans: tuple[AnySpan, ...]


def result_to_json(result: CriterionResult) -> dict[str, Any]:
    """A result as plain JSON data. `result_from_json` reads it back to an equal result."""
    plain: dict[str, Any] = to_builtins(result_document(result))
    return plain


def result_document(result: CriterionResult) -> CriterionDocument:
    """A result as it is printed and exported."""
    return extended(
        CriterionDocument,
        result,
        metrics=tuple(map(_metric, result.metrics)),
        reason=sentences.criterion_sentence(result),
        **_code(result),
        value_spans=tuple(map(span_document, result.value_spans)),
    )


def _metric(metric: MetricResult) -> MetricDocument:
    return extended(
        MetricDocument,
        metric,
        evidence=tuple(map(_evidence, metric.evidence)),
        reason=sentences.metric_sentence(metric),
        **_code(metric),
    )


def result_from_json(data: Mapping[str, Any]) -> CriterionResult:
    """Read what `result_to_json` wrote. Raises `ValueError` or `KeyError` for anything else."""
    return CriterionResult(
        criterion=str(data["criterion"]),
        outcome=Outcome(data["outcome"]),
        score=data.get("score"),
        severity=str(data.get("severity", "error")),
        weight=data.get("weight", 1.0),
        negate=bool(data.get("negate", False)),
        prototype_class=str(data.get("prototype_class", "")),
        criterion_hash=str(data.get("criterion_hash", "")),
        value=data.get("value"),
        value_spans=_spans(data.get("value_spans")),
        metrics=tuple(_metric_from(metric) for metric in data.get("metrics") or ()),
        source=str(data.get("source", "")),
        derived=data.get("derived") is True,
        **_read(data, ""),
    )


def _metric_from(data: Mapping[str, Any]) -> MetricResult:
    return MetricResult(
        name=str(data["name"]),
        type=str(data["type"]),
        outcome=Outcome(data["outcome"]),
        score=data.get("score"),
        weight=data.get("weight", 1.0),
        neutral=bool(data.get("neutral", False)),
        evidence=tuple(_evidence_from(entry) for entry in data.get("evidence") or ()),
        **_read(data, ""),
    )


def _evidence(evidence: Evidence) -> EvidenceDocument:
    return EvidenceDocument(
        condition=evidence.condition,
        passed=evidence.passed,
        reason=sentences.evidence_sentence(evidence),
        code=str(evidence.code),
        fields=json_like(evidence.fields),
        expected=json_like(evidence.expected),
        found=json_like(evidence.found),
        spans=tuple(map(span_document, evidence.spans)),
        near=tuple(map(span_document, evidence.near)),
        group=evidence.group,
    )


def _evidence_from(data: Mapping[str, Any]) -> Evidence:
    return Evidence(
        condition=str(data["condition"]),
        passed=data.get("passed"),
        expected=data.get("expected"),
        found=data.get("found"),
        spans=_spans(data.get("spans")),
        near=_spans(data.get("near")),
        group=str(data.get("group", "")),
        **_read(data, Code.MESSAGE),
    )


def _code(result: MetricResult | CriterionResult) -> dict[str, Any]:
    """`code` is null where the metrics or the evidence say all there is to say, "message" for a text of others."""
    code = result.code or (Code.MESSAGE if result.message else None)
    return {"code": None if code is None else str(code), "fields": json_like(result.fields)}


def _read(data: Mapping[str, Any], otherwise: str) -> dict[str, Any]:
    """Message, code and fields. A sentence is stored only if no known code could produce it again."""
    raw_code, fields = data.get("code"), data.get("fields")
    code = raw_code if isinstance(raw_code, str) else otherwise
    is_coded = (code in _CODES and code != Code.MESSAGE) or ("code" in data and raw_code is None)
    return {
        "message": "" if is_coded else str(data.get("reason", "")),
        "code": otherwise if code == Code.MESSAGE else code,
        "fields": dict(fields) if isinstance(fields, Mapping) else {},
    }


def span_document(span: Span) -> SpanDocument:
    """A place, with what its kind has: `start` and `end`, or `path`."""
    if span.kind in ("message", "value", "request"):
        return SpanDocument(kind=span.kind, index=span.index, start=span.start, end=span.end)
    if span.kind == "state":
        return SpanDocument(kind=span.kind, index=span.index, start=span.start, end=span.end, path=span.path)
    return SpanDocument(kind=span.kind, index=span.index, path=UNSET if span.kind == "tool" else span.path)


def _spans(data: Any) -> tuple[Span, ...]:
    return tuple(
        Span(
            span["kind"],
            int(span.get("index", 0)),
            int(span.get("start", 0)),
            int(span.get("end", 0)),
            str(span.get("path", "")),
        )
        for span in data or ()
    )
