"""From criterion results to a run's verdict: what a check that could not run does to it."""

from __future__ import annotations

from itertools import product

import pytest

from agenteval_tui.grading.grade import not_made, verdict_of
from agenteval_tui.grading.results import CriterionResult, Outcome
from agenteval_tui.grading.sentences import verdict_sentence

PASSED, FAILED, ERROR, REVIEW = Outcome.PASSED, Outcome.FAILED, Outcome.ERROR, Outcome.NEEDS_REVIEW
SCORES = {PASSED: 1.0, FAILED: 0.0, ERROR: None, REVIEW: None}


def one(outcome: Outcome, severity: str = "error", weight: float = 1.0) -> CriterionResult:
    return CriterionResult(f"{severity} {outcome}", outcome, SCORES[outcome], severity, weight, message="because")


@pytest.mark.parametrize("severity", ["warning", "info"])
@pytest.mark.parametrize(
    ("results", "threshold", "outcome"),
    [
        ([(ERROR, 1)], 0.75, ERROR),
        ([(ERROR, 1)], 0.0, ERROR),
        ([(PASSED, 1), (ERROR, 9)], 0.75, ERROR),
        ([(PASSED, 1), (ERROR, 0.01)], 0.75, ERROR),
        ([(FAILED, 1), (ERROR, 1)], 0.75, ERROR),
        ([(PASSED, 1), (ERROR, 0)], 0.75, PASSED),
        ([(FAILED, 1), (ERROR, 0)], 0.75, FAILED),
        ([(PASSED, 1), (REVIEW, 1)], 0.75, REVIEW),
        ([(REVIEW, 1), (ERROR, 1)], 0.75, ERROR),
        ([(REVIEW, 0), (PASSED, 1)], 0.75, PASSED),
        ([(FAILED, 1), (PASSED, 3)], 0.75, PASSED),
        ([(FAILED, 2), (PASSED, 3)], 0.75, FAILED),
        ([(ERROR, 1)], None, PASSED),
        ([(FAILED, 1), (ERROR, 1), (REVIEW, 1)], None, PASSED),
    ],
)
def test_with_a_threshold_every_criterion_that_has_weight_decides(
    results: list[tuple[Outcome, float]], threshold: float | None, outcome: Outcome, severity: str
) -> None:
    made = [one(each, severity, weight) for each, weight in results]
    verdict = verdict_of(made, threshold)
    assert verdict.outcome is outcome
    if outcome in (ERROR, REVIEW):
        assert verdict.score is None
        assert f"{severity} {outcome}" in verdict_sentence(verdict)
    assert verdict_of([*made, one(FAILED)], threshold).outcome is FAILED  # it failed, whatever the mean is


def test_without_its_score_the_threshold_cannot_be_checked() -> None:
    verdict = verdict_of([one(PASSED), one(ERROR, "warning")], 0.75)
    assert "because" in verdict_sentence(verdict)
    assert "threshold 0.75 can't be checked" in verdict_sentence(verdict)


def test_without_a_threshold_the_checks_that_were_not_made_are_counted_and_said() -> None:
    results = [one(PASSED), one(ERROR, "warning"), one(ERROR, "info"), one(FAILED, "warning")]
    verdict = verdict_of(results)
    assert (verdict.outcome, verdict.score, verdict.warnings) == (PASSED, 0.5, 1)
    assert not_made(verdict.results) == 2
    assert verdict_sentence(verdict) == "2 checks could not run: warning error: because"
    assert verdict_sentence(verdict_of(results[:2])).startswith("1 check could not run")
    assert verdict_sentence(verdict_of(results[:1])) == ""


def test_no_combination_with_an_unmade_check_passes_or_fails_by_the_mean() -> None:
    """An independent reading of page 3, section 1, over all combinations of three criteria."""
    for outcomes in product(SCORES, repeat=3):
        for severities in product(("error", "warning", "info"), repeat=3):
            for weights in product((0.0, 2.0), repeat=3):
                rows = list(zip(outcomes, severities, weights, strict=True))
                verdict = verdict_of([one(*row) for row in rows], 0.5)
                strict = [outcome for outcome, severity, _ in rows if severity == "error"]
                unknown = {outcome for outcome, severity, weight in rows if severity == "error" or weight > 0}
                total = sum(weight for outcome, _, weight in rows if SCORES[outcome] is not None)
                mean = sum(weight for outcome, _, weight in rows if outcome is PASSED) / total if total else 0.0
                if FAILED in strict:
                    expected = FAILED
                elif ERROR in unknown:
                    expected = ERROR
                elif REVIEW in unknown:
                    expected = REVIEW
                else:
                    expected = PASSED if mean >= 0.5 else FAILED
                assert verdict.outcome is expected, rows
