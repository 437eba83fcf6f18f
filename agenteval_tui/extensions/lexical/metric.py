"""`Lexical`: how alike two texts are, letter by letter or word by word."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

from pydantic import Field

from agenteval_tui.core.phrasing import quoted
from agenteval_tui.grading.codes import Code
from agenteval_tui.grading.extracted_value import Context, Value
from agenteval_tui.grading.metrics.metric import Check, ConfigWarning, Metric, expected_text
from agenteval_tui.grading.near_miss import nearest
from agenteval_tui.grading.results import Evidence, MetricResult, as_evidence

LIMIT = 100_000
"""Characters of each side; the cost grows with the product of the lengths."""


class Lexical(Metric):
    """Measures how similar the text is to an expected text, from 0 to 1.

    `ratio` compares characters in order (twice the longest common subsequence, divided by both lengths). `token_set`
    compares the sets of words, ignoring their order and number: the Dice coefficient, twice the words in common
    divided by the sizes of both sets. `token_subset` is 1 if all words of one text are in the other, so "refund" is
    similar to "The refund was not granted" (rapidfuzz's `token_set_ratio`). `rouge_l` is the ROUGE-L F-measure:
    the longest common subsequence of words (Lin 2004). `token_set` and `rouge_l` ignore case and punctuation.
    """

    to: str | None = Field(None, description="The text to compare with. Default: the criterion's expected value.")
    method: Literal["ratio", "token_set", "token_subset", "rouge_l"] = Field(
        "ratio", description="How to measure similarity."
    )
    min: float = Field(0.8, ge=0, le=1, description="The lowest similarity that passes, 0 to 1.")

    def compile(self) -> Check:
        def check(value: Value, context: Context) -> MetricResult:
            other = expected_text(self.to, context)
            if other is None:
                return self.error(code=Code.NO_EXPECTED_VALUE, fields={"metric": "Lexical"})
            longest = max(len(value.text), len(other))
            if longest > LIMIT:
                fields = {"what": "compare", "count": longest, "most": LIMIT}
                return self.error(code=Code.TOO_LARGE, fields=fields)
            score = likeness(value.text, other, self.method)
            passed = score >= self.min - 1e-9
            if not context.explain:
                return self.result(passed, score)
            return self.result(passed, score, (self._evidence(value, other, score, passed),))

        return check

    def _evidence(self, value: Value, other: str, score: float, passed: bool) -> Evidence:
        fields: dict[str, Any] = {"measure": "likeness", "method": self.method, "amount": score, "least": self.min}
        miss = None if passed else nearest(value, other, "equals", False)
        if not passed and not value.text:
            fields["empty"] = True
        elif miss is not None:
            fields["near"] = miss.fields
        return Evidence(
            self.method,
            passed=passed,
            expected=as_evidence(other),
            found=as_evidence(value.text),
            spans=value.spans(0, len(value.text)) if value.text else (),
            near=() if miss is None else value.spans(miss.start, miss.end),
            group="Lexical",
            code=Code.WITHIN if passed else Code.TOO_LOW,
            fields=fields,
        )

    def findings(self) -> Iterator[ConfigWarning]:
        if self.min == 0:
            yield ConfigWarning(
                "warning", "cannot-fail", "this cannot fail: any text is alike enough for `min` 0", ("min",)
            )
        if self.method == "token_subset":
            text = "any text that has all words of the other, or only words of it, scores 1: `token_set` compares both"
            yield ConfigWarning("warning", "weak", text, ("method",))
        if self.to == "":
            text = f"`to` is empty: only an empty text is like {quoted('')}"
            yield ConfigWarning("warning", "without-effect", text, ("to",))


def likeness(text: str, other: str, method: str) -> float:
    """How alike two texts are, 0 to 1. Two texts without any word are alike when they are equal."""
    if text == other:
        return 1.0
    from rapidfuzz import fuzz

    if method == "ratio":
        return float(fuzz.ratio(text, other)) / 100
    if method == "token_set":
        return dice(text, other)
    if method == "token_subset":
        return float(fuzz.token_set_ratio(text, other)) / 100
    return rouge_l(text, other)


def dice(text: str, other: str) -> float:
    """The Dice coefficient of the sets of words (lower case, letters and digits only): 2 |A and B| / (|A| + |B|)."""
    left, right = set(_tokens(text)), set(_tokens(other))
    return 2 * len(left & right) / (len(left) + len(right)) if left and right else 0.0


def rouge_l(text: str, other: str) -> float:
    """The F-measure of the longest common subsequence of words (lower case, letters and digits only)."""
    from rapidfuzz.distance import LCSseq

    left, right = _tokens(text), _tokens(other)
    if not left or not right:
        return 0.0
    common = LCSseq.similarity(left, right)
    return 2 * common / (len(left) + len(right))


def _tokens(text: str) -> list[str]:
    import regex

    return list(regex.findall(r"[\p{L}\p{M}\p{N}]+", text.lower()))
