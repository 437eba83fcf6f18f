"""What grading says: outcomes, scores, and the evidence for them."""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct, field

from agenteval_tui.core.document import Document, Severity, Share
from agenteval_tui.core.outcomes import Outcome as Outcome
from agenteval_tui.core.phrasing import cut, shown
from agenteval_tui.grading.codes import Code

Fields = dict[str, Any]
"""What a code speaks of: names (`grading.codes`) and JSON values."""

SpanKind = Literal["message", "arguments", "tool", "value", "state", "request"]


class Span(Struct, frozen=True):
    """A piece of the transcript that a screen can mark.

    `message`: characters `start`..`end` of the content of message `index`.
    `arguments`: argument `path` (names joined by ".") of tool call `index`; `tool`: tool call `index` as a whole.
    `value`: characters `start`..`end` of the extracted value (used where the value has no one place in a message).
    `state`: characters `start`..`end` of what probe `index` read (`path`: before, after or change), as people read it.
    `request`: characters `start`..`end` of the extracted value, which is of request `index` (from 1) to a model.
    """

    kind: SpanKind
    index: int = 0
    start: int = 0
    end: int = 0
    path: str = ""


class Evidence(Struct, frozen=True):
    """One condition that was looked at: its name ("contains_all[1]"), what was expected and what was found.

    `passed` is None when the condition was not decided. `code` and `fields` say what holds or is wrong (the closed set
    in `grading.codes`); programs decide by them. `spans` are where the condition held or was broken; `near` where the
    closest miss is. `group` is the scoring group it counts in. `message` is a foreign text (a plug-in's, or
    a history's that had no codes yet), which is shown as it is and never read: its code is `message`.
    """

    condition: str
    passed: bool | None
    message: str = ""
    expected: Any = None
    found: Any = None
    spans: tuple[Span, ...] = ()
    near: tuple[Span, ...] = ()
    group: str = ""
    code: str = Code.MESSAGE
    fields: Fields = field(default_factory=dict)


# What evidence keeps of what was found

FOUND = 300
"""Characters of a text."""
_LONG = 2000  # characters of a value as JSON


def as_evidence(text: str, limit: int = FOUND) -> str:
    """`text` as evidence keeps it."""
    return cut(text, limit)


def kept_value(value: object) -> object:
    """A JSON value as evidence keeps it: what is long is in the transcript already."""
    return value if len(shown(value, _LONG + 1)) <= _LONG else shown(value, FOUND)


def may_be_cut(value: object) -> bool:
    """Whether a value that evidence keeps may be the beginning of a longer one, as JSON (`kept_value`)."""
    return isinstance(value, str) and len(value) >= FOUND - 1 and value.rstrip('"').endswith("…")


class MetricFigures(Document, frozen=True):
    """What is published of a metric as it is."""

    name: str
    type: str
    outcome: Outcome
    score: Share | None = None
    weight: float = 1.0
    neutral: bool = False


class MetricResult(MetricFigures, frozen=True):
    """What one metric said. `score` is None when the outcome is neither passed nor failed, or `neutral`.

    `neutral`: nothing was configured; the metric is left out of every mean (Power UI rates it 3). `code` and `fields`
    say what no line of evidence says: why the check could not run, whom it waits for. "": its evidence says all.
    `message`: as in `Evidence`.
    """

    evidence: tuple[Evidence, ...] = ()
    message: str = ""
    code: str = ""
    fields: Fields = field(default_factory=dict)

    @property
    def rating(self) -> int | None:
        """The score on Power UI's scale 1..5; 3 for a neutral metric; None where there is no score."""
        if self.neutral:
            return 3
        return rating(self.score)


class CriterionFigures(Document, frozen=True):
    """What is published of a criterion's result as it is."""

    criterion: str
    outcome: Outcome
    score: Share | None
    severity: Severity = "error"
    weight: float = 1.0
    negate: bool = False
    prototype_class: str = ""
    criterion_hash: str = ""
    value: str | None = None
    source: Annotated[
        str, Meta(description='whose verdict it is: "" ours, else the tool that it was imported from')
    ] = ""
    derived: Annotated[
        bool, Meta(description="made at an import of what the file says was expected; it decides nothing")
    ] = False


class CriterionResult(CriterionFigures, frozen=True):
    """What one criterion said of one transcript, and the hash of the criterion it was said with.

    `code` and `fields` say what its metrics do not: the threshold, an unusable config. "": its metrics say all.
    `message`: as in `Evidence`; of another tool's verdict it is that tool's explanation. `derived`: the criterion was
    made at an import, of what the foreign file says was expected; it explains, and never decides how the run ended.
    """

    value_spans: tuple[Span, ...] = ()
    metrics: tuple[MetricResult, ...] = ()
    message: str = ""
    code: str = ""
    fields: Fields = field(default_factory=dict)

    @property
    def neutral(self) -> bool:
        """Nothing was there to check: passed without a score, and left out of the test's mean."""
        return self.outcome is Outcome.PASSED and self.score is None

    @property
    def rating(self) -> int | None:
        """The score on Power UI's scale 1..5; 3 for a neutral criterion; None where there is no score."""
        return 3 if self.neutral else rating(self.score)


class Verdict(Struct, frozen=True):
    """What all criteria of a test said of one run: outcome, weighted score, the results, how many warnings.

    `code` and `fields` say what its results do not: the test's threshold, an agent that did not finish.
    """

    outcome: Outcome
    score: float | None
    results: tuple[CriterionResult, ...] = ()
    warnings: int = 0
    message: str = ""
    code: str = ""
    fields: Fields = field(default_factory=dict)


def weighted_mean(scored: Collection[CriterionResult] | Collection[MetricResult]) -> float:
    """The mean of the scores by their weights; 0 where nothing has any weight."""
    weights = sum(result.weight for result in scored)
    return sum(result.weight * (result.score or 0.0) for result in scored) / weights if weights else 0.0


def rating(score: float | None) -> int | None:
    """`floor(1 + 4 * score)`, 1..5 (Power UI's scale). A hair is added: 0.3 + 0.2 may fall short of 0.5."""
    if score is None:
        return None
    return min(5, max(1, math.floor(1 + 4 * score + 1e-9)))
