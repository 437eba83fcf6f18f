"""`Human`: a person decides."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, ClassVar

from pydantic import Field

from agenteval_tui.grading.metrics.metric import Context
from agenteval_tui.grading.remote import Asked, AskKind, RemoteMetric, RemoteRequest, UnusableError
from agenteval_tui.grading.results import Evidence, MetricResult
from agenteval_tui.grading.value import Value

PASSES_FROM = 4
"""The least rating 1..5 with which a person says yes: 3 is undecided, and no approval."""


class Human(RemoteMetric):
    """Waits for a person: the outcome is `needs_review` until somebody has labelled the run.

    A label's rating of 4 or 5 passes, 1 to 3 fails; the score is (rating - 1) / 4.
    """

    asks: ClassVar[AskKind] = "person"

    question: str = Field("Is this good?", description="What the person is asked.")

    def requests(self, value: Value, context: Context) -> tuple[RemoteRequest, ...]:
        return (RemoteRequest("person", "", {"question": self.question, "output": value.text}),)

    def unanswered(self, missing: Sequence[RemoteRequest], context: Context) -> MetricResult:
        return self.waiting(f"waits for a person: {self.question}")

    def conclude(self, asked: Sequence[Asked], value: Value, context: Context) -> MetricResult:
        given = _label(asked[0].last.raw)
        stars = given["rating"]
        who = f" ({given['who']})" if given.get("who") else ""
        comment = f": {given['comment']}" if given.get("comment") else ""
        passed = stars >= PASSES_FROM
        reason = f"a person{who} rated it {stars} of 5{comment}"
        evidence = Evidence("label", passed, reason, f">= {PASSES_FROM}", stars)
        score = (stars - 1) / 4
        return self.result(passed, score, (evidence,), "" if passed else reason)


def _label(raw: str) -> dict[str, Any]:
    try:
        given: Any = json.loads(raw)
        stars = given["rating"]
    except (ValueError, KeyError, TypeError):
        raise UnusableError("the label can't be read") from None
    if isinstance(stars, bool) or not isinstance(stars, int) or not 1 <= stars <= 5:
        raise UnusableError(f"the label's rating {stars!r} is not a whole number from 1 to 5")
    return dict(given)
