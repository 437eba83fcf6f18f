"""Requests to models wait until they fit into the limit on cost."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from agenteval_tui.runs.attempt import RunAttempts
from agenteval_tui.runs.execution_state import ExecutionState
from agenteval_tui.transcripts.model import Usage


class RequestRoom:
    """For each request in flight, as much is set aside as it may cost at most. One more is sent if that fits, or if it
    is the only one: so the limit is exceeded by one request at most. A request without a bound is taken for as
    expensive as the dearest of its agent before it. `others`: what judges and simulated users have used."""

    def __init__(self, state: ExecutionState, limit: float, others: Callable[[], Usage]) -> None:
        self._state = state
        self._limit = limit
        self._others = others
        self._dearest: dict[str, float] = {}
        self._freed = asyncio.Event()

    async def enter(self, attempts: RunAttempts, bound: float | None) -> bool:
        """Wait until this run's next request fits. Gives whether it had to wait. `bound`: US dollars."""
        has_waited = False
        while not self._fits(attempts, cost := self._cost(attempts, bound)):
            has_waited = True
            # Nothing is awaited between the look and the wait, so no `leave` can be missed.
            self._freed.clear()
            await self._freed.wait()
        attempts.pending = cost
        return has_waited

    def leave(self, attempts: RunAttempts, at_most: float) -> None:
        """Its request is over. `at_most`: what it would have cost with all its input written into a cache; 0: it was
        not paid for."""
        attempts.pending = 0.0
        agent = attempts.plan.ref.agent
        self._dearest[agent] = max(self._dearest.get(agent, 0.0), at_most)
        self._freed.set()

    def _cost(self, attempts: RunAttempts, bound: float | None) -> float:
        return self._dearest.get(attempts.plan.ref.agent, 0.0) if bound is None else bound

    def _fits(self, attempts: RunAttempts, cost: float) -> bool:
        running = self._state.running()
        others = sum(run_attempts.pending for run_attempts in running if run_attempts is not attempts)
        if not others:
            return True
        used = self._state.totals.used(self._others()).cost + sum(
            run_attempts.spent.cost or 0.0 for run_attempts in running
        )
        return used + others + cost <= self._limit * (1 + 1e-9)
