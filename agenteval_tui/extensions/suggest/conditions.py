"""Conditions that a criterion may consist of, in families that can be fitted to labels again.

A condition is a metric with its properties, and the runs that pass it. A family reads the runs once, and finds which of
its conditions agree best with any labels: with all labels, or with all but one (leave-one-out).

The cost of a condition is the length of its description in bits (Rissanen 1978, "Modeling by shortest data
description"): log2 of the number of possible conditions of its kind, and more for longer conditions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from msgspec import Struct, field

from agenteval_tui.extensions.suggest.examples import Examples, numbers
from agenteval_tui.grading.compile import Checker
from agenteval_tui.grading.results import Outcome
from agenteval_tui.grading.spec import CriterionSpec

TEXT, TOOLS, JSON = "TextResponse", "ToolResponse", "JsonResponse"


class Condition(Struct, frozen=True):
    """A metric that passes on the runs `passes`, and fails or has an error on the others.

    `title` describes it in words. `margin` (0 to 1): how clearly it separates good runs from bad ones. `source`: the
    runs that it was made from; without these runs it would not exist. `whole`: the metric reads the whole transcript,
    so it works with any prototype class. `about`: its subject; of several conditions with the same subject and the same
    runs, only one is shown.
    """

    title: str
    metric: Mapping[str, Any]
    passes: int
    cost: float
    family: Family
    margin: float = 1.0
    source: int = -1
    prototype: str = TEXT
    extraction: Mapping[str, Any] = field(default_factory=dict)
    whole: bool = False
    about: str = ""


class Family(Protocol):
    """Conditions of one kind."""

    def fit(self, good: int, bad: int) -> Sequence[Condition]:
        """The conditions that agree best with these labels, best first. If `bad` is empty, the conditions that all of
        `good` share."""


def agreed(passes: int, good: int, bad: int) -> int:
    """The number of labels that agree with a condition that `passes` pass."""
    return (passes & good).bit_count() + (bad & ~passes).bit_count()


def rank(condition: Condition, good: int, bad: int) -> tuple[float, float, float, str]:
    """Best first: agreement, then size, then margin."""
    return (-agreed(condition.passes, good, bad), condition.cost, -condition.margin, condition.title)


class Pool:
    """Conditions that are either true or false of a run: it has a text, a tool, a value."""

    def __init__(self, examples: Examples, most: int = 12) -> None:
        self.examples = examples
        self.conditions: list[Condition] = []
        self.most = most

    def add(
        self,
        title: str,
        metric: Mapping[str, Any],
        cost: float,
        *,
        passes: int | None = None,
        margin: float = 1.0,
        source: int = -1,
        prototype: str = TEXT,
        extraction: Mapping[str, Any] | None = None,
        whole: bool = False,
        about: str = "",
    ) -> None:
        """Add the condition that a metric passes. `passes`: the runs that pass it; None: they are graded."""
        extraction = extraction or {}
        if passes is None:
            spec = CriterionSpec("", prototype, {**extraction, "metrics": [metric]})
            passes, _ = graded(self.examples, spec)
        self.conditions.append(
            Condition(
                title,
                metric,
                passes,
                cost,
                self,
                margin,
                source=source,
                prototype=prototype,
                extraction=extraction,
                whole=whole,
                about=about,
            )
        )

    def fit(self, good: int, bad: int) -> Sequence[Condition]:
        """The conditions that were made from at least one of these runs, best first."""
        labelled = good | bad
        # Leave-one-out would lie with a condition that exists only because of the run that is left out.
        conditions = [condition for condition in self.conditions if condition.source & labelled]
        if not bad:
            # With good runs alone, only what they all share can tell anything.
            conditions = [condition for condition in conditions if not good & ~condition.passes]
        return sorted(conditions, key=lambda condition: rank(condition, good, bad))[: self.most]


Worded = tuple[str, Mapping[str, Any]]
"""A bound as a title and a metric."""
Say = Callable[[float | None, float | None], Worded | None]
"""From the least and the most of a measure to such a bound; None where it can't be written."""


class Measure:
    """A number of each run with a lower bound, an upper bound, or both.

    `values`: None for a run without this number. `whole_numbers`: the numbers are counts.
    """

    def __init__(
        self,
        values: Sequence[float | None],
        say: Say,
        cost: float,
        *,
        whole_numbers: bool = True,
        prototype: str = TEXT,
        extraction: Mapping[str, Any] | None = None,
        whole: bool = False,
        about: str = "",
        slack: float = 0.0,
    ) -> None:
        self.values = values
        self.say = say
        self.cost = cost
        self.step = 1 if whole_numbers else 0
        self.prototype, self.extraction, self.whole = prototype, extraction or {}, whole
        self.about = about
        self.slack = slack

    def fit(self, good: int, bad: int) -> Sequence[Condition]:
        """The best lower bound, upper bound, and both."""
        inside = sorted({v for n in numbers(good) if (v := self.values[n]) is not None})
        if not inside:
            return ()
        if not bad:
            return self._shared(inside[0], inside[-1])
        counts: dict[float, list[int]] = {}
        for number in numbers(good | bad):
            value = self.values[number]
            if value is not None:
                counts.setdefault(value, [0, 0])[not good >> number & 1] += 1
        # All labelled runs have the same number: no bound parts them.
        if len(counts) < 2:
            return ()
        ordered = sorted(counts)
        # What a bound gains by letting a value pass: its good runs, less its bad ones.
        gains = [counts[value][0] - counts[value][1] for value in ordered]
        bounds = [self._from(ordered, gains), self._up_to(ordered, gains)]
        most = max((bound.gained for bound in bounds if bound is not None), default=-math.inf)
        between = self._between(ordered, gains)
        # Two bounds say more than one, and so cost more: they must agree with more labels.
        if between is not None and between.gained > most:
            bounds.append(between)
        conditions = (self._condition(bound) for bound in bounds if bound is not None)
        return sorted(
            (condition for condition in conditions if condition is not None),
            key=lambda condition: rank(condition, good, bad),
        )

    def _from(self, ordered: Sequence[float], gains: Sequence[int]) -> _Bound | None:
        """The best lower bound."""
        best: _Bound | None = None
        total = 0
        for place in range(len(ordered) - 1, 0, -1):
            total += gains[place]
            below, above = ordered[place - 1], ordered[place]
            margin = _margin(ordered, below, above)
            if best is None or (total, margin) > (best.gained, best.margin):
                # "At least one" is simpler than any rounder number.
                least = 1.0 if self.step and below == 0 else _round_between(below, above, self.step)
                best = _Bound(total, least, None, margin)
        return best

    def _up_to(self, ordered: Sequence[float], gains: Sequence[int]) -> _Bound | None:
        best: _Bound | None = None
        total = 0
        for place in range(len(ordered) - 1):
            total += gains[place]
            below, above = ordered[place], ordered[place + 1]
            margin = _margin(ordered, below, above)
            if best is None or (total, margin) > (best.gained, best.margin):
                most = 0.0 if self.step and below == 0 else _round_between(above, below, self.step)
                best = _Bound(total, None, most, margin)
        return best

    def _between(self, ordered: Sequence[float], gains: Sequence[int]) -> _Bound | None:
        """The best range (Bentley 1984, Kadane's maximum subarray)."""
        best, start, total = None, 0, 0
        for place, gain in enumerate(gains):
            if total <= 0:
                start, total = place, 0
            total += gain
            if best is None or total > best[0]:
                best = (total, start, place)
        # One that reaches an end is a single bound, and found already.
        if best is None or best[1] == 0 or best[2] == len(ordered) - 1:
            return None
        total, first, last = best
        below, least, most, above = ordered[first - 1], ordered[first], ordered[last], ordered[last + 1]
        margin = min(_margin(ordered, below, least), _margin(ordered, most, above))
        if least == most and self.step:
            return _Bound(total, least, most, margin, more_cost=2.0)
        left, right = _round_between(below, least, self.step), _round_between(above, most, self.step)
        return _Bound(total, left, right, margin, more_cost=3.0)

    def _shared(self, least: float, most: float) -> Sequence[Condition]:
        """What good runs share: bounds with room beyond what was seen."""
        lower, upper = least, most
        if self.slack or least != most:
            lower = _round_down(least * (1 - self.slack), self.step)
            upper = _round_up(most * (1 + self.slack), self.step)
        bounds = [_Bound(0, None, upper, 0.5)]
        if least > 0:
            bounds.append(_Bound(0, lower if self.slack else min(lower, 1), None, 0.5))
            if least == most and self.step and not self.slack:
                bounds.insert(0, _Bound(0, least, most, 1.0))
        return [condition for condition in map(self._condition, bounds) if condition is not None]

    def _condition(self, bound: _Bound) -> Condition | None:
        least, most = bound.least, bound.most
        worded = self.say(_number(least), _number(most))
        if worded is None:
            return None
        passes = sum(
            1 << number
            for number, value in enumerate(self.values)
            if value is not None and (least is None or value >= least) and (most is None or value <= most)
        )
        # "Some" and "none" take no number to say.
        plain = (least == 1 and most is None) or most == 0
        title, metric = worded
        return Condition(
            title,
            metric,
            passes,
            self.cost + bound.more_cost + (0.0 if plain else 1.5),
            self,
            bound.margin,
            prototype=self.prototype,
            extraction=self.extraction,
            whole=self.whole,
            about=self.about,
        )


class _Bound(NamedTuple):
    """A lower bound, an upper bound, or both. `gained`: labels that agree, less those that don't. `more_cost`: bits
    beyond those of a single bound."""

    gained: int
    least: float | None
    most: float | None
    margin: float
    more_cost: float = 0.0


def _margin(ordered: Sequence[float], below: float, above: float) -> float:
    """How wide the gap is, of all that was measured."""
    return (above - below) / ((ordered[-1] - ordered[0]) or 1.0)


def _number(value: float | None) -> float | int | None:
    return int(value) if value is not None and float(value).is_integer() else value


def _round_between(outside: float, inside: float, step: int) -> float:
    """The roundest number that lets `inside` pass and not `outside`; of several the one nearest to the middle."""
    low, high = sorted((outside, inside))
    middle = (low + high) / 2
    scale = 10.0 ** math.ceil(math.log10(max(abs(low), abs(high), 1e-9)))
    while scale > 1e-9:
        for part in (1.0, 0.5, 0.2):
            unit = scale * part
            if step and unit < 1:
                return inside
            near = round(middle / unit) * unit
            for candidate in (near, near - unit, near + unit):
                candidate = round(candidate, 9)
                if low < candidate < high or candidate == inside:
                    return candidate
        scale /= 10
    return inside


def _round_up(value: float, step: int) -> float:
    return -_round_down(-value, step)


def _round_down(value: float, step: int) -> float:
    """Two digits, downwards."""
    if not value:
        return 0.0
    unit = 10.0 ** (math.floor(math.log10(abs(value))) - 1)
    unit = max(unit, 1.0) if step else unit
    return round(math.floor(value / unit + 1e-9) * unit, 9)


def graded(examples: Examples, spec: CriterionSpec) -> tuple[int, int]:
    """The runs that pass a criterion, and those that fail it, as the grader says. In neither: an error."""
    checker, passed, failed = Checker(spec), 0, 0
    for number, example in enumerate(examples.runs):
        outcome = checker.check(example.transcript, example.variables, explain=False).outcome
        if outcome is Outcome.PASSED:
            passed |= 1 << number
        elif outcome is Outcome.FAILED:
            failed |= 1 << number
    return passed, failed


def bits(count: int) -> float:
    """The bits that it takes to name one of `count` possibilities."""
    return math.log2(max(count, 1) + 1)
