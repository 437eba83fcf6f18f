"""Paired differences: intervals that do not promise too much, and a test of signs."""

from __future__ import annotations

import math
import random

import pytest
from scientific import numpy as np
from scientific import scipy

from agenteval_tui.analysis.permutation_test import detectable, difference_interval, sign_flip
from agenteval_tui.analysis.statistics import mcnemar_exact, paired_bootstrap

# One process of the tests is enough to load SciPy in, which it does when it is first asked for something.
pytestmark = pytest.mark.xdist_group("scipy")


@pytest.mark.parametrize(
    "differences", [[1.0] * 5, [1.0, -1.0, 0.0, 0.5], [0.25, 0.5, 0.5, -0.25, 1.0, 0.0, 0.75], [0.0, 0.0]]
)
def test_sign_flips_as_scipy_counts_them(differences: list[float]) -> None:
    expected = scipy.stats.permutation_test(
        (np.array(differences),), np.sum, permutation_type="samples", n_resamples=np.inf, alternative="two-sided"
    ).pvalue
    assert sign_flip(differences) == pytest.approx(expected)


def test_sign_flips_of_many_are_drawn() -> None:
    draw = random.Random(3)
    differences = [draw.choice((-0.5, 0.0, 0.5, 1.0)) for _ in range(60)]
    expected = scipy.stats.permutation_test(
        (np.array(differences),), np.sum, permutation_type="samples", n_resamples=20_000, rng=1
    ).pvalue
    found = sign_flip(differences)
    assert found == sign_flip(differences)
    assert found == pytest.approx(expected, abs=0.01)
    assert sign_flip([1.0] * 100) < 0.001


@pytest.mark.parametrize("times", [2, 16])
def test_differences_whose_sum_is_nothing_but_rounding_show_nothing(times: int) -> None:
    differences = [0.1 + 0.2, -0.3, 2 / 3 - 1 / 3, -1 / 3, 0.7, -0.1, -0.6] * times
    assert math.fsum(differences) != 0
    assert sign_flip(differences) == 1


@pytest.mark.parametrize(("a", "b"), [(0, 6), (2, 9), (5, 5), (1, 0)])
def test_sign_flips_of_single_runs_are_mcnemars_test(a: int, b: int) -> None:
    assert sign_flip([-1.0] * a + [1.0] * b + [0.0] * 4) == pytest.approx(mcnemar_exact(a, b), abs=0.01)


def test_few_cases_give_wide_intervals() -> None:
    assert difference_interval([]) is None
    assert difference_interval([1.0]) == (-1.0, 1.0)
    for n in (2, 3, 4):
        low, high = difference_interval([1.0] * n) or (1, 1)
        assert low < 0, n
        assert high == 1.0
    low, high = difference_interval([0.0] * 10) or (0, 0)
    assert low < -0.1
    assert high > 0.1
    low, _ = difference_interval([1.0] * 12) or (0, 0)
    assert low > 0.5


def test_many_cases_give_the_bootstraps_interval() -> None:
    draw = random.Random(5)
    differences = [draw.choice((-1.0, 0.0, 0.0, 1.0, 1.0)) for _ in range(400)]
    found, drawn = difference_interval(differences), paired_bootstrap(differences)
    assert found is not None
    assert drawn is not None
    assert found[0] <= drawn[0] < drawn[1] <= found[1]
    assert found == pytest.approx(drawn, abs=0.01)
    middle = float(np.mean(differences))
    normal = scipy.stats.t.interval(0.95, 399, loc=middle, scale=scipy.stats.sem(differences))
    assert found == pytest.approx(normal, abs=0.015)


def test_intervals_hold_the_truth_as_often_as_they_say() -> None:
    draw = random.Random(7)
    held = 0
    for seed in range(150):
        # P(+1) = 0.35, P(-1) = 0.15: the truth is 0.2. Few cases are where a bootstrap alone says too much.
        differences = [draw.choices((1.0, -1.0, 0.0), (0.35, 0.15, 0.5))[0] for _ in range(12)]
        low, high = difference_interval(differences, seed=seed) or (1, -1)
        held += low <= 0.2 <= high
    assert held >= 138  # 92 %: 2.5 standard errors below 95 % would be 90.5 %


def test_the_smallest_difference_that_can_be_shown() -> None:
    assert detectable([]) is None
    assert detectable([1.0]) is None
    assert detectable([1.0, -1.0]) == 1.0
    differences = [1.0, -1.0, 0.0, 0.0] * 100
    expected = (scipy.stats.norm.ppf(0.975) + scipy.stats.norm.ppf(0.8)) * np.std(differences) / 20
    assert detectable(differences) == pytest.approx(expected, rel=0.01)
    # Shown four times in five, where it is there.
    draw, shown = random.Random(11), 0
    for _ in range(200):
        drawn = [draw.choices((1.0, -1.0, 0.0), (0.32, 0.18, 0.5))[0] for _ in range(200)]
        least = detectable(drawn)
        assert least is not None
        assert least == pytest.approx(0.14, abs=0.03)
        shown += scipy.stats.ttest_1samp(drawn, 0).pvalue < 0.05
    assert 140 <= shown <= 178


@pytest.mark.parametrize("n", [1, 2, 30, 399, 400, 2_000])
@pytest.mark.parametrize("same", [-1.0, 0.0, 1.0])
def test_cases_that_all_agree_do_not_give_a_point(n: int, same: float) -> None:
    interval = difference_interval([same] * n)
    assert interval is not None
    assert interval[0] < interval[1]
    assert interval[0] <= same <= interval[1]
