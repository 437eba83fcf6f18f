"""What an execution used, in words and in a table."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from agenteval_tui.analysis.costs import Costs, CostTotals, NamedCost, TestCost
from agenteval_tui.transcripts.model import Transcript, Usage
from agenteval_tui.views import terminal
from agenteval_tui.views.cost import costs_view, judges_view, spent_view, usage_view, user_usage_text
from agenteval_tui.views.model import View, plain

NOTHING = CostTotals(0, 0, 0, None)
AGENT = CostTotals(3, 1_200, 340, 0.0123, priced=2, measured=3)
JUDGE = CostTotals(2, 100, 10, None)
COSTS = Costs(
    AGENT,
    JUDGE,
    (
        TestCost(suite="shop", test="refund", name="Refund", agents=AGENT, judges=JUDGE, users=NOTHING),
        TestCost(suite="shop", test="label", name="", agents=replace(AGENT, measured=0), judges=NOTHING, users=NOTHING),
    ),
    (NamedCost("v2", "", AGENT), NamedCost("silent", "", NOTHING)),
    (NamedCost("", "hash", JUDGE, ("gpt",)),),
    cached=1,
    failed_attempts=2,
)


def printed(view: View, width: int = 80) -> list[str]:
    return [plain(line) for line in terminal.lines(view, width)]


def test_costs_are_a_table_by_test_agent_and_criterion_with_what_they_are_without() -> None:
    assert printed(costs_view(COSTS)) == [
        "                      runs  input  output       cost    a run",
        "refund                   3  1,200     340  ≥ $0.0123  $0.0062",
        "  its judges             2    100      10          –        –",
        "label                    3      –       –    $0.0123  $0.0062",
        "",
        "agent v2                 3  1,200     340  ≥ $0.0123  $0.0062",
        "agent silent             0      0       0          –        –",
        "judges of criteria       2    100      10          –        –",
        "",
        "all agents               3  1,200     340  ≥ $0.0123  $0.0062",
        "all judges               2    100      10          –        –",
        "in all, 1,650 tokens        1,300     350  ≥ $0.0123",
        "with 2 failed attempts that were retried",
        "1 answer came from the history and cost nothing",
        "the price of 1 run is not known",
    ]


@pytest.mark.parametrize("width", [30, 44])
def test_in_a_narrow_terminal_names_are_cut_before_figures(width: int) -> None:
    lines = printed(costs_view(COSTS), width)[:-3]
    assert max(map(len, lines)) <= width
    assert width < 40 or "1,200" in lines[1]


def test_the_end_of_a_run_says_it_in_a_line_for_each_agent_that_used_something() -> None:
    assert printed(spent_view(COSTS)) == ["v2: 1,200 + 340 tokens, at least $0.0123", "1 answer from the history"]
    priced = replace(AGENT, priced=3)
    known = replace(COSTS, agents=priced, by_agent=(NamedCost("v2", "", priced),), cached=0)
    assert printed(spent_view(known)) == ["v2: 1,200 + 340 tokens, $0.0123"]
    assert spent_view(Costs(NOTHING, NOTHING, (), (), ())) == ()


def test_judges_are_said_apart_from_agents() -> None:
    assert printed(judges_view(1, Usage(100, 10, cost=0.5))) == ["judges and others: 1 reply, 100 + 10 tokens, $0.5000"]
    assert printed(judges_view(1_000, Usage())) == ["judges and others: 1,000 replies"]
    assert judges_view(0, Usage()) == ()


def test_simulated_users_are_said_apart_from_agents() -> None:
    user = CostTotals(4, 50, 20, 0.002)
    simulated = replace(COSTS, users=user, by_user=(NamedCost("customer", "", user),))
    lines = printed(costs_view(simulated))
    assert "simulated user (customer)     4     50      20    $0.0020  $0.0005" in lines
    assert "all users                     4     50      20    $0.0020  $0.0005" in lines
    assert "in all, 1,720 tokens             1,350     370  ≥ $0.0143" in lines
    assert printed(spent_view(simulated))[1] == "simulated user (customer): 50 + 20 tokens, $0.0020"
    assert user_usage_text(Usage(5, 1, cost=0.5)) == "simulated user: 5 + 1 tokens, $0.5000"
    assert user_usage_text(Usage()) == ""
    both = Transcript(usage=Usage(9, 2, cost=0.25), user_usage=Usage(5, 1, cost=0.5))
    assert printed(usage_view(both)) == [
        "agent: 9 + 2 tokens, $0.2500",
        "simulated user: 5 + 1 tokens, $0.5000",
    ]
    assert usage_view(Transcript(usage=Usage(9, 2))) == ()
