"""Where a judge is trusted: the scores between which it is too often wrong, found with people's labels.

A judge that keeps silent for scores inside of an interval decides fewer runs, and is wrong in fewer. With n
labelled runs that an interval leaves to the judge, of which it got k wrong, the hypothesis "it is wrong in more than
`error` of such runs" has the exact p-value P(Binomial(n, error) <= k). Intervals are tested in a fixed order, on three
paths (`_paths`): silent on both sides of the threshold, on the lower, on the upper, each from nearly always to never. A
path ends at the first interval that can't be trusted. As each has a fixed part of 1 - confidence, the chance that any
trusted interval is wrong in more than `error` of the runs that it decides is at most 1 - confidence, for every n. Of
the trusted ones, the one that decides most is taken.

This takes for granted that the labelled runs are a random sample of those to come, and that the judge is not more often
wrong where its scores are further from the threshold. The latter is needed since a path begins with the first interval
that leaves it enough labels to be tested at all: with few labels at the sure end, more of those that it has are wrong.

Source: A. Angelopoulos, S. Bates, E. Candès, M. Jordan, L. Lei, "Learn then Test: Calibrating Predictive Algorithms to
Achieve Risk Control" (2021, arXiv 2110.01052), theorem 1 and section 2.3 (fixed sequence testing). J. Jung, F. Brahman,
Y. Choi, "Trust or Escalate: LLM Judges with Provable Guarantees for Human Agreement" (2024, arXiv 2407.18370) does so
for judges, with one bound.
"""

from __future__ import annotations

import math
from functools import lru_cache

import msgspec
from msgspec import Struct

_STEPS: dict[str, int] = {"pass_fail": 2, "zero_to_one": 10, "one_to_five": 4, "zero_to_ten": 10}
"""How many steps a scale is divided into, to look for the bounds."""
_PARTS = (0.5, 0.25, 0.25)
"""What each of the paths has of 1 - confidence."""
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
    """`count` runs that the judge gave the same scores (on the scale itself), and of which people said the
    same: `good`, if the criterion passes."""

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

    @property
    def rank(self) -> tuple[int, float]:
        """More for one that decides more runs, and of equal ones for that with the shorter interval."""
        return self.decided, (-1 if self.low is None else self.low) - (2 if self.high is None else self.high)

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
    labels = sum(score.count for score in scores)
    best: Acceptance | None = None
    needed: list[int] = []
    for path, part in zip(_paths(scale, threshold), _PARTS, strict=True):
        level = (1 - confidence) * part
        # With fewer labels the p-value is above the level even if none of them is wrong.
        fewest = math.ceil(math.log(level) / math.log1p(-error))
        for low, high in path:
            inside = [score for score in scores if _decides(low, high, score.share, score.passed)]
            decided = sum(labelled_score.count for labelled_score in inside)
            wrong = sum(
                labelled_score.count for labelled_score in inside if labelled_score.passed != labelled_score.good
            )
            if decided >= fewest and binomial_tail(wrong, decided, error) <= level:
                candidate = Acceptance(True, low, high, labels, decided, wrong)
                best = candidate if best is None or candidate.rank > best.rank else best
                continue
            more = _needed(wrong, decided, labels, error, level) if decided or not labels else None
            needed += [] if more is None else [more]
            if decided >= fewest:
                break
    return best or Acceptance(False, labels=labels, needed=min(needed, default=None))


def binomial_tail(at_most: int, n: int, probability: float) -> float:
    """P(X <= at_most) for X binomial; 1 for no draws at all."""
    if n == 0:
        return 1.0
    # By logarithms: a binomial coefficient of some thousand labels is larger than any float.
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


def _paths(scale: str, threshold: float) -> tuple[list[tuple[float | None, float | None]], ...]:
    """The intervals that are tried, in their order. A bound of 1 below and of 0 above lets every verdict of that side
    stand; the others are the steps of the scale."""
    steps = _STEPS[scale]
    grid = [number / steps for number in range(steps + 1)]
    lows: list[float | None] = [1.0, *[share for share in reversed(grid) if share < threshold - _NEAR][1:], None]
    highs: list[float | None] = [0.0, *[share for share in grid if share >= threshold - _NEAR][1:], None]
    longest = max(len(lows), len(highs)) - 1
    both = [
        (lows[round(place * (len(lows) - 1) / longest)], highs[round(place * (len(highs) - 1) / longest)])
        for place in range(longest, -1, -1)
    ]
    lower: list[tuple[float | None, float | None]] = [(low, highs[0]) for low in reversed(lows)]
    upper: list[tuple[float | None, float | None]] = [(lows[0], high) for high in reversed(highs)]
    return [pair for pair in dict.fromkeys(both) if pair != (None, None)], lower, upper


def _needed(wrong: int, decided: int, labels: int, error: float, level: float) -> int | None:
    """How many labels it takes, at least, if the judge stays wrong as often as in these."""
    rate = wrong / decided if decided else 0.0
    if rate >= error:
        return None
    share = decided / labels if decided else 1.0
    low, high = max(decided, 1), max(decided, 1)
    # Doubled until there are enough, then halved between: each look sums over all labels that are wrong.
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
