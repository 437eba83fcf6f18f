"""A plan in words: whole for the command line, in short for the form, and in one line."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from agenteval_tui.runs.estimate import Estimate, Range, ReplyEstimate, UserEstimate
from agenteval_tui.runs.plan.model import Limits
from agenteval_tui.runs.plan.preview import NeedsTrust, PlannedPart, PlannedUser, Preview
from agenteval_tui.tui.presenters.view_lines import view_lines
from agenteval_tui.tui.styled_text import plain as plain_line
from agenteval_tui.views import terminal
from agenteval_tui.views.model import View, plain
from agenteval_tui.views.plan import plan_heading, plan_in_short, plan_view

SECONDS = Range(10, 30, 62, 12, 0, 37)
TOKENS = Range(640, 880, 1_200, 9, 3, 31)
COST = Range(0.02, 0.032, 0.046, 9, 3, 31)
NOTHING = ReplyEstimate(0, None, None, None)
JUDGES = ReplyEstimate(4, None, None, Range(0.0001, 0.0002, 0.0003, 4, 0, 21))
TAKES = Estimate(12, 3, {"v1": 4, "v2": 8}, SECONDS, TOKENS, COST, JUDGES, may_stop=2)
PLAN = Preview(
    title="Orders\x1b[31m",
    suites=1,
    tests=3,
    cases=5,
    runs=12,
    parts=(PlannedPart("v1", "", 3, 5, 8), PlannedPart("v2", "second", 1, 1, 4)),
    concurrency=8,
    estimate=TAKES,
    limits=Limits(cost=0.03, tokens=100_000, seconds=60),
    over=("cost",),
    cache="first",
    trusted=False,
    needs=(
        NeedsTrust("/shop", ("command: sh judge.sh", "python: tool.py"), False, "this folder is not trusted yet"),
        NeedsTrust("/desk", ("command: ls",), True, ""),
    ),
)


def printed(view: View) -> list[str]:
    return [plain(line) for line in terminal.lines(view)]


def test_the_whole_plan() -> None:
    assert printed(plan_view(replace(PLAN, title="Orders"))) == [
        "Orders: 12 runs of 3 tests, 5 cases with the rows of datasets, concurrency 8",
        "  v1: 8 runs  3 tests, 5 cases",
        "  v2 [second]: 4 runs  1 test",
        "  time: about 30.0 s  (10.0 s to 1 min 2 s, from 37 earlier runs)",
        "  tokens: about 880  (640 to 1,200, from 31 earlier runs; unknown for 3 more runs)",
        "  cost: about $0.0320  ($0.0200 to $0.0460, from 31 earlier runs; unknown for 3 more runs)",
        "  judges are asked in 4 runs",
        "  judges' cost: about $0.0002  ($0.0001 to $0.0003, from 21 earlier runs)",
        "  early stopping may save up to 2 runs",
        "  stops at: cost $0.0300, tokens 100,000, time 1 min 0 s",
        "  likely to stop early, at the limit of cost",
        "  first repetitions reuse stored answers from the history",
        "  needs trust, from /shop (this folder is not trusted yet)",
        "    command: sh judge.sh",
        "    python: tool.py",
        "  needs trust, from /desk (trusted)",
        "    command: ls",
    ]


def test_in_short_the_warnings_come_before_the_figures() -> None:
    assert printed(plan_in_short(PLAN)) == [
        "12 runs of 3 tests  v2 8  v1 4",
        "! likely to stop early, at the limit of cost",
        "! asks for your trust first, for 2 things in a suite's folder",
        "about 30.0 s (10.0 s–1 min 2 s), about 880 tokens (640–1,200), about $0.0320 ($0.0200–$0.0460), "
        "unknown for 3 more runs",
        "judges are asked in 4 runs, about $0.0002 ($0.0001–$0.0003)",
        "early stopping may save up to 2 runs",
    ]


@pytest.mark.parametrize("width", [30, 72, 82])
def test_a_narrow_form_shows_what_has_no_room_in_the_next_line(width: int) -> None:
    quiet = replace(PLAN, over=(), needs=(), estimate=replace(TAKES, judges=NOTHING, may_stop=0))
    lines = [plain_line(line) for line in view_lines(plan_in_short(quiet), width)]
    assert max(map(len, lines)) <= width
    assert len(lines) == {30: 5, 72: 3, 82: 3}[width]


def test_nothing_is_known_of_what_was_never_run() -> None:
    new = Estimate(12, 3, {f"a{n}": n for n in range(6)}, None, None, None, NOTHING)
    plan = replace(PLAN, estimate=new, over=(), needs=(), cache="", limits=Limits(), cases=3)
    said = "no estimate: nothing like it has run before"
    assert printed(plan_in_short(plan)) == ["12 runs of 3 tests  a5 5  a4 4  a3 3  a2 2  and 2 more agents", said]
    assert printed(plan_view(plan))[-1] == f"  {said}"


def test_in_one_line() -> None:
    said = "12 runs on 2 agents · about 30.0 s · at least about $0.0322 · likely to stop at the limit of cost"
    assert plan_heading(PLAN) == said
    one = replace(PLAN, over=(), estimate=Estimate(1, 1, {"shop\n": 1}, None, None, None, NOTHING))
    assert plan_heading(one) == "12 runs on shop"


def test_long_lists_say_how_much_more_there_is() -> None:
    needs = (NeedsTrust("/shop", tuple(map(str, range(20))), False, "new"),)
    plan = replace(PLAN, parts=tuple(PlannedPart(str(n), "", 1, 1, 1) for n in range(30)), needs=needs)
    lines = printed(plan_view(plan))
    assert "  and 10 more" in lines
    assert lines[-1] == "    and 8 more"


def test_a_simulated_user_speaks_at_most_so_often() -> None:
    takes = replace(TAKES, users=UserEstimate(8, None, None, COST))
    plan = replace(PLAN, estimate=takes, users=(PlannedUser("customer", 8, 10), PlannedUser("rude", 4, 1)))
    whole = printed(plan_view(plan))
    assert whole[3:5] == [
        "  simulated user (customer): 8 runs  at most 10 turns each",
        "  simulated user (rude): 4 runs  at most 1 turn each",
    ]
    assert any(line.startswith("  users' cost: about $0.0320") for line in whole)
    (short,) = [line for line in printed(plan_in_short(plan)) if "simulated" in line]
    assert short.startswith("a simulated user speaks in 8 runs")
    assert "at most 10 turns" in short
    assert takes.total_cost is not None
    assert takes.total_cost.expected == pytest.approx(0.0642)
