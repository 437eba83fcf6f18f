"""When are enough repetitions enough? Wald's sequential probability ratio test of a pass rate against a threshold."""

from __future__ import annotations

import math
from typing import Literal

from agenteval_tui.text.quick_dataclass import dataclass

Answer = Literal["above", "below", "open"]


@dataclass(frozen=True, slots=True)
class Decision:
    """What the runs so far say of the pass rate, and how far they are from the bounds (all in log likelihood ratios).

    `above` or `below` the threshold: more runs are not needed. `open`: go on. `ratio` grows with passes; it decides
    at `upper` and at `lower`.
    """

    answer: Answer
    ratio: float
    lower: float
    upper: float


def decide(
    passed: int, n: int, threshold: float, *, alpha: float = 0.05, beta: float | None = None, margin: float = 0.1
) -> Decision:
    """Whether `passed` of `n` runs decide that the pass rate is above or below `threshold`.

    It may be asked after each run. The two hypotheses are the rates `threshold - margin` and `threshold + margin`
    (at most half-way to 0 and to 1): between them either answer will do. `alpha` bounds the chance of "above" when
    the rate is the lower one or less, `beta` (by default alpha) that of "below" when it is the upper one or more;
    both hold to within Wald's approximation: at most alpha / (1 - beta), and together at most alpha + beta.
    A threshold of 1 is missed by the first failure, and is never proved; one of 0 is always reached.

    Raises `ValueError` for impossible counts, a threshold outside of 0..1, or alpha, beta outside of 0..0.5.
    Source: A. Wald, "Sequential tests of statistical hypotheses", Annals of mathematical statistics 16 (1945).
    """
    beta = alpha if beta is None else beta
    if not 0 <= passed <= n:
        raise ValueError(f"{passed} passed of {n} can't be")
    if not 0 <= threshold <= 1 or not 0 < alpha < 0.5 or not 0 < beta < 0.5 or not margin > 0:
        raise ValueError(f"no test of threshold {threshold} with alpha {alpha}, beta {beta}, margin {margin}")
    upper, lower = math.log((1 - beta) / alpha), math.log(beta / (1 - alpha))
    if threshold == 0:
        return Decision("above", math.inf, lower, upper)
    failed = n - passed
    if threshold == 1:
        return Decision("below", -math.inf, lower, upper) if failed else Decision("open", 0.0, lower, upper)
    low, high = hypotheses(threshold, margin)
    ratio = passed * math.log(high / low) + failed * math.log((1 - high) / (1 - low))
    answer: Answer = "above" if ratio >= upper else "below" if ratio <= lower else "open"
    return Decision(answer, ratio, lower, upper)


def hypotheses(threshold: float, margin: float) -> tuple[float, float]:
    """The two pass rates that are told apart, for a threshold strictly between 0 and 1."""
    return max(threshold - margin, threshold / 2), min(threshold + margin, (1 + threshold) / 2)


def fewest_runs(threshold: float, *, alpha: float = 0.05, beta: float | None = None, margin: float = 0.1) -> int | None:
    """The number of runs that decide at the earliest, all of them passing; None when passing never decides."""
    if threshold in (0, 1):
        return 0 if threshold == 0 else None
    bound = decide(0, 0, threshold, alpha=alpha, beta=beta, margin=margin).upper
    low, high = hypotheses(threshold, margin)
    return math.ceil(bound / math.log(high / low))


def most_needed(passed: int, n: int, threshold: float, *, alpha: float = 0.05, margin: float = 0.1) -> int:
    """How many runs to begin at once after `passed` of `n`, so that none of them can turn out to be too many.

    The number that decides at the earliest in the direction to which the runs point so far (to "above" at the start).
    Where passing never decides (a threshold of 1) it doubles with the runs that have passed.
    """
    if threshold in (0, 1):
        return max(1, n)
    now = decide(passed, n, threshold, alpha=alpha, margin=margin)
    low, high = hypotheses(threshold, margin)
    if now.ratio >= 0:
        steps = (now.upper - now.ratio) / math.log(high / low)
    else:
        steps = (now.lower - now.ratio) / math.log((1 - high) / (1 - low))
    return max(1, math.ceil(steps - 1e-9))
