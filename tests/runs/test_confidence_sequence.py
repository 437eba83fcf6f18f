"""The confidence sequence: how often its answers are wrong, exactly, at every true rate; its interval; its ends."""

from __future__ import annotations

import math
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scientific import numpy as np
from scientific import scipy

from agenteval_tui.runs.confidence_sequence import confidence_sequence, decide, most_needed

# One process of the tests is enough to load SciPy in, which it does when it is first asked for something.
pytestmark = pytest.mark.xdist_group("scipy")

RATES = (0.5, 0.6, 0.65, 0.7, 0.75, 0.79, 0.8, 0.81, 0.85, 0.9, 0.95, 0.99)
RUNS = 250


@cache
def answers(threshold: float, alpha: float) -> tuple[list[str], ...]:
    """The answer after n runs of which so many passed, for each n up to RUNS."""
    return tuple([decide(c, n, threshold, alpha=alpha).answer for c in range(n + 1)] for n in range(RUNS + 1))


def chances(rate: float, threshold: float, alpha: float = 0.05) -> tuple[float, float, float]:
    """How likely "above" and "below" ever come within RUNS runs that pass with `rate`, and the mean number of runs.

    Exact: the chance of every count of passes that is still open, run after run.
    """
    still_open = np.array([1.0])
    above = below = mean = 0.0
    for said in answers(threshold, alpha)[1:]:
        mean += float(still_open.sum())
        after = np.append(still_open * (1 - rate), 0.0) + np.append(0.0, still_open * rate)
        above += float(after[[one == "above" for one in said]].sum())
        below += float(after[[one == "below" for one in said]].sum())
        still_open = np.where([one == "open" for one in said], after, 0.0)
    return above, below, mean


@pytest.mark.sweep
@pytest.mark.parametrize("threshold", [0.6, 0.7, 0.8, 0.9, 0.95])
@pytest.mark.parametrize("alpha", [0.01, 0.05, 0.2])
def test_its_answers_are_wrong_at_most_alpha_of_the_time_at_every_rate(threshold: float, alpha: float) -> None:
    for rate in (*RATES, threshold - 0.001, threshold, threshold + 0.001):
        above, below, _ = chances(rate, threshold, alpha)
        wrong = above * (rate <= threshold) + below * (rate >= threshold)
        assert wrong <= alpha, (rate, wrong)


@pytest.mark.parametrize(("rate", "answer"), [(0.5, "below"), (0.6, "below"), (0.95, "above"), (0.99, "above")])
def test_it_ends_where_the_rate_is_far_from_the_threshold(rate: float, answer: str) -> None:
    above, below, mean = chances(rate, 0.8)
    assert (above if answer == "above" else below) > 0.95
    assert mean < 80


def test_the_interval_covers_the_rate_at_the_moment_it_stops() -> None:
    """Wilson's interval, looked at when the runs were stopped, covered 86.5 % where 95 % was promised."""
    for rate in (0.55, 0.7, 0.8, 0.9, 0.97):
        still_open, missed = {0: 1.0}, 0.0
        for n in range(1, RUNS + 1):
            after: dict[int, float] = {}
            for passed, chance in still_open.items():
                after[passed + 1] = after.get(passed + 1, 0.0) + chance * rate
                after[passed] = after.get(passed, 0.0) + chance * (1 - rate)
            still_open = {}
            for passed, chance in after.items():
                if chance < 1e-9 or (n < RUNS and answers(0.8, 0.05)[n][passed] == "open"):
                    still_open[passed] = chance
                    continue
                low, high = confidence_sequence(passed, n)
                missed += chance * (not low <= rate <= high)
        assert missed <= 0.05, (rate, missed)


def test_the_evidence_is_the_ratio_of_the_mixture_to_the_threshold() -> None:
    for passed, n in [(0, 0), (5, 5), (3, 9), (40, 50)]:
        mixture = float(scipy.stats.betabinom.logpmf(passed, n, 0.5, 0.5))
        expected = mixture - float(scipy.stats.binom.logpmf(passed, n, 0.8))
        assert decide(passed, n, 0.8).evidence == pytest.approx(expected, abs=1e-9)


@given(
    st.integers(1, 400).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))),
    st.floats(0.01, 0.99),
    st.sampled_from([0.01, 0.05, 0.2]),
)
def test_the_answer_is_there_when_the_interval_excludes_the_threshold(
    pair: tuple[int, int], threshold: float, alpha: float
) -> None:
    passed, n = pair
    low, high = confidence_sequence(passed, n, alpha=alpha)
    here = decide(passed, n, threshold, alpha=alpha)
    assert low < high
    assert low <= passed / n <= high
    assert math.isfinite(here.evidence)
    if min(abs(threshold - low), abs(threshold - high)) > 1e-9:
        assert here.answer == ("above" if low > threshold else "below" if high < threshold else "open")


def test_decisions() -> None:
    assert decide(0, 0, 0.8).answer == "open"
    assert decide(23, 23, 0.8).answer == "open"
    assert decide(24, 24, 0.8).answer == "above"
    assert most_needed(0, 0, 0.8) == 24
    assert decide(0, 2, 0.8).answer == "open"
    assert decide(0, 3, 0.8).answer == "below"
    assert most_needed(0, 2, 0.8) == 1
    assert confidence_sequence(0, 0) == (0.0, 1.0)
    assert confidence_sequence(7, 7)[1] == 1.0
    assert confidence_sequence(0, 7)[0] == 0.0


def test_thresholds_at_the_ends() -> None:
    assert decide(0, 0, 0.0).answer == "above"
    assert decide(1000, 1000, 1.0).answer == "open"
    assert decide(999, 1000, 1.0).answer == "below"


@pytest.mark.parametrize(
    ("passed", "n", "options"), [(2, 1, {}), (-1, 1, {}), (0, 1, {"alpha": 0.5}), (0, 1, {"alpha": 0.0})]
)
def test_impossible_questions_are_refused(passed: int, n: int, options: dict[str, float]) -> None:
    with pytest.raises(ValueError):
        decide(passed, n, 0.8, **options)
    with pytest.raises(ValueError):
        confidence_sequence(passed, n, **options)
    with pytest.raises(ValueError):
        decide(0, 1, 1.5)
