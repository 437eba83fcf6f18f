"""What a plan will take: time, tokens and cost, from what runs like its own took before.

A run is compared with the newest runs of its test with its agent (in its variation, where there are any); a test that
was never run, with the newest runs of its agent. What nothing is known of is said as unknown, and is in no sum.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Annotated, TypeVar

from msgspec import Meta, Struct, field
from msgspec.structs import replace

from agenteval_tui.core.document import Count, Document
from agenteval_tui.history.estimates import RunUsage
from agenteval_tui.history.store import Store
from agenteval_tui.runs.plan.model import Plan, RunPlan
from agenteval_tui.runs.trust_check import asks_judge

RECENT = 20
"""Runs of a test that its figures rest on, at most."""
_ROWS = 2_000  # that are read of a suite, about
_TESTS = 1_000  # of a suite that are looked up; more tell nothing new
_Z90 = 1.645
_FEW = 3  # runs below which their own spread says nothing
_SPREAD = 0.5  # of the mean, where nothing better is known


class Range(Document, frozen=True):
    """A sum over planned runs: most likely `expected`, nine times in ten `low`..`high`; two digits each."""

    low: float
    expected: float
    high: float
    runs: Annotated[Count, Meta(description="planned runs that it is a sum over")]
    unknown: Annotated[Count, Meta(description="planned runs of which nothing is known: they come on top")]
    basis: Annotated[Count, Meta(description="earlier runs that it rests on")]


_Range = Annotated[Range | None, Meta(description="Nine times in ten between low and high. Null: nothing is known.")]


class Total(Struct, frozen=True):
    """What agents, judges and simulated users are expected to take together. `whole`: the sum has all; else
    more comes on top, of which nothing is known."""

    expected: float
    whole: bool


class ReplyEstimate(Document, frozen=True):
    """What judges (and embedders on servers), or simulated users, will take, apart from the agents: how many questions,
    tokens, US dollars.

    `asked`: the planned runs that ask them. None: unknown, or nothing to know where `asked` is 0.
    """

    asked: Count
    questions: _Range
    tokens: _Range
    cost: _Range


class UserEstimate(ReplyEstimate, frozen=True):
    """What simulated users will take."""

    asked: Annotated[Count, Meta(description="planned runs with a simulated user")]
    questions: _Range = field(name="messages")


class Estimate(Document, frozen=True):
    """What a plan will take. `agents`: planned runs by agent. None where nothing is known, and never 0 for that.

    `seconds` is for the plan's concurrency, and of the agents only: the time of judges is not measured. `tokens` and
    `cost` (US dollars) are the agents'; `judges` and simulated `users` are apart. The estimate is of all runs. Failed
    attempts and cached answers are left out of account.
    """

    runs: Count
    tests: Count
    agents: Mapping[str, Count]
    seconds: _Range
    tokens: _Range
    cost: _Range
    judges: ReplyEstimate
    users: UserEstimate = UserEstimate(0, None, None, None)
    may_stop: Annotated[Count, Meta(description="runs that early stopping may save")] = 0

    @property
    def total_cost(self) -> Total | None:
        """The expected cost of all of it: agents, judges and simulated users. None: nothing is known."""
        return self._total(self.cost, self.judges.cost, self.users.cost)

    @property
    def total_tokens(self) -> Total | None:
        """The expected tokens of all of it: agents, judges and simulated users. None: nothing is known."""
        return self._total(self.tokens, self.judges.tokens, self.users.tokens)

    @property
    def whole_cost(self) -> float | None:
        """The expected cost of all of it in US dollars; None where that of a part is not known."""
        cost = self.total_cost
        return cost.expected if cost is not None and cost.whole else None

    def of_requests(self, share: float) -> Estimate:
        """The same, where agents are asked only this share of the requests of whole runs."""
        return replace(
            self,
            seconds=_share_of(self.seconds, share),
            tokens=_share_of(self.tokens, share),
            cost=_share_of(self.cost, share),
        )

    def _total(self, agents: Range | None, judges: Range | None, users: Range | None) -> Total | None:
        parts = (self.runs, agents), (self.judges.asked, judges), (self.users.asked, users)
        ranges = [amount for _, amount in parts if amount is not None]
        if not ranges:
            return None
        whole = not any(runs and amount is None for runs, amount in parts) and not any(
            amount.unknown for amount in ranges
        )
        return Total(sum(amount.expected for amount in ranges), whole)


def _share_of(whole: Range | None, share: float) -> Range | None:
    if whole is None:
        return None
    low, expected, high = (_two_digits(bound * share) for bound in (whole.low, whole.expected, whole.high))
    return replace(whole, low=low, expected=expected, high=high)


def estimate(plan: Plan, store: Store | None) -> Estimate:
    """What the plan's runs will take, by what the history has of their tests and agents. Raises HistoryError."""
    groups = list(_groups(plan))
    if store is not None:
        _look_up(groups, store)
    durations = _total(groups, lambda usage: usage.duration_ms)
    return Estimate(
        runs=len(plan.runs),
        tests=plan.tests,
        agents=dict(Counter(run.ref.agent for run in plan.runs)),
        seconds=_seconds(plan, groups, durations),
        tokens=_range(_total(groups, lambda usage: usage.tokens)),
        cost=_range(_total(groups, lambda usage: usage.cost)),
        judges=_replies(
            ReplyEstimate,
            groups,
            lambda group: group.asks,
            lambda usage: (usage.replies, usage.judge_tokens, usage.judge_cost),
        ),
        users=_replies(
            UserEstimate,
            groups,
            lambda group: group.simulated,
            lambda usage: (usage.user_replies, usage.user_tokens, usage.user_cost),
        ),
        may_stop=sum(group.may_stop for group in groups),
    )


# What belongs together


class _Group(Struct):
    """Planned runs that are alike: of one test, agent and variation. `known`: earlier runs like them; `own` says that
    those are of the same test."""

    suite_key: str
    test: str
    agent: str
    agent_hash: str
    variation: str
    limit: int | None
    asks: bool
    simulated: bool
    runs: int = 0
    may_stop: int = 0
    known: Sequence[RunUsage] = ()
    own: bool = True


def _groups(plan: Plan) -> Iterator[_Group]:
    groups: dict[tuple[str, str, str, str], _Group] = {}
    asking: dict[int, bool] = {}
    for run in plan.runs:
        ref = run.ref
        key = (run.suite_key, ref.test, run.agent.hash, ref.variation)
        group = groups.get(key)
        if group is None:
            asks = asking.get(id(run.specs))
            if asks is None:
                asks = asking[id(run.specs)] = any(asks_judge(spec) for spec in run.specs)
            group = _Group(
                run.suite_key,
                test=ref.test,
                agent=ref.agent,
                agent_hash=run.agent.hash,
                variation=ref.variation,
                limit=_limit(run),
                asks=asks,
                simulated=run.user is not None,
            )
            groups[key] = group
        group.runs += 1
        group.may_stop += run.stop is not None and ref.repetition > 1
    yield from groups.values()


def _limit(run: RunPlan) -> int | None:
    limit = run.agent.config.get("concurrency")
    return limit if isinstance(limit, int) and limit > 0 else None


def _look_up(groups: Sequence[_Group], store: Store) -> None:
    by_suite: dict[str, list[_Group]] = defaultdict(list)
    for group in groups:
        by_suite[group.suite_key].append(group)
    exact: dict[tuple[str, str, str, str], list[RunUsage]] = defaultdict(list)
    alike: dict[tuple[str, str, str], list[RunUsage]] = defaultdict(list)
    for suite_key, listed in by_suite.items():
        tests = list(dict.fromkeys(group.test for group in listed))
        agents = list(dict.fromkeys(group.agent for group in listed))
        # Of many tests every n-th one: the others are estimated by what the agent took elsewhere.
        if len(tests) > _TESTS:
            tests = tests[:: math.ceil(len(tests) / _TESTS)]
        each = math.ceil(len(listed) / len(tests))  # configurations of a test share its window
        window = max(_FEW, min(RECENT * each, _ROWS // len(tests)))
        for usage in store.figures_of_tests(suite_key, tests, agents, window):
            exact[suite_key, usage.test_id, usage.agent, usage.variation].append(usage)
            alike[suite_key, usage.test_id, usage.agent].append(usage)
    pooled: dict[str, list[RunUsage]] = {}
    for group in groups:
        usages = exact.get((group.suite_key, group.test, group.agent, group.variation)) or alike.get(
            (group.suite_key, group.test, group.agent)
        )
        # Nothing is known of the test: what its agent took elsewhere, looked up once for each agent.
        if usages is None:
            if group.agent not in pooled:
                pooled[group.agent] = store.figures_of_agent(group.agent, 2 * RECENT)
            usages, group.own = pooled[group.agent], False
        group.known = usages[:RECENT] if group.own else usages


# Sums with their spread


class _Sum(Struct):
    """A sum over runs, its variance, and what it rests on. `longest`: the greatest mean of one run."""

    expected: float = 0.0
    variance: float = 0.0
    runs: int = 0
    unknown: int = 0
    longest: float = 0.0
    seen: set[int] = field(default_factory=set)

    def add(self, runs: int, values: Sequence[float], ids: Iterable[int], *, own: bool) -> None:
        """`runs` more, each like one of `values`. `own`: these are of the same test."""
        if not values:
            self.unknown += runs
            return
        mean = math.fsum(values) / len(values)
        spread = _SPREAD * mean
        # Of fewer the spread may be 0 by chance.
        if len(values) >= _FEW:
            measured = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1))
            spread = measured if own else max(measured, spread)
        self.expected += runs * mean
        # The runs differ from one another, and their mean from the mean of those before: by little where many were
        # measured, by as much as tests differ where it is another test's.
        self.variance += runs * spread**2 + (runs * spread) ** 2 / (len(values) if own else 1)
        self.runs += runs
        self.longest = max(self.longest, mean)
        self.seen.update(ids)


def _total(
    groups: Iterable[_Group],
    value: Callable[[RunUsage], float | None],
    counts: Callable[[_Group, RunUsage], bool] = lambda _group, _usage: True,
) -> _Sum:
    total = _Sum()
    for group in groups:
        usages = [usage for usage in group.known if counts(group, usage)]
        measured = [(number, id(usage)) for usage in usages if (number := value(usage)) is not None]
        total.add(group.runs, [number for number, _ in measured], [name for _, name in measured], own=group.own)
    return total


_Replies = TypeVar("_Replies", bound=ReplyEstimate)


def _replies(
    kind: type[_Replies],
    groups: Sequence[_Group],
    asks: Callable[[_Group], bool],
    used: Callable[[RunUsage], tuple[int, int, float | None]],
) -> _Replies:
    """What is asked beside the agents. `used`: of an earlier run, how many replies, their tokens, their cost."""
    answered = [group for group in groups if asks(group) or any(used(usage)[0] for usage in group.known)]

    def total(figure: Callable[[tuple[int, int, float | None]], float | None]) -> _Sum:
        return _total(
            answered,
            lambda usage: figure(used(usage)) if used(usage)[0] else 0.0,
            # A run for which nothing was asked says nothing, where something will be: its criteria were others.
            lambda group, usage: used(usage)[0] > 0 or not asks(group),
        )

    sums = [total(lambda figures: figures[0]), total(lambda figures: figures[1]), total(lambda figures: figures[2])]
    return kind(sum(group.runs for group in groups if asks(group)), *map(_range, sums))


def _range(total: _Sum, middle: float | None = None) -> Range | None:
    """The sum as a range around `middle` (by default the sum itself); None when nothing is in it."""
    if not total.runs:
        return None
    middle = total.expected if middle is None else middle
    # Log-normal: what is measured here is never below 0, and twice as much is as likely as half.
    deviation = math.sqrt(math.log1p(total.variance / total.expected**2)) if total.expected else 0.0
    ratio = math.exp(_Z90 * deviation)
    return Range(
        _two_digits(middle / ratio),
        _two_digits(middle),
        _two_digits(middle * ratio),
        total.runs,
        total.unknown,
        len(total.seen),
    )


def _seconds(plan: Plan, groups: Sequence[_Group], total: _Sum) -> Range | None:
    """As long as the busiest takes: all runs at the plan's concurrency, or an agent's at its own limit."""
    atmost = max(1, plan.concurrency)
    by_agent: dict[str, list[_Group]] = defaultdict(list)
    for group in groups:
        if group.limit is not None and group.limit < atmost:
            by_agent[group.agent_hash].append(group)
    slowest = total.expected / min(atmost, max(1, total.runs))
    for listed in by_agent.values():
        of_agent = _total(listed, lambda usage: usage.duration_ms)
        slowest = max(slowest, of_agent.expected / min(listed[0].limit or 1, max(1, of_agent.runs)))
    return _range(total, max(slowest, total.longest) / 1000)


def _two_digits(value: float) -> float:
    return float(f"{value:.2g}") if value else 0.0
