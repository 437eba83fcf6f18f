"""Paired differences: the same cases under A and under B, one number (B minus A) a case.

What a bootstrap alone can't do with few cases, or where all agree. Standard library only.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from itertools import product
from operator import getitem

from agenteval_tui.analysis.statistics import Interval, paired_bootstrap, student_t_quantile

_EXACT = 12  # differences up to which all signs are tried: so many take as long as `_FLIPS` drawn ones
_MANY = 400
"""Cases from which on drawing says the same as the standard error, seconds later."""
_FLIPS = 10_000


def difference_interval(differences: Sequence[float], *, seed: int = 0) -> Interval | None:
    """The 95 % interval of the mean of differences of pass rates (each -1..1), one a case; None without any.

    The paired bootstrap's, widened where it promises too much: to the mean ± t * standard error with two cases added
    that differ nowhere, half a case that got better and half a one that got worse. So one case gives -1..1, and cases
    that all agree do not give an interval of no width.
    Source: A. Agresti and Y. Min, "Simple improved confidence intervals for comparing matched proportions" (2005).
    """
    n = len(differences)
    if n < 2:
        return (-1.0, 1.0) if n else None
    middle, error = _added(differences)
    half = student_t_quantile(0.975, n - 1) * error
    observed = math.fsum(differences) / n
    drawn = paired_bootstrap(differences, seed=seed) if n < _MANY else None
    low, high = drawn or (observed, observed)
    return max(-1.0, min(low, middle - half)), min(1.0, max(high, middle + half))


def sign_flip(differences: Sequence[float], *, seed: int = 0) -> float:
    """The two-sided p-value of the mean difference: could the sign of each case be chance? 1.0 where all are 0.

    All signs for up to 12 cases that differ, else 10,000 drawn ones (with the observed one counted in).
    Source: R. A. Fisher, "The design of experiments" (1935), section 21.
    """
    moved = [difference for difference in differences if difference]
    if not moved:
        return 1.0
    # Equal sums must count, whatever rounding does; a sum of 0 too.
    observed = abs(math.fsum(moved)) - 1e-12 * math.fsum(map(abs, moved))
    if len(moved) <= _EXACT:
        sums = [
            abs(math.fsum(s * d for s, d in zip(signs, moved, strict=True)))
            for signs in product((1, -1), repeat=len(moved))
        ]
        return sum(total >= observed for total in sums) / len(sums)
    draw = random.Random(seed).getrandbits  # noqa: S311 - no secret hangs on it
    total, reached = math.fsum(moved), 1
    tables = [_subset_sums(moved[start : start + 8]) for start in range(0, len(moved), 8)]
    bits, size = len(moved), len(tables)
    for _ in range(_FLIPS):
        # The drawn bits say whose signs change; each byte of them is looked up.
        flipped = total - 2 * sum(map(getitem, tables, draw(bits).to_bytes(size, "little")))
        reached += abs(flipped) >= observed
    return reached / (_FLIPS + 1)


def _subset_sums(values: Sequence[float]) -> list[float]:
    """The sum of each subset: at `index` that of the values whose bits are set in it."""
    sums = [0.0]
    for value in values:
        sums += [total + value for total in sums]
    return sums


def detectable(differences: Sequence[float]) -> float | None:
    """The smallest true difference of pass rates that this many cases show four times in five; at most 1.

    At 5 %, two-sided: (1.96 + 0.84) standard errors for many cases (Student's t for few), with the cases as different
    as these were. None below two cases.
    Source: E. Miller, "Adding error bars to evals" (2024), section 5.
    """
    if len(differences) < 2:
        return None
    degrees = len(differences) - 1
    return min(1.0, (student_t_quantile(0.975, degrees) + student_t_quantile(0.8, degrees)) * _added(differences)[1])


def _added(differences: Sequence[float]) -> Interval:
    """(mean, its standard error) with the two cases added."""
    n = len(differences) + 2
    middle = math.fsum(differences) / n
    variance = (math.fsum(difference * difference for difference in differences) + 1) / n - middle**2
    return middle, math.sqrt(max(0.0, variance) / n)
