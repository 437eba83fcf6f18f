"""What a planned run will take, in lines: runs by agent, time, tokens and cost, and what it would execute."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from agenteval_tui.core.display import one_line
from agenteval_tui.tui.presenters.number_format import clock, cost, count
from agenteval_tui.tui.presenters.run_rows import Expected
from agenteval_tui.tui.presenters.status_style import UNICODE
from agenteval_tui.tui.styled_text import Cell, Line, fit, fold

if TYPE_CHECKING:
    from agenteval_tui.agents.permission import Need
    from agenteval_tui.runs.estimate import Estimate, Range
    from agenteval_tui.runs.plan.model import PlanOptions

_UNTIL = "–" if UNICODE else "-"


def expected_of(estimate: Estimate) -> Expected:
    """What the Run screen says beside what was used."""
    seconds, tokens = estimate.seconds, estimate.total_tokens
    return Expected(
        seconds=seconds.expected if seconds is not None and not seconds.unknown else None,
        tokens=round(tokens) if tokens else None,
        cost=estimate.total_cost,
    )


def plan_lines(estimate: Estimate, refused: Sequence[tuple[Need, str]], options: PlanOptions, width: int) -> list[Line]:
    """At most five lines: the runs; what they take; limits; programs that would be started."""
    runs: list[Cell] = [(count(estimate.runs, "run"), "bold"), (f" of {count(estimate.tests, 'test')}", "dim")]
    agents = sorted(estimate.agents.items(), key=lambda one: -one[1])
    for name, number in agents[:4]:
        runs += [("  ", ""), (one_line(name, 30), ""), (f" {number:,}", "dim")]
    if len(agents) > 4:
        runs.append((f"  and {count(len(agents) - 4, 'more agent')}", "dim"))
    lines = [fit(runs, width)]
    judges = estimate.judges
    parts: list[Cell] = []
    for one, in_words in ((estimate.seconds, _time), (estimate.tokens, _tokens), (estimate.cost, _cost)):
        if one is not None and one.high > 0:
            parts += [("   " if parts else "", ""), *in_words(one)]
    unknown = max((one.unknown for one in (estimate.seconds, estimate.tokens) if one is not None), default=0)
    if estimate.seconds is None:
        parts = [("time, tokens and cost are not known yet: nothing like this was run", "dim")]
    elif unknown:
        parts.append((f"   without {count(unknown, 'run')} of which nothing is known", "dim"))
    lines.append(fit(parts, width))
    if judges.asked:
        said: list[Cell] = [("judges  ", "dim"), (count(judges.asked, "run"), ""), (" asked about", "dim")]
        for one, in_words in ((judges.tokens, _tokens), (judges.cost, _cost)):
            if one is not None:
                said += [("   ", ""), *in_words(one)]
        lines.append(fit(said, width))
    if estimate.may_stop:
        lines.append(fit(((f"early stopping may save up to {count(estimate.may_stop, 'run')}", "dim"),), width))
    if options.max_cost is not None and (estimate.total_cost or 0) > options.max_cost:
        over: Line = ((f"! likely to stop at ${options.max_cost:.2f} before all have run", "error"),)
        lines.append(fit(over, width))
    if refused:
        number = sum(len(need.what) for need, _ in refused)
        words = f"! needs your trust for {count(number, 'thing')} of a suite's folder: you are asked first"
        lines += fold(((words, "error"),), width)[:2]
    return lines


def _about(low: str, expected: str, high: str) -> list[Cell]:
    between = f" ({low} {_UNTIL} {high})" if low != high else ""
    return [("about ", "dim"), (expected, ""), (between, "dim")]


def _time(one: Range) -> list[Cell]:
    if one.expected < 1:
        return [("less than a second", "")]
    return _about(*(clock(max(value, 1)) for value in (one.low, one.expected, one.high)))


def _tokens(one: Range) -> list[Cell]:
    return [*_about(*(_short(value) for value in (one.low, one.expected, one.high))), (" tokens", "dim")]


def _cost(one: Range) -> list[Cell]:
    return _about(*(cost(value) or "$0" for value in (one.low, one.expected, one.high)))


def _short(value: float) -> str:
    if value >= 1e6:
        return f"{value / 1e6:.3g}M"
    return f"{value / 1000:.3g}k" if value >= 10_000 else f"{value:,.0f}"
