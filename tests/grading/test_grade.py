"""Criteria and verdicts: weights, thresholds, negation, severities, errors that are never verdicts; hashes, caching."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from agenteval_tui.grading.compile import Checker, compile_criterion
from agenteval_tui.grading.grade import foreign_result, grade, verdict_of
from agenteval_tui.grading.results import CriterionResult, Outcome, rating
from agenteval_tui.grading.sentences import criterion_sentence, verdict_sentence
from agenteval_tui.grading.spec import CriterionSpec
from agenteval_tui.transcripts.model import Message, RunError, Transcript

ANSWER = Transcript((Message("assistant", "Berlin is big"),), final_output="Berlin is big")
YES: dict[str, Any] = {"type": "TextMatch", "contains": "Berlin"}
NO: dict[str, Any] = {"type": "TextMatch", "contains": "Paris"}
BAD: dict[str, Any] = {"type": "TextMatch", "contains": 5}
NONE: dict[str, Any] = {"type": "TextMatch"}


def spec(*metrics: dict[str, Any], **more: Any) -> CriterionSpec:
    return CriterionSpec(more.pop("name", "it"), "TextResponse", {"metrics": list(metrics)}, **more)


def check(*metrics: dict[str, Any], **more: Any) -> CriterionResult:
    made = spec(*metrics, **more)
    result = compile_criterion(made).check(ANSWER)
    quick = compile_criterion(made).check(ANSWER, explain=False)
    assert (quick.outcome, quick.score) == (result.outcome, result.score)
    return result


@pytest.mark.parametrize(
    ("metrics", "more", "outcome", "score"),
    [
        ((YES,), {}, "passed", 1.0),
        ((YES, NO), {}, "failed", 0.5),
        (({**YES, "weight": 3}, NO), {}, "failed", 0.75),
        (({**YES, "weight": 3}, NO), {"pass_threshold": 0.75}, "passed", 0.75),
        (({**YES, "weight": 3}, NO), {"pass_threshold": 0.76}, "failed", 0.75),
        ((YES, {**NO, "weight": 0}), {}, "failed", 1.0),
        (({**YES, "weight": 0},), {}, "passed", 0.0),
        ((YES, NONE), {}, "passed", 1.0),
        ((NONE,), {}, "passed", None),
        ((), {}, "passed", None),
        ((YES,), {"negate": True}, "failed", 0.0),
        ((NO,), {"negate": True}, "passed", 1.0),
        ((YES, NO), {"negate": True}, "passed", 0.5),
        ((BAD,), {}, "error", None),
        ((BAD,), {"negate": True}, "error", None),
        ((YES, BAD), {"pass_threshold": 0.1}, "error", None),
        ((NONE,), {"negate": True}, "passed", None),
    ],
)
def test_criterion(metrics: Any, more: dict[str, Any], outcome: str, score: float | None) -> None:
    result = check(*metrics, **more)
    assert result.outcome == outcome
    assert result.score == (score if score is None else pytest.approx(score))


@pytest.mark.parametrize(
    ("score", "expected"), [(0, 1), (0.24, 1), (0.25, 2), (0.5, 3), (0.3 + 0.2, 3), (0.749, 3), (0.75, 4), (1, 5)]
)
def test_rating(score: float, expected: int) -> None:
    assert rating(score) == expected


def test_neutral_criterion_is_rated_three_and_left_out_of_the_mean() -> None:
    result = check(NONE)
    assert result.neutral
    assert result.rating == 3
    verdict = verdict_of([result, check(NO, severity="warning"), check(YES)])
    assert verdict.score == 0.5
    assert verdict.outcome is Outcome.PASSED


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ('{"metrics": [', "line 1, column"),
        ("[]", "must be an object"),
        ('{"metrics": {}}', "`metrics` must be a list"),
        ('{"metrics": ["x"]}', "`metrics[0]` must be an object"),
        ('{"metrics": [{"contains": "x"}]}', "`metrics[0].type` is missing"),
        ('{"metrics": [{"type": 5}]}', "`metrics[0].type` must be a string"),
        ('{"metrics": [{"type": "TextMach"}]}', "did you mean TextMatch?"),
        ('{"metriks": []}', "`metriks` is not known"),
    ],
)
def test_broken_configs_are_errors_with_the_reason(config: str, words: str) -> None:
    for negate in (False, True):
        checker = compile_criterion(CriterionSpec("it", "TextResponse", config, negate=negate))
        result = checker.check(ANSWER)
        assert result.outcome is Outcome.ERROR
        assert result.score is None
        assert words in criterion_sentence(result)
        assert checker.problem == criterion_sentence(result)


def test_unknown_prototype_class() -> None:
    result = compile_criterion(CriterionSpec("it", "TextRespons", {"metrics": [YES]})).check(ANSWER)
    assert result.outcome is Outcome.ERROR
    assert "did you mean TextResponse?" in criterion_sentence(result)


@pytest.mark.parametrize(
    "name",
    [
        "TextResponse",
        "TextResponseTestCriterion",
        "TextResponseTestCriterion.php",
        "\\axenox\\GenAI\\AI\\TestCriteria\\TextResponseTestCriterion",
        "axenox.GenAI.TextResponseTestCriterion",
        "axenox/genai/TextResponseTestCriterion.php",
    ],
)
@pytest.mark.parametrize("metric", ["TextMatch", "axenox.GenAI.TextMatch", "axenox\\GenAI\\TextMatch", "TextMatch.php"])
def test_names_as_power_ui_writes_them(name: str, metric: str) -> None:
    made = CriterionSpec("it", name, {"metrics": [{**YES, "type": metric}]})
    result = compile_criterion(made).check(ANSWER)
    assert result.outcome is Outcome.PASSED
    assert result.prototype_class == "TextResponse"
    assert result.metrics[0].type == "TextMatch"
    assert result.metrics[0].name == "TextMatch"


def test_power_ui_text_works_as_it_is() -> None:
    config = """{
      "extract_by_regex": "/(.*)/",
      "//": "a comment",
      "metrics": [
        {
          "name": "TextMatch1", "type": "TextMatch",
          "contains_all": ["Berlin", "big"], // both
          "not_contains_any": ["OR"],
        }
      ]
    }"""
    result = compile_criterion(CriterionSpec("it", "TextResponseTestCriterion.php", config)).check(ANSWER)
    assert result.outcome is Outcome.PASSED
    assert result.metrics[0].name == "TextMatch1"


def test_verdict() -> None:
    yes, no, bad = check(YES), check(NO), check(BAD)
    assert verdict_of([yes, yes]).outcome is Outcome.PASSED
    assert verdict_of([]).outcome is Outcome.PASSED
    assert verdict_of([]).score == 0.0
    assert verdict_of([yes, no]).outcome is Outcome.FAILED
    assert verdict_of([yes, no]).score == 0.5
    assert verdict_of([yes, bad]).outcome is Outcome.ERROR
    assert verdict_of([yes, bad]).score == 1.0
    assert verdict_of([bad]).score is None
    assert verdict_of([no, bad]).outcome is Outcome.FAILED
    assert verdict_sentence(verdict_of([no, bad])).startswith('it: "Paris" is not in the text')
    weighted = [replace(yes, weight=3.0), replace(no, weight=1.0, severity="info")]
    assert verdict_of(weighted).score == 0.75
    assert verdict_of(weighted).outcome is Outcome.PASSED
    assert verdict_of(weighted, 0.75).outcome is Outcome.PASSED
    assert verdict_of(weighted, 0.8).outcome is Outcome.FAILED
    assert "0.8" in verdict_sentence(verdict_of(weighted, 0.8))
    assert verdict_of([replace(yes, weight=0.0)]).score == 0.0


def test_severities() -> None:
    for severity in ("warning", "info"):
        verdict = grade(ANSWER, [spec(NO, severity=severity), spec(BAD, severity=severity), spec(YES)])
        assert verdict.outcome is Outcome.PASSED
        assert verdict.warnings == (1 if severity == "warning" else 0)
    assert grade(ANSWER, [spec(NO, severity="warning")]).outcome is Outcome.PASSED


def test_an_agent_that_did_not_finish_is_not_graded() -> None:
    broken = replace(ANSWER, error=RunError("timeout", "no answer for 60 s"))
    verdict = grade(broken, [spec(YES), spec(NO, negate=True)])
    assert verdict.outcome is Outcome.ERROR
    assert [result.outcome for result in verdict.results] == [Outcome.SKIPPED, Outcome.SKIPPED]
    assert "no answer for 60 s" in verdict_sentence(verdict)


def test_foreign_results() -> None:
    assert foreign_result("tau-bench reward", score=1.0, source="tau-bench").outcome is Outcome.PASSED
    assert foreign_result("points", score=10**400, source="x").score == 1.0
    assert foreign_result("tau-bench reward", score=0.0, source="tau-bench").outcome is Outcome.FAILED
    assert foreign_result("x", passed=True, source="s").score == 1.0
    assert foreign_result("x", passed=False, score=0.7, source="s").outcome is Outcome.FAILED
    assert foreign_result("x", source="s").outcome is Outcome.NEEDS_REVIEW
    assert foreign_result("x", score=7, source="s").score == 1.0


def test_hash_is_of_what_judges() -> None:
    text = '{"metrics": [{"type": "TextMatch", "contains": "Berlin"}]}'
    one = CriterionSpec("a", "TextResponse", text)
    same = [
        CriterionSpec("b", "TextResponseTestCriterion.php", text, description="x", weight=3, severity="info"),
        CriterionSpec("a", "TextResponse", '{ // why\n "metrics": [{"contains": "Berlin", "type": "TextMatch"},]}'),
        CriterionSpec("a", "TextResponse", {"metrics": [{"type": "TextMatch", "contains": "Berlin"}]}),
    ]
    assert {other.hash for other in same} == {one.hash}
    different = [
        replace(one, negate=True),
        replace(one, pass_threshold=0.5),
        replace(one, expected_value="x"),
        replace(one, prototype_class="ToolResponse"),
        replace(one, config=text.replace("Berlin", "Bonn")),
        replace(one, config=text[:-1]),
        replace(one, config=text[:-2]),
    ]
    assert len({one.hash, *(other.hash for other in different)}) == len(different) + 1
    assert compile_criterion(one).check(ANSWER).criterion_hash == one.hash


def test_checkers_are_cached_and_keep_their_names() -> None:
    assert compile_criterion(spec(YES)) is compile_criterion(spec(YES))
    assert compile_criterion(spec(YES, name="other")).check(ANSWER).criterion == "other"
    assert compile_criterion(spec(YES, weight=2.0)).check(ANSWER).weight == 2.0
    assert compile_criterion(spec(YES, severity="info")).check(ANSWER).severity == "info"


def test_values_that_json_does_not_know_do_not_break_grading() -> None:
    import datetime

    config = {"metrics": [{"type": "TextMatch", "contains": datetime.date(2026, 1, 2)}], 5: None}
    made = CriterionSpec("it", "TextResponse", config, expected_value={1: datetime.date(2026, 1, 2)})
    assert made.hash
    assert compile_criterion(made).check(ANSWER).outcome is Outcome.ERROR
    deep: Any = "x"
    for _ in range(5000):
        deep = [deep]
    assert Checker(CriterionSpec("it", "TextResponse", {"metrics": deep})).check(ANSWER).outcome is Outcome.ERROR


def test_a_metric_that_breaks_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def explode(self: Any, value: Any, context: Any) -> Any:
        raise ZeroDivisionError("no")

    checker = Checker(spec(YES, NO))
    monkeypatch.setattr("agenteval_tui.grading.metrics.text_match._Compiled.__call__", explode)
    result = checker.check(ANSWER)
    assert result.outcome is Outcome.ERROR
    assert "ZeroDivisionError" in criterion_sentence(result)
