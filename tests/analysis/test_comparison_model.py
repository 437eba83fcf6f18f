"""Regressions, improvements, and results that differ."""

from __future__ import annotations

import pytest

from agenteval_tui.analysis.comparison_model import Flip, changed, flip
from agenteval_tui.grading.results import CriterionResult, Outcome


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("passed", "failed", "worse"),
        ("passed", "error", "worse"),
        ("passed", "cancelled", "worse"),
        ("failed", "passed", "better"),
        ("error", "passed", "better"),
        ("passed", "passed", "same"),
        ("failed", "error", "same"),
    ],
)
def test_flips(before: str, after: str, expected: Flip) -> None:
    assert flip(before, after) == expected


PASSED, FAILED, ERROR = Outcome.PASSED, Outcome.FAILED, Outcome.ERROR


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ((PASSED, 0.5), (FAILED, 0.5), True),
        ((PASSED, 0.5), (PASSED, 0.501), False),
        ((PASSED, 0.5), (PASSED, 0.5011), True),
        ((FAILED, 0.2), (FAILED, 0.9), True),
        ((FAILED, None), (ERROR, None), False),
        ((ERROR, None), (FAILED, 0.0), True),
        ((PASSED, None), (PASSED, 1.0), True),
    ],
)
def test_a_result_says_something_else(
    before: tuple[Outcome, float | None], after: tuple[Outcome, float | None], expected: bool
) -> None:
    assert changed(CriterionResult("c", *before), CriterionResult("c", *after)) is expected
    assert changed(CriterionResult("c", *after), CriterionResult("c", *before)) is expected
