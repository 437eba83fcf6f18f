"""`Regex`: a regular expression that must be found, or must not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

from pydantic import Field, field_validator

from agenteval_tui.core.errors import line_of
from agenteval_tui.grading.codes import Code
from agenteval_tui.grading.config.model import RegexText
from agenteval_tui.grading.extracted_value import Context, Value
from agenteval_tui.grading.extractors.text_response import beginning
from agenteval_tui.grading.metrics.metric import Check, ConfigWarning, Metric, quick_results
from agenteval_tui.grading.regex_search import Pattern, SlowPatternError, compile_pattern, compile_with_flags
from agenteval_tui.grading.results import FOUND, Evidence, MetricResult, Span, as_evidence

_HITS = 20
_FLAGS = "imsx"


class FlagError(ValueError):
    """A flag that is not known, and its position."""

    code = "bad-flags"

    def __init__(self, flag: str, position: int) -> None:
        super().__init__(f"the flag {flag} is not known (there are {', '.join(_FLAGS)})")
        self.position = position


class Regex(Metric):
    """Searches the text for a regular expression, which must match somewhere, or, with `not`, nowhere.

    A bare pattern knows all scripts: `\\d`, `\\w`, `\\s` and `\\b` match the digits, letters and spaces of any script.
    A pattern with delimiters is read as PHP reads it: without the flag `u` they match ASCII only. A search that takes
    longer than a second is an error, not a verdict.
    """

    pattern: Annotated[str, RegexText()] = Field(
        min_length=1, description="The pattern: bare, or in PHP's style with delimiters and flags (`/total: \\d+/i`)."
    )
    flags: str | None = Field(
        None,
        description="More flags: i (ignore case), m (^ and $ match at each line), s (. matches any character), "
        "x (ignore white space in the pattern).",
        json_schema_extra={"pattern": f"^[{_FLAGS}]*$"},
    )
    not_: bool = Field(False, validation_alias="not", description="true: the pattern must not be found.")

    @field_validator("pattern")
    @classmethod
    def _usable(cls, pattern: str) -> str:
        compile_pattern(pattern)
        return pattern

    @field_validator("flags")
    @classmethod
    def _known(cls, flags: str | None) -> str | None:
        for position, flag in enumerate(flags or ""):
            if flag not in _FLAGS:
                raise FlagError(flag, position)
        return flags

    def compile(self) -> Check:
        pattern = compile_with_flags(self.pattern, self.flags or "")
        quick = quick_results(self)
        unwanted = self.not_

        def check(value: Value, context: Context) -> MetricResult:
            passed = (pattern.search(value.text) is None) is unwanted
            score = 1.0 if passed else 0.0
            if not context.explain:
                return quick(passed, score)
            return self.result(passed, score, (_evidence(pattern, unwanted, value),))

        return check

    def findings(self) -> Iterator[ConfigWarning]:
        if "{{" in self.pattern:
            return
        pattern = compile_with_flags(self.pattern, self.flags or "")
        if _finds_everywhere(pattern):
            if self.not_:
                text = "the pattern is found in every text, even an empty one: this can never pass"
                yield ConfigWarning("error", "contradictory", text, ("pattern",))
            else:
                text = "this cannot fail: the pattern is found in every text, even an empty one"
                yield ConfigWarning("warning", "cannot-fail", text, ("pattern",))


def _finds_everywhere(pattern: Pattern) -> bool:
    # A pattern that looks at nothing around it and is satisfied with nothing finds nothing everywhere.
    if any(sign in pattern.body for sign in ("(?=", "(?!", "(?<", "^", "$", "\\")) or "A" in pattern.flags:
        return False
    try:
        return pattern.search("") is not None
    except SlowPatternError:
        return False


def _evidence(pattern: Pattern, unwanted: bool, value: Value) -> Evidence:
    name = "not" if unwanted else "pattern"
    hits = pattern.matches(value.text, _HITS)
    spans = tuple(span for hit in hits for span in value.spans(hit.start(), hit.end()))
    fields: dict[str, Any] = {"pattern": pattern.text, **({"forbidden": True} if unwanted else {})}
    if hits:
        lines = list(dict.fromkeys(line_of(value.text, hit.start()) for hit in hits))
        fields |= {"lines": lines, "count": len(hits), **({"or_more": True} if len(hits) == _HITS else {})}
        text = as_evidence(hits[0][0], FOUND)
        return Evidence(
            name,
            passed=not unwanted,
            expected=pattern.text,
            found=text,
            spans=spans,
            group="Regex",
            code=Code.PRESENT,
            fields=fields,
        )
    near: tuple[Span, ...] = ()
    if not unwanted and not value.text:
        fields["empty"] = True
    elif not unwanted:
        miss = beginning(pattern, value.text)
        if miss is not None:
            fields["near"], near = miss.fields, value.spans(miss.start, miss.end)
    return Evidence(
        name, passed=unwanted, expected=pattern.text, near=near, group="Regex", code=Code.MISSING, fields=fields
    )
