"""`Repetition`: how much of a text says the same words again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import islice
from typing import Any

from pydantic import Field

from agenteval_tui.grading.codes import Code
from agenteval_tui.grading.extracted_value import Context, Value
from agenteval_tui.grading.metrics.metric import SPANS, ConfigWarning, Metric
from agenteval_tui.grading.results import Evidence, MetricResult, Span
from agenteval_tui.grading.tokenization import Word, spoken_texts, words_without_markup


class Repetition(Metric):
    """Measures how many words are repetitions: repeated words divided by all words, ignoring case.

    "a a a b" has a ratio of 0.5: two of the four words are repetitions. Longer texts repeat more, because every text
    needs small words. A text without words has a ratio of 0.
    """

    max_ratio: float | None = Field(None, ge=0, le=1, description="The ratio is at most this, 0 to 1.")

    def checks_nothing(self) -> bool:
        return self.max_ratio is None

    def check(self, value: Value, context: Context) -> MetricResult:
        if self.max_ratio is None:
            return self.neutral()
        words = spoken_texts(value.text)
        counts = Counter(word.lower() for word in words)
        repeated = len(words) - len(counts)
        ratio = repeated / len(words) if words else 0.0
        passed = ratio <= self.max_ratio + 1e-9
        score = 1.0 if passed else 1.0 - ratio
        if not context.explain:
            return self.result(passed, score)
        return self.result(passed, score, (self._evidence(value, counts, ratio, passed),))

    def _evidence(self, value: Value, counts: Counter[str], ratio: float, passed: bool) -> Evidence:
        words = words_without_markup(value.text)
        repeated = len(words) - len(counts)
        fields: dict[str, Any] = {"measure": "repetition", "amount": ratio, "most": self.max_ratio}
        fields |= {"count": repeated, "words": len(words)}
        spans: tuple[Span, ...] = ()
        if not passed:
            most = [(word, number) for word, number in counts.most_common(5) if number > 1]
            written = {word.text.lower(): word.text for word in reversed(words)}  # as it is written first
            fields["often"] = [[written.get(word, word)[:60], number] for word, number in most]
            top = {word for word, _ in most}
            again = islice((word for word in _again(words) if word.text.lower() in top), SPANS)
            spans = tuple(span for word in again for span in value.spans(word.start, word.end))
        return Evidence(
            "max_ratio",
            passed=passed,
            expected=self.max_ratio,
            found=ratio,
            spans=spans,
            group="Repetition",
            code=Code.WITHIN if passed else Code.TOO_HIGH,
            fields=fields,
        )

    def findings(self) -> Iterator[ConfigWarning]:
        if self.max_ratio is None:
            yield ConfigWarning("warning", "checks-nothing", "without `max_ratio` this checks nothing")
        elif self.max_ratio == 1:
            text = "this cannot fail: the ratio is always less than 1"
            yield ConfigWarning("warning", "cannot-fail", text, ("max_ratio",))


def _again(words: list[Word]) -> Iterator[Word]:
    earlier: set[str] = set()
    for word in words:
        folded = word.text.lower()
        if folded in earlier:
            yield word
        earlier.add(folded)
