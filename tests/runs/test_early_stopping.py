"""Enough repetitions: when, and how many may be begun before that is known."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agenteval_tui.runs.confidence_sequence import decide, most_needed
from agenteval_tui.runs.early_stopping import Repetitions
from agenteval_tui.runs.plan.model import StopRule

thresholds = st.sampled_from([0.2, 0.5, 0.8, 0.95])


@given(st.lists(st.booleans(), max_size=40), thresholds)
def test_none_of_those_begun_at_once_can_be_too_many(outcomes: list[bool], threshold: float) -> None:
    passed = sum(outcomes)
    n = len(outcomes)
    if decide(passed, n, threshold).answer != "open":
        return
    many = most_needed(passed, n, threshold)
    towards = passed >= threshold * n  # all of them say what the runs have said so far
    for more in range(1, many):
        assert decide(passed + more * towards, n + more, threshold).answer == "open"
    assert decide(passed + many * towards, n + many, threshold).answer == ("above" if towards else "below")


def test_where_one_failure_decides_the_number_doubles() -> None:
    assert [most_needed(n, n, 1.0) for n in (0, 1, 2, 4)] == [1, 1, 2, 4]


def test_errors_are_no_verdicts_and_the_first_answer_stands() -> None:
    group = Repetitions(StopRule(0.05, 0.8), planned=50)
    for status in ("error", "cancelled", "needs_review", "skipped"):
        assert not group.add(status)
    decided = [group.add("passed") for _ in range(24)]
    assert decided == [False] * 23 + [True]
    assert (group.answer, group.wanted) == ("above", 0)
    assert group.why == (
        "not needed: the pass rate is above 0.8 after 24 of 50 runs (95 % confidence sequence: 81 % to 100 %)"
    )
    assert not any(group.add("failed") for _ in range(20))
    assert group.answer == "above"
