"""What a run would start and what it would take: what `agenteval run --plan --json` prints."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta
from msgspec.structs import asdict

from agenteval_tui.core.document import Count, Document, one_of
from agenteval_tui.runs import estimate
from agenteval_tui.runs.plan.preview import Preview


class PlannedPart(Document, frozen=True, kw_only=True):
    """The runs of one agent in one variation."""

    agent: str
    variation: str
    tests: Count
    cases: Count
    runs: Count


class Range(Document, frozen=True, kw_only=True):
    """A sum over planned runs."""

    low: float
    expected: float
    high: float
    runs: Annotated[Count, Meta(description="planned runs that it is a sum over")]
    unknown: Annotated[Count, Meta(description="planned runs of which nothing is known: they come on top")]
    basis: Annotated[Count, Meta(description="earlier runs that it rests on")]


_Range = Annotated[Range | None, Meta(description="Nine times in ten between low and high. Null: nothing is known.")]


class JudgeEstimate(Document, frozen=True, kw_only=True):
    """What judges will take."""

    asked: Count
    questions: _Range
    tokens: _Range
    cost: _Range


class UserEstimate(Document, frozen=True, kw_only=True):
    """What simulated users will take."""

    asked: Annotated[Count, Meta(description="planned runs with a simulated user")]
    messages: _Range
    tokens: _Range
    cost: _Range


class Estimate(Document, frozen=True, kw_only=True):
    """What a plan will take."""

    runs: Count
    tests: Count
    agents: dict[str, Count]
    seconds: _Range
    tokens: _Range
    cost: _Range
    judges: JudgeEstimate
    users: UserEstimate
    may_stop: Annotated[Count, Meta(description="runs that early stopping may save")]


class PlannedUser(Document, frozen=True, kw_only=True):
    """The runs in which an agent plays the user."""

    agent: str
    runs: Count
    max_turns: Annotated[Count, Meta(description="the most that it speaks in one run")]


class PlanLimits(Document, frozen=True, kw_only=True):
    """What an execution may use; null: as much as it takes."""

    cost: float | None
    tokens: Count | None
    seconds: float | None


class TrustNeed(Document, frozen=True, kw_only=True):
    """A folder whose programs or files would be used."""

    folder: str
    what: tuple[str, ...]
    trusted: bool
    reason: str


class PlanPreview(Document, frozen=True, kw_only=True):
    """`agenteval run --plan`."""

    version: Literal[1] = 1
    title: str
    suites: Count
    tests: Count
    cases: Annotated[Count, Meta(description="tests, and rows of datasets")]
    runs: Count
    parts: tuple[PlannedPart, ...]
    users: tuple[PlannedUser, ...]
    concurrency: Count
    estimate: Estimate
    limits: PlanLimits
    over: Annotated[
        tuple[Annotated[str, one_of("cost", "tokens", "seconds")], ...],
        Meta(description="limits that the estimate is likely to reach"),
    ]
    cache: Annotated[str, one_of("", "first", "all")]
    around: Annotated[
        tuple[str, ...], Meta(description="services, hooks, and what runs work in and share, in the order of their use")
    ]
    trusted: bool
    needs: Annotated[
        tuple[TrustNeed, ...],
        Meta(description="what would be executed on this machine, or read outside the suites' folders"),
    ]


def plan_document(preview: Preview) -> PlanPreview:
    """What an execution would be."""
    return PlanPreview(
        title=preview.title,
        suites=preview.suites,
        tests=preview.tests,
        cases=preview.cases,
        runs=preview.runs,
        parts=tuple(PlannedPart(**asdict(part)) for part in preview.parts),
        users=tuple(PlannedUser(**asdict(user)) for user in preview.users),
        concurrency=preview.concurrency,
        estimate=_estimate(preview.estimate),
        limits=PlanLimits(**asdict(preview.limits)),
        over=preview.over,
        cache=preview.cache,
        around=preview.around,
        trusted=preview.trusted,
        needs=tuple(
            TrustNeed(folder=str(need.folder), what=need.what, trusted=need.trusted, reason=need.reason)
            for need in preview.needs
        ),
    )


def _estimate(found: estimate.Estimate) -> Estimate:
    judges, users = found.judges, found.users
    return Estimate(
        runs=found.runs,
        tests=found.tests,
        agents=dict(found.agents),
        seconds=_range(found.seconds),
        tokens=_range(found.tokens),
        cost=_range(found.cost),
        judges=JudgeEstimate(
            asked=judges.asked,
            questions=_range(judges.questions),
            tokens=_range(judges.tokens),
            cost=_range(judges.cost),
        ),
        users=UserEstimate(
            asked=users.asked,
            messages=_range(users.questions),
            tokens=_range(users.tokens),
            cost=_range(users.cost),
        ),
        may_stop=found.may_stop,
    )


def _range(found: estimate.Range | None) -> Range | None:
    return None if found is None else Range(**asdict(found))
