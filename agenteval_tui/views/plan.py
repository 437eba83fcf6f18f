"""What is shown of a plan: what would be run, what it will take, and what would be executed on this machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from agenteval_tui.core import numbers
from agenteval_tui.core.display import one_line
from agenteval_tui.core.phrasing import listed
from agenteval_tui.runs.estimate import Estimate, Range, ReplyEstimate
from agenteval_tui.runs.plan.preview import Preview
from agenteval_tui.views.model import List, Paragraph, Text, View, paragraphs, text

_MOST_PARTS = 20
_MOST_PROGRAMS = 12
_MOST_AGENTS = 4
_MOST_AROUND = 4  # services and hooks that a form shows
_NOT_KNOWN = "no estimate: nothing like it has run before"
_FORMATS: dict[str, Callable[[float], str]] = {
    "time": lambda seconds: numbers.duration(1000 * seconds),
    "tokens": lambda number: f"{number:,.0f}",
    "cost": numbers.dollars,
}
"""How a figure of each thing that is estimated is written."""


def plan_heading(plan: Preview) -> str:
    """The plan in one line: `12 runs on shop · about 30.0 s · at least about $0.0200` (a part is unknown)."""
    agents = list(plan.estimate.agents)
    on = one_line(agents[0], 40) if len(agents) == 1 else numbers.count(len(agents), "agent")
    parts = [f"{numbers.count(plan.runs, 'run')} on {on}"]
    if (seconds := plan.estimate.seconds) is not None:
        parts.append(about_text(numbers.duration(1000 * seconds.expected), not seconds.unknown))
    cost = plan.estimate.total_cost
    if cost is not None and cost.expected:
        parts.append(about_text(numbers.dollars(cost.expected), cost.whole))
    if plan.over:
        parts.append(f"likely to stop at the limit of {', '.join(plan.over)}")
    return " · ".join(parts)


def about_text(figure: str, whole: bool) -> str:
    """An estimate: `about 30.0 s`; `at least about 30.0 s` where it is of a part only."""
    return f"about {figure}" if whole else f"at least about {figure}"


def plan_view(plan: Preview) -> View:
    """The whole plan: runs by agent and variation, estimate, limits, and what would be executed."""
    rows = f", {numbers.count(plan.cases, 'case')} with the rows of datasets" if plan.cases != plan.tests else ""
    runs = f"{numbers.count(plan.runs, 'run')} of {numbers.count(plan.tests, 'test')}{rows}"
    head = text((one_line(plan.title), "bold"), f": {runs}, concurrency {plan.concurrency}")
    more = (*_parts(plan), *_users(plan), *_estimate(plan.estimate), *_limits(plan), *_around(plan), *_needs(plan))
    return (Paragraph(head), *paragraphs(more, indent=2))


def plan_in_short(plan: Preview) -> View:
    """Runs by agent, what they need, and what prevents them: a few lines, for a form that is being filled in."""
    agents = sorted(plan.estimate.agents.items(), key=lambda agent: -agent[1])
    runs = text((numbers.count(plan.runs, "run"), "bold"), (f" of {numbers.count(plan.tests, 'test')}", "dim"))
    for name, number in agents[:_MOST_AGENTS]:
        runs += text(f"  {one_line(name, 30)}", (f" {number:,}", "dim"))
    if len(agents) > _MOST_AGENTS:
        runs += text((f"  and {numbers.count(len(agents) - _MOST_AGENTS, 'more agent')}", "dim"))
    refused = sum(len(need.what) for need in plan.needs if not need.trusted)
    against = [f"! {_over(plan)}"] if plan.over else []
    if refused:
        what = numbers.count(refused, "thing")
        against.append(f"! asks for your trust first, for {what} in a suite's folder")
    takes, judges, users = plan.estimate, plan.estimate.judges, plan.estimate.users
    items = list(_items(takes)) or [text((_NOT_KNOWN, "dim"))]
    around = [text(one_line(line, 60)) for line in plan.around]
    # A form has little room: the names of the first services are enough to know the plan by.
    if len(around) > _MOST_AROUND:
        around[_MOST_AROUND:] = [text((f"and {len(around) - _MOST_AROUND} more", "dim"))]
    questions = [text(("judges are asked in ", "dim"), numbers.count(judges.asked, "run")), *_items(judges)]
    simulated = [text(("a simulated user speaks in ", "dim"), numbers.count(users.asked, "run")), *_items(users)]
    if plan.users:
        simulated.insert(
            1, text(("at most ", "dim"), numbers.count(max(user.max_turns for user in plan.users), "turn"))
        )
    return (
        Paragraph(runs),
        *paragraphs(text((line, "broken")) for line in against),
        List(tuple(items), inline=True),
        *((List(tuple(around), inline=True),) if around else ()),
        *((List(tuple(questions), inline=True),) if judges.asked else ()),
        *((List(tuple(simulated), inline=True),) if users.asked else ()),
        *paragraphs([text((_may_stop(takes), "dim"))]),
    )


def _over(plan: Preview) -> str:
    return f"likely to stop early, at the limit of {', '.join(plan.over)}" if plan.over else ""


def _may_stop(takes: Estimate) -> str:
    return f"early stopping may save up to {numbers.count(takes.may_stop, 'run')}" if takes.may_stop else ""


def _parts(plan: Preview) -> Iterator[Text]:
    for part in plan.parts[:_MOST_PARTS]:
        variation = f" [{one_line(part.variation, 40)}]" if part.variation else ""
        cases = f", {numbers.count(part.cases, 'case')}" if part.cases != part.tests else ""
        head = f"{one_line(part.agent, 40)}{variation}: {numbers.count(part.runs, 'run')}"
        yield text(head, (f"  {numbers.count(part.tests, 'test')}{cases}", "dim"))
    if len(plan.parts) > _MOST_PARTS:
        yield text((f"and {len(plan.parts) - _MOST_PARTS:,} more", "dim"))


def _users(plan: Preview) -> Iterator[Text]:
    for user in plan.users[:_MOST_PARTS]:
        turns = f"at most {numbers.count(user.max_turns, 'turn')} each"
        line = f"simulated user ({one_line(user.agent, 40)}): {numbers.count(user.runs, 'run')}"
        yield text(line, (f"  {turns}", "dim"))


def _estimate(takes: Estimate) -> Iterator[Text]:
    judges = takes.judges
    yield from _ranges(takes)
    if judges.asked:
        yield text(f"judges are asked in {numbers.count(judges.asked, 'run')}")
        yield from _ranges(judges, "judges' ")
    yield from _ranges(takes.users, "users' ")
    yield text((_may_stop(takes), "dim"))
    # Where a time is known something like it ran before.
    yield text(("" if takes.seconds is not None else _NOT_KNOWN, "dim"))


def _known(takes: Estimate | ReplyEstimate) -> Iterator[tuple[str, Range, Callable[[float], str]]]:
    """All that is known: its name, the estimate, and how a figure of it is written."""
    # Judges and users answer while runs are made: they have no time of their own.
    seconds = takes.seconds if isinstance(takes, Estimate) else None
    for name, estimate in (("time", seconds), ("tokens", takes.tokens), ("cost", takes.cost)):
        if estimate is not None:
            yield name, estimate, _FORMATS[name]


def _ranges(takes: Estimate | ReplyEstimate, whose: str = "") -> Iterator[Text]:
    """`time: about 30.0 s  (10.0 s to 1 min 2 s, from 37 earlier runs; unknown for 3 more runs)`."""
    for name, estimate, formatted in _known(takes):
        low, high = formatted(estimate.low), formatted(estimate.high)
        rest = f"; unknown for {numbers.count(estimate.unknown, 'more run')}" if estimate.unknown else ""
        span = f"  ({low} to {high}, from {numbers.count(estimate.basis, 'earlier run')}{rest})"
        yield text(f"{whose}{name}: about {formatted(estimate.expected)}", (span, "dim"))


def _items(takes: Estimate | ReplyEstimate) -> Iterator[Text]:
    """`about 880 tokens (640–1,200)`; last, of how many runs nothing is known."""
    unknown = 0
    for name, estimate, formatted in _known(takes):
        low, high = formatted(estimate.low), formatted(estimate.high)
        # Runs whose time is not known mostly lack the rest, too: the most of them, not their sum.
        unknown = max(unknown, estimate.unknown)
        # What is free takes no room.
        if estimate.high > 0:
            unit = " tokens" if name == "tokens" else ""
            likely = f"{formatted(estimate.expected)}{unit}"
            yield text(("about ", "dim"), likely, (f" ({low}–{high})" if low != high else "", "dim"))
    if unknown:
        yield text((f"unknown for {numbers.count(unknown, 'more run')}", "dim"))


def _limits(plan: Preview) -> Iterator[Text]:
    limits = plan.limits
    stops = [f"cost {numbers.dollars(limits.cost)}"] if limits.cost is not None else []
    stops += [f"tokens {limits.tokens:,}"] if limits.tokens is not None else []
    stops += [f"time {numbers.duration(limits.seconds * 1000)}"] if limits.seconds is not None else []
    if stops:
        yield text(f"stops at: {', '.join(stops)}")
    yield text((_over(plan), "warn"))
    if plan.cache:
        which = "first repetitions" if plan.cache == "first" else "all repetitions"
        yield text(f"{which} reuse stored answers from the history")
    yield from (text((line, "warn")) for line in without_cache(plan.without_cache))


_UNKNOWN = {
    "server": "it runs elsewhere",
    "installed": "its program is not in the suite's project",
    "size": "its project has too many files",
    "path": "its code decides where modules are",
}


def without_cache(agents: Mapping[str, str]) -> list[str]:
    """What `--cache` can't do: a sentence for each reason (`ProgramCode.unknown`) with the names of its agents."""
    lines = []
    for reason in dict.fromkeys(agents.values()):
        names = listed([one_line(name, 100) for name, why in agents.items() if why == reason])
        lines.append(
            f"--cache can't tell whether the program of {names} changed ({_UNKNOWN.get(reason, reason)}), so its "
            "answers are not reused; give the agent a `revision` to allow that"
        )
    return lines


def _around(plan: Preview) -> Iterator[Text]:
    """Services, hooks, and what runs work in."""
    yield from (text(one_line(line, 300)) for line in plan.around[:_MOST_PROGRAMS])
    if len(plan.around) > _MOST_PROGRAMS:
        yield text(f"and {len(plan.around) - _MOST_PROGRAMS} more")


def _needs(plan: Preview) -> Iterator[Text]:
    for need in plan.needs:
        state = " (trusted)" if need.trusted else f" ({one_line(need.reason, 200)})"
        yield text(f"needs trust, from {one_line(need.folder)}", (state, "dim" if need.trusted else "warn"))
        yield from (text(f"  {one_line(what, 300)}") for what in need.what[:_MOST_PROGRAMS])
        if len(need.what) > _MOST_PROGRAMS:
            yield text(f"  and {len(need.what) - _MOST_PROGRAMS} more")
