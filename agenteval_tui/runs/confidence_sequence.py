"""When are enough repetitions enough? A confidence sequence of a pass rate, which may be looked at after each run.

Source: S. R. Howard, A. Ramdas, J. McAuliffe, J. Sekhon, "Time-uniform, nonparametric, nonasymptotic confidence
sequences", Annals of Statistics 49 (2021): section 3.2 and proposition 7, the beta-binomial mixture, here in its exact
form for passes and failures. The likelihood ratio of the mixture against a rate p,

    M(p) = B(s + 1/2, f + 1/2) / B(1/2, 1/2) / (p^s (1 - p)^f)      with s passed and f failed runs,

is a martingale that begins at 1 when p is the true rate, so that it ever reaches 1/alpha with a chance of at most
alpha (Ville's inequality). The rates that it has not reached 1/alpha for are an interval that holds the true rate at
all times at once with a chance of at least 1 - alpha, whatever rule stops the runs. The mixture is Jeffreys' prior
(Krichevsky and Trofimov): its choice decides how soon an answer comes, not how often it is wrong.
"""

from __future__ import annotations

import math
from typing import Literal

from msgspec import Struct

Answer = Literal["above", "below", "open"]

_PRIOR = 0.5
_MOST_AT_ONCE = 10_000
_LOG_BETA = 2 * math.lgamma(_PRIOR) - math.lgamma(2 * _PRIOR)


class Decision(Struct, frozen=True):
    """What the runs so far say of the pass rate.

    `above` or `below` the threshold: the confidence sequence excludes it, and no more runs are needed. `open`: it does
    not. `evidence` is log M(threshold): the answer is there when it reaches log(1 / alpha).
    """

    answer: Answer
    evidence: float


def decide(passed: int, n: int, threshold: float, *, alpha: float = 0.05) -> Decision:
    """Whether `passed` of `n` runs decide that the pass rate is above or below `threshold`.

    It may be asked after each run, and the runs may be stopped by its answer: at every true pass rate the chance that
    it ever gives a wrong answer is at most `alpha`. At a rate equal to the threshold both answers are wrong.
    A threshold of 1 is missed by the first failure and is never proved; a threshold of 0 is always reached.

    Raises `ValueError` for impossible counts, a threshold outside of 0..1, or an alpha outside of 0..0.5.
    """
    _check(passed, n, alpha)
    if not 0 <= threshold <= 1:
        raise ValueError(f"a pass rate can't be compared with {threshold}")
    if threshold == 0:
        return Decision("above", math.inf)
    if threshold == 1:
        failed = passed < n
        return Decision("below" if failed else "open", math.inf if failed else 0.0)
    evidence = _mixture(passed, n) - _likelihood(passed, n, threshold)
    answer: Answer = "open"
    if evidence >= -math.log(alpha):
        answer = "above" if passed > threshold * n else "below"
    return Decision(answer, evidence)


def confidence_sequence(passed: int, n: int, *, alpha: float = 0.05) -> tuple[float, float]:
    """The pass rates that `passed` of `n` runs leave open at level 1 - `alpha`, valid at all times at once.

    It is wider than an interval for a number of runs that was fixed beforehand. (0, 1) where nothing ran.
    Raises `ValueError` for impossible counts or an alpha outside of 0..0.5.
    """
    _check(passed, n, alpha)
    if n == 0:
        return 0.0, 1.0
    most = _mixture(passed, n) + math.log(alpha)  # a rate stays in while its log likelihood is above this
    share = passed / n

    def end(outside: float) -> float:
        """The likelihood falls from `share` towards `outside`: halve the way to the last rate that stays in."""
        inside = share
        while abs(inside - outside) > 1e-12:
            middle = (inside + outside) / 2
            if _likelihood(passed, n, middle) > most:
                inside = middle
            else:
                outside = middle
        return outside

    return (0.0 if passed == 0 else end(0.0)), (1.0 if passed == n else end(1.0))


def most_needed(passed: int, n: int, threshold: float, *, alpha: float = 0.05) -> int:
    """How many runs to begin at once after `passed` of `n`, so that none is too many if they continue like that.

    The number that decides at the earliest in the direction to which the runs point so far (to "above" at the start).
    Where passing never decides (a threshold of 1) it doubles with the runs that have passed.
    """
    if threshold in (0, 1):
        return max(1, n)
    return max(1, _steps(passed, n, threshold, alpha, passing=passed >= threshold * n))


def _steps(passed: int, n: int, threshold: float, alpha: float, *, passing: bool) -> int:
    """How many more runs, all of which pass (or all of which fail), exclude the threshold."""
    bound = -math.log(alpha)
    evidence = _mixture(passed, n) - _likelihood(passed, n, threshold)
    rate = threshold if passing else 1 - threshold
    count = passed if passing else n - passed
    steps = 0
    while (evidence < bound or count <= rate * (n + steps)) and steps < _MOST_AT_ONCE:
        evidence += math.log((count + _PRIOR) / (n + steps + 2 * _PRIOR)) - math.log(rate)
        count += 1
        steps += 1
    return steps


def _mixture(passed: int, n: int) -> float:
    """The log of the mixture's likelihood."""
    above = math.lgamma(passed + _PRIOR) + math.lgamma(n - passed + _PRIOR)
    return above - math.lgamma(n + 2 * _PRIOR) - _LOG_BETA


def _likelihood(passed: int, n: int, rate: float) -> float:
    """The log likelihood of a rate strictly between 0 and 1."""
    return passed * math.log(rate) + (n - passed) * math.log1p(-rate)


def _check(passed: int, n: int, alpha: float) -> None:
    if not 0 <= passed <= n:
        raise ValueError(f"{passed} passed of {n} can't be")
    if not 0 < alpha < 0.5:
        raise ValueError(f"alpha is {alpha}: it must be between 0 and 0.5")
