"""What one execution knows while it runs."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from typing import Any

from agenteval_tui.runs.agent_pool import Prepared
from agenteval_tui.runs.attempt import RunAttempts
from agenteval_tui.runs.budget import Budget, Spending
from agenteval_tui.runs.early_stopping import Repetitions
from agenteval_tui.runs.execution_totals import ExecutionTotals
from agenteval_tui.runs.plan.model import Plan, RunPlan
from agenteval_tui.runs.run_queue import WaitingRuns
from agenteval_tui.transcripts.model import Usage


@dataclass(slots=True)
class ExecutionState:
    """The state of one execution: data, and what can be asked of it.

    The engine begins runs, `RunCompletion` ends them, `Refusals` sends them back into the line: each is given the state
    and changes it, all in the event loop's thread.
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
    """By run id."""
    parked: dict[str, RunAttempts] = field(default_factory=dict)
    """By run id: those that a busy server refused, and that wait in line again."""
    workers: set[asyncio.Task[None]] = field(default_factory=set)
    dropped: list[RunPlan] = field(default_factory=list)
    """Runs that were in line when the execution was stopped."""
    unwanted: list[str] = field(default_factory=list)
    """Ids of runs that were cancelled before the execution began."""
    totals: ExecutionTotals = field(default_factory=ExecutionTotals)
    begun: bool = False
    began: float = field(default_factory=time.monotonic)
    paused: bool = False
    stopping: str = ""
    """Why no more runs are begun: cancelled, stopped or failed; "": more are."""
    message: str = ""

    @property
    def total(self) -> int:
        """All runs, with those that ended before the execution was resumed."""
        return len(self.plan.runs) + len(self.plan.earlier)

    def limit_reached(self, judged: Usage) -> str:
        """The limit that lets no run begin now, in words; "" when one may. `judged`: what judges have used."""
        if not self.budget.limited:
            return ""
        spent = [attempts.spent for attempts in self.in_flight.values() if not attempts.handed_to_store]
        in_flight = [Spending(one.cost or 0.0, one.total_tokens or 0) for one in spent]
        used = self.totals.used(judged)
        return self.budget.holds_up(used, self.totals.paid, in_flight, time.monotonic() - self.began)

    def progress(self, judged: Usage) -> tuple[Any, ...]:
        """What a `Progress` event holds behind its number."""
        return self.totals.figures(
            total=self.total,
            queued=len(self.waiting) - len(self.parked),
            dropped=len(self.dropped),
            in_flight=[*self.in_flight.values(), *self.parked.values()],
            limit=self.limit,
            paused=self.paused,
            judged=judged,
        )

    def drop_waiting(self) -> None:
        """Nothing that waits is begun any more."""
        self.dropped.extend(self.waiting.clear())
