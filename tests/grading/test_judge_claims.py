"""What fields of a judge's reply beside its score claim, each rule by itself."""

from __future__ import annotations

from typing import Any

import pytest

from agenteval_tui.grading.metrics.judge_claims import claims, parts
from agenteval_tui.grading.metrics.judge_scale import SCALES

BOTH, PASSES, FAILS = {True, False}, {True}, {False}


def claimed(field: str, value: Any, scale: str = "zero_to_one") -> set[bool] | None:
    """The ways to read the one claim of a field, or None."""
    listed = list(claims({field: value}, SCALES[scale], 0.7, ()))
    assert len(listed) <= 1
    return set(listed[0].passes) if listed else None


@pytest.mark.parametrize(
    ("value", "expected"),
    [(["he said so"], FAILS), ([""], None), ([], None), ([1], None), (True, FAILS), (False, None)],
)
def test_what_is_invented_fails_and_its_absence_is_no_merit(value: Any, expected: set[bool] | None) -> None:
    assert claimed("hallucinations", value) == expected


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        ("overall_score", 0.7, PASSES),
        ("overall_score", 0.69, FAILS),
        ("overall_score", 4, BOTH),  # 4 of 5, of 10, of 100
        ("overall_score", 100, PASSES),
        ("overall_score", 101, None),
        ("overall_rating", 1, BOTH),  # the whole scale, or the lowest of five
        ("total_score", 4, None),  # a sum is on no scale that is known
        ("score_percent", 70, PASSES),
        ("score", "3/4", PASSES),
        ("score", "1/0", None),
    ],
)
def test_a_figure_is_read_on_the_scale_else_on_every_usual_one(
    field: str, value: Any, expected: set[bool] | None
) -> None:
    assert claimed(field, value) == expected


def test_a_word_for_the_whole_is_a_verdict_where_the_scale_is_pass_or_fail() -> None:
    assert claimed("final", "yes", "pass_fail") == PASSES
    assert claimed("final", "no", "pass_fail") == FAILS
    assert claimed("final", "yes") is None


@pytest.mark.parametrize(
    ("dimension", "expected"),
    [
        (0, [False]),
        (1, [True]),
        (0.7, [True]),
        (-0.1, []),
        (1.1, []),
        ("fail", [False]),
        ({"correct": True, "verdict": "pass"}, [True]),
        ({"correct": True, "verdict": "fail"}, [False]),
        ({"comment": "fine"}, []),
    ],
)
def test_dimensions_that_nobody_asked_for(dimension: Any, expected: list[bool]) -> None:
    assert list(parts({"dimensions": {"accuracy": dimension}}, SCALES["zero_to_one"], 0.7)) == expected
