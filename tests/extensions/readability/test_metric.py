"""The metric `Readability`."""

from __future__ import annotations

from agenteval_tui.extensions.readability.metric import grade, syllables
from agenteval_tui.grading.results import Outcome
from agenteval_tui.grading.tokenization import spoken_texts
from tests.grading.test_text_metrics import marked, of, run


def test_readability() -> None:
    # Counted by hand: 6 words, 2 sentences, 7 syllables ("The" has one, "yellow" two).
    text = "The cat sat. The yellow dog."
    assert [syllables(word) for word in ("The", "cat", "yellow", "rhythm", "the", "readable")] == [1, 1, 2, 1, 1, 2]
    assert grade(spoken_texts(text), 2) == round(max(0.0, 0.39 * 6 / 2 + 11.8 * 7 / 6 - 15.59), 1)
    hard = (
        "Notwithstanding institutional considerations, interdisciplinary organizations systematically internationalize."
    )
    result = of(hard, type="Readability", max_grade=8)
    assert result.outcome is Outcome.FAILED
    assert result.evidence[0].found > 20
    assert "interdisciplinary" in marked(hard, result)
    assert of(text, type="Readability", max_grade=8).outcome is Outcome.PASSED
    assert run(text, type="Readability").neutral
