"""What a metric is: a model of its properties, and a check of a value."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import ClassVar

from msgspec import Struct
from pydantic import BaseModel, Field

from agenteval_tui.core.errors import Severity
from agenteval_tui.core.phrasing import SHOWN, on_one_line
from agenteval_tui.grading.coded_error import CodedError
from agenteval_tui.grading.codes import Code
from agenteval_tui.grading.config.model import EXACT, no_null
from agenteval_tui.grading.extracted_value import Context, Value
from agenteval_tui.grading.placeholders import text_of
from agenteval_tui.grading.remote_requests import AskKind
from agenteval_tui.grading.results import Evidence, Fields, MetricResult, Outcome
from agenteval_tui.grading.spec import json_like
from agenteval_tui.transcripts.observed import ObservedKind

Check = Callable[[Value, Context], MetricResult]
SPANS = 50
"""Places that one line of evidence marks."""
_KEPT = 1000
Quick = Callable[[bool, float], MetricResult]


class Metric(BaseModel):
    """Base of metrics (entry point group `agenteval.metrics`).

    The fields are the metric's properties; docstring and field descriptions are what the editor shows. Types are
    exact. `check` never raises for any value; what it raises all the same becomes outcome `error`.
    """

    model_config = EXACT
    _no_null = no_null

    asks: ClassVar[AskKind | None] = None
    """Whom it asks (`grading.remote.RemoteMetric`); None: it asks nothing."""
    any_json: ClassVar[frozenset[str]] = frozenset()
    """Properties, at any depth, that hold any JSON: a lone `{{variable}}` below them keeps its type."""

    fills: ClassVar[Mapping[str, frozenset[str]]] = {}
    """Properties whose placeholders the metric fills itself, each with its own names, which are not variables."""

    needs_to_pass: ClassVar[frozenset[ObservedKind]] = frozenset()
    """What must have been observed for a pass: what was seen is enough to fail."""

    name: str | None = Field(None, description="The metric's name in results. Default: its type.")
    weight: float = Field(1.0, ge=0, allow_inf_nan=False, description="Its share in the criterion's score.")

    @property
    def type_name(self) -> str:
        """The metric's type as it is written in a config."""
        return type(self).__name__

    @property
    def alone_because(self) -> str:
        """Why it must be the only metric of its criterion; "": it need not."""
        return ""

    @property
    def needs(self) -> frozenset[ObservedKind]:
        """What must have been observed for any verdict, beside what the prototype class needs."""
        return frozenset()

    def check(self, value: Value, context: Context) -> MetricResult:
        """What this metric says of `value`. A metric that prepares something defines `compile` in its place."""
        return self.compile()(value, context)

    def compile(self) -> Check:
        """`check`, with everything prepared that is the same for each value."""
        if type(self).check is Metric.check:
            raise NotImplementedError(f"{self.type_name} defines neither `check` nor `compile`")
        return self.check

    def prepare(self) -> Check:
        """`compile`; where nothing is configured, a check that says so of each value."""
        if not self.checks_nothing():
            return self.compile()
        result = self.neutral()
        return lambda value, context: result

    def checks_nothing(self) -> bool:
        """Nothing is configured: the metric is neutral."""
        return False

    def findings(self) -> Iterator[ConfigWarning]:
        """What is contradictory or without effect in the properties."""
        yield from ()

    def result(self, passed: bool, score: float, evidence: Iterable[Evidence] = (), message: str = "") -> MetricResult:
        """A result that is a verdict. `score` is 0..1. `message`: words for it where no evidence has any."""
        outcome, kind = Outcome.PASSED if passed else Outcome.FAILED, type(self).__name__
        return MetricResult(
            self.name or kind,
            type=kind,
            outcome=outcome,
            score=score,
            weight=self.weight,
            evidence=tuple(evidence),
            message=message,
        )

    def error(
        self,
        message: str = "",
        evidence: tuple[Evidence, ...] = (),
        *,
        code: str = "",
        fields: Fields | None = None,
    ) -> MetricResult:
        """A result that is none: the check could not run. Why: a code with fields, or a plug-in's own message."""
        kind = self.type_name
        return MetricResult(
            self.name or kind,
            type=kind,
            outcome=Outcome.ERROR,
            weight=self.weight,
            evidence=evidence,
            message=message,
            code=code,
            fields=fields or {},
        )

    def error_from(self, problem: CodedError) -> MetricResult:
        """The same, for what was raised."""
        code = "" if problem.message else problem.code
        return self.error(problem.message, code=code, fields=problem.fields)

    def neutral(self) -> MetricResult:
        """The result of a metric that checks nothing."""
        kind = self.type_name
        return MetricResult(self.name or kind, kind, Outcome.PASSED, None, self.weight, True, code=Code.CHECKS_NOTHING)


class ConfigWarning(Struct, frozen=True):
    """Something in a metric's properties that is valid but hardly meant. `path` leads to it from the metric."""

    severity: Severity
    code: str
    message: str
    path: tuple[str | int, ...] = ()


def expected_text(text: str | None, context: Context) -> str | None:
    """`text`, else the criterion's expected value as text; None when there is neither."""
    if text is not None or context.expected_value is None:
        return text
    return text_of(json_like(context.expected_value))


def quick_results(metric: Metric) -> Quick:
    """Results without evidence, each made once: grading thousands makes the same few again and again."""
    cached: dict[tuple[bool, float], MetricResult] = {}

    def result(passed: bool, score: float) -> MetricResult:
        metric_result = cached.get((passed, score))
        if metric_result is None:
            metric_result = metric.result(passed, score)
            if len(cached) < _KEPT:
                cached[passed, score] = metric_result
        return metric_result

    return result


def abbreviate(text: str) -> str:
    """One line of `text`, cut to what a reason shows."""
    return on_one_line(text, SHOWN)
