"""Did cases that ran several times before and now pass less often? An exact test over all cases together."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from msgspec import Struct

from agenteval_tui.analysis.statistics import normal_below

_EXACT = 1_500
"""How much the number of passes may vary in all for the exact distribution; the normal one says the same from there
on, and takes no time."""


class PassCounts(Struct, frozen=True):
    """How often one case passed, of how many runs with a verdict: before, and now."""

    was_passed: int
    was_n: int
    now_passed: int
    now_n: int

    @property
    def passed(self) -> int:
        """Passes on both sides together."""
        return self.was_passed + self.now_passed

    @property
    def least(self) -> int:
        """The fewest passes that could be now, with as many on both sides together."""
        return max(0, self.passed - self.was_n)

    @property
    def most(self) -> int:
        """The most passes that could be now."""
        return min(self.now_n, self.passed)

    @property
    def varied(self) -> bool:
        """Whether it was seen to pass and to fail on one side."""
        return 0 < self.was_passed < self.was_n or 0 < self.now_passed < self.now_n

    def chance_of(self, now_passed: int) -> float:
        """The probability of that many passes now, if nothing changed: hypergeometric, since every run of both sides is
        then as likely to be one of those that passed."""
        ways = math.comb(self.now_n, now_passed) * math.comb(self.was_n, self.passed - now_passed)
        return ways / math.comb(self.was_n + self.now_n, self.passed)

    @property
    def least_p_value(self) -> float:
        """The smallest one-sided p-value that these many passes could give, however they fall."""
        return self.chance_of(self.least)


def stratified_exact(cases: Sequence[PassCounts]) -> float | None:
    """The one-sided p-value of "these cases pass less often now"; None where no case varied.

    Each case is a stratum. Given how often it passed on both sides together, its passes now are hypergeometric if
    nothing changed; their sum over the cases is what is tested. With one run on each side it is McNemar's exact test,
    with one case Fisher's.
    Source: J. J. Gart, "Point and interval estimation of the common odds ratio in the combination of 2 x 2 tables with
    fixed marginals", Biometrika 57 (1970); the exact form of the test by Cochran, Mantel and Haenszel.
    """
    varied = [case for case in cases if case.least < case.most]
    if not varied:
        return None
    passes = sum(case.now_passed - case.least for case in varied)
    if sum(case.most - case.least for case in varied) > _EXACT:
        return _normal(varied)
    distribution = [1.0]
    for case in varied:
        chances = [case.chance_of(now) for now in range(case.least, case.most + 1)]
        distribution = convolve(distribution, chances, passes + 1)
    return min(1.0, math.fsum(distribution[: passes + 1]))


def convolve(left: Sequence[float], right: Sequence[float], length: int) -> list[float]:
    """The distribution of the sum of two independent numbers from 0 on, as far as its first `length` values."""
    combined = [0.0] * min(length, len(left) + len(right) - 1)
    for number, share in enumerate(left[:length]):
        for more, chance in enumerate(right[: length - number]):
            combined[number + more] += share * chance
    return combined


def at_least(number: int, chances: Iterable[float]) -> float:
    """The probability that at least this many of independent events happen, of which each has its own chance."""
    fewer = [1.0]
    for chance in chances:
        fewer = convolve(fewer, [1 - chance, chance], number)
    return max(0.0, 1 - math.fsum(fewer[:number]))


def _normal(cases: Sequence[PassCounts]) -> float:
    """The same by the normal distribution, with the continuity correction."""
    expected = variance = 0.0
    for case in cases:
        runs = case.was_n + case.now_n
        expected += case.now_n * case.passed / runs
        variance += case.was_n * case.now_n * case.passed * (runs - case.passed) / (runs**2 * (runs - 1))
    distance = sum(case.now_passed for case in cases) + 0.5 - expected
    return normal_below(distance / math.sqrt(variance))
