"""The metric `Retrieval`."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agenteval_tui.extensions.retrieval.metric import measure
from agenteval_tui.grading.results import Outcome, Span
from agenteval_tui.grading.sentences import criterion_sentence, evidence_sentence
from agenteval_tui.transcripts.model import Message, ToolCall, Transcript
from tests.grading.test_run_limits import run, said


def found(*ids: str) -> Transcript:
    result = "[" + ", ".join(f'"{one}"' for one in ids) + "]"
    messages = (Message("assistant", "", tool_calls=(0,)), Message("tool", result, tool_call=0))
    return Transcript(messages, (ToolCall("c", "search", {}, result, message=0),))


def test_retrieval_figures_by_hand() -> None:
    figures = measure(["d3", "d1", "d9", "d2"], ["d1", "d2", "d4"], 3)
    assert (figures.precision, figures.recall) == (pytest.approx(1 / 3), pytest.approx(1 / 3))
    assert figures.f1 == pytest.approx(1 / 3)
    assert figures.mrr == 0.5
    # One hit at rank 2, of three at best.
    assert figures.ndcg == pytest.approx((1 / math.log2(3)) / (1 + 1 / math.log2(3) + 1 / math.log2(4)))
    everything = measure(["d1", "d2", "d4"], ["d4", "d2", "d1"])
    assert (everything.precision, everything.recall, everything.f1, everything.mrr, everything.ndcg) == (1, 1, 1, 1, 1)
    # Precision@k divides by k, also when fewer were found (the course, section 8).
    assert measure(["d1"], ["d1"], 5).precision == 0.2
    assert measure([], ["d1"]).f1 == 0.0
    assert measure(["d1", "d1"], ["d1"]).precision == 1.0


@given(
    st.lists(st.sampled_from("abcdef")), st.lists(st.sampled_from("abcdef"), min_size=1), st.none() | st.integers(1, 7)
)
def test_retrieval_figures_are_shares(ranked: list[str], relevant: list[str], k: int | None) -> None:
    figures = measure(ranked, relevant, k)
    for name in ("precision", "recall", "f1", "mrr", "ndcg"):
        assert 0.0 <= getattr(figures, name) <= 1.0
    if ranked and set(ranked[:1]) <= set(relevant):
        assert figures.mrr == 1.0


def test_retrieval() -> None:
    config = {"type": "Retrieval", "relevant": ["d1", "d2"], "k": 2}
    right = run(found("d1", "d3", "d2"), "Retrieval", **config, min_recall=0.5, min_mrr=1)
    assert (right.outcome, right.score) == (Outcome.PASSED, 0.5)
    lines = {line.condition: line for line in right.metrics[0].evidence}
    assert lines["relevant[0]"].spans == (Span("message", 1, 2, 4),)
    assert evidence_sentence(lines["relevant[1]"]) == '"d2" was found, but only as the 3rd (k is 2)'
    assert lines["relevant[1]"].near
    assert evidence_sentence(lines["not relevant"]) == 'found, but not relevant: "d3"'
    wrong = run(found("d1", "d3", "d2"), "Retrieval", **config, min_recall=0.8)
    assert wrong.outcome is Outcome.FAILED
    assert criterion_sentence(wrong) == "recall@2 is 0.500, expected at least 0.8"
    assert run(found(), "Retrieval", **config, min_f1=0.1).outcome is Outcome.FAILED
    answer = Transcript((), final_output='["d1", "d2"]')
    assert run(answer, "JsonResponse", **config, min_f1=1).outcome is Outcome.PASSED
    # A document counts once, in the figures and in their evidence.
    answer = Transcript((), final_output='["d1", "d1", "d2"]')
    twice = run(answer, "JsonResponse", type="Retrieval", relevant=["d2"], k=2, min_recall=1)
    lines = {line.condition: line for line in twice.metrics[0].evidence}
    assert (twice.outcome, lines["relevant[0]"].found, lines["not relevant"].found) == (Outcome.PASSED, 2, 1)
    assert "cannot-fail" in said("Retrieval", **config)
    assert (
        "at most 0.500: this can never pass" in said("Retrieval", **{**config, "k": 1}, min_recall=0.6)["contradictory"]
    )
    assert said("Retrieval", **config, min_recall=1) == {}
    assert "at least 1" in said("Retrieval", type="Retrieval", relevant=[])["wrong-value"]
