"""The sequential test: its decisions, and, exactly, how often they are wrong and how many runs they take."""

from __future__ import annotations

import math

import pytest
import scipy
from hypothesis import given
from hypothesis import strategies as st

from agenteval_tui.runs.sequential import decide, fewest_runs, hypotheses

# One process of the tests is enough to load SciPy in, which it does when it is first asked for something.
pytestmark = pytest.mark.xdist_group("scipy")


def chances(rate: float, threshold: float, runs: int, **options: float) -> tuple[float, float, float]:
    """How likely "above" and "below" are within so many runs when each passes with `rate`, and the mean number of runs.

    Exact: the chance of every count of passes that is still open, run after run.
    """
    open_: dict[int, float] = {0: 1.0}
    above = below = mean = 0.0
    for n in range(1, runs + 1):
        after: dict[int, float] = {}
        for passed, chance in open_.items():
            mean += chance
            for step, share in ((1, rate), (0, 1 - rate)):
                after[passed + step] = after.get(passed + step, 0.0) + chance * share
        open_ = {}
        for passed, chance in after.items():
            answer = decide(passed, n, threshold, **options).answer
            if answer == "above":
                above += chance
            elif answer == "below":
                below += chance
            else:
                open_[passed] = chance
    return above, below, mean


@pytest.mark.parametrize("threshold", [0.2, 0.5, 0.8, 0.95])
@pytest.mark.parametrize("alpha", [0.01, 0.05, 0.2])
def test_it_is_wrong_no_more_often_than_it_says(threshold: float, alpha: float) -> None:
    low, high = hypotheses(threshold, 0.1)
    wrong_above, right_below, _ = chances(low, threshold, 600, alpha=alpha)
    right_above, wrong_below, _ = chances(high, threshold, 600, alpha=alpha)
    assert wrong_above + wrong_below <= 2 * alpha + 1e-9
    assert wrong_above <= alpha / (1 - alpha) + 1e-9
    assert wrong_below <= alpha / (1 - alpha) + 1e-9
    assert right_below + wrong_above > 0.999  # it ends
    assert right_above + wrong_below > 0.999


def test_it_needs_fewer_runs_than_a_test_of_fixed_size_with_the_same_errors() -> None:
    low, high = hypotheses(0.8, 0.1)
    fixed = next(
        n
        for n in range(1, 500)
        if any(scipy.stats.binom.sf(c, n, low) <= 0.05 and scipy.stats.binom.cdf(c, n, high) <= 0.05 for c in range(n))
    )
    for rate in (low, high):
        assert chances(rate, 0.8, 600)[2] < 0.75 * fixed


def test_the_ratio_is_that_of_the_binomial_likelihoods() -> None:
    low, high = hypotheses(0.8, 0.1)
    for passed, n in [(0, 0), (5, 5), (3, 9), (40, 50)]:
        expected = float(scipy.stats.binom.logpmf(passed, n, high) - scipy.stats.binom.logpmf(passed, n, low))
        assert decide(passed, n, 0.8).ratio == pytest.approx(expected, abs=1e-9)


def test_decisions() -> None:
    assert decide(0, 0, 0.8).answer == "open"
    assert decide(11, 11, 0.8).answer == "open"
    assert decide(12, 12, 0.8).answer == "above"
    assert fewest_runs(0.8) == 12
    assert decide(0, 2, 0.8).answer == "open"
    assert decide(0, 3, 0.8).answer == "below"
    assert decide(10, 10, 0.8, alpha=0.2).answer == "above"


def test_thresholds_at_the_ends() -> None:
    assert decide(0, 0, 0.0).answer == "above"
    assert fewest_runs(0.0) == 0
    assert decide(1000, 1000, 1.0).answer == "open"
    assert decide(999, 1000, 1.0).answer == "below"
    assert fewest_runs(1.0) is None
    low, high = hypotheses(0.99, 0.1)
    assert 0 < low < 0.99 < high < 1


@given(st.integers(0, 200).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), st.floats(0.01, 0.99))
def test_a_pass_more_speaks_for_it_a_fail_more_against_it(pair: tuple[int, int], threshold: float) -> None:
    passed, n = pair
    here = decide(passed, n, threshold)
    assert decide(passed + 1, n + 1, threshold).ratio > here.ratio > decide(passed, n + 1, threshold).ratio
    assert here.lower < 0 < here.upper
    assert (here.answer == "above") == (here.ratio >= here.upper)
    assert math.isfinite(here.ratio)


@pytest.mark.parametrize(
    ("passed", "n", "options"),
    [(2, 1, {}), (-1, 1, {}), (0, 1, {"alpha": 0.5}), (0, 1, {"alpha": 0.0}), (0, 1, {"margin": 0.0})],
)
def test_impossible_questions_are_refused(passed: int, n: int, options: dict[str, float]) -> None:
    with pytest.raises(ValueError):
        decide(passed, n, 0.8, **options)
    with pytest.raises(ValueError):
        decide(0, 1, 1.5)
