"""What one execution knows while it runs, and what it tells of that in events."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from agenteval_tui.runs.agent_pool import Prepared
from agenteval_tui.runs.attempt import RunAttempts
from agenteval_tui.runs.budget import Budget, Spending
from agenteval_tui.runs.early_stopping import Repetitions
from agenteval_tui.runs.events import Event, Progress
from agenteval_tui.runs.execution_totals import Tally
from agenteval_tui.runs.grading_pool import GradingPool
from agenteval_tui.runs.pending_writes import PendingWrite, PendingWrites
from agenteval_tui.runs.plan.model import Plan, RunPlan
from agenteval_tui.runs.run_queue import WaitingRuns
from agenteval_tui.runs.throttle import Refusals

if TYPE_CHECKING:
    from agenteval_tui.history.store import Store
    from agenteval_tui.runs.executors.base import Executor

log = logging.getLogger(__name__)

GRACE_S = 5.0
"""How long an agent may clean up after it was cancelled or timed out; then the run is settled without it."""


class ExecutionState(ABC):
    """The state of an execution, and its events. `Settling` ends runs, `Engine` begins them."""

    _loop: asyncio.AbstractEventLoop

    def __init__(
        self,
        plan: Plan,
        store: Store,
        emit: Callable[[Event], None],
        *,
        env: Mapping[str, str] | None = None,
        retry_base_s: float = 0.5,
        grace_s: float = GRACE_S,
        pid: int | None = None,
    ) -> None:
        self.plan = plan
        self._store = store
        self._emit = emit
        self._env = dict(os.environ) if env is None else env
        self._retry_base_s = retry_base_s
        self._grace_s = grace_s
        self._pid = pid
        self._seq = 0
        self._agents: dict[str, Prepared] = {}
        self._repetitions: dict[str, Repetitions] = {}
        self._waiting = WaitingRuns((), {})
        self._refusals = Refusals(self._waiting, self._agents, self._tell, self._fill_in)
        self._ends = PendingWrites(store, self._stored, self._fail, self._check_finished)
        self._budget = Budget(plan.limits)
        self._limit = plan.concurrency
        self._total = len(plan.runs) + len(plan.earlier)
        self._paused = False
        self._stopping = ""  # why no more runs are begun: cancelled, stopped or failed
        self._message = ""
        self._begun = False
        self._began = time.monotonic()
        self._finished = asyncio.Event()
        self._workers: set[asyncio.Task[None]] = set()
        self._flights: dict[str, RunAttempts] = {}
        self._dropped: list[RunPlan] = []
        self._unwanted: list[str] = []  # runs that were cancelled before the start
        self._tally = Tally()
        self._figures: tuple[Any, ...] = ()
        self._ticks = 0
        self._timer: asyncio.TimerHandle | None = None
        self._judging = GradingPool(plan, store, self._env, retry_base_s)
        self._executor: Executor | None = None

    @abstractmethod
    def _fill(self) -> None:
        """As many workers as there is room for."""

    @abstractmethod
    def _check_finished(self) -> None:
        """See whether the execution is over."""

    @abstractmethod
    def _stored(self, end: PendingWrite) -> None:
        """A run's end is on the disk."""

    @abstractmethod
    def _fail(self, message: str) -> None:
        """The execution can't go on: nothing that ends now would be kept."""

    def _fill_in(self, seconds: float) -> None:
        # A little later than that: the two clocks that are compared need not agree to the last digit.
        self._loop.call_later(seconds + 0.001, self._fill)

    def _held_up(self) -> str:
        """The limit that lets no run begin now, in words; "" when one may."""
        if not self._budget.limited:
            return ""
        spent = [flight.spent for flight in self._flights.values() if not flight.settled]
        in_flight = [Spending(one.cost or 0.0, one.total_tokens or 0) for one in spent]
        used = self._tally.used(self._judging.usage)
        return self._budget.holds_up(used, self._tally.paid, in_flight, time.monotonic() - self._began)

    def _tell(self, kind: type[Any], *values: Any) -> Any:
        self._seq += 1
        event = kind(self._seq, *values)
        try:
            self._emit(event)
        except Exception:
            # Whoever watches must not be able to stop what is being run and paid for.
            log.exception("a watcher broke")
        return event

    def _tell_progress(self) -> None:
        if not self._begun:
            return
        parked = self._refusals.parked
        figures = self._tally.figures(
            total=self._total,
            queued=len(self._waiting) - len(parked),
            dropped=len(self._dropped),
            flights=[*self._flights.values(), *parked.values()],
            limit=self._limit,
            paused=self._paused,
            judged=self._judging.usage,
        )
        if figures != self._figures:
            self._figures = figures
            self._tell(Progress, *figures)
