"""What one execution knows while it runs: its runs by state, the runs that ended, their cost, and how long the rest
takes."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Collection
from typing import Any, Protocol

from msgspec import Struct, field

from agenteval_tui.runs.agent_pool import Prepared
from agenteval_tui.runs.attempt import RunAttempts
from agenteval_tui.runs.budget import Budget, Spending
from agenteval_tui.runs.early_stopping import Repetitions
from agenteval_tui.runs.grading_pool import CANCELLED, SKIPPED
from agenteval_tui.runs.plan.model import EarlierRun, Plan, RunPlan
from agenteval_tui.runs.run_queue import WaitingRuns
from agenteval_tui.transcripts.model import Usage

WINDOW_S = 15.0
"""How far back the rate looks."""
ENOUGH = 5
"""Runs that must have ended in that time for the rate to tell anything."""
Spent = tuple[int, int, float | None]
"""Input tokens, output tokens, cost in US dollars (None: never measured)."""


class Unfinished(Protocol):
    """What a continuation paid for, kept outside the history until that has its run."""

    def done(self) -> None:
        """The run is stored."""
        ...

    def leave(self) -> None:
        """The run was stopped: who asks again continues from here."""
        ...


class EtaEstimator:
    """Counts ended runs over time. Times are seconds of any one steady clock."""

    def __init__(self) -> None:
        self._samples: deque[tuple[float, int]] = deque()
        self._mean_s: float | None = None

    def ended(self, duration_s: float) -> None:
        """A run of this length ended. Later ones count more: agents get slower or faster."""
        if self._mean_s is None:
            self._mean_s = duration_s
        else:
            self._mean_s += (duration_s - self._mean_s) * 0.1  # about the last ten count

    def sample(self, now: float, done: int) -> None:
        """`done` runs have ended by `now`; to be told a few times a second."""
        self._samples.append((now, done))
        while len(self._samples) > 2 and now - self._samples[0][0] > WINDOW_S:
            self._samples.popleft()

    def forget(self) -> None:
        """What came before says nothing of what comes (after a pause, or with another concurrency)."""
        self._samples.clear()

    @property
    def rate(self) -> float:
        """Ended runs a second over the last seconds; 0 when there is nothing to tell it from."""
        if len(self._samples) < 2:
            return 0.0
        (first, before), (last, after) = self._samples[0], self._samples[-1]
        return (after - before) / (last - first) if last > first else 0.0

    def eta_s(self, queued: int, ages_s: list[float], concurrency: int) -> float | None:
        """Seconds until `queued` runs and those in attempts (running since `ages_s`) have ended; None: not known.

        From the rate where enough runs have ended lately, else from their mean length.
        """
        remaining = queued + len(ages_s)
        if remaining == 0:
            return 0.0
        if self._samples and self._samples[-1][1] - self._samples[0][1] >= ENOUGH and self.rate > 0:
            return remaining / self.rate
        if self._mean_s is None:
            return None
        mean = self._mean_s
        work = queued * mean + sum(max(mean - age, 0.0) for age in ages_s)
        return work / max(1, min(concurrency, remaining))


class ExecutionTotals:
    """Counts ended runs and their cost, which includes failed attempts: they are paid for as well."""

    def __init__(self) -> None:
        self.pace = EtaEstimator()
        self.paid = 0
        """Ended runs for which an agent was asked."""
        self.dearest: dict[str, Spending] = {}
        """What the dearest ended run of an agent took, by the agent's name."""
        self.unpriced: set[str] = set()
        """Agents of which tokens are known and the cost is not."""
        self._counts: dict[str, int] = {}
        self._spent: Spent = (0, 0, None)

    @property
    def ended(self) -> int:
        """How many runs have an outcome that is stored, or were cancelled."""
        return sum(self._counts.values())

    @property
    def skipped(self) -> int:
        """How many runs were not needed."""
        return self._counts.get(SKIPPED, 0)

    def add(self, attempts: RunAttempts, status: str) -> None:
        """A run's agent is done."""
        if attempts.cached:
            return  # no agent was asked: it cost nothing, and does not tell how long the others take
        self._spent = self._with([attempts.spent])
        self.paid += 1
        self._compare(attempts.plan.ref.agent, max(attempts.spent.cost or 0.0, attempts.at_most), attempts.spent)
        if attempts.spent.unpriced or attempts.uncounted:
            self.unpriced.add(attempts.plan.ref.agent)
        if attempts.user is not None:
            used = attempts.user.usage
            if used.unpriced:
                self.unpriced.add(attempts.user.name)
        # A cancelled run was cut short: how long it took says nothing of those that are left.
        if status != CANCELLED:
            self.pace.ended(attempts.duration_ms / 1000)

    def requeued(self, attempts: RunAttempts) -> None:
        """A run goes back to the queue, and is not run any more: what its attempts used was used all the same."""
        self._spent = self._with([attempts.spent])

    def earlier(self, run: EarlierRun) -> None:
        """A run that ended before the execution was resumed."""
        self._counts[run.status] = self._counts.get(run.status, 0) + 1
        used = Usage(run.input_tokens, run.output_tokens, cost=run.cost)
        if used != Usage():
            self._spent = self._with([used])
            self.paid += 1
            self._compare(run.ref.agent, used.cost or 0.0, used)
        if used.unpriced:
            self.unpriced.add(run.ref.agent)

    def _compare(self, agent: str, cost: float, spent: Usage) -> None:
        before = self.dearest.get(agent, Spending())
        self.dearest[agent] = Spending(max(before.cost, cost), max(before.tokens, spent.counted_tokens))

    def set_aside(self, attempts: RunAttempts) -> Spending | None:
        """As much as a run in flight may take before it ends; None where no run of its agent has ended."""
        dearest, spent = self.dearest.get(attempts.plan.ref.agent), attempts.spent
        if dearest is None:
            return None
        return Spending(max(spent.cost or 0.0, dearest.cost), max(spent.counted_tokens, dearest.tokens))

    def count(self, status: str) -> None:
        """A run's end is in the store."""
        self._counts[status] = self._counts.get(status, 0) + 1

    def used(self, others: Usage) -> Spending:
        """What ended runs have used, and all judges and simulated users (`others`)."""
        tokens_in, tokens_out, cost = self._spent
        return Spending((cost or 0.0) + (others.cost or 0.0), tokens_in + tokens_out + others.counted_tokens)

    def figures(
        self,
        *,
        total: int,
        queued: int,
        dropped: int,
        in_flight: Collection[RunAttempts],
        limit: int,
        paused: bool,
        judged: Usage,
        played: Usage,
    ) -> tuple[Any, ...]:
        """What a `Progress` event holds behind its number. `dropped` runs wait for nothing any more. `judged`: what
        judges have used, `played`: what simulated users have."""
        counts = self._counts
        eta_s = self.pace.eta_s(queued, [attempts.age_s for attempts in in_flight], limit)
        return (
            total,
            queued,
            total - queued - dropped - self.ended,
            counts.get("passed", 0),
            counts.get("failed", 0),
            counts.get("error", 0),
            counts.get(CANCELLED, 0),
            counts.get("needs_review", 0),
            round(self.pace.rate, 3),
            None if eta_s is None else round(eta_s, 1),
            *self._with([attempts.spent for attempts in in_flight]),
            limit,
            paused,
            self.skipped,
            judged.counted_tokens,
            judged.cost,
            played.counted_tokens,
            played.cost,
        )

    def _with(self, used: Collection[Usage]) -> Spent:
        tokens_in, tokens_out, cost = self._spent
        for spent in used:
            tokens_in += spent.input_tokens or 0
            tokens_out += spent.output_tokens or 0
            if spent.cost is not None:
                cost = (cost or 0.0) + spent.cost
        return tokens_in, tokens_out, cost


class ExecutionState(Struct):
    """The state of one execution, as data with queries.

    The engine starts runs, `RunCompletion` ends them, and `Refusals` puts refused runs back in line. Each of these
    changes the state, always in the event loop's thread.
    """

    plan: Plan
    limit: int
    """Runs at once."""
    budget: Budget
    agents: dict[str, Prepared] = field(default_factory=dict)
    """By hash."""
    waiting: WaitingRuns = field(default_factory=lambda: WaitingRuns((), {}))
    repetitions: dict[str, Repetitions] = field(default_factory=dict)
    """By run id; runs whose test does not stop early are not in it."""
    in_flight: dict[str, RunAttempts] = field(default_factory=dict)
    unfinished: dict[str, Unfinished] = field(default_factory=dict)
    """By run id: the paid answers of continuations that are not stored yet."""
    parked: dict[str, RunAttempts] = field(default_factory=dict)
    """By run id: runs that a busy server refused, and that wait in line again."""
    workers: set[asyncio.Task[None]] = field(default_factory=set)
    dropped: list[RunPlan] = field(default_factory=list)
    """Runs that were in line when the execution was stopped."""
    cancelled_early: list[str] = field(default_factory=list)
    """Ids of runs that were cancelled before the execution started."""
    totals: ExecutionTotals = field(default_factory=ExecutionTotals)
    begun: bool = False
    started_at: float = field(default_factory=time.monotonic)
    paused: bool = False
    stopping: str = ""
    """Why no more runs start: cancelled, stopped or failed; "": more runs can start."""
    message: str = ""
    cut: str = ""
    """The limit that ended a run before it had sent all its requests, in words; "" for none."""

    @property
    def total(self) -> int:
        """All runs, with those that ended before the execution was resumed."""
        return len(self.plan.runs) + len(self.plan.earlier)

    def limit_reached(self, others: Usage) -> str:
        """Why a limit lets no run begin now, in words that "after 3 of 9 runs" may follow; "" if a run may begin.
        `others`: what judges and simulated users have used."""
        if not self.budget.limited:
            return ""
        # What the runs before have cost is not known, so nothing says that another one fits.
        if self.plan.limits.cost is not None and (self.totals.unpriced or others.unpriced):
            return "the limit on cost can't be kept, so no more runs started"
        in_flight = [self.totals.set_aside(attempts) for attempts in self.running()]
        used, run = self.totals.used(others), self.waiting.next()
        most = None if run is None else self.totals.dearest.get(run.ref.agent)
        limit = self.budget.holds_up(
            used,
            self.totals.paid,
            [spending or Spending() for spending in in_flight],
            time.monotonic() - self.started_at,
            None if None in in_flight else most,
        )
        return f"{limit} was reached" if limit else ""

    def used_up(self, others: Usage) -> str:
        """Why no run may send one more request, in words; "" if they may. `others`: as in `limit_reached`."""
        if not self.budget.limited:
            return ""
        used = self.totals.used(others)
        spent = [attempts.spent for attempts in self.running()]
        cost = sum((usage.cost or 0.0 for usage in spent), used.cost)
        limit = self.budget.used_up(Spending(cost, sum((usage.counted_tokens for usage in spent), used.tokens)))
        if limit:
            self.cut = f"{limit} was reached"
        return self.cut if limit else ""

    def running(self) -> list[RunAttempts]:
        """The runs in flight that are not among the ended ones yet."""
        return [attempts for attempts in self.in_flight.values() if not attempts.handed_to_store]

    def progress(self, judged: Usage, played: Usage) -> tuple[Any, ...]:
        """What a `Progress` event holds behind its number."""
        return self.totals.figures(
            total=self.total,
            # Parked runs are in the line as well, but have begun.
            queued=len(self.waiting) - len(self.parked),
            dropped=len(self.dropped),
            in_flight=[*self.in_flight.values(), *self.parked.values()],
            limit=self.limit,
            paused=self.paused,
            judged=judged,
            played=played,
        )

    def drop_waiting(self) -> None:
        """Nothing that waits is begun any more."""
        self.dropped.extend(self.waiting.clear())
