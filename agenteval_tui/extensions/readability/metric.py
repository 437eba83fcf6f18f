"""`Readability`: the school grade that an English text asks for."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from pydantic import Field

from agenteval_tui.grading.codes import Code
from agenteval_tui.grading.extracted_value import Context, Value
from agenteval_tui.grading.metrics.metric import ConfigWarning, Metric, abbreviate
from agenteval_tui.grading.results import Evidence, MetricResult, Span
from agenteval_tui.grading.tokenization import Word, count_sentences, spoken_texts, words_without_markup

_VOWELS = re.compile(r"[aeiouyäöüáàâéèêíìîóòôúùûæœø]+")
_HARD = 3


class Readability(Metric):
    """Measures how hard a text is to read: the Flesch-Kincaid grade, in years of school.

    0.39 * words / sentences + 11.8 * syllables / words - 15.59, at least 0, rounded to one decimal (Kincaid, Fishburne,
    Rogers and Chissom 1975, "Derivation of new readability formulas for Navy enlisted personnel", Research Branch
    Report 8-75). The formula is for English. Syllables are groups of vowels, without an e at the end of a word. A text
    without words is an error.
    """

    max_grade: float | None = Field(None, ge=0, allow_inf_nan=False, description="The grade is at most this.")

    def checks_nothing(self) -> bool:
        return self.max_grade is None

    def check(self, value: Value, context: Context) -> MetricResult:
        if self.max_grade is None:
            return self.neutral()
        words = spoken_texts(value.text)
        if not words:
            return self.error(code=Code.NO_WORDS)
        level = grade(words, count_sentences(value.text))
        passed = level <= self.max_grade
        score = 1.0 if passed else self.max_grade / level
        if not context.explain:
            return self.result(passed, score)
        return self.result(passed, score, (self._evidence(value, level, passed),))

    def _evidence(self, value: Value, level: float, passed: bool) -> Evidence:
        words = words_without_markup(value.text)
        sentences = count_sentences(value.text)
        per_word = sum(syllables(word.text) for word in words) / len(words)
        fields: dict[str, Any] = {"measure": "grade", "amount": level, "most": self.max_grade}
        fields |= {"words": len(words), "sentences": sentences, "syllables": per_word}
        spans: tuple[Span, ...] = ()
        if not passed:
            # What could be said more simply: the longest words.
            hard = sorted({word.text: word for word in words if syllables(word.text) > _HARD}.values(), key=_weight)[:5]
            spans = tuple(span for word in hard for span in value.spans(word.start, word.end))
            fields["hardest"] = [abbreviate(word.text) for word in hard]
        return Evidence(
            "max_grade",
            passed=passed,
            expected=self.max_grade,
            found=level,
            spans=spans,
            group="Readability",
            code=Code.WITHIN if passed else Code.TOO_HIGH,
            fields=fields,
        )

    def findings(self) -> Iterator[ConfigWarning]:
        if self.max_grade is None:
            text = "without `max_grade` this checks nothing"
            yield ConfigWarning("warning", "checks-nothing", text)


def grade(words: list[str], sentences: int) -> float:
    """The Flesch-Kincaid grade of a text with these words (one at least), rounded to one decimal; never below 0."""
    per_word = sum(map(syllables, words)) / len(words)
    return round(max(0.0, 0.39 * len(words) / sentences + 11.8 * per_word - 15.59), 1)


@lru_cache(maxsize=20_000)
def syllables(word: str) -> int:
    """How many syllables a word has, by a rule of thumb for English: at least one."""
    word = word.lower()
    number = len(_VOWELS.findall(word))
    if word.endswith("e"):
        number -= 1
    return max(1, number)


def _weight(word: Word) -> tuple[int, int]:
    return -syllables(word.text), word.start
