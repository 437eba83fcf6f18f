"""The closed forms against SciPy, against brute force, and against tau-bench's published table."""

from __future__ import annotations

import itertools
import json
import math
import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scientific import numpy, scipy

from agenteval_tui.analysis import statistics as own
from agenteval_tui.analysis.statistics import student_t_quantile

# One process of the tests is enough to load SciPy in, which it does when it is first asked for something.
pytestmark = pytest.mark.xdist_group("scipy")

SHARED = Path(__file__).resolve().parents[2].parent / "shared"

counts = st.integers(0, 60).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))


@given(counts.filter(lambda pair: pair[1] > 0))
def test_wilson_is_scipys(pair: tuple[int, int]) -> None:
    passed, n = pair
    expected = scipy.stats.binomtest(passed, n).proportion_ci(0.95, method="wilson")
    low, high = own.wilson(passed, n)
    assert low == pytest.approx(expected.low, abs=1e-12)
    assert high == pytest.approx(expected.high, abs=1e-12)
    assert 0 <= low <= passed / n <= high <= 1


def test_wilson_of_nothing_is_everything() -> None:
    assert own.wilson(0, 0) == (0.0, 1.0)
    assert own.wilson(0, 7)[0] == 0.0
    assert own.wilson(7, 7)[1] == 1.0


@given(st.integers(1, 8).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n), st.integers(1, n))))
def test_pass_at_k_and_pass_hat_k_count_the_subsets(case: tuple[int, int, int]) -> None:
    passed, n, k = case
    runs = [True] * passed + [False] * (n - passed)
    subsets = list(itertools.combinations(runs, k))
    assert own.pass_at_k(passed, n, k) == pytest.approx(sum(any(s) for s in subsets) / len(subsets))
    assert own.pass_hat_k(passed, n, k) == pytest.approx(sum(all(s) for s in subsets) / len(subsets))


@given(counts.filter(lambda pair: pair[1] > 0))
def test_k_one_is_the_pass_rate_and_the_curves_are_monotone(pair: tuple[int, int]) -> None:
    passed, n = pair
    at = [own.pass_at_k(passed, n, k) for k in range(1, n + 1)]
    hat = [own.pass_hat_k(passed, n, k) for k in range(1, n + 1)]
    assert at[0] == hat[0] == own.pass_rate(passed, n)
    assert at == sorted(at)
    assert hat == sorted(hat, reverse=True)
    assert hat[-1] == (1.0 if passed == n else 0.0)


@pytest.mark.parametrize(("passed", "n", "k"), [(3, 2, 1), (-1, 2, 1), (1, 2, 0), (1, 2, 3)])
def test_impossible_counts_are_refused(passed: int, n: int, k: int) -> None:
    with pytest.raises(ValueError):
        own.pass_at_k(passed, n, k)
    with pytest.raises(ValueError):
        own.pass_hat_k(passed, n, k)


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=40), st.floats(0, 100))
def test_percentile_is_numpys(values: list[float], percent: float) -> None:
    assert own.percentile(values, percent) == pytest.approx(float(numpy.percentile(values, percent)), abs=1e-6)


def test_percentile_of_nothing_and_out_of_range() -> None:
    assert own.percentile([], 50) is None
    with pytest.raises(ValueError):
        own.percentile([1.0], 101)


@pytest.mark.parametrize("degrees", [1, 2, 3, 5, 10, 24, 49, 100, 1000, 100_000])
@pytest.mark.parametrize("probability", [0.5, 0.75, 0.95, 0.975, 0.999])
def test_student_t_is_scipys(degrees: int, probability: float) -> None:
    expected = float(scipy.stats.t.ppf(probability, degrees))
    assert student_t_quantile(probability, degrees) == pytest.approx(expected, rel=1e-9, abs=1e-9)


@given(st.lists(counts.filter(lambda pair: pair[1] > 0), min_size=2, max_size=30))
def test_the_interval_over_tests_is_that_of_the_tests_means(tests: list[tuple[int, int]]) -> None:
    rates = [passed / n for passed, n in tests]
    low, high = own.clustered_interval(tests)
    middle = math.fsum(rates) / len(rates)
    assert 0 <= low <= middle + 1e-12
    assert middle - 1e-12 <= high <= 1
    error = float(scipy.stats.sem(rates))
    if error > 1e-12:
        expected = scipy.stats.t.interval(0.95, len(rates) - 1, middle, error)
        assert low == pytest.approx(max(0.0, float(expected[0])), abs=1e-8)
        assert high == pytest.approx(min(1.0, float(expected[1])), abs=1e-8)


def test_more_repetitions_of_the_same_tests_do_not_narrow_the_interval() -> None:
    once = [(1, 1), (0, 1), (1, 1), (0, 1), (1, 1)]
    hundred = [(100 * passed, 100) for passed, _ in once]
    assert own.clustered_interval(once) == own.clustered_interval(hundred)
    assert own.wilson(300, 500)[1] - own.wilson(300, 500)[0] < 0.1  # what treating them as independent would claim


def test_intervals_where_tests_do_not_differ() -> None:
    assert own.clustered_interval([]) == (0.0, 1.0)
    assert own.clustered_interval([(0, 0)]) == (0.0, 1.0)
    assert own.clustered_interval([(3, 4), (0, 0)]) == own.wilson(3, 4)
    assert own.clustered_interval([(4, 4)] * 10) == own.wilson(10, 10)


def test_the_interval_covers_as_often_as_it_says() -> None:
    """Tests of very different difficulty, five repetitions each: about 95 of 100 intervals hold the true mean."""
    seeded = random.Random(7)
    held = 0
    for _ in range(400):
        hardness = [seeded.random() for _ in range(20)]
        tests = [(sum(seeded.random() < p for _ in range(5)), 5) for p in hardness]
        low, high = own.clustered_interval(tests)
        held += low <= 0.5 <= high
    assert 365 <= held <= 395


@pytest.mark.shared
@pytest.mark.skipif(not SHARED.is_dir(), reason="recordings beside the project are not here")
def test_the_recorded_rewards_of_tau_bench_give_what_counting_their_subsets_gives() -> None:
    """gpt-4o on half of tau-bench's airline tasks, 4 trials each (the published table is over all 50 of them)."""
    rows = json.loads((SHARED / "conformance" / "agentevals_on_tau.json").read_text("utf-8"))["rows"]
    trials: dict[int, list[bool]] = {}
    for row in rows:
        trials.setdefault(row["task_id"], []).append(row["reward"] == 1.0)
    assert {len(runs) for runs in trials.values()} == {4}
    tests = [(sum(runs), len(runs)) for runs in trials.values()]
    for k in range(1, 5):
        subsets = [list(itertools.combinations(runs, k)) for runs in trials.values()]
        all_pass = [sum(all(s) for s in sets) / len(sets) for sets in subsets]
        any_pass = [sum(any(s) for s in sets) / len(sets) for sets in subsets]
        assert own.mean([own.pass_hat_k(c, n, k) for c, n in tests]) == pytest.approx(sum(all_pass) / len(tests))
        assert own.mean([own.pass_at_k(c, n, k) for c, n in tests]) == pytest.approx(sum(any_pass) / len(tests))
    clustered = own.clustered_standard_error([c / n for c, n in tests])
    share = sum(c for c, _ in tests) / sum(n for _, n in tests)
    naive = math.sqrt(share * (1 - share) / sum(n for _, n in tests))
    assert clustered is not None
    assert clustered > 1.3 * naive  # trials of one task are not independent
