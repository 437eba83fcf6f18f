"""Runs that a busy server refused (429): they go back into the line, and fewer of their agent's ask at once."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace

from agenteval_tui.runs.events import Throttled
from agenteval_tui.runs.flight import Flight
from agenteval_tui.runs.prepared import Prepared
from agenteval_tui.runs.throttle import Throttle
from agenteval_tui.runs.waiting import WaitingRuns

LONGEST_HOLD_S = 600.0
"""A server that asks for more is not busy: a quota is used up. The run ends with its words."""


class Refusals:
    """The throttles of all agents, and the flights that wait in line.

    A refused run keeps its flight, with the attempts that it made, until it is its turn again. It waits as long as
    the server accepts anybody: neither `max_attempts` nor the run's time-out count that. It gives up when the server
    refuses everybody again and again (`Throttle.barren`), or asks for a longer wait than `LONGEST_HOLD_S`.

    `wake_in` is told in how many seconds it makes sense to look whether more may begin.
    """

    def __init__(
        self,
        waiting: WaitingRuns,
        agents: Mapping[str, Prepared],
        tell: Callable[..., None],
        wake_in: Callable[[float], object],
    ) -> None:
        self._waiting = waiting
        self._agents = agents
        self._tell = tell
        self._wake_in = wake_in
        self._throttles: dict[str, Throttle] = {}
        self.parked: dict[str, Flight] = {}
        """By run id."""

    def refused(self, flight: Flight, concurrency: int) -> bool:
        """The server refused a run: put it back into the line. False when it shall not wait, and its failure stands."""
        failed, agent = flight.refused, flight.plan.agent.hash
        if failed is None:
            return False
        throttle = self._throttles.setdefault(agent, Throttle())
        now = time.monotonic()
        wait_s = self._agents[agent].retries.wait_s(throttle.number(flight.asked_at), failed.retry_after_s)
        if wait_s > LONGEST_HOLD_S:
            asked = f"{failed.error.message}; it asks to wait {failed.retry_after_s:g} s"
            flight.give_up(replace(failed.error, message=asked))
            return False
        cut = throttle.refused(flight.asked_at, now, self._waiting.busy(agent), wait_s)
        self._apply(agent, throttle, concurrency, told=cut)
        if throttle.barren:
            flight.give_up(failed.error)
            return False
        flight.again_in(max(0.0, throttle.until - now), failed)
        flight.park()
        self.parked[flight.run] = flight
        self._waiting.put_back(flight.plan)
        return True

    def accepted(self, flight: Flight, concurrency: int) -> bool:
        """The server served a run. True when more may ask at once now."""
        agent = flight.plan.agent.hash
        throttle = self._throttles.get(agent)
        if throttle is None or not throttle.accepted(flight.asked_at, self._wanted(agent, concurrency)):
            return False
        self._apply(agent, throttle, concurrency, told=True)
        return True

    def _apply(self, agent: str, throttle: Throttle, concurrency: int, *, told: bool) -> None:
        self._waiting.cut(agent, throttle.limit, throttle.until)
        hold_s = max(0.0, throttle.until - time.monotonic())
        if hold_s:
            self._wake_in(hold_s)
        if told:
            wanted = self._wanted(agent, concurrency)
            limit = wanted if throttle.limit is None else min(throttle.limit, wanted)
            self._tell(Throttled, self._agents[agent].name, limit, wanted, round(hold_s, 3))

    def _wanted(self, agent: str, concurrency: int) -> int:
        own = self._agents[agent].limit
        return concurrency if own is None else min(own, concurrency)
