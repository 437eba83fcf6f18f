"""What a metric is: a model of its properties, and a check of a value."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import ClassVar

from pydantic import Field

from agenteval_tui.grading.codes import Code, CodedError
from agenteval_tui.grading.context import Context
from agenteval_tui.grading.properties import Properties
from agenteval_tui.grading.results import Evidence, Fields, MetricResult, Outcome
from agenteval_tui.grading.value import Value
from agenteval_tui.text.problems import Severity
from agenteval_tui.text.quick_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Finding:
    """Something in a metric's properties that is valid but hardly meant. `path` leads to it from the metric."""

    severity: Severity
    code: str
    message: str
    path: tuple[str | int, ...] = ()


__all__ = ["Check", "Context", "Finding", "Metric"]

Check = Callable[[Value, Context], MetricResult]


class Metric(Properties):
    """Base of metrics (entry point group `agenteval.metrics`).

    The fields are the metric's properties; docstring and field descriptions are what the editor shows. Types are
    exact. `check` never raises for any value; what it raises all the same becomes outcome `error`.
    """

    any_json: ClassVar[frozenset[str]] = frozenset()
    """Properties, at any depth, that hold any JSON: a lone `{{variable}}` below them keeps its type."""

    name: str | None = Field(None, description="What the metric is called in results. Without it: its type.")
    weight: float = Field(1.0, ge=0, allow_inf_nan=False, description="Its share in the criterion's score.")

    @property
    def type_name(self) -> str:
        """The metric's type as it is written in a config."""
        return type(self).__name__

    def check(self, value: Value, context: Context) -> MetricResult:
        """What this metric says of `value`."""
        raise NotImplementedError

    def compile(self) -> Check:
        """`check`, with everything prepared that is the same for each value."""
        return self.check

    def checks_nothing(self) -> bool:
        """Nothing is configured: the metric is neutral."""
        return False

    def findings(self) -> Iterator[Finding]:
        """What is contradictory or without effect in the properties."""
        yield from ()

    def result(
        self, passed: bool, score: float, evidence: tuple[Evidence, ...] = (), message: str = ""
    ) -> MetricResult:
        """A result that is a verdict. `score` is 0..1. `message`: words for it where no evidence has any."""
        outcome, kind = Outcome.PASSED if passed else Outcome.FAILED, type(self).__name__
        return MetricResult(self.name or kind, kind, outcome, score, self.weight, False, evidence, message)

    def error(
        self,
        message: str = "",
        evidence: tuple[Evidence, ...] = (),
        *,
        code: str = "",
        fields: Fields | None = None,
    ) -> MetricResult:
        """A result that is none: the check could not be made. Why: a code with fields, or a plug-in's own message."""
        kind = self.type_name
        return MetricResult(
            self.name or kind, kind, Outcome.ERROR, None, self.weight, False, evidence, message, code, fields or {}
        )

    def error_from(self, problem: CodedError, evidence: tuple[Evidence, ...] = ()) -> MetricResult:
        """The same, for what was raised."""
        code = "" if problem.message else problem.code
        return self.error(problem.message, evidence, code=code, fields=problem.fields)

    def neutral(self) -> MetricResult:
        """The result of a metric that checks nothing."""
        kind = self.type_name
        return MetricResult(self.name or kind, kind, Outcome.PASSED, None, self.weight, True, code=Code.CHECKS_NOTHING)
