"""The metric `Similarity`."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agenteval_tui.grading.compile import compile_criterion
from agenteval_tui.grading.remote_requests import Reply
from agenteval_tui.grading.results import Outcome
from agenteval_tui.grading.sentences import criterion_sentence
from agenteval_tui.transcripts.model import Message, Transcript
from tests.grading.test_remote import answered, asked_of, spec


def vector(*numbers: Any) -> str:
    return json.dumps({"vector": numbers})


def test_similarity_is_the_cosine() -> None:
    metric = {"type": "Similarity", "to": "A dozen kettles."}
    result = answered(metric, vector(3, 4), vector(3, 4))
    assert (result.outcome, result.score) == (Outcome.PASSED, pytest.approx(1))
    result = answered({**metric, "min": 0.9}, vector(1, 0), vector(4, 3))
    assert (result.outcome, result.score) == (Outcome.FAILED, pytest.approx(0.8))
    opposite = answered({**metric, "min": -1.0}, vector(1, 0), vector(-1, 0))
    assert (opposite.outcome, opposite.score) == (Outcome.PASSED, 0)


@pytest.mark.parametrize("size", [1e-200, 1e-3, 1e154, 1e308])
def test_the_length_of_a_vector_does_not_matter(size: float) -> None:
    result = answered({"type": "Similarity", "to": "A dozen", "min": 0.9}, vector(size, 0), vector(0.8, 0.6))
    assert (result.outcome, result.score) == (Outcome.FAILED, pytest.approx(0.8))
    same = answered({"type": "Similarity", "to": "A dozen"}, vector(size, size), vector(size, size))
    assert (same.outcome, same.score) == (Outcome.PASSED, pytest.approx(1))


def test_similarity_compares_with_the_expected_value() -> None:
    asked = asked_of({"type": "Similarity"}, expected_value="A dozen")
    assert [one.payload["text"] for one in asked] == ["There are 12 kettles.", "A dozen"]


@pytest.mark.parametrize("negate", [False, True])
@pytest.mark.parametrize(
    "replies",
    [
        (),
        (vector(1, 0), Reply(error="no connection")),
        (vector(1, 0), vector(1, 0, 0)),
        (vector(0, 0), vector(1, 0)),
        (vector(1, 0), "[1, 0]"),
        (vector(1, 0), "nonsense"),
        (vector(1, 0), vector()),
        (vector(1, 0), '{"vector": [NaN, 1]}'),
        (vector(1.7e308, 1.7e308), vector(1, 1)),
    ],
)
def test_a_broken_embedder_is_an_error_also_when_negated(replies: tuple[Any, ...], negate: bool) -> None:
    result = answered({"type": "Similarity", "to": "A dozen"}, *replies, negate=negate)
    assert (result.outcome, result.score) == (Outcome.ERROR, None)


def test_similarity_without_a_text_to_compare_with_is_an_error() -> None:
    assert "nothing to compare with" in criterion_sentence(answered({"type": "Similarity"}))


def test_an_empty_answer_is_not_similar_to_anything() -> None:
    silent = Transcript(messages=(Message("user", "hi"), Message("assistant", "")), final_output="")
    checker = compile_criterion(spec({"type": "Similarity", "to": "A dozen"}))
    assert checker.requests(silent) == ()
    assert checker.check(silent, {}, replies={}).outcome in (Outcome.FAILED, Outcome.ERROR)
