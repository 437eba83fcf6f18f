"""`TextMatch`: whole texts, parts, beginnings and ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from pydantic import Field

from agenteval_tui.grading.metrics.metric import Check, Context, Finding, Metric
from agenteval_tui.grading.metrics.text_conditions import Condition, conditions_of
from agenteval_tui.grading.properties import ANSWER_TEXTS
from agenteval_tui.grading.results import Evidence, MetricResult
from agenteval_tui.grading.value import Value

Test = tuple[int, Callable[[Value], bool]]


class TextMatch(Metric):
    """Compares the text: as a whole, by parts, by beginning and end. Every given condition must hold.

    The conditions count in five groups: contains, contains not, starts with, ends with, equals. The score is the
    share of the groups whose conditions all hold. Upper and lower case matter unless the name says `ignore_case`.
    """

    equals: str | None = Field(None, description="The whole text is exactly this.", json_schema_extra=ANSWER_TEXTS)
    equals_ignore_case: str | None = Field(
        None, description="The whole text is this; case does not matter.", json_schema_extra=ANSWER_TEXTS
    )
    contains: str | None = Field(None, description="This stands somewhere in the text.", json_schema_extra=ANSWER_TEXTS)
    contains_ignore_case: str | None = Field(
        None, description="This stands somewhere in the text; case does not matter.", json_schema_extra=ANSWER_TEXTS
    )
    contains_all: list[str] | None = Field(
        None, description="Each of these stands somewhere in the text.", json_schema_extra=ANSWER_TEXTS
    )
    contains_any: list[str] | None = Field(
        None, description="At least one of these stands in the text.", json_schema_extra=ANSWER_TEXTS
    )
    not_contains_any: list[str] | None = Field(
        None, description="None of these stands in the text.", json_schema_extra=ANSWER_TEXTS
    )
    starts_with: str | None = Field(None, description="The text begins with this.", json_schema_extra=ANSWER_TEXTS)
    starts_with_any: list[str] | None = Field(
        None, description="The text begins with one of these.", json_schema_extra=ANSWER_TEXTS
    )
    ends_with: str | None = Field(None, description="The text ends with this.", json_schema_extra=ANSWER_TEXTS)
    ends_with_any: list[str] | None = Field(
        None, description="The text ends with one of these.", json_schema_extra=ANSWER_TEXTS
    )

    def check(self, value: Value, context: Context) -> MetricResult:
        return self.compile()(value, context)

    def checks_nothing(self) -> bool:
        return not conditions_of(self)

    def compile(self) -> Check:
        conditions = conditions_of(self)
        if not conditions:
            result = self.neutral()
            return lambda value, context: result
        return _Compiled(self, conditions)

    def findings(self) -> Iterator[Finding]:
        from agenteval_tui.grading.metrics.text_findings import findings_of

        return findings_of(self)


class _Compiled:
    """A TextMatch made ready for many texts. Without evidence its few possible results are made once."""

    def __init__(self, metric: TextMatch, conditions: tuple[Condition, ...]) -> None:
        self._metric = metric
        self._conditions = conditions
        groups = list(dict.fromkeys(condition.group for condition in conditions))
        self._groups = len(groups)
        self._tests: tuple[Test, ...] = tuple(
            (groups.index(condition.group), condition.holds) for condition in conditions
        )
        self._results: dict[int, MetricResult] = {}

    def __call__(self, value: Value, context: Context) -> MetricResult:
        broken = 0
        for group, holds in self._tests:
            if not broken >> group & 1 and not holds(value):
                broken |= 1 << group
        if not context.explain:
            result = self._results.get(broken)
            if result is None:
                result = self._results[broken] = self._result(broken)
            return result
        evidence: list[Evidence] = []
        for condition in self._conditions:
            evidence += condition.evidence(value)
        return self._result(broken, tuple(evidence))

    def _result(self, broken: int, evidence: tuple[Evidence, ...] = ()) -> MetricResult:
        score = (self._groups - broken.bit_count()) / self._groups
        return self._metric.result(broken == 0, score, evidence)
