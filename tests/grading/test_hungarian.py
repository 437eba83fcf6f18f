"""The assignment with the smallest total difference: against all permutations, and against SciPy."""

from __future__ import annotations

from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agenteval_tui.grading.hungarian import MOST_STEPS, assign

COST = st.one_of(st.integers(0, 4).map(float), st.floats(-100, 100, allow_nan=False))


@st.composite
def matrices(draw: st.DrawFn, most: int) -> list[list[float]]:
    rows, columns = draw(st.integers(1, most)), draw(st.integers(1, most))
    return [[draw(COST) for _ in range(columns)] for _ in range(rows)]


def by_trying_all(costs: list[list[float]]) -> float:
    rows, columns = len(costs), len(costs[0])
    if rows > columns:
        costs = [list(column) for column in zip(*costs, strict=True)]
        rows, columns = columns, rows
    return min(
        sum(costs[row][column] for row, column in enumerate(chosen)) for chosen in permutations(range(columns), rows)
    )


def is_assignment(costs: list[list[float]], pairs: tuple[tuple[int, int], ...]) -> bool:
    rows, columns = len(costs), len(costs[0])
    alone = len({row for row, _ in pairs}) == len({column for _, column in pairs}) == len(pairs) == min(rows, columns)
    return alone and all(0 <= row < rows and 0 <= column < columns for row, column in pairs)


@given(matrices(5))
def test_no_other_assignment_is_cheaper(costs: list[list[float]]) -> None:
    found = assign(costs)
    assert found.exact
    assert is_assignment(costs, found.pairs)
    assert found.total == pytest.approx(by_trying_all(costs), abs=1e-9)
    assert found.total == pytest.approx(sum(costs[row][column] for row, column in found.pairs))


@pytest.mark.xdist_group("scipy")
@settings(max_examples=40)
@given(matrices(25))
def test_as_scipy(costs: list[list[float]]) -> None:
    optimize = pytest.importorskip("scipy.optimize")
    rows, columns = optimize.linear_sum_assignment(costs)
    wanted = sum(costs[row][column] for row, column in zip(rows, columns, strict=True))
    assert assign(costs).total == pytest.approx(wanted, abs=1e-7)


@given(matrices(6))
def test_what_is_too_large_is_still_an_assignment(costs: list[list[float]]) -> None:
    found = assign(costs, most_steps=0)
    assert not found.exact
    assert is_assignment(costs, found.pairs)
    assert found.total >= by_trying_all(costs) - 1e-9


def test_greedy_is_said_to_be_no_promise() -> None:
    # The cheapest pair first leaves only the dear one: the exact way gives it up.
    costs = [[0.0, 1.0], [1.0, 100.0]]
    assert assign(costs).pairs == ((0, 1), (1, 0))
    assert assign(costs, most_steps=0).total == 100.0


def test_nothing_to_assign() -> None:
    assert assign([]).pairs == ()
    assert assign([[], []]).pairs == ()


def test_the_limit_is_where_it_says() -> None:
    side = round(MOST_STEPS ** (1 / 3))
    assert assign([[0.0] * side for _ in range(side - 1)]).exact
    assert not assign([[0.0] * (side * 2) for _ in range(side)]).exact
