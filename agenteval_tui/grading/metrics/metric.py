"""What a metric is: a model of its properties, and a check of a value."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import ClassVar

from pydantic import Field

from agenteval_tui.grading.context import Context
from agenteval_tui.grading.properties import Properties
from agenteval_tui.grading.results import Evidence, MetricResult, Outcome
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

    def result(self, passed: bool, score: float, evidence: tuple[Evidence, ...] = (), reason: str = "") -> MetricResult:
        """A result that is a verdict. `score` is 0..1."""
        outcome, kind = Outcome.PASSED if passed else Outcome.FAILED, type(self).__name__
        return MetricResult(self.name or kind, kind, outcome, score, self.weight, False, evidence, reason)

    def error(self, reason: str, evidence: tuple[Evidence, ...] = ()) -> MetricResult:
        """A result that is none: the check could not be made."""
        return MetricResult(
            self.name or self.type_name, self.type_name, Outcome.ERROR, None, self.weight, False, evidence, reason
        )

    def neutral(self) -> MetricResult:
        """The result of a metric that checks nothing."""
        return MetricResult(
            self.name or self.type_name,
            self.type_name,
            Outcome.PASSED,
            None,
            self.weight,
            True,
            reason="nothing is configured: the metric checks nothing",
        )
