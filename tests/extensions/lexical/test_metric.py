"""The metric `Lexical`."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agenteval_tui.extensions.lexical.metric import likeness, rouge_l
from agenteval_tui.grading.results import Outcome
from agenteval_tui.grading.sentences import criterion_sentence
from tests.grading.test_text_metrics import of, run, said


def test_lexical() -> None:
    assert of("kitten", type="Lexical", to="sitting").score == pytest.approx(2 * 4 / 13)  # rapidfuzz: i t t n
    assert of("world hello", type="Lexical", to="hello world", method="token_set").score == 1.0
    assert rouge_l("police killed the gunman", "police kill the gunman") == pytest.approx(0.75)  # Lin 2004, example 2
    assert rouge_l("the gunman kill police", "police kill the gunman") == pytest.approx(0.5)
    default = run("Order #12 was sent", expected="Order #13 was sent", type="Lexical", min=0.9)
    assert default.outcome is Outcome.PASSED
    missed = run("Order #12 was sent", expected="Order 13 is lost", type="Lexical", min=0.9)
    assert "similarity" in criterion_sentence(missed)
    assert missed.metrics[0].evidence[0].near
    assert of("", type="Lexical", to="").score == 1.0
    assert "cannot-fail" in said({"type": "Lexical", "min": 0})


@pytest.mark.parametrize(
    ("text", "other", "dice", "subset"),
    [
        ("The refund was NOT granted", "refund", 2 / 6, 1.0),
        ("refund", "The refund was NOT granted", 2 / 6, 1.0),
        ("granted", "not granted", 2 / 3, 1.0),
        ("b a a", "a b", 1.0, 1.0),
        ("Hello, world!", "world hello", 1.0, None),
        ("a b c", "b c d", 4 / 6, None),
        ("a b", "c d", 0.0, None),
        ("ä ß", "Ä ß", 1.0, None),
        ("!", "?", 0.0, None),
        ("!", "!", 1.0, 1.0),
        ("", "a", 0.0, 0.0),
    ],
)
def test_sets_of_words_are_compared_whole_and_subsets_by_their_own_name(
    text: str, other: str, dice: float, subset: float | None
) -> None:
    assert of(text, type="Lexical", to=other, method="token_set", min=0.9).score == pytest.approx(dice)
    if subset is not None:
        assert of(text, type="Lexical", to=other, method="token_subset").score == pytest.approx(subset)


def test_the_measure_of_subsets_is_warned_of() -> None:
    assert "weak" in said({"type": "Lexical", "to": "a", "method": "token_subset"})
    assert "weak" not in said({"type": "Lexical", "to": "a", "method": "token_set"})


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=30), st.text(max_size=30), st.sampled_from(["ratio", "token_set", "token_subset", "rouge_l"]))
def test_likeness_is_a_likeness(text: str, other: str, method: str) -> None:
    assert 0.0 <= likeness(text, other, method) <= 1.0
    assert likeness(text, text, method) == 1.0
    assert likeness(text, other, method) == pytest.approx(likeness(other, text, method))
