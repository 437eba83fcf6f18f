"""`Keywords`: how many of a list of words are in the text."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from typing import Any

from msgspec.structs import replace
from pydantic import Field

from agenteval_tui.core.errors import AgentevalError, line_of
from agenteval_tui.core.phrasing import quoted
from agenteval_tui.grading.codes import Code
from agenteval_tui.grading.config.model import ANSWER_TEXTS
from agenteval_tui.grading.extracted_value import Context, Value
from agenteval_tui.grading.metrics.metric import (
    Check,
    ConfigWarning,
    Metric,
    quick_results,
)
from agenteval_tui.grading.near_miss import nearest
from agenteval_tui.grading.placeholders import text_of
from agenteval_tui.grading.results import Evidence, MetricResult

_NEAR = 12  # near misses are searched for this many keywords; each may cost milliseconds


class Keywords(Metric):
    """Counts how many of the keywords are in the text. The score is their share.

    A keyword may be part of a longer word, as with `contains` of TextMatch. Empty keywords are ignored.
    """

    keywords: list[str] | str = Field(
        description="The words or phrases to look for; a text is separated at its commas.",
        json_schema_extra=ANSWER_TEXTS,
    )
    ignore_case: bool = Field(True, description="Ignore upper and lower case.")
    min_fraction: float = Field(
        1.0, ge=0, le=1, description="The share of the keywords that must be in the text, 0 to 1."
    )

    @property
    def _listed(self) -> list[str]:
        if isinstance(self.keywords, list):
            return self.keywords
        if self.keywords.lstrip().startswith("["):  # a variable that is a list
            with contextlib.suppress(ValueError, RecursionError):
                listed = [text_of(item) for item in json.loads(self.keywords)]
                if not any(map(str.strip, listed)):
                    raise AgentevalError("the list of `keywords` is empty: there is nothing to look for")
                return listed
        return [keyword.strip() for keyword in self.keywords.split(",")]

    def checks_nothing(self) -> bool:
        return not any(self._listed)

    def compile(self) -> Check:
        keywords = tuple((number, keyword) for number, keyword in enumerate(self._listed) if keyword)
        needles = tuple(keyword.lower() if self.ignore_case else keyword for _, keyword in keywords)
        quick = quick_results(self)
        ignore_case, least = self.ignore_case, self.min_fraction

        def check(value: Value, context: Context) -> MetricResult:
            text = value.lower if ignore_case else value.text
            count = sum([needle in text for needle in needles])
            share = count / len(needles)
            passed = share >= least - 1e-9
            if not context.explain:
                return quick(passed, share)
            lines = list(_evidence(keywords, ignore_case, value))
            if least < 1:
                fields = {"measure": "keywords", "count": count, "of": len(needles), "least": least}
                code = Code.WITHIN if passed else Code.TOO_FEW
                lines.insert(
                    0, Evidence("min_fraction", passed, "", least, share, group="Keywords", code=code, fields=fields)
                )
                # One keyword alone decides nothing then.
                lines[1:] = [_undecided(line) for line in lines[1:]]
            return self.result(passed, share, lines)

        return check

    def findings(self) -> Iterator[ConfigWarning]:
        if self.checks_nothing():
            yield ConfigWarning("warning", "checks-nothing", "there is no keyword: this checks nothing", ("keywords",))
            return
        earlier: set[str] = set()
        for number, keyword in enumerate(self.keywords if isinstance(self.keywords, list) else ()):
            folded = keyword.lower() if self.ignore_case else keyword
            if not keyword:
                yield ConfigWarning("warning", "checks-nothing", "an empty text is ignored here", ("keywords", number))
            elif folded in earlier:
                yield ConfigWarning(
                    "info", "duplicate", f"{quoted(keyword)} is in the list already", ("keywords", number)
                )
            earlier.add(folded)
        if self.min_fraction == 0:
            text = "this cannot fail: `min_fraction` 0 asks for no keyword at all"
            yield ConfigWarning("warning", "cannot-fail", text, ("min_fraction",))


def _undecided(evidence: Evidence) -> Evidence:
    return evidence if evidence.passed else replace(evidence, passed=None)


def _evidence(keywords: tuple[tuple[int, str], ...], ignore_case: bool, value: Value) -> Iterator[Evidence]:
    missed = 0
    for number, keyword in keywords:
        name = f"keywords[{number}]"
        text, needle = (value.lower, keyword.lower()) if ignore_case else (value.text, keyword)
        start = text.find(needle)
        if start >= 0:
            at = value.in_text(start, start + len(needle)) if ignore_case else (start, start + len(needle))
            passage = value.text[at[0] : at[1]]
            fields: dict[str, Any] = {"keyword": True, "line": line_of(value.text, at[0])}
            spans = value.spans(*at)
            yield Evidence(name, True, "", keyword, passage, spans, group="Keywords", code=Code.PRESENT, fields=fields)
            continue
        fields = {"side": "contains", "keyword": True}
        miss = nearest(value, keyword, "contains", ignore_case) if missed < _NEAR else None
        missed += 1
        near = () if miss is None else value.spans(miss.start, miss.end)
        if not value.text:
            fields["empty"] = True
        elif miss is not None:
            fields["near"] = miss.fields
        yield Evidence(
            name, passed=False, expected=keyword, near=near, group="Keywords", code=Code.MISSING, fields=fields
        )
