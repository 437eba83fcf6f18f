"""Where a judge is trusted: the scores between which it is too often wrong, found with people's labels.

A judge that keeps silent for scores inside of an interval decides fewer runs, and is wrong in fewer of them. With n
labelled runs that an interval leaves to the judge, of which it got k wrong, the hypothesis "it is wrong in more than
`error` of such runs" has the exact p-value P(Binomial(n, error) <= k). The intervals are a fixed list (`_intervals`);
Holm's procedure says which of them are trusted. The chance that any trusted interval is wrong in more than `error` of
the runs that it decides is then at most 1 - confidence, for every n, if the labelled runs are a random sample of those
to come. Of the trusted ones, the one that decides most is taken.

Source: A. Angelopoulos, S. Bates, E. Candès, M. Jordan, L. Lei, "Learn then Test: Calibrating Predictive Algorithms to
Achieve Risk Control" (2021, arXiv 2110.01052), theorem 1; S. Holm, "A simple sequentially rejective multiple test
procedure" (1979). J. Jung, F. Brahman, Y. Choi, "Trust or Escalate: LLM Judges with Provable Guarantees for Human
Agreement" (2024, arXiv 2407.18370) does so for judges, with one bound and a fixed order in Holm's place.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import lru_cache

import msgspec
from msgspec import Struct

_STEPS: dict[str, int] = {"pass_fail": 2, "zero_to_one": 10, "one_to_five": 4, "zero_to_ten": 10}
"""How many steps a scale is divided into, to look for the bounds."""
_MOST_STEPS = 5
_TOO_MANY = 100_000
_NEAR = 1e-9


class LabelledScore(Struct, frozen=True):
    """How a judge scored runs that people labelled: the share 0..1, whether it passed them, whether people say yes,
    and how many there are."""

    share: float
    passed: bool
    good: bool
    count: int = 1


class ScoredLabel(Struct, frozen=True):
    """Runs of which the judge gave the same scores (on the scale itself) and people said the same: `good` of the
    criterion, `count` of them."""

    score: float
    dimensions: dict[str, float]
    good: bool
    count: int = 1


class LabelledScores(Struct, frozen=True):
    """What answers a question of kind `labels`. `unjudged`: labelled runs that the judge has not scored as it is asked
    now."""

    scores: tuple[ScoredLabel, ...]
    unjudged: int = 0


@lru_cache(maxsize=64)
def read_labelled(raw: str) -> LabelledScores:
    """Read such an answer."""
    return msgspec.json.decode(raw, type=LabelledScores)


class Acceptance(Struct, frozen=True):
    """Which scores decide. The judge is silent above `low` and below `high` (shares 0..1); None: on all of that side.

    `labels`: all that were looked at. `decided` and `wrong`: those that the interval leaves to the judge, and those of
    them that it got wrong. `needed`: the least number of labels with which any interval can be trusted, as long as it
    is wrong as rarely as in these; None: with no number. `trusted`: whether there is an interval at all.
    """

    trusted: bool
    low: float | None = None
    high: float | None = None
    labels: int = 0
    decided: int = 0
    wrong: int = 0
    needed: int | None = None

    def silent_between(self, threshold: float) -> tuple[float | None, float | None]:
        """The shares above and below which the judge is silent; None: it is silent on that whole side. Both are the
        threshold where it is never silent."""
        if not self.trusted:
            return None, None
        low = None if self.low is None else min(self.low, threshold)
        high = None if self.high is None else max(self.high, threshold)
        return low, high

    def decides(self, share: float, passed: bool) -> bool:
        """Whether a verdict with this score stands."""
        return self.trusted and _decides(self.low, self.high, share, passed)


@lru_cache(maxsize=64)
def acceptance(
    scores: tuple[LabelledScore, ...], scale: str, threshold: float, error: float, confidence: float
) -> Acceptance:
    """The interval for these labels. `threshold`: the least share that passes; `error` and `confidence`: 0..1."""
    labels = sum(one.count for one in scores)
    tried: list[tuple[float, Acceptance]] = []
    for low, high in _intervals(scale, threshold):
        inside = [one for one in scores if _decides(low, high, one.share, one.passed)]
        decided = sum(one.count for one in inside)
        wrong = sum(one.count for one in inside if one.passed != one.good)
        interval = Acceptance(True, low, high, labels, decided, wrong)
        tried.append((binomial_tail(wrong, decided, error), interval))
    tried.sort(key=lambda pair: pair[0])
    trusted: list[Acceptance] = []
    for number, (p_value, interval) in enumerate(tried):
        if p_value > (1 - confidence) / (len(tried) - number):
            break
        trusted.append(interval)
    if trusted:
        return max(trusted, key=lambda interval: interval.decided)
    level = (1 - confidence) / len(tried)
    told = [one for _, one in tried if one.decided or not labels]
    needed = [_needed(one.wrong, one.decided, labels, error, level) for one in told]
    return Acceptance(False, labels=labels, needed=min((one for one in needed if one is not None), default=None))


def binomial_tail(at_most: int, n: int, probability: float) -> float:
    """P(X <= at_most) for X binomial; 1 for no draws at all."""
    if n == 0:
        return 1.0
    logs = (math.log(probability), math.log1p(-probability))
    total = 0.0
    for k in range(at_most + 1):
        choose = math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
        total += math.exp(choose + k * logs[0] + (n - k) * logs[1])
    return min(1.0, total)


def _decides(low: float | None, high: float | None, share: float, passed: bool) -> bool:
    if passed:
        return high is not None and share >= high - _NEAR
    return low is not None and share <= low + _NEAR


def _intervals(scale: str, threshold: float) -> Iterator[tuple[float | None, float | None]]:
    """The intervals that are tried: no score is silent, or more and more on each side of the threshold, in the steps of
    the scale. A verdict is one of a side by what it is, so the innermost bounds let every verdict of their side stand.
    """
    steps = _STEPS[scale]
    grid = [number / steps for number in range(steps + 1)]
    lows: list[float | None] = [1.0, *_thinned([one for one in reversed(grid) if one < threshold - _NEAR][1:]), None]
    highs: list[float | None] = [0.0, *_thinned([one for one in grid if one >= threshold - _NEAR][1:]), None]
    for low in lows:
        for high in highs:
            if low is not None or high is not None:
                yield low, high


def _thinned(bounds: Sequence[float]) -> list[float]:
    """At most so many bounds that the number of intervals stays small: each costs certainty."""
    every = math.ceil(len(bounds) / _MOST_STEPS) or 1
    return list(bounds[::every])


def _needed(wrong: int, decided: int, labels: int, error: float, level: float) -> int | None:
    """How many labels it takes, at least, if the judge goes on to be wrong as often as in these."""
    rate = wrong / decided if decided else 0.0
    if rate >= error:
        return None
    share = decided / labels if decided else 1.0
    low, high = max(decided, 1), max(decided, 1)
    while binomial_tail(math.floor(rate * high), high, error) > level:
        low, high = high, high * 2
        if high > _TOO_MANY:
            return None
    while low < high:
        middle = (low + high) // 2
        if binomial_tail(math.floor(rate * middle), middle, error) > level:
            low = middle + 1
        else:
            high = middle
    return math.ceil(low / share)
