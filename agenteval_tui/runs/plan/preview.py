"""What pressing run would start: how many runs, on which agents, what it will take, and what would be executed."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Annotated, Literal

from msgspec import Meta

from agenteval_tui.agents.permission import TrustRequirement, untrusted_needs
from agenteval_tui.core.document import Count, Document, one_of
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.groups import grouped
from agenteval_tui.history.store import Store
from agenteval_tui.runs.around.execution import services_of
from agenteval_tui.runs.around.plan import said_of
from agenteval_tui.runs.estimate import Estimate, estimate
from agenteval_tui.runs.plan.model import Limits, Plan, RunPlan
from agenteval_tui.runs.program_code import agents_without_cache
from agenteval_tui.runs.trust_check import needs_of


class PlannedPart(Document, frozen=True):
    """The runs of one agent in one variation ("": the default configuration). `cases` are tests and rows of datasets,
    each of which may run several times."""

    agent: str
    variation: str
    tests: Count
    cases: Count
    runs: Count


class PlannedUser(Document, frozen=True):
    """The runs in which an agent plays the user."""

    agent: str
    runs: Count
    max_turns: Annotated[Count, Meta(description="the most that it speaks in one run")]


class NeedsTrust(Document, frozen=True):
    """A folder whose programs or files would be used, in words; `reason` says why it is not trusted, "" if it is."""

    folder: str
    what: tuple[str, ...]
    trusted: bool
    reason: str


class PlanPreview(Document, frozen=True, kw_only=True):
    """What an execution would be: what `agenteval run --plan --json -` prints. `parts` are in the order of the plan."""

    version: Literal[1] = 1
    title: str
    suites: Count
    tests: Count
    cases: Annotated[Count, Meta(description="tests, and rows of datasets")]
    runs: Count
    parts: tuple[PlannedPart, ...]
    users: tuple[PlannedUser, ...] = ()
    concurrency: Count
    estimate: Estimate
    limits: Limits
    over: Annotated[
        tuple[Annotated[str, one_of("cost", "tokens", "seconds")], ...],
        Meta(description="limits that the estimate is likely to reach"),
    ]
    cache: Annotated[str, one_of("", "first", "all")]
    around: Annotated[
        tuple[str, ...], Meta(description="services, hooks, and what runs work in and share, in the order of their use")
    ] = ()
    trusted: bool
    needs: Annotated[
        tuple[NeedsTrust, ...],
        Meta(description="what would be executed on this machine, or read outside the suites' folders"),
    ]


class Preview(PlanPreview, frozen=True, kw_only=True):
    """The same with what only people are told."""

    without_cache: Mapping[str, str] = {}
    """With `cache`, the agents that are asked all the same, with the reason (`program_code.ProgramCode.unknown`)."""


def preview_plan(plan: Plan, store: Store | None) -> Preview:
    """The same of a plan."""
    groups: dict[tuple[str, str], tuple[set[tuple[str, str]], set[tuple[str, str, int]], list[int]]] = {}
    cases: set[tuple[str, str, int]] = set()
    for run in plan.runs:
        ref = run.ref
        tests, own, count = groups.setdefault((ref.agent, ref.variation), (set(), set(), [0]))
        case = (run.suite_key, ref.test, ref.row)
        tests.add(case[:2])
        own.add(case)
        cases.add(case)
        count[0] += 1
    expected = estimate(plan, store)
    needs = _needs(plan)
    return Preview(
        title=plan.title,
        suites=len(plan.suite_keys),
        tests=plan.tests,
        cases=len(cases),
        runs=len(plan.runs),
        parts=tuple(
            PlannedPart(agent, variation, len(tests), len(own), count[0])
            for (agent, variation), (tests, own, count) in groups.items()
        ),
        concurrency=plan.concurrency,
        estimate=expected,
        limits=plan.limits,
        over=tuple(_over(plan.limits, expected)),
        cache=plan.cache,
        trusted=all(need.trusted for need in needs),
        needs=needs,
        users=tuple(_users(plan)),
        around=tuple(dict.fromkeys(line for run in plan.runs for line in _around(run))),
        without_cache=agents_without_cache(plan, os.environ) if plan.cache else {},
    )


def _around(run: RunPlan) -> Iterator[str]:
    try:
        services = services_of(run)
    except AgentevalError:  # the trust check, or the agent, says what is wrong
        services = ()
    yield from (service.description for service in services)
    if run.around is not None:
        yield from said_of(run.around)


def _users(plan: Plan) -> Iterator[PlannedUser]:
    turns_by_agent = grouped(
        (run.user.agent.name, run.user.brief.max_turns) for run in plan.runs if run.user is not None
    )
    return (PlannedUser(agent, len(turns), max(turns)) for agent, turns in turns_by_agent.items())


def _needs(plan: Plan) -> tuple[NeedsTrust, ...]:
    needs: tuple[TrustRequirement, ...] = needs_of(plan)
    # What the user allowed for this time is no question.
    reasons = {} if plan.trust else {need.folder: reason for need, reason in untrusted_needs(needs)}
    return tuple(
        NeedsTrust(str(need.folder), need.what, not reasons.get(need.folder), reasons.get(need.folder, ""))
        for need in needs
    )


def _over(limits: Limits, expected: Estimate) -> list[str]:
    pairs = (
        ("cost", limits.cost, expected.total_cost),
        ("tokens", limits.tokens, expected.total_tokens),
        ("seconds", limits.seconds, expected.seconds),
    )
    return [
        name for name, limit, likely in pairs if limit is not None and likely is not None and likely.expected >= limit
    ]
