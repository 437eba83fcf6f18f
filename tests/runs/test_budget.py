"""What is left of a limit is not given away twice."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agenteval_tui.core.options import OptionError, Options
from agenteval_tui.runs.budget import FIRST, Budget, Spending, dollars
from agenteval_tui.runs.fork.options import ContinuationOptions
from agenteval_tui.runs.plan.model import Limits
from agenteval_tui.runs.plan.options import PlanOptions
from agenteval_tui.runs.recording_request import ProxyOptions


@given(st.integers(1, 100), st.integers(1, 20), st.integers(0, 40), st.integers(1, 10))
def test_runs_that_cost_alike_never_go_over_the_limit(limit: int, at_once: int, runs: int, cost: int) -> None:
    budget = Budget(Limits(tokens=limit))
    used, ended, in_flight = 0, 0, 0
    began = 0
    while True:
        while in_flight < at_once and began < runs:
            if budget.holds_up(Spending(tokens=used), ended, [Spending()] * in_flight, 0.0):
                break
            in_flight, began = in_flight + 1, began + 1
        if not in_flight:
            break
        in_flight, ended, used = in_flight - 1, ended + 1, used + cost
    assert used <= max(limit, FIRST * cost)  # what the first ones take, nobody can know
    # And nothing is left that would have fitted.
    assert began == runs or used + cost > limit


@pytest.mark.parametrize("options", [PlanOptions, ProxyOptions, ContinuationOptions])
@pytest.mark.parametrize("number", [math.nan, math.inf])
def test_what_is_no_number_is_no_limit(options: type[Options], number: float) -> None:
    with pytest.raises(OptionError, match=f"max_cost must be a number of US dollars .*, not {number}"):
        options(max_cost=number)


def test_each_limit_says_its_name() -> None:
    assert Budget(Limits(cost=1.0)).holds_up(Spending(cost=1.0), 1, [], 0) == "the limit of $1.00"
    assert Budget(Limits(tokens=5_000)).holds_up(Spending(tokens=4_000), 2, [], 0) == ("the limit of 5,000 tokens")
    assert Budget(Limits(seconds=60)).holds_up(Spending(), 0, [], 60.5) == "the limit of 60 s"
    assert Budget(Limits(cost=1, tokens=5, seconds=60)).holds_up(Spending(0.1, 1), 1, [], 1) == ""
    assert Budget(Limits(cost=0)).holds_up(Spending(), 0, [], 0) == "the limit of $0.00"


def test_what_a_run_in_flight_has_used_already_counts_where_it_is_more_than_the_mean() -> None:
    budget = Budget(Limits(cost=10.0))
    assert budget.holds_up(Spending(cost=2.0), 2, [Spending(cost=6.0)], 0) == ""
    assert budget.holds_up(Spending(cost=2.0), 2, [Spending(cost=7.5)], 0) != ""


@pytest.mark.parametrize(("amount", "said"), [(1, "$1.00"), (0.5, "$0.50"), (0.0005, "$0.0005"), (1234.5, "$1,234.50")])
def test_dollars(amount: float, said: str) -> None:
    assert dollars(amount) == said


def test_as_much_is_set_aside_as_the_dearest_run_took_unless_nothing_is_in_flight() -> None:
    budget = Budget(Limits(cost=10.0))
    dearest = Spending(cost=3.0)
    assert budget.holds_up(Spending(cost=2.0), 4, [dearest], 0, dearest) == ""
    assert budget.holds_up(Spending(cost=2.0), 4, [dearest] * 2, 0, dearest) == "the limit of $10.00"
    assert budget.holds_up(Spending(cost=8.0), 4, [], 0, dearest) == "", "alone, it may take what is left"
    # Of an agent of which nothing is known, one run is in flight alone.
    assert budget.holds_up(Spending(cost=2.0), 4, [Spending()], 0, None) == "the limit of $10.00"
    assert budget.holds_up(Spending(cost=2.0), 4, [], 0, None) == ""


def test_a_used_up_limit_lets_no_request_be_sent() -> None:
    assert Budget(Limits(cost=1.0)).used_up(Spending(cost=0.99)) == ""
    assert Budget(Limits(cost=1.0)).used_up(Spending(cost=1.0)) == "the limit of $1.00"
    assert Budget(Limits(tokens=10)).used_up(Spending(tokens=11)) == "the limit of 10 tokens"
    assert Budget(Limits(seconds=1)).used_up(Spending(cost=5.0, tokens=5)) == ""
