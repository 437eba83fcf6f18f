"""`Human`: a person decides."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, ClassVar

from pydantic import Field

from agenteval_tui.grading.metrics.metric import Context
from agenteval_tui.grading.questions import GOOD_FROM
from agenteval_tui.grading.remote import Asked, AskKind, RemoteMetric, RemoteRequest, UnusableError
from agenteval_tui.grading.results import Evidence, MetricResult
from agenteval_tui.grading.value import Value


class Human(RemoteMetric):
    """Waits for a person: the outcome is `needs_review` until somebody has labelled the run.

    A label that says passed or failed decides; else a rating of 4 or 5 passes, 1 to 3 fails. The score is
    (rating - 1) / 4, without a rating 1 or 0.
    """

    asks: ClassVar[AskKind] = "person"

    question: str = Field("Is this good?", description="What the person is asked.")

    def requests(self, value: Value, context: Context) -> tuple[RemoteRequest, ...]:
        return (RemoteRequest("person", "", {"question": self.question, "output": value.text}),)

    def unanswered(self, missing: Sequence[RemoteRequest], context: Context) -> MetricResult:
        return self.waiting(f"waits for a person: {self.question}")

    def conclude(self, asked: Sequence[Asked], value: Value, context: Context) -> MetricResult:
        given = _label(asked[0].last.raw)
        stars, passed = given["rating"], given["passed"]
        who = f" ({given['who']})" if given.get("who") else ""
        comment = f": {given['comment']}" if given.get("comment") else ""
        said = "said that it passed" if passed else "said that it failed"
        rated = f"rated it {stars} of 5"
        if passed is None:
            passed = stars >= GOOD_FROM
            said = rated
        elif stars is not None:
            said += f" and {rated}"
        reason = f"a person{who} {said}{comment}"
        evidence = Evidence("label", passed, reason, f">= {GOOD_FROM}", stars if stars is not None else passed)
        score = (stars - 1) / 4 if stars is not None else float(passed)
        return self.result(passed, score, (evidence,), "" if passed else reason)


def _label(raw: str) -> dict[str, Any]:
    try:
        given: Any = json.loads(raw)
        stars, passed = given["rating"], given.get("passed")
    except (ValueError, KeyError, TypeError, AttributeError):
        raise UnusableError("the label can't be read") from None
    if passed is not None and not isinstance(passed, bool):
        raise UnusableError(f"the label's verdict {passed!r} is neither true nor false")
    if stars is None and passed is not None:
        return {**given, "passed": passed}
    if isinstance(stars, bool) or not isinstance(stars, int) or not 1 <= stars <= 5:
        raise UnusableError(f"the label's rating {stars!r} is not a whole number from 1 to 5")
    return {**given, "passed": passed}
