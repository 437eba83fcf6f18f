"""What counts as a change between two runs of a test, and between two results of a criterion."""

from __future__ import annotations

from typing import Literal

from agenteval_tui.grading.results import CriterionResult, MetricResult, Outcome

Flip = Literal["worse", "better", "same"]

LEAST_CHANGE = 0.001
"""Differences of scores up to this are none."""


def flip(before: str, after: str) -> Flip:
    """Of two statuses of a test. `worse`: it passed in the baseline and does not now; `better`: the reverse."""
    if (before == Outcome.PASSED) == (after == Outcome.PASSED):
        return "same"
    return "worse" if before == Outcome.PASSED else "better"


def changed(before: CriterionResult | MetricResult, after: CriterionResult | MetricResult) -> bool:
    """Whether a criterion or metric says something else: passed differs, or the score by more than LEAST_CHANGE.

    A score that is there only once is a change, too.
    """
    if (before.outcome is Outcome.PASSED) != (after.outcome is Outcome.PASSED):
        return True
    if before.score is None or after.score is None:
        return before.score is not after.score
    # A hair more: 0.501 - 0.5 is a little over 0.001 in binary.
    return abs(before.score - after.score) > LEAST_CHANGE + 1e-12
