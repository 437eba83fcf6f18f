"""Runs that vary, and runs that step from one execution to the next: by hand, by counting all ways, and by chance."""

from __future__ import annotations

import itertools
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scientific import scipy

from agenteval_tui.analysis.execution_steps import Counts, homogeneity, step_of, varies

pytestmark = pytest.mark.xdist_group("scipy")
PASS, FAIL = (1, 1), (0, 1)


@pytest.mark.parametrize(
    ("executions", "flaky", "kind", "parts"),
    [
        ([(5, 5), (0, 5)], False, "regression", ((5, 5), (0, 5))),
        ([(0, 5), (5, 5)], False, "improvement", ((0, 5), (5, 5))),
        ([(5, 5), (5, 5), (0, 5)], False, "regression", ((10, 10), (0, 5))),
        ([(2, 2), (0, 2)], False, "regression", ((2, 2), (0, 2))),
        ([(5, 5), (0, 5), (5, 5)], False, "changed", ((5, 5), (0, 5), (5, 5))),
        ([(5, 5), (0, 5), (0, 5), (5, 5)], False, "changed", ((5, 5), (0, 10), (5, 5))),
        ([PASS] * 5 + [FAIL] * 5, False, "regression", ((5, 5), (0, 5))),
        ([PASS] * 4 + [FAIL], False, "regression", ((4, 4), (0, 1))),
        ([PASS, FAIL, PASS, FAIL, PASS, FAIL], True, None, ()),
        ([(3, 5), (2, 5)], True, None, ()),
        ([(4, 5)], True, None, ()),
        ([(5, 5), (2, 5)], True, None, ()),  # p = 0.17
        ([(5, 5), (1, 5)], True, "regression", ((5, 5), (1, 5))),  # both: p = 0.048
        ([(3, 5)] * 4 + [(0, 5)] * 4, True, "regression", ((12, 20), (0, 20))),
        ([(0, 5), (0, 5), (4, 5), (5, 5)], True, "improvement", ((0, 10), (9, 10))),
        ([(5, 5)] * 3, False, None, ()),
        ([(5, 5), (0, 0)], False, None, ()),
        ([], False, None, ()),
    ],
)
def test_what_varies_and_what_steps(
    executions: list[Counts], flaky: bool, kind: str | None, parts: tuple[Counts, ...]
) -> None:
    assert varies(executions) is flaky
    step = step_of(executions)
    assert (step.kind if step is not None else None) == kind
    assert (step.parts if step is not None else ()) == parts


def test_the_p_value_is_fishers_times_the_places() -> None:
    step = step_of([(5, 5), (0, 5)])
    assert step is not None
    assert step.p_value == pytest.approx(scipy.stats.fisher_exact([[5, 0], [0, 5]]).pvalue)
    step = step_of([(5, 5), (5, 5), (0, 5)])
    assert step is not None
    assert step.p_value == pytest.approx(2 * scipy.stats.fisher_exact([[10, 0], [0, 5]]).pvalue)


sizes = st.lists(st.integers(1, 4), min_size=1, max_size=4)


@given(sizes, st.data())
def test_homogeneity_counts_the_ways_to_share_out_the_passed_runs(many: list[int], data: st.DataObject) -> None:
    passing = data.draw(st.lists(st.booleans(), min_size=len(many), max_size=len(many)))
    executions = [(n if good else 0, n) for n, good in zip(many, passing, strict=True)]
    runs = [number for number, n in enumerate(many) for _ in range(n)]
    passed = sum(good for good, _ in executions)
    ways = alike = 0
    for chosen in itertools.combinations(range(len(runs)), passed):
        ways += 1
        each = [sum(runs[one] == number for one in chosen) for number in range(len(many))]
        alike += all(count in (0, n) for count, n in zip(each, many, strict=True))
    assert homogeneity(executions) == pytest.approx(alike / ways)


executions_made = st.lists(st.integers(1, 5).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), max_size=12)


@given(executions_made)
def test_what_differs_at_all_is_flaky_or_steps(executions: list[Counts]) -> None:
    passed, n = sum(one for one, _ in executions), sum(of for _, of in executions)
    step = step_of(executions)
    assert (varies(executions) or step is not None) is (0 < passed < n)
    if step is not None:
        assert 0 <= step.p_value <= 1
        assert (sum(one for one, _ in step.parts), sum(of for _, of in step.parts)) == (passed, n)
    # Backwards a regression is an improvement, and what varies varies.
    back = step_of(executions[::-1])
    assert varies(executions[::-1]) is varies(executions)
    turned = {"regression": "improvement", "improvement": "regression", "changed": "changed"}
    assert (back is None) is (step is None)
    if step is not None and back is not None and step.p_value < 0.05:
        assert back.kind == turned[step.kind] or back.parts != step.parts[::-1]


@given(executions_made.filter(lambda made: all(passed in (0, n) for passed, n in made)))
def test_if_no_execution_varies_and_it_steps_once_it_is_never_flaky(executions: list[Counts]) -> None:
    outcomes = [passed > 0 for passed, _ in executions]
    turns = sum(one != other for one, other in itertools.pairwise(outcomes))
    if turns == 1 or (turns and min(n for _, n in executions) > 1):
        assert not varies(executions)
        assert step_of(executions) is not None


def test_chance_alone_rarely_looks_like_a_step() -> None:
    dice, steps, shown = random.Random(5), 0, 0
    for _ in range(500):
        rate = dice.choice([0.3, 0.5, 0.8])
        executions = [(sum(dice.random() < rate for _ in range(5)), 5) for _ in range(6)]
        shown += varies(executions)
        steps += step_of(executions) is not None
    assert steps <= 25  # 5 %
    assert shown >= 480
