"""The rules of `--no-regressions`: what broke, what fell, what chance excuses; and how often that is wrong."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agenteval_tui.analysis.regressions import (
    Case,
    PassCounts,
    Regressions,
    at_least,
    find_regressions,
    stratified_exact,
)
from agenteval_tui.analysis.statistics import fisher_exact, mcnemar_exact
from benchmarks.accuracy.gates import POPULATIONS, alarms, constant, misses_broken


def case(test: str, was: tuple[int, int], now: tuple[int, int], row: str = "") -> Case:
    return Case(("suite", test, ""), row, PassCounts(*was, *now))


def regressed(*cases: Case) -> Regressions:
    return find_regressions(cases)


def names(found: Regressions) -> set[tuple[str, str, str, str]]:
    return {(one.scope, one.cause, one.test, one.row) for one in found.found}


@pytest.mark.parametrize("runs", [1, 2, 3, 5, 10])
@pytest.mark.parametrize("others", [0, 1, 20, 200])
def test_a_case_that_broke_is_a_regression_beside_any_number_of_stable_ones(runs: int, others: int) -> None:
    stable = [case(f"t{number}", (runs, runs), (runs, runs)) for number in range(others)]
    assert ("case", "broke", "t", "") in names(regressed(case("t", (runs, runs), (0, runs)), *stable))


def test_a_row_that_always_failed_and_one_that_heals_shield_no_other() -> None:
    rows = [case("t", (1, 1), (1, 1), f"r{number}") for number in range(14)]
    broken = [case("t", (1, 1), (0, 1), f"b{number}") for number in range(5)]
    found = regressed(case("t", (0, 1), (0, 1), "bad"), *rows, *broken)
    assert {row for scope, _, _, row in names(found) if scope == "case"} == {f"b{number}" for number in range(5)}
    found = regressed(case("t", (0, 1), (1, 1), "healed"), *rows, broken[0])
    assert found.rows_of(("suite", "t", "")) == {"b0"}


def test_everything_together_falls_where_each_test_may_have_fallen_by_chance() -> None:
    found = regressed(*(case(f"t{number}", (3, 5), (0, 5)) for number in range(10)))
    assert names(found) == {("overall", "fell", "", "")}
    assert found.overall is not None
    assert found.overall.p_value is not None
    assert found.overall.p_value < 1e-6
    assert len(found.by_chance) == 10


def test_what_the_printed_test_shows_is_a_regression() -> None:
    cases = [case(f"t{number}", (3, 5), (2, 5)) for number in range(10)]
    assert not names(regressed(*cases))
    found = find_regressions(cases, ("sign-flip", 0.002))
    assert names(found) == {("overall", "fell", "", "")}
    assert found.overall is not None
    assert (found.overall.p_value, found.overall.method) == (0.002, "sign-flip")
    assert not names(find_regressions(cases, ("sign-flip", 0.0501)))


def test_a_test_falls_over_its_rows_where_no_row_does() -> None:
    stable = [case(f"t{number}", (3, 3), (3, 3)) for number in range(50)]
    rows = [case("t", (3, 3), (2, 3), f"r{number}") for number in range(12)]
    assert ("test", "fell", "t", "") in names(regressed(*stable, *rows))


def test_stable_tests_hide_nothing_of_the_one_that_fell() -> None:
    stable = [case(f"t{number}", (10, 10), (10, 10)) for number in range(500)]
    assert ("case", "fell", "t", "") in names(regressed(case("t", (10, 10), (2, 10)), *stable))


def test_what_may_be_chance_is_named_and_no_regression() -> None:
    found = regressed(case("a", (5, 5), (4, 5)), case("b", (3, 5), (2, 5)), case("c", (1, 5), (2, 5)))
    assert found.found == ()
    assert [one.test[1] for one in found.by_chance] == ["a", "b"]


def test_without_a_verdict_on_a_side_nothing_is_said() -> None:
    found = regressed(case("a", (0, 0), (0, 5)), case("b", (5, 5), (0, 0)))
    assert (found.found, found.by_chance, found.p_value) == ((), (), None)


def test_chance_is_no_excuse_below_five_runs_or_in_a_suite_that_is_mostly_stable() -> None:
    few = [case(f"t{number}", (2, 4), (2, 4)) for number in range(40)]
    assert ("case", "broke", "t", "") in names(regressed(case("t", (4, 4), (0, 4)), *few))
    some = [case(f"t{number}", (3, 5), (2, 5)) for number in range(19)]
    assert ("case", "broke", "t", "") in names(regressed(case("t", (5, 5), (0, 5)), *some))
    stable = [case(f"s{number}", (5, 5), (5, 5)) for number in range(41)]
    varying = [case(f"v{number}", (3, 5), (2, 5)) for number in range(40)]
    assert ("case", "broke", "t", "") in names(regressed(case("t", (5, 5), (0, 5)), *varying, *stable))
    # Where nearly everything varies so much, one case of forty breaks by chance in every seventh execution.
    flaky = [case(f"v{number}", (3, 5), (2, 5)) for number in range(20)]
    flaky += [case(f"w{number}", (2, 5), (3, 5)) for number in range(20)]
    steady = [case(f"s{number}", (5, 5), (3, 5)) for number in range(2)]
    found = regressed(case("t", (5, 5), (0, 5)), *flaky, *steady)
    assert names(found) == set()
    assert ("suite", "t", "") in {one.test for one in found.by_chance}
    # Three of them at once do not.
    three = [case(f"b{number}", (5, 5), (0, 5)) for number in range(3)]
    assert len([one for one in names(regressed(*three, *flaky, *steady)) if one[1] == "broke"]) == 3


@given(st.integers(0, 6), st.integers(1, 6), st.integers(0, 6), st.integers(1, 6))
def test_of_one_case_it_is_fishers_test(was: int, was_n: int, now: int, now_n: int) -> None:
    was, now = min(was, was_n), min(now, now_n)
    p_value = stratified_exact([PassCounts(was, was_n, now, now_n)])
    both_sides = fisher_exact(was, was_n, now, now_n)
    if p_value is None:
        assert both_sides == 1.0
    elif was_n == now_n and now < was:
        assert 2 * p_value == pytest.approx(both_sides), "symmetric"
    else:
        assert p_value <= both_sides + 1e-12 or now * was_n >= was * now_n


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=12))
def test_of_single_runs_it_is_mcnemars_test(outcomes: list[tuple[bool, bool]]) -> None:
    p_value = stratified_exact([PassCounts(was, 1, now, 1) for was, now in outcomes])
    broke, healed = (sum(was > now for was, now in outcomes), sum(was < now for was, now in outcomes))
    if p_value is None:
        assert broke == healed == 0
    elif broke > healed:
        assert 2 * p_value == pytest.approx(mcnemar_exact(broke, healed))


COUNTS = st.integers(1, 3).flatmap(
    lambda n: st.tuples(st.integers(0, n), st.just(n), st.integers(0, n), st.just(n)).map(lambda row: PassCounts(*row))
)


@given(st.lists(COUNTS, min_size=1, max_size=3))
def test_it_counts_all_ways_to_share_out_the_passes(cases: list[PassCounts]) -> None:
    """Every run of a case is as likely to be one that passed: all orders, counted one by one."""
    as_deep = ways = 0
    observed = sum(counts.now_passed for counts in cases)
    orders = [
        [order for order in product((0, 1), repeat=counts.was_n + counts.now_n) if sum(order) == counts.passed]
        for counts in cases
    ]
    for chosen in product(*orders):
        ways += 1
        now = sum(sum(order[counts.was_n :]) for order, counts in zip(chosen, cases, strict=True))
        as_deep += now <= observed
    p_value = stratified_exact(cases)
    if p_value is None:
        assert as_deep == ways
    else:
        assert p_value == pytest.approx(as_deep / ways)


def test_of_very_many_runs_the_normal_distribution_says_the_same() -> None:
    few = [PassCounts(8, 10, 7, 10)] * 140
    many = [PassCounts(8, 10, 7, 10)] * 160
    exact, normal = stratified_exact(few), stratified_exact(many)
    assert exact is not None
    assert normal is not None
    assert 0 < normal < exact < 0.001
    assert stratified_exact([PassCounts(7, 10, 7, 10)] * 200) == pytest.approx(0.5, abs=0.02)


def test_at_least_so_many_of_independent_events() -> None:
    assert at_least(0, [0.5]) == 1.0
    assert at_least(1, [0.5, 0.5]) == pytest.approx(0.75)
    assert at_least(2, [0.5, 0.5, 0.2]) == pytest.approx(0.25 * 0.8 + 0.75 * 0.2 + 0 + 0.25 * 0.2 - 0.25 * 0.2)
    assert at_least(3, [0.5, 0.5]) == 0.0


@pytest.mark.sweep("tests")
@pytest.mark.parametrize("tests", [1, 20])
@pytest.mark.parametrize("name", POPULATIONS)
def test_where_nothing_changed_it_is_rarely_wrong(name: str, tests: int) -> None:
    """5 % are due; 300 drawn executions show 8 % by chance once in a hundred."""
    assert alarms(tests, 5, POPULATIONS[name], times=300) <= 0.08


@pytest.mark.sweep
@pytest.mark.parametrize("was", [1.0, 0.9, 0.7, 0.5])
def test_a_drop_of_twenty_points_over_twenty_tests_is_rarely_missed(was: float) -> None:
    assert 1 - alarms(20, 5, constant(was), drop=0.2, times=300) <= 0.25
    assert 1 - alarms(20, 1, constant(was), drop=0.2, times=100) <= 0.05


@pytest.mark.parametrize("runs", [1, 2, 3, 5])
def test_a_case_that_broke_beside_flaky_ones_is_never_missed(runs: int) -> None:
    assert misses_broken(19, runs, constant(0.6), times=100) == 0
