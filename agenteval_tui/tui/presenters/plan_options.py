"""The fields of the plan dialog: from what a person wrote to the options of a plan, with what is wrong by field."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.options import OptionError, options_of
from agenteval_tui.history.execution_names import checked_name
from agenteval_tui.runs.plan.options import PlanOptions

CACHES = (("", "off"), ("first", "first repetition only"), ("all", "every repetition"))
STOPS = (("yes", "as the tests say"), ("no", "never"))
NO = "\x1f"
"""The choice for none: no name is this."""


def read_options(
    values: Mapping[str, str], base: PlanOptions, default_agent: str
) -> tuple[PlanOptions | None, dict[str, str]]:
    """(the options, {}) or (None, what is wrong by field). `default_agent`: the A of an A/B comparison when no agent is
    chosen; "" when the suites have several."""
    problems: dict[str, str] = {}

    def number(name: str) -> Any:
        option = options_of(PlanOptions)[name]
        try:
            return option.read(values.get(name, ""))
        except OptionError:
            problems[name] = option.range
            return None

    agent = values.get("agent") or None
    variation = None if values.get("variation", NO) == NO else values["variation"]
    second = "" if values.get("ab", NO) == NO else values["ab"]
    ab: tuple[str, ...] = ()
    if second:
        first = agent or default_agent
        if not first:
            problems["ab"] = "choose the first agent above"
        elif first == second:
            problems["ab"] = "the same agent as above"
        ab = (first, second)
    name = base.name
    try:
        name = checked_name(values.get("name", base.name))
    except AgentevalError as error:
        problems["name"] = error.what
    options = replace(
        base,
        name=name,
        repeat=number("repeat"),
        sample=number("sample"),
        concurrency=number("concurrency"),
        max_cost=number("max_cost"),
        max_tokens=number("max_tokens"),
        max_seconds=number("max_seconds"),
        agent=None if ab else agent,
        variation=variation,
        ab=ab,
        cache=values.get("cache", base.cache),
        early_stop=values.get("stop", "yes") != "no",
    )
    return (None if problems else options), problems


def default_agent(agents: Sequence[str]) -> str:
    """The agent of tests that all have the same one."""
    named = dict.fromkeys(agents)
    return next(iter(named)) if len(named) == 1 else ""
