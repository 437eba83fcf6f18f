"""`Classification`: the label that the agent gave, against the right one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pydantic import Field

from agenteval_tui.core.phrasing import quoted
from agenteval_tui.grading.codes import Code
from agenteval_tui.grading.extracted_value import Context, Value
from agenteval_tui.grading.metrics.metric import ConfigWarning, Metric, expected_text
from agenteval_tui.grading.results import Evidence, MetricResult, Span, as_evidence

CONDITION = "label"
"""The condition whose evidence holds the right label (`expected`) and the given one (`found`)."""


class Classification(Metric):
    """Compares the agent's label with the right one, ignoring white space around them.

    The labels of all runs of a suite give the accuracy, a confusion matrix, and precision, recall and F1 for each
    label. If the label is part of a longer answer, extract it with `extract_by_regex`.
    """

    label: str | None = Field(None, description="The right label. Default: the criterion's expected value.")
    labels: list[str] | None = Field(None, description='All labels. Any other answer is reported as "none".')
    ignore_case: bool = Field(False, description="Ignore upper and lower case.")

    def check(self, value: Value, context: Context) -> MetricResult:
        expected = expected_text(self.label, context)
        if expected is None:
            return self.error(code=Code.NO_EXPECTED_VALUE, fields={"metric": "Classification"})
        expected, label = expected.strip(), self._known(value.text.strip())
        passed = self._fold(label) == self._fold(expected)
        score = 1.0 if passed else 0.0
        if not context.explain:
            return self.result(passed, score)
        return self.result(passed, score, (self._evidence(expected, label, passed, value),))

    def _fold(self, label: str) -> str:
        return label.lower() if self.ignore_case else label

    def _known(self, text: str) -> str:
        """The label as `labels` writes it."""
        if self.ignore_case:
            return next((label for label in self.labels or () if label.lower() == text.lower()), text)
        return text

    def _evidence(self, expected: str, label: str, passed: bool, value: Value) -> Evidence:
        start = len(value.text) - len(value.text.lstrip())
        spans = value.spans(start, start + len(value.text.strip())) if value.text.strip() else ()
        fields: dict[str, Any] = {"label": expected}
        text = value.text.strip()
        if text != label:
            fields["taken"] = label  # the same label, as `labels` writes it
        near: tuple[Span, ...] = ()
        if passed:
            code = Code.EQUAL
        elif not label:
            code = Code.MISSING
        else:
            code = Code.DIFFERS
            if label.lower() == expected.lower():
                fields["case"], near = True, spans
            elif self.labels is not None and self._fold(label) not in {self._fold(label) for label in self.labels}:
                fields["known"] = self.labels
        return Evidence(
            CONDITION,
            passed=passed,
            expected=expected,
            found=as_evidence(text),
            spans=spans,
            near=near,
            group="label",
            code=code,
            fields=fields,
        )

    def findings(self) -> Iterator[ConfigWarning]:
        if self.labels is None:
            return
        if self.label is not None and "{{" not in self.label and self.label.strip() not in self.labels:
            folded = {label.lower() for label in self.labels}
            if not (self.ignore_case and self.label.strip().lower() in folded):
                text = f"the right label {quoted(self.label)} is not in `labels`"
                yield ConfigWarning("warning", "contradictory", text, ("label",))
        for number, label in enumerate(self.labels):
            if label in self.labels[:number]:
                yield ConfigWarning("info", "duplicate", f"{quoted(label)} is in the list already", ("labels", number))
