"""The fields of the plan dialog: from what a person wrote to the options of a plan, with what is wrong by field."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from agenteval_tui.core.numbers import typed_whole
from agenteval_tui.runs.plan.model import PlanOptions

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

    def whole(name: str) -> int | None:
        text = values.get(name, "").replace("_", "").replace(",", "")
        if not text:
            return None
        number = typed_whole(text)
        if not number:
            problems[name] = "a whole number from 1"
            return None
        return number

    def dollars(name: str) -> float | None:
        text = values.get(name, "").lstrip("$").strip()
        if not text:
            return None
        try:
            amount = float(text)
        except ValueError:
            amount = -1.0
        if not 0 < amount < 1e9:
            problems[name] = "US dollars, such as 0.50"
            return None
        return amount

    def seconds(name: str) -> float | None:
        text = values.get(name, "").replace("_", "").replace(",", "")
        if not text:
            return None
        try:
            number = float(text)
        except ValueError:
            number = -1.0
        if not 0 < number < 1e9:
            problems[name] = "a number of seconds"
            return None
        return number

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
    made = replace(
        base,
        repeat=whole("repeat"),
        sample=whole("sample"),
        concurrency=whole("concurrency"),
        max_cost=dollars("max_cost"),
        max_tokens=whole("max_tokens"),
        max_seconds=seconds("max_seconds"),
        agent=None if ab else agent,
        variation=variation,
        ab=ab,
        cache=values.get("cache", base.cache),
        early_stop=values.get("stop", "yes") != "no",
    )
    return (None if problems else made), problems


def default_agent(agents: Sequence[str]) -> str:
    """The agent of tests that all have the same one."""
    named = dict.fromkeys(agents)
    return next(iter(named)) if len(named) == 1 else ""
