"""Every interval that is printed, over all small combinations: it holds its estimate, is not a point, and a gate is
only sure where the interval really lies on one side of it."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agenteval_tui.analysis import statistics
from agenteval_tui.analysis.ab import compare_arms
from agenteval_tui.analysis.agreement import Agreement
from agenteval_tui.analysis.comparison import overall
from agenteval_tui.analysis.comparison_model import Overall
from agenteval_tui.analysis.permutation_test import difference_interval
from agenteval_tui.analysis.statistics import (
    FEW,
    Interval,
    clustered_interval,
    paired_bootstrap,
    rate_over_rows,
    wilson,
)
from agenteval_tui.analysis.test_gates import GateVerdict
from agenteval_tui.core import numbers
from agenteval_tui.history.comparison_queries import ComparedRun
from agenteval_tui.history.records import RunRow
from agenteval_tui.runs.confidence_sequence import confidence_sequence
from agenteval_tui.runs.plan.gates import Gate
from agenteval_tui.views.gates import counts_text

Counts = tuple[tuple[int, int], ...]
_CLUSTERS, _RUNS = 4, 5
_PAIRS = [(passed, n) for n in range(1, _RUNS + 1) for passed in range(n + 1)]
GATES = (0.2, 0.25, 0.3, 1 / 3, 0.4, 0.5, 0.6, 2 / 3, 0.7, 0.75, 0.8, 0.9, 0.95)


def _clusters() -> Iterator[Counts]:
    """All ways in which up to four tests can do in up to five runs each."""
    for number in range(1, _CLUSTERS + 1):
        yield from itertools.combinations_with_replacement(_PAIRS, number)


def _alike() -> Iterator[Counts]:
    """Tests of one rate, with as many and with different numbers of runs: where the spread between them is nothing."""
    for n in range(1, 31):
        for passed in range(n + 1):
            for number in range(2, 8):
                yield ((passed, n),) * number
            yield ((passed, n), (2 * passed, 2 * n), (3 * passed, 3 * n))


def _check(interval: Interval, estimate: float | Fraction, about: object, *, least: float = 0.0) -> None:
    low, high = interval
    assert least <= low < high <= 1, about
    # The estimate is what is printed: as a float.
    assert low <= float(estimate) <= high, about
    texts = numbers.percent_interval(low, high) if least == 0 else numbers.points_interval(low, high)
    assert texts[0] != texts[1], about


def _mean(counts: Counts) -> float:
    middle = statistics.mean([passed / n for passed, n in counts])
    assert middle is not None
    return middle


def test_the_interval_over_tests_is_never_a_point() -> None:
    for counts in itertools.chain(_clusters(), _alike()):
        _check(clustered_interval(counts), _mean(counts), counts)


def test_the_interval_over_rows_is_never_a_point() -> None:
    for counts in itertools.chain(_clusters(), _alike()):
        share = Fraction(sum(passed for passed, _ in counts), sum(n for _, n in counts))
        _check(rate_over_rows(counts), share, counts)


def test_tests_of_one_rate_have_wilsons_interval_over_the_tests() -> None:
    """The width of it: 3 tests of 7 of 10 say as much as 3 draws, not as 30, and not as infinitely many."""
    for counts in _alike():
        if len({n for _, n in counts}) > 1:
            continue
        (passed, n), number = counts[0], len(counts)
        z, share = 1.959963984540054, passed / n
        centre = (share + z * z / (2 * number)) / (1 + z * z / number)
        half = z / (1 + z * z / number) * math.sqrt(share * (1 - share) / number + z * z / (4 * number * number))
        expected = pytest.approx((max(0.0, centre - half), min(1.0, centre + half)), abs=1e-12)
        assert clustered_interval(counts) == expected, counts
        if n > 1:
            assert rate_over_rows(counts) == expected, counts


def test_the_standard_error_of_tests_of_one_rate_is_exactly_0() -> None:
    for counts in _alike():
        assert statistics.clustered_standard_error([passed / n for passed, n in counts]) == 0, counts


def test_what_is_said_of_a_gate_and_only_where_it_is_so() -> None:
    """Sure: the gate lies outside of the interval, which is not a point. What is printed beside it says so, too."""
    for counts in itertools.chain(itertools.combinations_with_replacement(_PAIRS, 2), _alike()):
        passed, n = sum(one for one, _ in counts), sum(of for _, of in counts)
        interval = rate_over_rows(counts)
        for wanted in {*GATES, passed / n} - {0.0, 1.0}:
            verdict = GateVerdict("s", "s", "t", "t", "", Gate(wanted, "test"), passed, n, 0, 0, interval)
            inside = interval[0] < wanted <= interval[1]
            assert verdict.sure is not inside, (counts, wanted)
            if verdict.outcome == "reached" and verdict.sure:
                assert interval[0] >= wanted, (counts, wanted)
        low, high = numbers.percent_interval(*interval)
        assert low != high
        assert (f"{low} % to {high} %" in counts_text(verdict)) is (n >= FEW)


@pytest.mark.parametrize("counts", [((4, 5), (4, 5)), ((7, 10),) * 3, ((7, 10), (14, 20)), ((1, 3), (2, 6), (3, 9))])
def test_two_rows_that_did_alike_do_not_make_a_gate_at_their_rate_sure(counts: Counts) -> None:
    passed, n = sum(one for one, _ in counts), sum(of for _, of in counts)
    verdict = GateVerdict("s", "s", "t", "t", "", Gate(passed / n, "test"), passed, n, 0, 0, rate_over_rows(counts))
    assert verdict.outcome == "reached"
    assert not verdict.sure


def test_wilsons_interval_and_the_confidence_sequence_of_one_test() -> None:
    for n in range(1, 61):
        for passed in range(n + 1):
            _check(wilson(passed, n), Fraction(passed, n), (passed, n))
            _check(confidence_sequence(passed, n), Fraction(passed, n), (passed, n))
            of_people = Agreement(both_yes=passed, only_judge=n - passed).interval
            assert (of_people is not None) is (n >= FEW)
            if of_people is not None:
                _check(of_people, Fraction(passed, n), (passed, n))


def test_the_interval_of_a_difference_of_rates_is_never_a_point() -> None:
    differences: list[Fraction] = []
    for number, most in ((3, 2), (2, 3), (1, 5)):
        shares = sorted({Fraction(passed, n) for passed, n in _PAIRS if n <= most})
        differences = sorted({now - was for was in shares for now in shares})
        for listed in itertools.combinations_with_replacement(differences, number):
            interval = difference_interval([float(one) for one in listed])
            assert interval is not None
            _check(interval, sum(listed) / number, listed, least=-1)
    for difference in differences:
        for number in (5, 30, 400):
            interval = difference_interval([float(difference)] * number)
            assert interval is not None
            _check(interval, difference, (difference, number), least=-1)


# What was measured. Each value is written as people write it: 0.3 - 0.2 is not 0.8 - 0.7 in binary.
_WAS = {"score": (0.2, 0.7, 0.1), "cost": (0.1, 0.7, 1.1), "duration_ms": (1000.2, 70.7, 3.1)}
_DIFFERENCE = {"score": 0.1, "cost": 0.2, "duration_ms": 0.1}


def _measured(n: int, number: int, side: str, case: int, repetition: int) -> ComparedRun:
    taken = {name: _WAS[name][(case + repetition) % 3] for name in _WAS}
    if side == "B":
        taken = {name: round(value + _DIFFERENCE[name], 6) for name, value in taken.items()}
    return ComparedRun(
        number, f"{side}{number}", side, 1, "/s", "S", f"t{case}", f"t{case}", "", 0, repetition, "x",
        "passed" if repetition <= n else "failed", taken["score"], taken["duration_ms"], 10, 5, taken["cost"],
        False, None, 1,
    )  # fmt: skip


@pytest.mark.parametrize("cases", [1, 2, 3, 5, 8, 450])
@pytest.mark.parametrize("repetitions", [1, 3, 5])
def test_no_interval_of_a_comparison_is_a_point(cases: int, repetitions: int) -> None:
    """All cases differ by the same, but for rounding: there is no spread to tell an interval from."""
    for before, after in ((1, 0), (2, 1), (3, 3), (repetitions, 0), (0, repetitions)):
        sides = [
            {
                ("/s", f"t{case}", "", ""): [
                    _measured(n, 10 * case + repetition, side, case, repetition)
                    for repetition in range(1, repetitions + 1)
                ]
                for case in range(cases)
            }
            for side, n in (("A", before), ("B", after))
        ]
        _no_points(overall((sides[0], sides[1])), (cases, repetitions, before, after))


def _agrees(interval: Interval, p_value: float | None, about: object) -> None:
    """The interval and the test stand in one line: an interval without 0 has a test that shows a difference.

    The other way round the interval may be the more careful one: cases that all differ by the same small amount.
    """
    assert p_value is not None, about
    assert interval[0] <= 0 <= interval[1] or p_value <= 0.05, (about, interval, p_value)


def _no_points(found: Overall, about: object) -> None:
    assert found.rate is not None, about
    if found.rate.interval is not None:
        _check(found.rate.interval, found.rate.difference, about, least=-1)
        _agrees(found.rate.interval, found.p_value, about)
    for measure in (found.score, found.latency_ms, found.tokens, found.cost):
        assert measure is not None, about
        assert measure.interval is None, about  # of each case the same difference


@pytest.mark.parametrize("a", [case for case in _PAIRS if case[1] <= 4])
def test_no_interval_of_sides_without_a_common_case_is_a_point(a: tuple[int, int]) -> None:
    for b in _PAIRS:
        sides = [
            {
                ("/s", "t", "", f"{side}{number}"): [_measured(passed, number, side, 0, number + 1)]
                for number in range(n)
            }
            for side, (passed, n) in (("A", a), ("B", b))
        ]
        found = overall((sides[0], sides[1]))
        assert found.test == "fisher"
        assert found.rate is not None
        if found.rate.interval is not None:
            _check(found.rate.interval, Fraction(*b) - Fraction(*a), (a, b), least=-1)
            _agrees(found.rate.interval, found.p_value, (a, b))


def test_no_interval_of_arms_is_a_point() -> None:
    """A/B: rates of each arm, their difference, and what was measured, which differs by the same but for rounding."""
    for cases, repetitions, (before, after) in itertools.product((1, 2, 3, 5, 8), (1, 4), ((1, 0), (2, 1), (4, 4))):
        arms = [
            [_of_arm(_measured(n, 10 * case + repetition, side, case, repetition))
             for case in range(cases) for repetition in range(1, repetitions + 1)]
            for side, n in (("A", before), ("B", after))
        ]  # fmt: skip
        found = compare_arms(arms[0], arms[1])
        about = cases, repetitions, before, after
        for arm in (found.a, found.b):
            assert arm.pass_rate is not None, about
            if arm.interval is not None:
                _check(arm.interval, arm.pass_rate, about)
        if found.interval is not None:
            assert found.difference is not None, about
            _check(found.interval, found.difference, about, least=-1)
            _agrees(found.interval, found.p_value, about)
        for delta in (found.cost, found.tokens, found.latency_ms):
            assert delta is None or delta.interval is None, about


@given(st.tuples(st.integers(5, 12), st.integers(0, 12), st.integers(0, 12)))
def test_the_interval_of_a_comparison_agrees_with_its_test(counts: tuple[int, int, int]) -> None:
    """Cases that ran once: all of those that fell, that rose, and that stayed."""
    cases, fell, rose = counts[0], min(counts[1], counts[0]), min(counts[2], counts[0] - min(counts[1], counts[0]))
    sides = [
        {
            ("/s", f"t{case}", "", ""): [
                _measured(int((case < fell) != (side == "B") or case >= fell + rose), case, side, case, 1)
            ]
            for case in range(cases)
        }
        for side in ("A", "B")
    ]
    figures = overall((sides[0], sides[1]))
    assert figures.rate is not None
    assert figures.rate.interval is not None
    _agrees(figures.rate.interval, figures.p_value, counts)


def _of_arm(run: ComparedRun) -> RunRow:
    return RunRow(
        run.rowid, run.id, "E", 0, run.suite_key, run.suite_name, run.test_id, run.test_name, "A: x", 0,
        run.repetition, "x", run.status, run.score, 1, run.duration_ms, 1, run.input_tokens, run.output_tokens,
        run.cost, "", "", "", "", "", {},
    )  # fmt: skip


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=8), st.integers(0, 3))
def test_a_bootstrap_holds_its_mean_and_is_not_a_point(differences: list[float], seed: int) -> None:
    interval = paired_bootstrap(differences, seed=seed, draws=0)
    if interval is None:
        scale = max(map(abs, differences))
        assert max(differences) - min(differences) <= 1e-9 * scale + 1e-12
        return
    middle = statistics.mean(differences)
    assert middle is not None
    assert interval[0] <= middle <= interval[1]
    assert interval[0] < interval[1]
