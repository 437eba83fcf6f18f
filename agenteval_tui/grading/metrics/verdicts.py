"""A metric's result from its lines of evidence."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from agenteval_tui.grading.metrics.metric import Metric
from agenteval_tui.grading.results import Evidence, MetricResult
from agenteval_tui.grading.words import SHOWN, shown

FOUND = 300
"""Characters of the text that `found` keeps."""
SPANS = 50
"""Places that one line of evidence marks."""
_KEPT = 1000
_LONG = 2000

Quick = Callable[[bool, float], MetricResult]


def with_evidence(metric: Metric, passed: bool, score: float, evidence: Iterable[Evidence]) -> MetricResult:
    """The verdict with its evidence, which says why."""
    return metric.result(passed, score, tuple(evidence))


def quick_results(metric: Metric) -> Quick:
    """Results without evidence, each made once: grading thousands makes the same few again and again."""
    known: dict[tuple[bool, float], MetricResult] = {}

    def result(passed: bool, score: float) -> MetricResult:
        found = known.get((passed, score))
        if found is None:
            found = metric.result(passed, score)
            if len(known) < _KEPT:
                known[passed, score] = found
        return found

    return result


def kept(text: str, limit: int = FOUND) -> str:
    """`text` as `found` keeps it."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def kept_value(value: Any) -> Any:
    """A JSON value as evidence keeps it: what is long is in the transcript already."""
    return value if len(shown(value, _LONG + 1)) <= _LONG else shown(value, FOUND)


def line_of(text: str, offset: int) -> int:
    """The line (from 1) of a character."""
    return text.count("\n", 0, offset) + 1


def short(text: str) -> str:
    """One line of `text`, cut to what a reason shows."""
    one = " ".join(text.split())
    return one if len(one) <= SHOWN else one[: SHOWN - 1] + "…"
