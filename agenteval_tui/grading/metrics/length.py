"""`Length`: how long the text is, in words and in characters."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from pydantic import Field

from agenteval_tui.grading.codes import Code
from agenteval_tui.grading.extracted_value import Context, Value
from agenteval_tui.grading.metrics.metric import Check, ConfigWarning, Metric, quick_results
from agenteval_tui.grading.results import Evidence, MetricResult
from agenteval_tui.grading.tokenization import count_words, words

_BOUNDS = ("min_words", "max_words", "min_chars", "max_chars")


class Length(Metric):
    """Counts words and characters. All given limits must be met; the score is the share of limits that are.

    A word is a run of letters, digits, ' and -.
    """

    min_words: int | None = Field(None, ge=0, description="At least this many words.")
    max_words: int | None = Field(None, ge=0, description="At most this many words.")
    min_chars: int | None = Field(None, ge=0, description="At least this many characters.")
    max_chars: int | None = Field(None, ge=0, description="At most this many characters.")

    def checks_nothing(self) -> bool:
        return not self._bounds()

    def _bounds(self) -> tuple[tuple[str, int], ...]:
        return tuple((name, bound) for name in _BOUNDS if (bound := getattr(self, name)) is not None)

    def compile(self) -> Check:
        bounds = self._bounds()
        quick = quick_results(self)
        in_words = any(name.endswith("words") for name, _ in bounds)

        def check(value: Value, context: Context) -> MetricResult:
            sizes = {"words": count_words(value.text) if in_words else 0, "chars": len(value.text)}
            held = [_holds(name, bound, sizes) for name, bound in bounds]
            passed, score = all(held), sum(held) / len(held)
            if not context.explain:
                return quick(passed, score)
            return self.result(passed, score, [_evidence(name, bound, sizes, value) for name, bound in bounds])

        return check

    def findings(self) -> Iterator[ConfigWarning]:
        if self.checks_nothing():
            yield ConfigWarning("warning", "checks-nothing", "this Length has no bound: it checks nothing")
        for unit in ("words", "chars"):
            least, most = getattr(self, f"min_{unit}"), getattr(self, f"max_{unit}")
            if least is not None and most is not None and least > most:
                text = f"`min_{unit}` {least} is more than `max_{unit}` {most}: this can never pass"
                yield ConfigWarning("error", "contradictory", text, (f"min_{unit}",))
            if least == 0:
                yield ConfigWarning("warning", "cannot-fail", f"`min_{unit}` 0 cannot fail", (f"min_{unit}",))
        if self.min_words and self.max_chars is not None and self.max_chars < 2 * self.min_words - 1:
            text = f"{self.min_words} words do not fit into {self.max_chars} characters: this can never pass"
            yield ConfigWarning("error", "contradictory", text, ("max_chars",))


def _holds(name: str, bound: int, sizes: dict[str, int]) -> bool:
    size = sizes[name[4:]]
    return size >= bound if name.startswith("min") else size <= bound


def _evidence(name: str, bound: int, sizes: dict[str, int], value: Value) -> Evidence:
    unit = name[4:]
    size = sizes[unit]
    fields = {"measure": unit, "count": size, ("least" if name.startswith("min") else "most"): bound}
    if _holds(name, bound, sizes):
        return Evidence(name, passed=True, expected=bound, found=size, group=unit, code=Code.WITHIN, fields=fields)
    if name.startswith("min"):
        spans = value.spans(0, len(value.text)) if value.text else ()
        return Evidence(
            name, passed=False, expected=bound, found=size, spans=spans, group=unit, code=Code.TOO_FEW, fields=fields
        )
    # What is marked is what is too much.
    start = bound
    if unit == "words":
        first = next(islice(words(value.text), bound, None), None)
        start = first.start if first is not None else 0
    spans = value.spans(start, len(value.text))
    return Evidence(
        name, passed=False, expected=bound, found=size, spans=spans, group=unit, code=Code.TOO_MANY, fields=fields
    )
