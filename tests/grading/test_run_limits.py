"""Latency, Tokens, Cost, Steps; Classification, of one run and of many."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agenteval_tui.analysis.classification_report import classification, classification_of
from agenteval_tui.grading.codec import result_from_json, result_to_json
from agenteval_tui.grading.compile import Checker
from agenteval_tui.grading.config.diagnostics import diagnose
from agenteval_tui.grading.results import CriterionResult, Outcome, Span
from agenteval_tui.grading.sentences import criterion_sentence, evidence_sentence
from agenteval_tui.grading.spec import CriterionSpec
from agenteval_tui.transcripts.model import Message, Timing, ToolCall, Transcript, Usage
from agenteval_tui.uxon.serialize import to_text

CALLS = tuple(ToolCall(f"c{n}", "query", {}) for n in range(4))
RUN = Transcript((), CALLS, Timing(total_ms=1500.0), Usage(1000, 200, cost=0.0123))


def run(
    transcript: Transcript, prototype: str = "TextResponse", expected: Any = None, **metric: Any
) -> CriterionResult:
    checker = Checker(CriterionSpec("it", prototype, {"metrics": [metric]}, expected_value=expected))
    result = checker.check(transcript)
    quick = checker.check(transcript, explain=False)
    assert (quick.outcome, quick.score) == (result.outcome, result.score)
    return result


def said(prototype: str = "TextResponse", **config: Any) -> dict[str, str]:
    return {one.code: one.message for one in diagnose(to_text({"metrics": [config]}), prototype)}


@pytest.mark.parametrize(
    ("config", "passed", "reason"),
    [
        ({"type": "Latency", "max": 1500}, True, "the run took 1,500 ms, expected at most 1,500 ms"),
        ({"type": "Latency", "max": 1000}, False, "the run took 1,500 ms, 500 ms more than the maximum of 1,000 ms"),
        ({"type": "Tokens", "max": 1200}, True, "the run used 1,200 tokens, expected at most 1,200"),
        (
            {"type": "Tokens", "input_max": 999},
            False,
            "the run used 1,000 input tokens, 1 more than the maximum of 999",
        ),
        ({"type": "Tokens", "output_max": 200}, True, "the run used 200 output tokens, expected at most 200"),
        ({"type": "Cost", "max": 0.0123}, True, "the run cost $0.0123, expected at most $0.0123"),
        ({"type": "Cost", "max": 0.01}, False, "the run cost $0.0123, $0.0023 more than the maximum of $0.01"),
        ({"type": "Steps", "max": 4}, True, "the agent made 4 tool calls, expected at most 4"),
        ({"type": "Steps", "max": 1}, False, "the agent made 4 tool calls, 3 more than the maximum of 1"),
    ],
)
def test_what_a_run_took(config: dict[str, Any], passed: bool, reason: str) -> None:
    result = run(RUN, **config)
    assert (result.outcome is Outcome.PASSED, result.score) == (passed, float(passed))
    assert evidence_sentence(result.metrics[0].evidence[0]) == reason


def test_several_bounds_and_none() -> None:
    result = run(RUN, type="Tokens", max=2000, input_max=500, output_max=500)
    assert (result.outcome, result.score) == (Outcome.FAILED, pytest.approx(2 / 3))
    too_many = run(RUN, type="Steps", max=2).metrics[0].evidence[0]
    assert too_many.spans == (Span("tool", 2), Span("tool", 3))
    for name in ("Latency", "Tokens", "Cost", "Steps"):
        assert run(RUN, type=name).neutral
        assert "checks-nothing" in said(type=name)
    assert "without-effect" in said(type="Tokens", max=10, input_max=5, output_max=5)
    assert said(type="Tokens", max=9, input_max=5, output_max=5) == {}


def labelled(text: str) -> Transcript:
    return Transcript((Message("assistant", text),), final_output=text)


def test_classification_of_one_run() -> None:
    assert run(labelled(" billing\n"), expected="billing", type="Classification").outcome is Outcome.PASSED
    assert run(labelled("Billing"), type="Classification", label="billing", ignore_case=True).score == 1.0
    wrong = run(labelled("Billing"), type="Classification", label="billing")
    assert criterion_sentence(wrong) == 'the label is "Billing", expected "billing" (would match ignoring case)'
    assert wrong.metrics[0].evidence[0].spans == (Span("message", 0, 0, 7),)
    none = run(labelled("I think billing"), type="Classification", label="billing", labels=["billing", "other"])
    assert 'it is not one of "billing" and "other"' in criterion_sentence(none)
    assert "there is no label" in criterion_sentence(run(labelled(" "), type="Classification", label="billing"))
    assert "contradictory" in said(type="Classification", label="bill", labels=["billing"])
    assert "duplicate" in said(type="Classification", labels=["a", "a"])


def test_classification_over_many_runs() -> None:
    pairs = [("cat", "cat")] * 5 + [("cat", "dog")] * 3 + [("dog", "dog")] * 2 + [("dog", "bird")]
    found = classification(pairs)
    assert found.labels == ("bird", "cat", "dog")
    assert found.matrix == ((0, 0, 0), (0, 5, 3), (1, 0, 2))
    assert found.accuracy == pytest.approx(7 / 11)
    bird, cat, dog = found.per_label
    assert (bird.precision, bird.recall, bird.f1) == (0.0, None, 0.0)
    assert (cat.precision, cat.recall) == (1.0, 0.625)
    assert cat.f1 == pytest.approx(10 / 13)
    assert (dog.precision, dog.recall) == (pytest.approx(0.4), pytest.approx(2 / 3))
    assert found.macro_f1 == pytest.approx((0 + 10 / 13 + 0.5) / 3)
    assert found.weighted_f1 == pytest.approx((8 * 10 / 13 + 3 * 0.5) / 11)
    empty = classification([])
    assert (empty.accuracy, empty.macro_f1, empty.weighted_f1, empty.n) == (None, None, None, 0)


def test_stored_results_make_the_report() -> None:
    results = [
        run(labelled("a"), expected="a", type="Classification"),
        run(labelled("B"), expected="b", type="Classification", ignore_case=True),
        run(labelled("a"), expected="b", type="Classification"),
        run(labelled("a"), type="Classification"),
        run(labelled("a"), type="TextMatch", equals="a"),
    ]
    stored = [result_from_json(result_to_json(one)) for one in results]
    found = classification_of(stored)
    assert (found.labels, found.matrix) == (("a", "b"), ((1, 0), (1, 1)))
    assert (found.n, found.errors) == (3, 1)


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("abc")), min_size=1))
def test_figures_of_a_report_fit_together(pairs: list[tuple[str, str]]) -> None:
    found = classification(pairs)
    assert sum(map(sum, found.matrix)) == found.n == len(pairs)
    assert sum(one.hits for one in found.per_label) == sum(right == given for right, given in pairs)
    # Over one label each, micro-averaged precision is the accuracy.
    assert sum(one.hits for one in found.per_label) / sum(one.given for one in found.per_label) == found.accuracy
