"""The metric `Repetition`."""

from __future__ import annotations

import pytest

from agenteval_tui.grading.results import Outcome
from agenteval_tui.grading.sentences import metric_sentence
from tests.grading.test_text_metrics import marked, of, run, said


def test_repetition() -> None:
    assert of("a a a b", type="Repetition", max_ratio=0.5).score == 1.0
    text = "Again and again and Again"
    result = of(text, type="Repetition", max_ratio=0.3)
    assert (result.outcome, result.score) == (Outcome.FAILED, pytest.approx(0.4))
    assert result.evidence[0].found == pytest.approx(0.6)
    assert marked(text, result) == ["again", "and", "Again"]
    assert '"Again" (3 times)' in metric_sentence(result)
    assert of("", type="Repetition", max_ratio=0).outcome is Outcome.PASSED
    assert run(text, type="Repetition").neutral
    assert "cannot-fail" in said({"type": "Repetition", "max_ratio": 1})
