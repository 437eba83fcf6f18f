"""How small a drop could have been shown: against SciPy, and against what the tests themselves say."""

from __future__ import annotations

import pytest
from scientific import scipy

from agenteval_tui.analysis.power import (
    detectable_paired,
    detectable_unpaired,
    power_paired,
)
from agenteval_tui.analysis.statistics import fisher_exact

# One process of the tests is enough to load SciPy in, which it does when it is first asked for something.
pytestmark = pytest.mark.xdist_group("scipy")


@pytest.mark.parametrize(("pairs", "drop", "back"), [(8, 0.9, 0.0), (20, 0.4, 0.05), (30, 0.3, 0.1)])
def test_the_power_is_the_chance_of_all_outcomes_that_the_test_notices(pairs: int, drop: float, back: float) -> None:
    chances = (drop + back, back, 1 - drop - 2 * back)
    outcome = scipy.stats.multinomial(pairs, chances)
    wanted = sum(
        outcome.pmf((worse, better, pairs - worse - better))
        for worse in range(pairs + 1)
        for better in range(min(worse, pairs - worse + 1))
        if outcome.pmf((worse, better, pairs - worse - better)) > 1e-15
        and scipy.stats.binomtest(better, worse + better).pvalue <= 0.05
    )
    assert power_paired(pairs, drop, back) == pytest.approx(wanted, abs=1e-9)


def test_the_smallest_drop_has_just_enough_power_and_too_few_pairs_show_none() -> None:
    assert detectable_paired(0) is None
    assert detectable_paired(5) is None, "even if all five got worse it could be chance"
    assert detectable_paired(6) == pytest.approx(0.8 ** (1 / 6), abs=1e-6)
    for pairs, back in ((14, 0.0), (100, 0.05), (1_000, 0.02)):
        least = detectable_paired(pairs, back)
        assert least is not None
        assert power_paired(pairs, least, back) == pytest.approx(0.8, abs=1e-3)
    # Where the approximation takes over there is no jump.
    exact, beyond = detectable_paired(1_000, 0.02), detectable_paired(1_001, 0.02)
    assert exact is not None
    assert beyond is not None
    assert beyond == pytest.approx(exact, rel=0.12)
    assert detectable_paired(100_000) < 0.0005  # type: ignore[operator]
    assert detectable_paired(10, 0.5) is None


def test_unpaired_runs_against_all_tables_and_without_a_jump() -> None:
    assert detectable_unpaired(3, 3, 1.0) is None
    assert detectable_unpaired(0, 9, 1.0) is None
    assert detectable_unpaired(9, 9, 0.0) is None
    least = detectable_unpaired(12, 10, 0.9)
    assert least is not None
    one, other = scipy.stats.binom(12, 0.9), scipy.stats.binom(10, 0.9 - least)
    power = sum(
        one.pmf(a) * other.pmf(b)
        for a in range(13)
        for b in range(11)
        if b / 10 < a / 12 and fisher_exact(a, 12, b, 10) <= 0.05
    )
    assert power == pytest.approx(0.8, abs=1e-6)
    exact, beyond = detectable_unpaired(40, 40, 0.8), detectable_unpaired(41, 41, 0.8)
    assert exact is not None
    assert beyond is not None
    assert beyond == pytest.approx(exact, rel=0.1)
