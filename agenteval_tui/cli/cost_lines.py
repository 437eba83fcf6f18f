"""What an execution used, as lines of the command line: agents by test and in all, judges apart."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agenteval_tui.cli.output import Output, dollars, plural
from agenteval_tui.core.display import one_line

if TYPE_CHECKING:
    from agenteval_tui.analysis.costs import Costs, Spent

_NAME = 40


def print_costs(out: Output, costs: Costs) -> None:
    """By test, by agent, by criterion; the dearest agents and criteria first."""
    width = min(max((len(one_line(name)) for name in _names(costs)), default=4), _NAME)
    out.line((f"{'':<{width}}  {'runs':>6} {'input':>10} {'output':>10} {'cost':>10} {'a run':>10}", "dim"))
    for test in costs.by_test:
        _row(out, test.test, test.agents, width)
        if test.judges.count:
            _row(out, "  its judges", test.judges, width)
    out.line()
    for agent in costs.by_agent:
        _row(out, f"agent {agent.name}", agent.spent, width)
    for criterion in costs.by_criterion:
        _row(out, f"judges of {criterion.name or 'criteria'}", criterion.spent, width)
    out.line()
    _row(out, "all agents", costs.agents, width)
    if costs.judges.count:
        _row(out, "all judges", costs.judges, width)
    out.line((f"{'in all':<{width}}  {'':>6} {costs.tokens:>21,} {_money(costs.cost):>10}", "bold"))
    if costs.failed_attempts:
        made = "attempt that was" if costs.failed_attempts == 1 else "attempts that were"
        out.line((f"with {costs.failed_attempts:,} failed {made} made again", "dim"))
    if costs.cached:
        out.line((f"{plural(costs.cached, 'answer')} came from the history, and cost nothing", "dim"))
    if costs.agents.priced is not None and costs.agents.priced < costs.agents.count:
        unknown = costs.agents.count - costs.agents.priced
        out.line((f"of {plural(unknown, 'run')} no price is known", "warn"))


def print_spent(out: Output, costs: Costs) -> None:
    """The same in a few lines, for the end of a run: each agent, then the judges. Nothing where nothing was measured.

    Of judges only what they cost now is said: what they had said before cost nothing.
    """
    for agent in costs.by_agent:
        spent = agent.spent
        if not spent.tokens and spent.cost is None:
            continue
        said = f"{one_line(agent.name, 60)}: {spent.input_tokens:,} + {spent.output_tokens:,} tokens"
        out.line((said + (f", {dollars(spent.cost)}" if spent.cost is not None else ""), "dim"))
    if costs.cached:
        out.line((f"{plural(costs.cached, 'answer')} from the history", "dim"))


def _names(costs: Costs) -> list[str]:
    names = [one.test for one in costs.by_test] + [f"agent {one.name}" for one in costs.by_agent]
    return [*names, *(f"judges of {one.name}" for one in costs.by_criterion), "  its judges"]


def _row(out: Output, name: str, spent: Spent, width: int) -> None:
    shown = one_line(name, width) if not name.startswith(" ") else name
    counted = spent.measured != 0
    read, written = (f"{one:,}" if counted else "–" for one in (spent.input_tokens, spent.output_tokens))
    out.line(
        f"{shown:<{width}}  {spent.count:>6,} {read:>10} {written:>10} "
        f"{_money(spent.cost):>10} {_money(spent.mean_cost):>10}"
    )


def _money(cost: float | None) -> str:
    return "–" if cost is None else dollars(cost)
