"""How small a drop this many runs could have shown: the other half of "no difference was found".

Everywhere: a two-sided test at 5 %, and a drop that is shown four times in five (80 % power). Standard library only.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

from agenteval_tui.analysis.statistics import SIGNIFICANT, Z95, fisher_exact, incomplete_beta, normal_below

POWER = 0.8
_EXACT_PAIRS = 1_000  # 0.15 s of work; the approximation is 0.1 points away there
_EXACT_RUNS = 40  # of each side, for Fisher's test: all tables are tried
_STEPS = 40  # of a bisection
_TAIL = 1e-12


def detectable_paired(pairs: int, back: float = 0.0) -> float | None:
    """The smallest drop of the pass rate that McNemar's exact test on this many pairs shows four times in five.

    `back` is the share of pairs that gets better by chance all the same; each costs power. None: so few pairs
    show no drop, not even one of 100 %.
    Exact up to 1,000 pairs: the pairs that flip are binomial(pairs, drop + 2 back), of those the ones that get worse
    binomial(flips, (drop + back) / (drop + 2 back)), and the power is the chance of all outcomes at which the test says
    5 %. Source: S. W. Duffy, "Asymptotic and exact power for the McNemar test and its analogue with R controls per
    case", Biometrics 40 (1984). Beyond: R. J. Connor, "Sample size for testing differences in proportions for the
    paired-sample design", Biometrics 43 (1987), equation 2.
    """
    if pairs < 1:
        return None
    most = 1.0 - 2 * back
    if most <= 0:
        return None
    power = power_paired if pairs <= _EXACT_PAIRS else _power_large
    return _smallest(lambda drop: power(pairs, drop, back), most)


def detectable_unpaired(runs_a: int, runs_b: int, rate: float) -> float | None:
    """The smallest drop from the pass rate `rate` that Fisher's exact test shows four times in five; None: not any.

    Exact for up to 40 runs a side: the chances of all tables at which the test says 5 %. Source: B. M. Bennett and
    P. Hsu, "On the power function of the exact test for the 2x2 contingency table", Biometrika 47 (1960). Beyond:
    J. T. Casagrande, M. C. Pike and P. G. Smith, "An improved approximate formula for calculating sample sizes for
    comparing two binomial distributions", Biometrics 34 (1978), turned to the power, with the harmonic mean of sides
    of different size.
    """
    if runs_a < 1 or runs_b < 1 or rate <= 0:
        return None
    # All tables are tried once for each pair of sizes, and their chances at each step of the bisection.
    if max(runs_a, runs_b) <= _EXACT_RUNS:
        rejected = _rejected(runs_a, runs_b)
        return _smallest(lambda drop: _power_tables(runs_a, runs_b, rate, rate - drop, rejected), rate)
    each = 2 * runs_a * runs_b / (runs_a + runs_b)
    return _smallest(lambda drop: _power_unpaired_large(each, rate, rate - drop), rate)


def _smallest(power: Callable[[float], float], most: float) -> float | None:
    """The smallest drop up to `most` with enough power, by bisection; None: there is none."""
    # The power grows with the drop: what the largest does not show, none does.
    if power(most) < POWER:
        return None
    low, high = 0.0, most
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if power(middle) >= POWER:
            high = middle
        else:
            low = middle
    return high


# Paired


def power_paired(pairs: int, drop: float, back: float = 0.0) -> float:
    """The exact chance that McNemar's exact test on this many pairs shows a true drop (`detectable_paired`)."""
    flips = min(drop + 2 * back, 1.0)
    if flips <= 0:
        return 0.0
    worse = min((drop + back) / flips, 1.0)
    needed = _needed(pairs)
    total = 0.0
    for number, chance in _binomial(pairs, flips):
        if needed[number] <= number:
            total += chance * _at_least(needed[number], number, worse)
    return total


@lru_cache(maxsize=32)
def _needed(pairs: int) -> tuple[int, ...]:
    """For each number of flips how many must be for the worse; more than there are: not any number will do."""
    counts: list[int] = []
    # With more flips never fewer are needed: so the search goes on from the last number.
    worse = 0
    for flips in range(pairs + 1):
        while worse <= flips and (2 * worse <= flips or _two_sided(worse, flips) > SIGNIFICANT):
            worse += 1
        counts.append(worse)
    return tuple(counts)


def _two_sided(worse: int, flips: int) -> float:
    return min(1.0, 2 * _at_least(worse, flips, 0.5))


def _at_least(number: int, of: int, chance: float) -> float:
    """P(X >= number) for X binomial(of, chance)."""
    if number <= 0:
        return 1.0
    if number > of or chance <= 0:
        return 0.0
    return 1.0 if chance >= 1 else incomplete_beta(number, of - number + 1, chance)


def _binomial(n: int, chance: float) -> list[tuple[int, float]]:
    """(k, P(k)) for X binomial(n, chance), without the tails that matter nothing."""
    if chance >= 1:
        return [(n, 1.0)]
    if chance <= 0:
        return [(0, 1.0)]
    # From the most likely number outwards: at the ends the chances are too small for a float.
    middle = min(int((n + 1) * chance), n)
    log = math.lgamma(n + 1) - math.lgamma(middle + 1) - math.lgamma(n - middle + 1)
    peak = math.exp(log + middle * math.log(chance) + (n - middle) * math.log1p(-chance))
    odds = chance / (1 - chance)
    chances = [(middle, peak)]
    term = peak
    for k in range(middle, n):
        term *= (n - k) / (k + 1) * odds
        if term < _TAIL:
            break
        chances.append((k + 1, term))
    term = peak
    for k in range(middle, 0, -1):
        term *= k / (n - k + 1) / odds
        if term < _TAIL:
            break
        chances.append((k - 1, term))
    return chances


def _power_large(pairs: int, drop: float, back: float) -> float:
    flips = drop + 2 * back
    spread = flips - drop * drop
    if spread <= 0:
        return 1.0
    return normal_below((drop * math.sqrt(pairs) - Z95 * math.sqrt(flips)) / math.sqrt(spread))


# Unpaired


@lru_cache(maxsize=8)
def _rejected(runs_a: int, runs_b: int) -> tuple[tuple[int, int], ...]:
    """(passed under A, passed under B) of all tables with fewer under B at which Fisher's test says 5 %."""
    return tuple(
        (passed, other)
        for passed in range(runs_a + 1)
        for other in range(runs_b + 1)
        if other * runs_a < passed * runs_b and fisher_exact(passed, runs_a, other, runs_b) <= SIGNIFICANT
    )


def _power_tables(
    runs_a: int, runs_b: int, rate_a: float, rate_b: float, significant: tuple[tuple[int, int], ...]
) -> float:
    chances_a, chances_b = dict(_binomial(runs_a, rate_a)), dict(_binomial(runs_b, max(rate_b, 0.0)))
    return math.fsum(chances_a.get(passed, 0.0) * chances_b.get(other, 0.0) for passed, other in significant)


def _power_unpaired_large(each: float, rate_a: float, rate_b: float) -> float:
    drop, middle = rate_a - rate_b, (rate_a + rate_b) / 2
    if drop <= 0:
        return 0.0
    corrected = each - 2 / drop  # what the exact test loses: the inverse of their correction, to first order
    spread = rate_a * (1 - rate_a) + rate_b * (1 - rate_b)
    if corrected <= 0:
        return 0.0
    if spread <= 0:
        return 1.0
    reached = drop * math.sqrt(corrected) - Z95 * math.sqrt(2 * middle * (1 - middle))
    return normal_below(reached / math.sqrt(spread))
