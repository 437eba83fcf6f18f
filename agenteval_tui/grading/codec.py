"""Results as JSON, in the shape that `agenteval grade --json` prints, and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agenteval_tui.grading import sentences
from agenteval_tui.grading.codes import Code
from agenteval_tui.grading.results import CriterionResult, Evidence, MetricResult, Outcome, Span
from agenteval_tui.grading.spec import json_like

_CODES = frozenset(Code)


def result_to_json(result: CriterionResult) -> dict[str, Any]:
    """`{"criterion", "outcome", "score", "rating", "value", "metrics": [...]}` and more.

    `result_from_json` reads it back to an equal result.
    """
    return {
        "criterion": result.criterion,
        "outcome": str(result.outcome),
        "score": result.score,
        "rating": result.rating,
        "value": result.value,
        "metrics": [_metric_to_json(metric) for metric in result.metrics],
        "reason": sentences.criterion_sentence(result),
        **_said(result),
        "severity": result.severity,
        "weight": result.weight,
        "negate": result.negate,
        "prototype_class": result.prototype_class,
        "criterion_hash": result.criterion_hash,
        "source": result.source,
        "derived": result.derived,
        "value_spans": [span_to_json(span) for span in result.value_spans],
    }


def _metric_to_json(metric: MetricResult) -> dict[str, Any]:
    """`{"name", "type", "outcome", "score", "rating", "evidence": [...]}` and more."""
    return {
        "name": metric.name,
        "type": metric.type,
        "outcome": str(metric.outcome),
        "score": metric.score,
        "rating": metric.rating,
        "evidence": [_evidence(line) for line in metric.evidence],
        "weight": metric.weight,
        "neutral": metric.neutral,
        "reason": sentences.metric_sentence(metric),
        **_said(metric),
    }


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
        metrics=tuple(_metric_from(one) for one in data.get("metrics") or ()),
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
        evidence=tuple(_evidence_from(one) for one in data.get("evidence") or ()),
        **_read(data, ""),
    )


def _evidence(evidence: Evidence) -> dict[str, Any]:
    return {
        "condition": evidence.condition,
        "passed": evidence.passed,
        "reason": sentences.evidence_sentence(evidence),
        "code": str(evidence.code),
        "fields": json_like(evidence.fields),
        "expected": json_like(evidence.expected),
        "found": json_like(evidence.found),
        "spans": [span_to_json(span) for span in evidence.spans],
        "near": [span_to_json(span) for span in evidence.near],
        "group": evidence.group,
    }


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


def _said(one: MetricResult | CriterionResult) -> dict[str, Any]:
    """`code` is null where the metrics or the evidence say all there is to say, "message" for a text of others."""
    code = one.code or (Code.MESSAGE if one.message else None)
    return {"code": None if code is None else str(code), "fields": json_like(one.fields)}


def _read(data: Mapping[str, Any], otherwise: str) -> dict[str, Any]:
    """Message, code and fields. A sentence is kept only where no code that is known here could make it anew."""
    given, fields = data.get("code"), data.get("fields")
    code = given if isinstance(given, str) else otherwise
    made = (code in _CODES and code != Code.MESSAGE) or ("code" in data and given is None)
    return {
        "message": "" if made else str(data.get("reason", "")),
        "code": otherwise if code == Code.MESSAGE else code,
        "fields": dict(fields) if isinstance(fields, Mapping) else {},
    }


def span_to_json(span: Span) -> dict[str, Any]:
    """`{"kind", "index"}` with `start` and `end`, or `path`, where the kind has them."""
    if span.kind in ("message", "value"):
        return {"kind": span.kind, "index": span.index, "start": span.start, "end": span.end}
    if span.kind == "tool":
        return {"kind": span.kind, "index": span.index}
    return {"kind": span.kind, "index": span.index, "path": span.path}


def _spans(data: Any) -> tuple[Span, ...]:
    return tuple(
        Span(
            one["kind"],
            int(one.get("index", 0)),
            int(one.get("start", 0)),
            int(one.get("end", 0)),
            str(one.get("path", "")),
        )
        for one in data or ()
    )
