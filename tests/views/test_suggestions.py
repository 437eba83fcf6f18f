"""What is said of suggested criteria."""

from __future__ import annotations

from agenteval_tui.analysis.suggest.search import Suggestion, Suggestions
from agenteval_tui.views.model import paragraphs
from agenteval_tui.views.suggestions import facts_of, next_lines
from agenteval_tui.views.terminal import plain_text

A, B, C = (f"01M83VVAEJNAJEHRCFV0RBF1{end}" for end in ("NA", "NB", "NC"))


def test_runs_are_called_by_the_end_of_their_ids() -> None:
    one = Suggestion("calls it", "ToolResponse", "{}", 1, 2, 3, 1.0, 1.0, wrong=(A,), teaches=B)
    found = Suggestions((one,), 5, 2, 1, label_next=C, contradictions=((A, B),))
    said = plain_text((*paragraphs(list(facts_of(one, found))), *paragraphs(list(next_lines(found)))))
    assert "wrong: V0RBF1NA" in said
    assert "labelling V0RBF1NB would" in said
    assert "V0RBF1NA is labelled good and V0RBF1NB bad" in said
    assert "agenteval label V0RBF1NB --remove" in said
    assert "Label next: V0RBF1NC   agenteval label V0RBF1NC passed|failed" in said
    assert "01M83" not in said
