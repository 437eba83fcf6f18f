"""`Human`: a person decides."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, ClassVar

from pydantic import Field

from agenteval_tui.grading.codes import Code
from agenteval_tui.grading.extracted_value import Context, Value
from agenteval_tui.grading.remote import RemoteMetric, UnusableError
from agenteval_tui.grading.remote_requests import GOOD_FROM, AskKind, RemoteCall, RemoteRequest
from agenteval_tui.grading.results import Evidence, MetricResult


class Human(RemoteMetric):
    """Waits for a person: the outcome is `needs_review` until somebody labels the run.

    A label with a verdict decides. Without a verdict, a rating of 4 or 5 passes, and 1 to 3 fails. The score is
    (rating - 1) / 4; without a rating it is 1 or 0.
    """

    asks: ClassVar[AskKind] = "person"

    question: str = Field("Is this good?", description="The question for the person.")

    def requests(self, value: Value, context: Context) -> tuple[RemoteRequest, ...]:
        return (RemoteRequest("person", context.criterion, {"question": self.question, "output": value.text}),)

    def unanswered(self, missing: Sequence[RemoteRequest], context: Context) -> MetricResult:
        return self.waiting(self.question)

    def conclude(self, remote_calls: Sequence[RemoteCall], value: Value, context: Context) -> MetricResult:
        passed, score, line = read_label(remote_calls[0].last.raw)
        return self.result(passed, score, (line,))


def read_label(raw: str, *, negate: bool = False) -> tuple[bool, float, Evidence]:
    """What a person's label decides: whether it passes, its score 0..1, and the evidence. `negate`: the label is of a
    criterion that turns its metric's verdict round. Raises `UnusableError`."""
    label = _label(raw)
    stars, passed = label["rating"], label["passed"]
    fields = {"rating": stars, "passed": passed, "who": label.get("who"), "comment": label.get("comment")}
    if passed is None:
        passed = stars >= GOOD_FROM
    score = (stars - 1) / 4 if stars is not None else float(passed)
    rating = stars if stars is not None else passed
    if negate:
        passed, score = not passed, 1 - score
    return passed, score, Evidence("label", passed, "", f">= {GOOD_FROM}", rating, code=Code.LABELLED, fields=fields)


def _label(raw: str) -> dict[str, Any]:
    try:
        data: Any = json.loads(raw)
        stars, passed = data["rating"], data.get("passed")
    except (ValueError, KeyError, TypeError, AttributeError):
        raise UnusableError(code=Code.UNUSABLE_LABEL) from None
    if passed is not None and not isinstance(passed, bool):
        raise UnusableError(code=Code.UNUSABLE_LABEL, passed=passed)
    if stars is None and passed is not None:
        return {**data, "passed": passed}
    if isinstance(stars, bool) or not isinstance(stars, int) or not 1 <= stars <= 5:
        raise UnusableError(code=Code.UNUSABLE_LABEL, rating=stars)
    return {**data, "passed": passed}
