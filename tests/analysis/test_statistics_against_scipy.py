"""A against B, counts, spreads and cluster-robust errors: against SciPy, NumPy and brute force."""

from __future__ import annotations

import itertools
import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scientific import numpy, scipy

from agenteval_tui.analysis import statistics as own

# One process of the tests is enough to load SciPy in, which it does when it is first asked for something.
pytestmark = pytest.mark.xdist_group("scipy")


# ---------------------------------------------------------------------- counts
def test_errors_are_counted_apart() -> None:
    statuses = ["passed", "failed", "error", "error", "cancelled", "needs_review", "queued", "passed"]
    found = own.counted(statuses)
    assert (found.passed, found.failed, found.errors, found.undecided, found.n) == (2, 1, 2, 3, 3)
    assert own.counted(statuses, count_errors=True).n == 5


@pytest.mark.parametrize(
    ("statuses", "count_errors", "flaky"),
    [
        ([], False, False),
        (["passed"] * 4, False, False),
        (["failed"] * 4, False, False),
        (["passed", "failed"], False, True),
        (["passed", "error"], False, False),  # an error is no verdict
        (["passed", "error"], True, True),
        (["passed", "cancelled"], True, False),
    ],
)
def test_flaky_is_neither_always_nor_never(statuses: list[str], count_errors: bool, flaky: bool) -> None:
    assert own.counted(statuses, count_errors=count_errors).flaky is flaky


@given(st.lists(st.none() | st.floats(0, 1e6), max_size=40))
def test_spread_leaves_out_what_was_not_measured(values: list[float | None]) -> None:
    found = own.spread(values)
    measured = [value for value in values if value is not None]
    if not measured:
        assert (found.p50, found.p95) == (None, None)
        return
    assert found.p50 == pytest.approx(float(numpy.median(measured)), abs=1e-6)
    assert found.p95 == pytest.approx(float(numpy.percentile(measured, 95)), abs=1e-6)


# ---------------------------------------------------------------------- McNemar
@given(st.integers(0, 80), st.integers(0, 80))
def test_mcnemar_is_the_binomial_test_of_the_flips(only_a: int, only_b: int) -> None:
    expected = float(scipy.stats.binomtest(only_a, only_a + only_b, 0.5).pvalue) if only_a + only_b else 1.0
    assert own.mcnemar_exact(only_a, only_b) == pytest.approx(expected, rel=1e-9)
    assert own.mcnemar_exact(only_a, only_b) == own.mcnemar_exact(only_b, only_a)


def test_mcnemar_counts_the_coins() -> None:
    """5 flips against 1: of 64 ways to toss 6 coins, 14 are as lopsided."""
    ways = sum(min(sum(coins), 6 - sum(coins)) <= 1 for coins in itertools.product((0, 1), repeat=6))
    assert own.mcnemar_exact(5, 1) == ways / 64 == 14 / 64
    assert own.mcnemar_exact(0, 0) == 1.0
    assert own.mcnemar_exact(7, 7) == 1.0


def test_mcnemar_of_many_flips_neither_overflows_nor_is_zero_too_soon() -> None:
    assert own.mcnemar_exact(0, 1000) == pytest.approx(2.0**-999)
    assert own.mcnemar_exact(2000, 2100) == pytest.approx(
        float(scipy.stats.binomtest(2000, 4100, 0.5).pvalue), rel=1e-9
    )
    with pytest.raises(ValueError):
        own.mcnemar_exact(-1, 3)


def test_pairs_are_counted() -> None:
    found = own.paired_counts([(True, True), (True, False), (True, False), (False, True), (False, False)])
    assert found == own.PairedCounts(both=1, only_a=2, only_b=1, neither=1)
    assert found.n == 5


# ---------------------------------------------------------------------- Fisher
rates = st.integers(0, 40).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))


@given(rates, rates)
def test_fisher_is_scipys(a: tuple[int, int], b: tuple[int, int]) -> None:
    table = [[a[0], a[1] - a[0]], [b[0], b[1] - b[0]]]
    expected = float(scipy.stats.fisher_exact(table).pvalue)
    assert own.fisher_exact(*a, *b) == pytest.approx(expected, rel=1e-9)


def test_fisher_of_the_lady_who_tastes_tea() -> None:
    """Fisher's own example: 3 of 4 cups right; 34 of 70 ways are as good or as bad."""
    assert own.fisher_exact(3, 4, 1, 4) == pytest.approx(34 / 70)
    assert own.fisher_exact(0, 0, 3, 4) == 1.0
    assert own.fisher_exact(900, 1000, 850, 1000) == pytest.approx(
        float(scipy.stats.fisher_exact([[900, 100], [850, 150]]).pvalue), rel=1e-8
    )
    with pytest.raises(ValueError):
        own.fisher_exact(5, 4, 0, 1)


# ---------------------------------------------------------------------- bootstrap
def test_bootstrap_is_scipys() -> None:
    seeded = random.Random(3)
    for n in (10, 40, 120):
        differences = [seeded.choice([-1.0, 0.0, 0.0, 0.25, 1.0]) for _ in range(n)]
        found = own.paired_bootstrap(differences, seed=1)
        expected = scipy.stats.bootstrap(
            (differences,), numpy.mean, n_resamples=9999, method="percentile", rng=numpy.random.default_rng(5)
        ).confidence_interval
        assert found is not None
        width = expected.high - expected.low
        assert found[0] == pytest.approx(expected.low, abs=0.08 * width)
        assert found[1] == pytest.approx(expected.high, abs=0.08 * width)


@settings(max_examples=20, deadline=None)
@given(st.lists(st.floats(-1, 1), min_size=1, max_size=20), st.integers())
def test_bootstrap_is_the_same_for_the_same_seed_and_lies_within_the_data(values: list[float], seed: int) -> None:
    found = own.paired_bootstrap(values, seed=seed, draws=0)
    assert found == own.paired_bootstrap(values, seed=seed, draws=0)
    assert found is None or min(values) - 1e-9 <= found[0] < found[1] <= max(values) + 1e-9


def test_bootstrap_of_nothing_of_one_and_of_equal_differences() -> None:
    assert own.paired_bootstrap([]) is None
    assert own.paired_bootstrap([0.5]) is None  # a point would promise certainty
    assert own.paired_bootstrap([0.25] * 9, draws=0) is None
    assert own.paired_bootstrap([0.3 - 0.2, 0.8 - 0.7]) is None


def test_bootstrap_covers_about_as_often_as_it_says() -> None:
    seeded = random.Random(11)
    held = 0
    for round_ in range(200):
        sample = [seeded.gauss(0.1, 1.0) for _ in range(40)]
        found = own.paired_bootstrap(sample, seed=round_, draws=0)
        assert found is not None
        held += found[0] <= 0.1 <= found[1]
    assert 178 <= held <= 199


# ---------------------------------------------------------------------- clusters
clusters = st.lists(st.lists(st.sampled_from([0.0, 0.5, 1.0]), min_size=1, max_size=6), min_size=2, max_size=12)


@given(clusters)
def test_cluster_robust_error_is_the_sandwich_of_a_regression_on_a_constant(groups: list[list[float]]) -> None:
    y = numpy.concatenate([numpy.array(group) for group in groups])
    label = numpy.concatenate([[number] * len(group) for number, group in enumerate(groups)])
    x = numpy.ones((len(y), 1))
    bread = numpy.linalg.inv(x.T @ x)
    residual = y - x @ (bread @ x.T @ y)
    meat = sum(
        numpy.outer(score, score)
        for number in range(len(groups))
        if (score := x[label == number].T @ residual[label == number]) is not None
    )
    many = len(groups)
    expected = math.sqrt(float((bread @ meat @ bread)[0, 0]) * many / (many - 1))
    assert own.cluster_robust_standard_error(groups) == pytest.approx(expected, abs=1e-12)


@given(st.integers(1, 5).flatmap(lambda k: st.lists(st.lists(st.floats(0, 1), min_size=k, max_size=k), min_size=2)))
def test_with_clusters_of_one_size_it_is_the_error_of_their_means(groups: list[list[float]]) -> None:
    means = [math.fsum(group) / len(group) for group in groups]
    expected = own.clustered_standard_error(means)
    assert own.cluster_robust_standard_error(groups) == pytest.approx(expected, abs=1e-12)
    assert expected == pytest.approx(float(scipy.stats.sem(means)), abs=1e-12)


def test_one_cluster_says_nothing() -> None:
    assert own.cluster_robust_standard_error([[1.0, 0.0], []]) is None
    assert own.cluster_robust_standard_error([]) is None
