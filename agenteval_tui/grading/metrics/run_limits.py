"""`Latency`, `Tokens`, `Cost`, `Steps`: what a run took. What was not measured is an error, never a pass."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import ClassVar

from pydantic import Field

from agenteval_tui.grading.codes import Code
from agenteval_tui.grading.extracted_value import Context, Value
from agenteval_tui.grading.metrics.metric import (
    SPANS,
    Check,
    ConfigWarning,
    Metric,
    Quick,
    quick_results,
)
from agenteval_tui.grading.results import Evidence, Fields, MetricResult, Span
from agenteval_tui.transcripts.model_request import ModelRequest
from agenteval_tui.transcripts.observed import ObservedKind


class LimitMetric(Metric):
    """Base of what is measured and must not be more than a bound."""

    bounds: ClassVar[tuple[str, ...]] = ("max",)

    def measured(self, bound: str, value: Value) -> float | None:
        """What `bound` bounds; None when it was not measured."""
        raise NotImplementedError

    def about(self, bound: str, value: Value) -> Fields:
        """What is measured, as fields of evidence: `measure` is a key of `sentences.MEASURES`, which also says the
        unit."""
        raise NotImplementedError

    def unmeasured(self, bound: str, value: Value) -> tuple[Code, Fields]:
        """Why it was not measured: a code with fields."""
        return Code.NOT_MEASURED, self.about(bound, value)

    def places(self, bound: str, value: Value) -> tuple[Span, ...]:
        """What in the transcript is too much."""
        return ()

    def checks_nothing(self) -> bool:
        return not self._given()

    def _given(self) -> tuple[tuple[str, float], ...]:
        return tuple((name, bound) for name in self.bounds if (bound := getattr(self, name)) is not None)

    def compile(self) -> Check:
        bounds, quick = self._given(), quick_results(self)
        return lambda value, context: self._measure(value, context, bounds, quick)

    def _measure(
        self, value: Value, context: Context, bounds: tuple[tuple[str, float], ...], quick: Quick
    ) -> MetricResult:
        held = 0
        lines: list[Evidence] = []
        for name, bound in bounds:
            amount = self.measured(name, value)
            # Another program's recording may say infinity or NaN, with which no bound can be compared.
            if amount is None or not math.isfinite(amount):
                code, fields = self.unmeasured(name, value)
                line = Evidence(name, passed=None, expected=bound, group=self.type_name, code=code, fields=fields)
                return self.error("", (line,), code=code, fields=fields)
            holds = amount <= bound
            held += holds
            if context.explain:
                lines.append(self._line(name, bound, amount, holds, value))
        passed, score = held == len(bounds), held / len(bounds)
        return self.result(passed, score, lines) if context.explain else quick(passed, score)

    def _line(self, name: str, bound: float, amount: float, holds: bool, value: Value) -> Evidence:
        fields = {**self.about(name, value), "amount": amount, "most": bound}
        places = () if holds else self.places(name, value)
        # A bound that is a whole number is one of a count, others are of a measure.
        code = Code.WITHIN if holds else Code.TOO_MANY if isinstance(bound, int) else Code.TOO_HIGH
        return Evidence(
            name,
            passed=holds,
            expected=bound,
            found=amount,
            spans=places,
            group=self.type_name,
            code=code,
            fields=fields,
        )

    def findings(self) -> Iterator[ConfigWarning]:
        if self.checks_nothing():
            yield ConfigWarning("warning", "checks-nothing", f"this {self.type_name} has no bound: it checks nothing")


class Latency(LimitMetric):
    """Checks how long the run took, from the prompt to the end of the answer. A run without times is an error."""

    max: float | None = Field(None, ge=0, allow_inf_nan=False, description="At most this many milliseconds.")

    def measured(self, bound: str, value: Value) -> float | None:
        return value.transcript.timing.total_ms

    def about(self, bound: str, value: Value) -> Fields:
        return {"measure": "time"}


class Tokens(LimitMetric):
    """Checks how many tokens the run used, as the server counted them. A run without token counts is an error.

    In a criterion of the prototype class `Context`: how many tokens a request has. What counts is its input; of several
    requests, the largest one must be within the limit.
    """

    bounds: ClassVar[tuple[str, ...]] = ("max", "input_max", "output_max")

    max: int | None = Field(None, ge=0, description="At most this many tokens, input and output together.")
    input_max: int | None = Field(None, ge=0, description="At most this many input tokens, over all turns.")
    output_max: int | None = Field(None, ge=0, description="At most this many output tokens, over all turns.")

    def measured(self, bound: str, value: Value) -> float | None:
        if value.counted is not None:
            request = self._request(bound, value.counted)
            return None if request is None or bound == "output_max" else request.input_tokens
        usage = value.transcript.usage
        if bound == "input_max":
            return usage.input_tokens
        if bound == "output_max":
            return usage.output_tokens
        return usage.total_tokens

    def about(self, bound: str, value: Value) -> Fields:
        if value.counted is None:
            return {"measure": {"max": "tokens", "input_max": "input_tokens", "output_max": "output_tokens"}[bound]}
        request = None if bound == "output_max" else self._request(bound, value.counted)
        return {"measure": "request_tokens", "number": 0 if request is None else request.number}

    def unmeasured(self, bound: str, value: Value) -> tuple[Code, Fields]:
        fields = self.about(bound, value)
        return (Code.NOT_MEASURED if value.counted is None else Code.REQUEST_NOT_COUNTED), fields

    def places(self, bound: str, value: Value) -> tuple[Span, ...]:
        request = self._request(bound, value.counted or ())
        return () if request is None else (Span("request", request.number),)

    def _request(self, bound: str, counted: Sequence[ModelRequest]) -> ModelRequest | None:
        """The largest request, if it is too large or all are counted; else the first that is not counted."""
        counted_requests = [request for request in counted if request.input_tokens is not None]
        largest = max(counted_requests, key=lambda request: request.input_tokens or 0, default=None)
        if largest is not None and (
            len(counted_requests) == len(counted) or (largest.input_tokens or 0) > getattr(self, bound)
        ):
            return largest
        return next((request for request in counted if request.input_tokens is None), None)

    def findings(self) -> Iterator[ConfigWarning]:
        yield from super().findings()
        parts = [bound for bound in (self.input_max, self.output_max) if bound is not None]
        if self.max is not None and len(parts) == 2 and sum(parts) <= self.max:
            text = f"`input_max` and `output_max` together are at most {self.max} already: this can change nothing"
            yield ConfigWarning("info", "without-effect", text, ("max",))


class Cost(LimitMetric):
    """Checks what the run cost. A run whose cost is not known is an error."""

    max: float | None = Field(None, ge=0, allow_inf_nan=False, description="At most this many US dollars.")

    def measured(self, bound: str, value: Value) -> float | None:
        return value.transcript.usage.cost

    def about(self, bound: str, value: Value) -> Fields:
        return {"measure": "cost"}


class Steps(LimitMetric):
    """Checks how many tool calls the agent made."""

    max: int | None = Field(None, ge=0, description="At most this many tool calls.")

    @property
    def needs(self) -> frozenset[ObservedKind]:
        return frozenset(("tool_calls",))

    def measured(self, bound: str, value: Value) -> float | None:
        return len(value.transcript.tool_calls)

    def about(self, bound: str, value: Value) -> Fields:
        return {"measure": "calls"}

    def places(self, bound: str, value: Value) -> tuple[Span, ...]:
        assert self.max is not None
        calls = len(value.transcript.tool_calls)
        return tuple(Span("tool", index) for index in range(self.max, min(calls, self.max + SPANS)))
