"""Figures over many runs: pass rates with intervals, pass@k, pass^k, percentiles, means over tests, A against B.

Closed forms and the standard library only; each function names its source. The tests check them against SciPy.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import lru_cache

from msgspec import Struct

from agenteval_tui.core.document import Count, Document

Interval = tuple[float, float]
Z95 = 1.959963984540054  # the standard normal's 97.5 % point
SIGNIFICANT = 0.05
"""A difference is shown where chance gives one like it in at most one of twenty."""
ROUNDING = 1e-12
"""What a figure may be off because it was calculated in floats."""
FEW = 5
"""The fewest cases, or repetitions of a single case, for which an interval is given: of fewer it says nothing."""


class Counted(Struct, frozen=True):
    """Runs of one test by how they ended. `undecided`: queued, cancelled, skipped, or waiting for a person."""

    passed: int
    failed: int
    errors: int
    undecided: int
    count_errors: bool = False

    @property
    def n(self) -> int:
        """The runs that the figures are over: errors are not verdicts, and are in it only when asked for."""
        return self.passed + self.failed + (self.errors if self.count_errors else 0)

    @property
    def flaky(self) -> bool:
        """Neither always nor never passed: 0 < c < n."""
        return 0 < self.passed < self.n


def counted(statuses: Iterable[str], *, count_errors: bool = False) -> Counted:
    """Count how the runs of a test ended. With `count_errors` an error counts as not passed."""
    counts = Counter(statuses)
    decided = counts["passed"], counts["failed"], counts["error"]
    return Counted(*decided, counts.total() - sum(decided), count_errors)


class Spread(Document, frozen=True):
    """The median and the 95 % point of what was measured; None where nothing was."""

    p50: float | None
    p95: float | None


def spread(values: Iterable[float | None]) -> Spread:
    """Median and 95 % point of latency, tokens, cost, steps; what was not measured (None) is left out."""
    measured = sorted(value for value in values if value is not None)
    return Spread(percentile(measured, 50), percentile(measured, 95))


def reaches(rate: float, limit: float) -> bool:
    """Whether a rate is its limit or more. A mean of floats may miss the limit that it reaches by its last digit."""
    return rate >= limit - ROUNDING


def pass_rate(passed: int, n: int) -> float | None:
    """`passed / n`; None when nothing was decided (n = 0)."""
    return passed / n if n else None


def wilson(passed: int, n: int, z: float = Z95) -> Interval:
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
    return percentile_of_sorted(sorted(values), percent) if values else None


def percentile_of_sorted(ordered: Sequence[float], percent: float) -> float:
    """As `percentile`, of values that are sorted already and are not empty."""
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
    if min(rates) == max(rates):
        return 0.0  # exactly: equal quotients of whole numbers are equal as floats, but their mean may be rounded
    middle = math.fsum(rates) / tests
    squares = math.fsum((rate - middle) ** 2 for rate in rates)
    return math.sqrt(squares / (tests - 1) / tests)


def cluster_robust_standard_error(clusters: Sequence[Sequence[float]]) -> float | None:
    """The standard error of the mean over all values, where those of one cluster (a test's runs) go together.

    For clusters of any size, each value weighted alike: sqrt(G/(G-1)) / N * sqrt(sum over clusters of the squared
    sum of deviations). With clusters of one size it is `clustered_standard_error` of their means. None for fewer
    than two clusters that have values.
    Source: A. C. Cameron and D. L. Miller, "A practitioner's guide to cluster-robust inference" (2015), equation 11.
    """
    filled = [cluster for cluster in clusters if cluster]
    if len(filled) < 2:
        return None
    number = sum(len(cluster) for cluster in filled)
    middle = math.fsum(value for cluster in filled for value in cluster) / number
    squares = math.fsum(math.fsum(value - middle for value in cluster) ** 2 for cluster in filled)
    return math.sqrt(squares * len(filled) / (len(filled) - 1)) / number


def clustered_interval(counts: Sequence[tuple[int, int]]) -> Interval:
    """The 95 % interval of the mean pass rate over tests, clustered by test. `counts` is (passed, n) by test.

    Tests without a decided run (n = 0) are left out. The interval is the mean ± t * the clustered standard error,
    with Student's t of (tests - 1) degrees of freedom, cut to 0..1.
    Source: A. C. Cameron and D. L. Miller, "A practitioner's guide to cluster-robust inference" (2015), section VI
    (t with G-1 degrees for few clusters). Two cases have no spread between tests to go by: a single test gets its
    own Wilson interval; tests that all have the same rate get Wilson's with the number of tests as n, since the
    tests, not their repetitions, are what was drawn.
    """
    decided = [(passed, n) for passed, n in counts if n]
    if not decided:
        return 0.0, 1.0
    if len(decided) == 1:
        return wilson(*decided[0])
    rates = [passed / n for passed, n in decided]
    if _of_one_rate(decided):
        return _wilson_of_share(rates[0], len(rates))
    error = clustered_standard_error(rates)
    assert error is not None
    middle = math.fsum(rates) / len(rates)
    half = student_t_quantile(0.975, len(rates) - 1) * error
    return max(0.0, middle - half), min(1.0, middle + half)


def interval_over(counts: Sequence[tuple[int, int]]) -> Interval | None:
    """`clustered_interval` if there are at least `FEW` cases, or `FEW` repetitions of a single case (the interval is
    then about this case alone). None: there are too few."""
    sizes = [n for _, n in counts if n]
    return clustered_interval(counts) if (sizes[0] if len(sizes) == 1 else len(sizes)) >= FEW else None


def interval_of(passed: int, n: int) -> Interval | None:
    """Wilson's interval of the repetitions of a single case; None where there are too few."""
    return wilson(passed, n) if n >= FEW else None


def rate_over_rows(counts: Sequence[tuple[int, int]]) -> Interval:
    """The 95 % interval of the share of all runs that passed, over the rows of a dataset. `counts` is (passed, n) by
    row; rows without a decided run (n = 0) are left out.

    Wilson's of one row, or where every row ran once. Else the share ± t * the cluster-robust standard error, with
    Student's t of (rows - 1) degrees of freedom, cut to 0..1 (the source of `clustered_interval`); where no row differs
    from the others, Wilson's with the number of rows as n.
    """
    decided = [(passed, n) for passed, n in counts if n]
    passed, n = sum(count for count, _ in decided), sum(count for _, count in decided)
    if len(decided) < 2 or n == len(decided):
        return wilson(passed, n)
    if _of_one_rate(decided):
        return _wilson_of_share(passed / n, len(decided))
    # Rows of more runs weigh more here: it is the share of all runs that is estimated.
    error = cluster_robust_standard_error([[1.0] * count + [0.0] * (of - count) for count, of in decided])
    assert error is not None
    half = student_t_quantile(0.975, len(decided) - 1) * error
    return max(0.0, passed / n - half), min(1.0, passed / n + half)


class PairedCounts(Document, frozen=True):
    """Outcomes of the same tests under A and under B: how many passed under both, under one, under neither."""

    both: Count
    only_a: Count
    only_b: Count
    neither: Count

    @property
    def n(self) -> int:
        """All pairs."""
        return self.both + self.only_a + self.only_b + self.neither


def paired_counts(outcomes: Iterable[tuple[bool, bool]]) -> PairedCounts:
    """Count (passed under A, passed under B) pairs."""
    counts = Counter(outcomes)
    return PairedCounts(counts[True, True], counts[True, False], counts[False, True], counts[False, False])


def mcnemar_exact(only_a: int, only_b: int) -> float:
    """The two-sided p-value of McNemar's exact test: could the flips between two paired samples be chance?

    Only the pairs that flip count; without chance for one side, each way is as likely, so the smaller number is
    binomial with 1/2. 1.0 where nothing flips.
    Source: Q. McNemar, Psychometrika 12 (1947); exact form: W. G. Cochran, Biometrika 37 (1950).
    """
    if only_a < 0 or only_b < 0:
        raise ValueError(f"{only_a} and {only_b} can't be numbers of flips")
    flips, fewer = only_a + only_b, min(only_a, only_b)
    term, ways = 1, 0
    for k in range(fewer + 1):
        ways += term
        term = term * (flips - k) // (k + 1)
    # Whole numbers until the end: exact, and nothing overflows.
    return min(1.0, float(Fraction(2 * ways, 1 << flips)))


def fisher_exact(passed_a: int, n_a: int, passed_b: int, n_b: int) -> float:
    """The two-sided p-value of Fisher's exact test for two unpaired pass rates; 1.0 where one side has no runs.

    The sum of the probabilities of all tables with the same margins that are at most as likely as this one.
    Source: R. A. Fisher, "Statistical methods for research workers" (1934), section 21.02; two-sided as in R and SciPy.
    """
    _check_counts(passed_a, n_a)
    _check_counts(passed_b, n_b)
    passed = passed_a + passed_b
    low, high = max(0, passed - n_b), min(n_a, passed)
    # By recurrence, in whole numbers: exact, and ties are ties.
    way = math.comb(n_a, low) * math.comb(n_b, passed - low)
    ways = []
    for k in range(low, high + 1):
        ways.append(way)
        way = way * (n_a - k) * (passed - k) // ((k + 1) * (n_b - passed + k + 1))
    observed = ways[passed_a - low]
    return float(Fraction(sum(way for way in ways if way <= observed), sum(ways)))


def paired_bootstrap(differences: Sequence[float], *, seed: int = 0, draws: int = 4_000_000) -> Interval | None:
    """The 95 % interval of the mean of paired differences (B minus A, one a test), by the bootstrap; None without any,
    and where all are the same but for rounding: there is no spread to tell an interval from.

    Percentile method: 4,000 samples of as many tests are drawn with replacement; fewer where these would be more than
    `draws` draws, and 400 at least. The same seed gives the same interval.
    Give a difference a *test* (the mean over its repetitions), so that repetitions do not count as tests.
    Source: B. Efron and R. Tibshirani, "An introduction to the bootstrap" (1993), chapter 13.
    """
    n = len(differences)
    if not n or not spread_out(differences):
        return None
    draw = random.Random(seed).choices  # noqa: S311 - no secret hangs on it
    means = sorted(sum(draw(differences, k=n)) / n for _ in range(max(400, min(4_000, draws // n))))
    low, high = percentile_of_sorted(means, 2.5), percentile_of_sorted(means, 97.5)
    middle = math.fsum(differences) / n
    return min(low, middle), max(high, middle)  # the mean may be rounded out of it


def newcombe(passed_a: int, n_a: int, passed_b: int, n_b: int) -> Interval:
    """The 95 % interval of a difference of two unpaired rates, B minus A, out of their Wilson intervals.

    Source: R. G. Newcombe, "Interval estimation for the difference between independent proportions", Statistics in
    Medicine 17 (1998), method 10.
    """
    (low_a, high_a), (low_b, high_b) = wilson(passed_a, n_a), wilson(passed_b, n_b)
    a, b = passed_a / n_a, passed_b / n_b
    return (
        max(-1.0, b - a - math.hypot(b - low_b, high_a - a)),
        min(1.0, b - a + math.hypot(high_b - b, a - low_a)),
    )


def consistent_interval(interval: Interval, p_value: float) -> Interval:
    """The interval of a difference, widened to 0 where the test beside it does not exclude 0.

    Exact tests of few cases are more careful than the intervals: 5 of 5 cases that fell have p = 0.0625, and an
    interval from -100 to -10 points. Both are printed in one line, so the more careful one decides.
    """
    low, high = interval
    return (min(low, 0.0), max(high, 0.0)) if p_value > SIGNIFICANT else interval


def _of_one_rate(counts: Sequence[tuple[int, int]]) -> bool:
    """Whether all (passed, n) are the same rate. In whole numbers: a clustered error is 0 then, but rounding rarely
    gives it as 0."""
    passed, n = counts[0]
    return all(other * n == passed * of for other, of in counts)


def spread_out(values: Sequence[float]) -> bool:
    """Whether values differ by more than rounding: 0.3 - 0.2 and 0.8 - 0.7 do not."""
    low, high = min(values), max(values)
    return high - low > 1e-9 * max(abs(low), abs(high)) + 1e-12


def _wilson_of_share(share: float, n: int, z: float = Z95) -> Interval:
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


# Distribution functions that the standard library lacks


def normal_below(z: float) -> float:
    """The chance that a standard normal number is below `z`."""
    return 0.5 * math.erfc(-z / math.sqrt(2))


@lru_cache(maxsize=2048)
def student_t_quantile(probability: float, degrees: int) -> float:
    """The value that Student's t with `degrees` degrees of freedom stays below with `probability` (0.5..1).

    By Newton's method on its distribution function, which is a regularised incomplete beta function; halving takes
    over where a step would leave what is known to hold the value.
    Source: Abramowitz and Stegun, "Handbook of mathematical functions" (1964), 26.7.1.
    """
    if degrees < 1 or not 0.5 <= probability < 1:
        raise ValueError(f"no t quantile for probability {probability}, {degrees} degrees")
    tail = 2 * (1 - probability)  # both tails together
    # Doubled until it is above the value: no tail is too small for a bound.
    low, high = 0.0, 1.0
    while _t_tails(high, degrees) > tail:
        low, high = high, high * 2
    at = (low + high) / 2
    log_front = math.lgamma((degrees + 1) / 2) - math.lgamma(degrees / 2) - math.log(degrees * math.pi) / 2
    for _ in range(200):
        over = _t_tails(at, degrees) - tail
        if over > 0:
            low = at
        else:
            high = at
        density = math.exp(log_front - (degrees + 1) / 2 * math.log1p(at * at / degrees))
        step = at + over / (2 * density)
        following = step if low < step < high else (low + high) / 2
        if abs(following - at) <= 1e-15 * at or following in (low, high):
            return following
        at = following
    return at


def _t_tails(t: float, degrees: int) -> float:
    return incomplete_beta(degrees / 2, 0.5, degrees / (degrees + t * t))


def incomplete_beta(a: float, b: float, x: float) -> float:
    """The regularised incomplete beta function I_x(a, b), by Lentz's continued fraction.

    Source: NIST Digital Library of Mathematical Functions, 8.17.22.
    """
    if x <= 0 or x >= 1:
        return 0.0 if x <= 0 else 1.0
    # Below this point the fraction converges quickly; above it that of the mirrored function does.
    if x > (a + 1) / (a + b + 2):
        return 1 - incomplete_beta(b, a, 1 - x)
    log_front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    # In place of a denominator of 0, as Lentz' method has it.
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
