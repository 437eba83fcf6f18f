"""Verdicts that stand beside a transcript of ours in a file: read with care, because anybody may have written it."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.formats.importers.usage_import import number
from agenteval_tui.formats.json_sanitize import replace_non_finite
from agenteval_tui.grading.codec import result_from_json
from agenteval_tui.grading.results import CriterionResult, Evidence, MetricResult, Span
from agenteval_tui.transcripts.model import Transcript

_SEVERITIES = ("error", "warning", "info")


def results_of(data: Any, transcript: Transcript) -> tuple[CriterionResult, ...]:
    """The criterion results of a run, as `grading.codec` writes them; () for None.

    Places that are not in `transcript` are left out. Raises `AgentevalError` when these are not results.
    """
    if data is None:
        return ()
    try:
        if not isinstance(data, list):
            raise TypeError
        return tuple(_result(result_from_json(replace_non_finite(entry)), transcript) for entry in data)
    except (KeyError, ValueError, TypeError, AttributeError, OverflowError):
        raise AgentevalError(
            "its `results` are none of this program's", fix="`agenteval schema grade` prints their form"
        ) from None


def _result(result: CriterionResult, transcript: Transcript) -> CriterionResult:
    return replace(
        result,
        score=_score(result.score),
        weight=_weight(result.weight),
        severity=result.severity if result.severity in _SEVERITIES else "error",
        value=result.value if isinstance(result.value, str) else None,
        value_spans=_places(result.value_spans, transcript),
        metrics=tuple(_metric(metric, transcript) for metric in result.metrics),
    )


def _metric(result: MetricResult, transcript: Transcript) -> MetricResult:
    evidence = tuple(_evidence(part, transcript) for part in result.evidence)
    return replace(result, score=_score(result.score), weight=_weight(result.weight), evidence=evidence)


def _evidence(evidence: Evidence, transcript: Transcript) -> Evidence:
    passed = evidence.passed if isinstance(evidence.passed, bool) else None
    return replace(
        evidence, passed=passed, spans=_places(evidence.spans, transcript), near=_places(evidence.near, transcript)
    )


def _score(value: Any) -> float | None:
    # `number` reads texts, too, as foreign formats have them; ours has none.
    figure = None if isinstance(value, str) else number(value)
    return None if figure is None else min(1.0, max(0.0, figure))


def _weight(value: Any) -> float:
    figure = None if isinstance(value, str) else number(value)
    return 1.0 if figure is None or figure < 0 else figure


def _places(spans: tuple[Span, ...], transcript: Transcript) -> tuple[Span, ...]:
    return tuple(span for span in spans if _is_there(span, transcript))


def _is_there(span: Span, transcript: Transcript) -> bool:
    if span.kind == "message":
        texts = transcript.messages
        return 0 <= span.index < len(texts) and 0 <= span.start <= span.end <= len(texts[span.index].content)
    if span.kind in ("arguments", "tool"):
        return 0 <= span.index < len(transcript.tool_calls)
    if span.kind == "state":
        return 0 <= span.index < len(transcript.state) and 0 <= span.start <= span.end
    if span.kind == "request":
        count = 0 if transcript.requests is None else len(transcript.requests.references)
        return 1 <= span.index <= count and 0 <= span.start <= span.end
    return span.kind == "value" and 0 <= span.start <= span.end
