"""A judge that keeps silent where people's labels show it to be wrong too often, or are too few to know."""

from __future__ import annotations

import random
from fractions import Fraction
from math import comb
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agenteval_tui.grading.codes import Code
from agenteval_tui.grading.compile import compile_criterion
from agenteval_tui.grading.config.diagnostics import diagnose
from agenteval_tui.grading.metrics.judge_acceptance import (
    Acceptance,
    LabelledScore,
    LabelledScores,
    ScoredLabel,
    acceptance,
    binomial_tail,
)
from agenteval_tui.grading.remote_requests import RemoteRequest, Reply
from agenteval_tui.grading.results import CriterionResult, Outcome
from agenteval_tui.grading.sentences import criterion_sentence, evidence_sentence
from agenteval_tui.grading.spec import CriterionSpec
from agenteval_tui.transcripts.model import Message, Transcript
from tests.sweeps import share

TALK = Transcript(messages=(Message("user", "Hi"), Message("assistant", "Hello")), final_output="Hello")
SHARES = {1: 0.0, 2: 0.25, 3: 0.5, 4: 0.75, 5: 1.0}
# Score: (people say yes, people say no). Sure at both ends, and wrong half of the time in the middle.
SURE_AT_THE_ENDS = {5: (80, 2), 4: (15, 12), 3: (12, 14), 2: (1, 30), 1: (0, 50)}


def found(counts: dict[int, tuple[int, int]], error: float = 0.1, confidence: float = 0.95) -> Acceptance:
    scores = tuple(
        LabelledScore(SHARES[score], score >= 3.5, good, number)
        for score, numbers in counts.items()
        for good, number in zip((True, False), numbers, strict=True)
        if number
    )
    return acceptance(scores, "one_to_five", 0.625, error, confidence)


@given(st.integers(0, 60), st.integers(1, 60), st.integers(1, 49))
def test_the_tail_is_the_binomial_distributions(at_most: int, n: int, percent: int) -> None:
    p = Fraction(percent, 100)
    exact = sum(comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(min(at_most, n) + 1))
    assert binomial_tail(min(at_most, n), n, percent / 100) == pytest.approx(float(exact), rel=1e-9)


def test_the_interval_between_which_a_judge_is_too_often_wrong() -> None:
    one = found(SURE_AT_THE_ENDS)
    assert (one.trusted, one.low, one.high) == (True, 0.25, 1.0)
    assert (one.labels, one.decided, one.wrong) == (216, 163, 3)
    assert [one.decides(SHARES[score], score >= 3.5) for score in SHARES] == [True, True, False, False, True]
    assert one.silent_between(0.625) == (0.25, 1.0)
    everything = found({5: (200, 2), 1: (3, 100)})
    assert (everything.low, everything.high, everything.decided) == (1.0, 0.0, 305)
    assert everything.silent_between(0.625) == (0.625, 0.625)
    one_side = found({5: (200, 2), 4: (20, 1), 1: (60, 60)})
    assert one_side.low is None
    assert not one_side.decides(0.0, passed=False)


def test_with_too_few_labels_it_is_known_how_many_are_needed() -> None:
    for labels in ({}, {5: (12, 0)}, {5: (20, 0), 1: (0, 10)}):
        one = found(labels)
        assert (one.trusted, one.needed) == (False, 36)
    # With so many, all of them right, some interval is trusted; with one less, none is.
    assert found({5: (36, 0)}).trusted
    assert not found({5: (35, 0)}).trusted
    # Of a judge that errs, more: and so many are enough if it goes on like that.
    one = found({5: (38, 2)})
    assert one.needed is not None
    assert one.needed > 40
    right = round(one.needed * 38 / 40)
    assert found({5: (right + 1, one.needed - right)}).trusted
    assert found({5: (40, 20), 1: (20, 40)}).needed is None  # wrong everywhere: no number of labels helps


@given(
    st.lists(st.tuples(st.integers(1, 5), st.booleans()), max_size=300),
    st.sampled_from([0.05, 0.1, 0.2, 0.3]),
    st.sampled_from([0.8, 0.95, 0.99]),
)
def test_an_interval_is_trusted_by_its_own_labels(
    labels: list[tuple[int, bool]], error: float, confidence: float
) -> None:
    counts = dict.fromkeys(SHARES, (0, 0))
    for score, good in labels:
        yes, no = counts[score]
        counts[score] = (yes + good, no + (not good))
    one = found(counts, error, confidence)
    inside = [good for score, good in labels if one.decides(SHARES[score], score >= 3.5)]
    assert one.decided == len(inside) if one.trusted else not inside
    wrong = sum(1 for score, good in labels if one.decides(SHARES[score], score >= 3.5) and good != (score >= 3.5))
    if one.trusted:
        assert one.wrong == wrong
        assert wrong / len(inside) < error
        assert binomial_tail(wrong, len(inside), error) <= 1 - confidence


def test_the_bound_holds_for_a_judge_that_is_wrong_just_too_often() -> None:
    """The hardest case: every interval is wrong in 12 of 100, so trusting any is a mistake; at most 5 % may be."""
    chooser = random.Random(5)
    mistakes = 0
    judges = share(range(1000))
    for _ in judges:
        counts = dict.fromkeys(SHARES, (0, 0))
        for _ in range(300):
            score, right = chooser.randint(1, 5), chooser.random() >= 0.12
            yes, no = counts[score]
            good = right is (score >= 3.5)
            counts[score] = (yes + good, no + (not good))
        mistakes += found(counts).trusted
    assert mistakes <= len(judges) / 20


# In a criterion

JUDGE: dict[str, Any] = {"type": "Judge", "prompt": "{{output}}", "reply": "number", "scale": "one_to_five"}


def check(
    score: int, labels: Any = None, *, label: Any = None, accept: Any = None, metric: Any = None, **more: Any
) -> CriterionResult:
    """The result if the judge gives this score, with people's `labels` {score: (yes, no)} and a `label` of the run."""
    config = {"metrics": [{**JUDGE, "accept": accept or {"error": 0.1}, **(metric or {})}]}
    checker = compile_criterion(CriterionSpec("Fine", "TextResponse", config, **more))
    replies: dict[str, Reply] = {}
    for request in checker.requests(TALK, {}, replies):
        replies[request.hash] = Reply(str(score))
    for request in checker.requests(TALK, {}, replies):
        if request.kind == "labels" and labels is not None:
            scored = [
                ScoredLabel(at, {}, good, n)
                for at, both in labels.items()
                for good, n in zip((True, False), both, strict=True)
            ]
            replies[request.hash] = Reply(msgspec.json.encode(LabelledScores(tuple(scored), 3)).decode())
        elif request.kind == "person" and label is not None:
            replies[request.hash] = Reply(
                msgspec.json.encode({"rating": None, "comment": "", "who": "Ada", **label}).decode()
            )
    return checker.check(TALK, {}, replies=replies)


def test_a_judge_decides_outside_and_keeps_silent_inside() -> None:
    result = check(5, SURE_AT_THE_ENDS)
    assert (result.outcome, result.score) == (Outcome.PASSED, 1.0)
    line = result.metrics[0].evidence[-1]
    assert (line.code, line.fields["decided"], line.fields["wrong"]) == (Code.TRUSTED, 163, 3)
    assert evidence_sentence(line) == (
        "the judge decides: it is wrong in 3 of 163 labelled runs that it decides; it keeps silent between 2 and 5"
    )
    silent = check(3, SURE_AT_THE_ENDS)
    assert (silent.outcome, silent.score, silent.metrics[0].code) == (Outcome.NEEDS_REVIEW, None, Code.KEEPS_SILENT)
    assert "gave 3 of 1..5 and keeps silent between 2 and 5" in criterion_sentence(silent)
    assert "not scored 3 labelled runs" in criterion_sentence(silent)
    assert all(line.passed is None for line in silent.metrics[0].evidence)


def test_with_too_few_labels_nothing_is_decided() -> None:
    for labels in (None, {}, {5: (10, 0)}):
        result = check(5, labels)
        assert (result.outcome, result.metrics[0].fields["needed"]) == (Outcome.NEEDS_REVIEW, 36)
    assert "10 labels of runs that it scored are too few" in criterion_sentence(check(5, {5: (10, 0)}))
    assert "at least 36 are needed" in criterion_sentence(check(5, {5: (10, 0)}))
    assert "change its prompt" in criterion_sentence(check(5, {5: (50, 50), 1: (50, 50)}))


@pytest.mark.parametrize("negate", [False, True])
def test_a_person_decides_what_the_judge_does_not(negate: bool) -> None:
    for passed in (True, False):
        result = check(3, SURE_AT_THE_ENDS, label={"passed": passed}, negate=negate)
        assert result.outcome is (Outcome.PASSED if passed else Outcome.FAILED)
        codes = [line.code for line in result.metrics[0].evidence]
        assert codes[:2] == [Code.LABELLED, Code.KEEPS_SILENT]
    # Where the judge decides, it does: how far it agrees with people must stay to be seen.
    decided = check(
        5, {5: (2, 80), 1: (80, 0)} if negate else SURE_AT_THE_ENDS, label={"passed": negate}, negate=negate
    )
    assert decided.outcome is (Outcome.FAILED if negate else Outcome.PASSED)


def test_thresholds_of_the_metric_and_of_the_criterion() -> None:
    labels = {5: (80, 1), 4: (1, 60), 1: (0, 40)}
    assert check(4, labels, metric={"pass_threshold": 5}).outcome is Outcome.FAILED
    assert check(4, labels, pass_threshold=0.9).outcome is Outcome.FAILED
    assert check(4, labels).outcome is Outcome.NEEDS_REVIEW


def test_what_changes_the_question_and_what_does_not() -> None:
    def asked(**metric: Any) -> list[RemoteRequest]:
        config = {"metrics": [{**JUDGE, "accept": {"error": 0.1}, **metric}]}
        checker = compile_criterion(CriterionSpec("Fine", "TextResponse", config))
        first = checker.requests(TALK)
        return [*first, *checker.requests(TALK, {}, {one.hash: Reply("4") for one in first})]

    kinds = [one.kind for one in asked()]
    assert kinds == ["chat", "labels", "person"]
    assert [one.hash for one in asked()] == [one.hash for one in asked(accept={"error": 0.3}, pass_threshold=0.4)]
    assert [one.hash for one in asked()][:2] != [one.hash for one in asked(prompt="New: {{output}}")][:2]


@pytest.mark.parametrize(
    ("accept", "said"),
    [
        ({"error": 0}, "greater than 0"), ({"error": 0.6}, "less than 0.5"), ({}, 'needs "error"'),
        ({"error": "0.1"}, "number"), ({"error": 0.1, "confidence": 1}, "less than 1"), ({"errors": 0.1}, "error"),
        (0.1, "object"),
    ],
)  # fmt: skip
def test_an_accept_that_can_not_be_used(accept: Any, said: str) -> None:
    text = msgspec.json.encode({"metrics": [{**JUDGE, "accept": accept}]}).decode()
    problems = [one for one in diagnose(text, "TextResponse") if one.severity == "error"]
    assert any(said in one.message for one in problems), problems
    assert check(5, {}, accept=accept or {"x": 1}).code == Code.BAD_CONFIG


def test_labels_are_of_the_criterion_so_the_judge_is_alone_in_it() -> None:
    config = {"metrics": [{**JUDGE, "accept": {"error": 0.1}}, {"type": "Length", "min_words": 1}]}
    (problem,) = [
        one for one in diagnose(msgspec.json.encode(config).decode(), "TextResponse") if one.severity == "error"
    ]
    assert "this metric alone" in problem.message
    result = compile_criterion(CriterionSpec("Fine", "TextResponse", config)).check(TALK)
    assert result.code == Code.BAD_CONFIG
