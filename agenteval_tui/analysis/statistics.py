"""Figures over many runs: pass rates with intervals, pass@k, pass^k, percentiles, means over tests.

Closed forms and the standard library only; each function names its source. The tests check them against SciPy.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

Interval = tuple[float, float]

_Z95 = 1.959963984540054  # the standard normal's 97.5 % point


def pass_rate(passed: int, n: int) -> float | None:
    """`passed / n`; None when nothing was decided (n = 0)."""
    return passed / n if n else None


def wilson(passed: int, n: int, z: float = _Z95) -> Interval:
    """The Wilson score interval of a pass rate, 95 % by default; (0, 1) when n = 0: nothing is known.

    Source: E. B. Wilson, "Probable inference, the law of succession, and statistical inference", JASA 22 (1927).
    """
    _check_counts(passed, n)
    return _wilson_of_share(passed / n, n, z) if n else (0.0, 1.0)


def pass_at_k(passed: int, n: int, k: int) -> float:
    """The chance that at least one of k runs passes: `1 - C(n-c, k) / C(n, k)`, without bias, for 1 <= k <= n.

    Source: M. Chen et al., "Evaluating large language models trained on code" (2021), equation 1.
    """
    _check_counts(passed, n)
    _check_k(k, n)
    # One division of whole numbers: 1 - (a quotient) would leave 0.30000000000000004 for 0.3.
    ways = math.comb(n, k)
    return (ways - math.comb(n - passed, k)) / ways


def pass_hat_k(passed: int, n: int, k: int) -> float:
    """The chance that all of k runs pass (pass^k): `C(c, k) / C(n, k)`, for 1 <= k <= n.

    Source: S. Yao et al., "tau-bench: a benchmark for tool-agent-user interaction in real-world domains" (2024).
    """
    _check_counts(passed, n)
    _check_k(k, n)
    return math.comb(passed, k) / math.comb(n, k)


def percentile(values: Sequence[float], percent: float) -> float | None:
    """The value below which `percent` (0..100) of the values lie, interpolated linearly; None without values.

    Source: R. J. Hyndman and Y. Fan, "Sample quantiles in statistical packages" (1996), definition 7
    (what NumPy and spreadsheets do by default).
    """
    if not 0 <= percent <= 100:
        raise ValueError(f"percent must be 0..100, not {percent}")
    if not values:
        return None
    ordered = sorted(values)
    position = (len(ordered) - 1) * percent / 100
    below = math.floor(position)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (position - below)


def mean(values: Sequence[float]) -> float | None:
    """The arithmetic mean; None without values."""
    return math.fsum(values) / len(values) if values else None


def clustered_standard_error(rates: Sequence[float]) -> float | None:
    """The standard error of the mean of the tests' pass rates, each test one cluster of its repetitions.

    Repetitions of one test are not independent, so the spread between tests counts, not the number of runs:
    the sample deviation of the tests' rates over the square root of their number. None for fewer than two tests.
    Source: E. Miller, "Adding error bars to evals" (2024), section 2.2, with every test weighted alike and the
    usual m/(m-1) for few clusters.
    """
    tests = len(rates)
    if tests < 2:
        return None
    middle = math.fsum(rates) / tests
    squares = math.fsum((rate - middle) ** 2 for rate in rates)
    return math.sqrt(squares / (tests - 1) / tests)


def clustered_interval(counts: Sequence[tuple[int, int]]) -> Interval:
    """The 95 % interval of the mean pass rate over tests, clustered by test. `counts` is (passed, n) by test.

    Tests without a decided run (n = 0) are left out. The interval is the mean ± t * the clustered standard error,
    with Student's t of (tests - 1) degrees of freedom, cut to 0..1.
    Source: A. C. Cameron and D. L. Miller, "A practitioner's guide to cluster-robust inference" (2015), section VI
    (t with G-1 degrees for few clusters). Two cases have no spread between tests to go by: a single test gets its
    own Wilson interval; tests that all have the same rate get Wilson's with the number of tests as n, since the
    tests, not their repetitions, are what was drawn.
    """
    known = [(passed, n) for passed, n in counts if n]
    if not known:
        return 0.0, 1.0
    if len(known) == 1:
        return wilson(*known[0])
    rates = [passed / n for passed, n in known]
    error = clustered_standard_error(rates)
    middle = math.fsum(rates) / len(rates)
    if not error:
        return _wilson_of_share(middle, len(rates))
    half = student_t_quantile(0.975, len(rates) - 1) * error
    return max(0.0, middle - half), min(1.0, middle + half)


def student_t_quantile(probability: float, degrees: int) -> float:
    """The value that Student's t with `degrees` degrees of freedom stays below with `probability` (0.5..1).

    By bisection of its distribution function, which is a regularised incomplete beta function.
    Source: Abramowitz and Stegun, "Handbook of mathematical functions" (1964), 26.7.1.
    """
    if degrees < 1 or not 0.5 <= probability < 1:
        raise ValueError(f"no t quantile for probability {probability}, {degrees} degrees")
    tail = 2 * (1 - probability)  # both tails together
    low, high = 0.0, 1.0
    while _t_tails(high, degrees) > tail:
        high *= 2
    for _ in range(200):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        if _t_tails(middle, degrees) > tail:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def _t_tails(t: float, degrees: int) -> float:
    return _incomplete_beta(degrees / 2, 0.5, degrees / (degrees + t * t))


def _incomplete_beta(a: float, b: float, x: float) -> float:
    """The regularised incomplete beta function I_x(a, b), by Lentz's continued fraction.

    Source: NIST Digital Library of Mathematical Functions, 8.17.22.
    """
    if x <= 0 or x >= 1:
        return 0.0 if x <= 0 else 1.0
    if x > (a + 1) / (a + b + 2):
        return 1 - _incomplete_beta(b, a, 1 - x)
    log_front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    tiny = 1e-300
    c, d = 1.0, 1 / _off_zero(1 - (a + b) * x / (a + 1), tiny)
    fraction = d
    for m in range(1, 10_000):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        d = 1 / _off_zero(1 + even * d, tiny)
        c = _off_zero(1 + even / c, tiny)
        fraction *= c * d
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        d = 1 / _off_zero(1 + odd * d, tiny)
        c = _off_zero(1 + odd / c, tiny)
        fraction *= c * d
        if abs(c * d - 1) < 1e-15:
            break
    return math.exp(log_front) * fraction / a


def _off_zero(value: float, tiny: float) -> float:
    return value if abs(value) > tiny else tiny


def _wilson_of_share(share: float, n: int, z: float = _Z95) -> Interval:
    weight = z * z / n
    centre = (share + weight / 2) / (1 + weight)
    half = z / (1 + weight) * math.sqrt(share * (1 - share) / n + weight / (4 * n))
    # The bounds are exactly 0 and 1 there; rounding may miss them by one bit.
    low = 0.0 if share == 0 else max(0.0, centre - half)
    high = 1.0 if share == 1 else min(1.0, centre + half)
    return low, high


def _check_counts(passed: int, n: int) -> None:
    if not 0 <= passed <= n:
        raise ValueError(f"{passed} passed of {n} can't be")


def _check_k(k: int, n: int) -> None:
    if not 1 <= k <= n:
        raise ValueError(f"k must be 1..{n}, not {k}")
