"""What would be run, and what it will take, as lines of the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agenteval_tui.cli.output import Output, dollars, duration, plural
from agenteval_tui.core.display import one_line

if TYPE_CHECKING:
    from collections.abc import Callable

    from agenteval_tui.runs.estimate import Range
    from agenteval_tui.runs.plan.preview import Preview

_MOST_PARTS = 20
_MOST_PROGRAMS = 12


def print_plan(out: Output, plan: Preview) -> None:
    """The whole plan: runs by agent and variation, estimate, limits, and what would be executed."""
    rows = f", {plural(plan.cases, 'case')} with the rows of datasets" if plan.cases != plan.tests else ""
    out.line(
        (one_line(plan.title), "bold"),
        f": {plural(plan.runs, 'run')} of {plural(plan.tests, 'test')}{rows}, {plan.concurrency} at once",
    )
    for part in plan.parts[:_MOST_PARTS]:
        variation = f" [{one_line(part.variation, 40)}]" if part.variation else ""
        cases = f", {plural(part.cases, 'case')}" if part.cases != part.tests else ""
        out.line(
            f"  {one_line(part.agent, 40)}{variation}: {plural(part.runs, 'run')}",
            (f"  {plural(part.tests, 'test')}{cases}", "dim"),
        )
    if len(plan.parts) > _MOST_PARTS:
        out.line((f"  and {len(plan.parts) - _MOST_PARTS} more", "dim"))
    _print_estimate(out, plan)
    limits = plan.limits
    said = [
        f"{name} {shown}"
        for name, shown in (
            ("cost", dollars(limits.cost)),
            ("tokens", f"{limits.tokens:,}" if limits.tokens is not None else ""),
            ("time", duration(limits.seconds * 1000) if limits.seconds is not None else ""),
        )
        if shown
    ]
    if said:
        out.line(f"  stops at: {', '.join(said)}")
    if plan.over:
        out.line(("  likely to be stopped before its end by the limit of: ", "warn"), ", ".join(plan.over))
    if plan.cache:
        which = "of first repetitions" if plan.cache == "first" else "of all repetitions"
        out.line(f"  answers {which} that the history has are taken from there")
    _print_needs(out, plan)


def _print_estimate(out: Output, plan: Preview) -> None:
    expected = plan.estimate
    _range(out, "time", expected.seconds, lambda seconds: duration(1000 * seconds))
    _range(out, "tokens", expected.tokens, lambda count: f"{count:,.0f}")
    _range(out, "cost", expected.cost, dollars)
    judges = expected.judges
    if judges.asked:
        out.line(f"  judges are asked in {plural(judges.asked, 'run')}")
        _range(out, "judges' tokens", judges.tokens, lambda count: f"{count:,.0f}")
        _range(out, "judges' cost", judges.cost, dollars)
    if expected.may_stop:
        out.line((f"  of them {plural(expected.may_stop, 'run')} may not be needed (early stopping)", "dim"))
    if expected.seconds is None:
        out.line(("  what it takes is not known: nothing like it was run before", "dim"))


def _range(out: Output, name: str, one: Range | None, shown: Callable[[float], str]) -> None:
    if one is None:
        return
    rest = f"; not known of {plural(one.unknown, 'more run')}" if one.unknown else ""
    about = f"  {name}: about {shown(one.expected)}"
    span = f"  ({shown(one.low)} to {shown(one.high)}, by {plural(one.basis, 'earlier run')}{rest})"
    out.line(about, (span, "dim"))


def _print_needs(out: Output, plan: Preview) -> None:
    for need in plan.needs:
        trusted = need.trusted
        out.line(
            "  needs trust, from ",
            one_line(str(need.folder)),
            (
                " (trusted)" if trusted else f" (not trusted: {one_line(need.reason, 200)})",
                "dim" if trusted else "warn",
            ),
        )
        for what in need.what[:_MOST_PROGRAMS]:
            out.line(f"    {one_line(what, 300)}")
        if len(need.what) > _MOST_PROGRAMS:
            out.line(f"    and {len(need.what) - _MOST_PROGRAMS} more")


def heading(plan: Preview) -> str:
    """The plan in one line: `12 runs on shop · about 30 s · about $0.02`."""
    agents = list(plan.estimate.agents)
    on = one_line(agents[0], 40) if len(agents) == 1 else plural(len(agents), "agent")
    said = [f"{plural(plan.runs, 'run')} on {on}"]
    if plan.estimate.seconds is not None:
        said.append(f"about {duration(1000 * plan.estimate.seconds.expected)}")
    cost = plan.estimate.total_cost
    if cost:
        said.append(f"about {dollars(cost)}")
    if plan.over:
        said.append(f"likely to be stopped by the limit of {', '.join(plan.over)}")
    return " · ".join(said)
