"""What is said of suggested criteria."""

from __future__ import annotations

import pytest

from agenteval_tui.extensions.suggest.search import Suggestion, Suggestions
from agenteval_tui.extensions.suggest.view import facts_of, next_lines
from agenteval_tui.views.model import paragraphs
from agenteval_tui.views.terminal import plain_text

A, B, C = (f"01M83VVAEJNAJEHRCFV0RBF1{end}" for end in ("NA", "NB", "NC"))


def test_runs_are_called_by_the_end_of_their_ids() -> None:
    one = Suggestion(
        title="calls it",
        prototype_class="ToolResponse",
        config="{}",
        conditions=1,
        agrees=2,
        labelled=3,
        size=1.0,
        margin=1.0,
        wrong=(A,),
        teaches=B,
    )
    found = Suggestions((one,), 5, 2, 1, label_next=C, contradictions=((A, B),))
    said = plain_text((*paragraphs(list(facts_of(one, found))), *paragraphs(list(next_lines(found)))))
    assert "wrong: V0RBF1NA" in said
    assert "labelling V0RBF1NB would" in said
    assert "V0RBF1NA is labelled good and V0RBF1NB bad" in said
    assert "agenteval label V0RBF1NB --remove" in said
    assert "Label next: V0RBF1NC   agenteval label V0RBF1NC passed|failed" in said
    assert "01M83" not in said


@pytest.mark.parametrize(
    ("bits", "words"),
    [(4.2, "simple"), (8.8, "specific"), (17.3, "very specific: it may fit these runs only")],
)
def test_how_much_a_suggestion_says_is_in_words(bits: float, words: str) -> None:
    one = Suggestion(
        title="calls it",
        prototype_class="ToolResponse",
        config="{}",
        conditions=1,
        agrees=3,
        labelled=3,
        size=bits,
        margin=1.0,
        left_out=2,
        passes=5,
        runs=8,
    )
    said = plain_text(paragraphs(list(facts_of(one, Suggestions((one,), 8, 2, 1)))))
    assert said == f"✓ agrees with 3 of 3 labels; predicts 2 of 3 without seeing them; passes 5 of 8 runs; {words}"


def test_of_many_contradictions_a_sheet_tells_one_and_how_many_more() -> None:
    one = Suggestion(
        title="calls it",
        prototype_class="ToolResponse",
        config="{}",
        conditions=1,
        agrees=2,
        labelled=3,
        size=1.0,
        margin=1.0,
    )
    found = Suggestions((one,), 5, 2, 1, contradictions=((A, B), (C, B), (A, C)))
    said = plain_text(paragraphs(list(next_lines(found, 1))))
    assert "--remove. 2 more pairs of labels contradict each other." in said
    assert said.count("labelled good") == 1
    assert "more pairs" not in plain_text(paragraphs(list(next_lines(found))))
