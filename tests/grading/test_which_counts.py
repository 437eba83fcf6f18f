"""Which result decides, what does not count, and how much is tried: verdicts, scores, relaxations."""

from __future__ import annotations

from typing import Any

import pytest

from agenteval_tui.grading.compile import _combined, compile_criterion
from agenteval_tui.grading.grade import foreign_result, grade, verdict_of
from agenteval_tui.grading.json_reading import UnreadableJsonError, compact
from agenteval_tui.grading.near_miss import _alike
from agenteval_tui.grading.relax.changes import Change, ConfigEdit
from agenteval_tui.grading.relax.suggest import _ERROR, TRIES, _Search, relaxations
from agenteval_tui.grading.results import CriterionResult, MetricResult, Outcome, rating
from agenteval_tui.grading.spec import CriterionSpec
from agenteval_tui.transcripts.model import Message, RunError, Transcript

PASSED, FAILED, ERROR, REVIEW, SKIPPED = (
    Outcome.PASSED,
    Outcome.FAILED,
    Outcome.ERROR,
    Outcome.NEEDS_REVIEW,
    Outcome.SKIPPED,
)


def result(outcome: Outcome, score: float | None = None, **more: Any) -> CriterionResult:
    if score is None and outcome in (PASSED, FAILED):
        score = float(outcome is PASSED)
    return CriterionResult("c", outcome, score, **more)


# Verdicts of a run


@pytest.mark.parametrize(
    ("outcomes", "verdict"),
    [
        ([PASSED, ERROR, FAILED, REVIEW], FAILED),
        ([REVIEW, ERROR, PASSED], ERROR),
        ([PASSED, REVIEW], REVIEW),
        ([PASSED, SKIPPED], PASSED),
        ([SKIPPED], PASSED),
    ],
)
def test_failed_counts_before_error_and_that_before_waiting(outcomes: list[Outcome], verdict: Outcome) -> None:
    assert verdict_of([result(one) for one in outcomes]).outcome is verdict
    assert verdict_of([result(one) for one in reversed(outcomes)]).outcome is verdict


@pytest.mark.parametrize("outcome", [FAILED, ERROR, REVIEW])
def test_a_warning_decides_nothing(outcome: Outcome) -> None:
    verdict = verdict_of([result(PASSED), result(outcome, severity="warning")])
    assert verdict.outcome is PASSED
    assert verdict.warnings == (outcome is FAILED)


def test_with_a_threshold_a_warning_without_a_score_leaves_the_mean_unknown() -> None:
    for outcome in (ERROR, REVIEW):
        said = verdict_of([result(PASSED), result(outcome, severity="warning")], 0.5)
        assert (said.outcome, said.score) == (outcome, None)
        assert verdict_of([result(PASSED), result(outcome, severity="warning", weight=0.0)], 0.5).outcome is PASSED
    assert verdict_of([result(PASSED), result(FAILED, severity="warning")], 0.5).outcome is PASSED
    # Where a criterion failed, the run did: whatever is unknown besides.
    assert verdict_of([result(FAILED), result(ERROR)], 0.5).outcome is FAILED


@pytest.mark.parametrize(("threshold", "outcome"), [(0.74, PASSED), (0.75, PASSED), (0.76, FAILED), (None, PASSED)])
def test_a_threshold_is_reached_at_its_value(threshold: float | None, outcome: Outcome) -> None:
    results = [result(PASSED, weight=3.0), result(FAILED, severity="warning")]
    said = verdict_of(results, threshold)
    assert (said.outcome, said.score) == (outcome, 0.75)


@pytest.mark.parametrize(("below", "outcome"), [(0.0, PASSED), (1e-10, PASSED), (1e-8, FAILED), (1e-6, FAILED)])
def test_a_score_that_rounding_put_below_a_threshold_reaches_it(below: float, outcome: Outcome) -> None:
    assert 0.1 + 0.2 + 0.4 != 0.7, "as sums of weights are"
    assert verdict_of([result(PASSED, 0.7 - below)], 0.7).outcome is outcome
    said, *_ = _combined((metric(FAILED, 0.7 - below),), 0.7)
    assert said is outcome


def test_what_checks_nothing_is_not_in_the_mean() -> None:
    nothing = CriterionResult("n", PASSED, None, weight=9.0)
    assert verdict_of([result(PASSED, 0.5), nothing]).score == 0.5
    assert verdict_of([result(PASSED, 0.5), result(PASSED, 1.0, weight=0.0)]).score == 0.5
    assert verdict_of([nothing]).score == 0.0


def test_an_agent_that_did_not_finish_is_not_graded() -> None:
    spec = CriterionSpec("c", "TextResponse", {"metrics": [{"type": "TextMatch", "contains": "x"}]})
    said = grade(Transcript(final_output="x", error=RunError("timeout", "late")), [spec], pass_threshold=0.5)
    assert (said.outcome, said.score, [one.outcome for one in said.results]) == (ERROR, None, [SKIPPED])


@pytest.mark.parametrize(
    ("score", "passed", "outcome", "kept"),
    [
        (1.0, None, PASSED, 1.0),
        (0.99, None, FAILED, 0.99),
        (1.0, False, FAILED, 1.0),
        (0.0, True, PASSED, 0.0),
        (None, True, PASSED, 1.0),
        (None, False, FAILED, 0.0),
        (7.0, None, PASSED, 1.0),
        (-7.0, None, FAILED, 0.0),
        (None, None, REVIEW, None),
        (float("nan"), True, ERROR, None),
    ],
)
def test_another_tools_verdict_counts_before_its_score(
    score: float | None, passed: bool | None, outcome: Outcome, kept: float | None
) -> None:
    said = foreign_result("theirs", score=score, passed=passed, source="tool")
    assert (said.outcome, said.score) == (outcome, kept)


# Verdicts of a criterion


def metric(outcome: Outcome, score: float | None, **more: Any) -> MetricResult:
    return MetricResult("m", "TextMatch", outcome, score, **more)


@pytest.mark.parametrize(
    ("metrics", "threshold", "outcome", "score"),
    [
        ([metric(PASSED, 1.0), metric(ERROR, None), metric(REVIEW, None)], None, ERROR, None),
        ([metric(REVIEW, None), metric(ERROR, None)], 0.0, ERROR, None),
        ([metric(FAILED, 0.0), metric(REVIEW, None)], None, REVIEW, None),
        ([metric(PASSED, 1.0), metric(FAILED, 0.5)], None, FAILED, 0.75),
        ([metric(PASSED, 1.0), metric(FAILED, 0.5)], 0.75, PASSED, 0.75),
        ([metric(PASSED, 1.0), metric(FAILED, 0.5)], 0.76, FAILED, 0.75),
        ([metric(PASSED, 1.0, weight=3.0), metric(FAILED, 0.0)], None, FAILED, 0.75),
        ([metric(PASSED, 0.6), metric(PASSED, None)], None, PASSED, 0.6),
        ([metric(PASSED, None)], None, PASSED, None),
        ([], 1.0, PASSED, None),
        ([metric(PASSED, 1.0, weight=0.0)], None, PASSED, 0.0),
    ],
)
def test_an_error_of_a_metric_is_never_outweighed(
    metrics: list[MetricResult], threshold: float | None, outcome: Outcome, score: float | None
) -> None:
    assert _combined(tuple(metrics), threshold)[:2] == (outcome, score)


@pytest.mark.parametrize(
    ("score", "stars"),
    [(0.0, 1), (0.24, 1), (0.25, 2), (0.5, 3), (0.3 + 0.2, 3), (0.75, 4), (0.99, 4), (1.0, 5), (1.5, 5), (-1.0, 1)],
)
def test_ratings_round_down(score: float, stars: int) -> None:
    assert rating(score) == stars


@pytest.mark.parametrize(("most", "fits"), [(7, True), (6, False)])
def test_a_value_is_so_long_and_no_longer(most: int, fits: bool) -> None:
    assert compact([1, 2, 3], 7) == "[1,2,3]"
    if not fits:
        with pytest.raises(UnreadableJsonError):
            compact([1, 2, 3], most)


def test_a_needle_in_another_case_is_nearer_than_a_worse_place_in_its_own() -> None:
    found = _alike("the odrer is now at xx. THE ORDER IS CANCELLED", "the order is cancelled", "contains", False)
    assert found is not None
    assert found.start == 24
    found = _alike("the order is canceled", "the order is cancelled", "contains", False)
    assert found is not None
    assert (found.start, "case" in found.fields and found.fields["case"]) == (0, False)
    assert _alike("nothing of the kind", "zzzzzzzz", "contains", False) is None


# Relaxations: how much is tried


def search(config: dict[str, Any], answer: str, tries: int = TRIES) -> _Search:
    spec = CriterionSpec("c", "TextResponse", config)
    transcript = Transcript((Message("user", "?"), Message("assistant", answer)), final_output=answer)
    return _Search(spec, transcript, {}, 6, tries)


def test_a_config_that_cannot_be_graded_costs_as_much_as_its_second() -> None:
    one = search({"metrics": [{"type": "TextMatch", "contains": "x"}]}, "y")
    for regex in ("(", "y"):
        one._graded({"metrics": [{"type": "Regex", "pattern": regex}]})
    assert one.tries == TRIES - _ERROR - 1
    assert TRIES // _ERROR <= 10, "ten slow patterns are ten seconds"


def test_slow_patterns_end_a_search() -> None:
    one = search({"metrics": [{"type": "TextMatch", "contains": "x"}]}, "y")
    broken = [
        Change(f"pattern {n}", (ConfigEdit("set", ("metrics",), [{"type": "Regex", "pattern": "(" * n}]),), 1.0)
        for n in range(1, 41)
    ]
    one._alone(broken)
    assert one.tries <= 0
    assert len(one.tried) == TRIES // _ERROR
    assert not one.found


def test_the_same_config_is_tried_once() -> None:
    one = search({"metrics": [{"type": "TextMatch", "contains": "x"}]}, "y")
    change = Change("y", (ConfigEdit("set", ("metrics", 0, "contains"), "y"),), 1.0)
    assert one._passes((change,))
    assert one._passes((change,))
    assert one.tries == TRIES - 1


def test_no_tries_are_no_proposals_and_what_passes_needs_none() -> None:
    spec = CriterionSpec("c", "TextResponse", {"metrics": [{"type": "TextMatch", "contains_all": ["one", "two"]}]})

    def said(answer: str, **more: int) -> int:
        transcript = Transcript((Message("user", "?"), Message("assistant", answer)), final_output=answer)
        return len(relaxations(spec, transcript, **more))

    assert said("one") > 0
    assert said("one", most=1) == 1
    assert said("one", tries=0) == 0
    two = [{"type": "TextMatch", "contains_ignore_case": word} for word in ("ONE", "TWO")]
    never = CriterionSpec("c", "TextResponse", {"metrics": two}, negate=True)
    both = Transcript((Message("user", "?"), Message("assistant", "one two")), final_output="one two")
    assert [len(relaxations(never, both, most=number)) for number in (6, 2, 1)] == [2, 2, 1]
    assert said("one two") == 0


def test_the_same_criterion_with_another_weight_or_severity_is_another_checker() -> None:
    config = {"metrics": [{"type": "TextMatch", "contains": "x"}]}
    made = [
        compile_criterion(CriterionSpec(*args, **more))
        for args, more in (
            (("c", "TextResponse", config), {}),
            (("c", "TextResponse", config), {"weight": 2.0}),
            (("c", "TextResponse", config), {"severity": "warning"}),
            (("d", "TextResponse", config), {}),
        )
    ]
    assert len({id(one) for one in made}) == 4
    assert compile_criterion(CriterionSpec("c", "TextResponse", config)) is made[0]
