"""All tests of two sides together: one difference with interval and test, and what was measured beside it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from agenteval_tui.analysis.comparison_model import Measure, Overall
from agenteval_tui.analysis.paired import detectable, difference_interval, sign_flip
from agenteval_tui.analysis.power import detectable_paired, detectable_unpaired
from agenteval_tui.analysis.statistics import (
    Interval,
    PairedCounts,
    fisher_exact,
    mcnemar_exact,
    mean,
    paired_bootstrap,
    paired_counts,
)
from agenteval_tui.history.comparing import ComparedRun

Case = tuple[str, str, str, str]
Runs = Mapping[Case, Sequence[ComparedRun]]
_DECIDED = ("passed", "failed")
_DRAWS = 400_000  # of the bootstrap of what was measured, at most
_MANY = 400
"""Cases from which on the normal distribution of the mean, and of flipped signs, is taken: drawing gives the same then,
seconds later."""


def overall(sides: tuple[Runs, Runs], *, seed: int = 0) -> Overall:
    """The figures over all cases. Each case counts once, however often it ran."""
    rates = [_means(side, lambda run: float(run.status == "passed"), _DECIDED) for side in sides]
    shared = [case for case in rates[0] if case in rates[1]]
    left_out = len(rates[0].keys() ^ rates[1].keys())
    if not shared:
        return _unpaired(sides, left_out)
    differences = [rates[1][case] - rates[0][case] for case in shared]
    pairs = _pairs(sides, shared)
    once = all(len(_decided(side[case])) == 1 for case in shared for side in sides) and pairs.n == len(shared)
    interval = difference_interval(differences, seed=seed)
    rate = Measure(_mean([rates[0][c] for c in shared]), _mean([rates[1][c] for c in shared]), _mean(differences),
                   interval, len(shared))  # fmt: skip
    if once:
        test, p_value = "mcnemar", mcnemar_exact(pairs.only_a, pairs.only_b)
        least = detectable_paired(pairs.n, min(pairs.only_a, pairs.only_b) / pairs.n)
    else:
        test, p_value, least = "sign-flip", _sign_flip(differences, seed=seed), detectable(differences)
        least = None if least is None or least >= 1 else least
    return Overall(
        rate=rate,
        test=test,
        p_value=p_value,
        n=len(shared),
        detectable=least,
        pairs=pairs,
        left_out=left_out,
        score=_measure(sides, lambda run: run.score, seed, _DECIDED),
        latency_ms=_measure(sides, lambda run: None if run.cached else run.duration_ms, seed),
        tokens=_measure(sides, lambda run: None if run.cached else run.tokens, seed),
        cost=_measure(sides, lambda run: None if run.cached else run.cost, seed),
    )


def _unpaired(sides: tuple[Runs, Runs], left_out: int) -> Overall:
    """No case in common: the runs of one side against those of the other, of the tests that both decided (their rows
    are others)."""
    # Of tests that only one side decided nothing is said: that would be two different things side by side.
    tests = [{case[:3] for case, runs in side.items() if _decided(runs)} for side in sides]
    both = tests[0] & tests[1]
    decided = [[run for case, runs in side.items() if case[:3] in both for run in _decided(runs)] for side in sides]
    counts = [(sum(run.status == "passed" for run in runs), len(runs)) for runs in decided]
    (passed_a, n_a), (passed_b, n_b) = counts
    if not n_a or not n_b:
        return Overall(None, "fisher", None, min(n_a, n_b), None, PairedCounts(0, 0, 0, 0), left_out)
    rates = passed_a / n_a, passed_b / n_b
    return Overall(
        rate=Measure(*rates, rates[1] - rates[0], _newcombe(passed_a, n_a, passed_b, n_b), min(n_a, n_b)),
        test="fisher",
        p_value=fisher_exact(passed_a, n_a, passed_b, n_b),
        n=min(n_a, n_b),
        detectable=detectable_unpaired(n_a, n_b, rates[0]),
        pairs=PairedCounts(0, 0, 0, 0),
        left_out=left_out,
    )


def _newcombe(passed_a: int, n_a: int, passed_b: int, n_b: int) -> Interval:
    """The 95 % interval of a difference of two unpaired rates, B minus A, out of their Wilson intervals.

    Source: R. G. Newcombe, "Interval estimation for the difference between independent proportions", Statistics in
    Medicine 17 (1998), method 10.
    """
    from agenteval_tui.analysis.statistics import wilson

    (low_a, high_a), (low_b, high_b) = wilson(passed_a, n_a), wilson(passed_b, n_b)
    a, b = passed_a / n_a, passed_b / n_b
    return (
        max(-1.0, b - a - math.hypot(b - low_b, high_a - a)),
        min(1.0, b - a + math.hypot(high_b - b, a - low_a)),
    )


def _decided(runs: Sequence[ComparedRun]) -> list[ComparedRun]:
    return [run for run in runs if run.status in _DECIDED]


def _pairs(sides: tuple[Runs, Runs], shared: Sequence[Case]) -> PairedCounts:
    return paired_counts(
        (one.status == "passed", other.status == "passed")
        for case in shared
        for one, other in zip(sides[0][case], sides[1][case], strict=False)
        if one.status in _DECIDED and other.status in _DECIDED
    )


def _means(side: Runs, value: Callable[[ComparedRun], float | None], statuses: Sequence[str] = ()) -> dict[Case, float]:
    found = {}
    for case, runs in side.items():
        middle = mean([
            one for run in runs if (not statuses or run.status in statuses) and (one := value(run)) is not None
        ])  # fmt: skip
        if middle is not None:
            found[case] = middle
    return found


def _measure(
    sides: tuple[Runs, Runs], value: Callable[[ComparedRun], float | None], seed: int, statuses: Sequence[str] = ()
) -> Measure | None:
    """How the mean over the cases changed that were measured on both sides; None when none was."""
    means = [_means(side, value, statuses) for side in sides]
    shared = [case for case in means[0] if case in means[1]]
    if not shared:
        return None
    differences = [means[1][case] - means[0][case] for case in shared]
    return Measure(
        _mean([means[0][case] for case in shared]),
        _mean([means[1][case] for case in shared]),
        _mean(differences),
        _interval(differences, seed=seed),
        len(shared),
    )


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


def _interval(differences: Sequence[float], seed: int) -> Interval | None:
    """The 95 % interval of a mean: the paired bootstrap's; of very many cases the normal distribution's."""
    n = len(differences)
    if n < 2:
        return None
    drawn: Interval | None
    if n >= _MANY:
        drawn = _normal(differences)
    else:
        drawn = paired_bootstrap(differences, seed=seed, resamples=max(400, min(4_000, _DRAWS // n)))
    # Cases that all differ by the same have no spread to tell an interval from, and a point would promise certainty.
    return drawn if drawn and drawn[0] < drawn[1] else None


def _normal(differences: Sequence[float]) -> Interval:
    n, middle = len(differences), _mean(differences)
    half = 1.959963984540054 * math.sqrt(math.fsum((one - middle) ** 2 for one in differences) / (n - 1) / n)
    return middle - half, middle + half


def _sign_flip(differences: Sequence[float], seed: int) -> float:
    """`sign_flip`; of very many cases by the sum's normal distribution, which flipped signs have then."""
    moved = [one for one in differences if one]
    if len(moved) < _MANY:
        return sign_flip(differences, seed=seed)
    return math.erfc(abs(math.fsum(moved)) / math.sqrt(2 * math.fsum(one * one for one in moved)))
