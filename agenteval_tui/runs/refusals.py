"""Runs that a busy server refused (429): they go back into the line, and fewer of their agent's ask at once."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace

from agenteval_tui.agents.interface import Failed
from agenteval_tui.runs.events import Throttled
from agenteval_tui.runs.flight import Flight
from agenteval_tui.runs.prepared import Prepared
from agenteval_tui.runs.throttle import Throttle
from agenteval_tui.runs.waiting import WaitingRuns
from agenteval_tui.text.moments import spoken_seconds

LONGEST_HOLD_S = 600.0
"""A server that asks for more is not busy: a quota is used up. The run ends with its words."""
REFUSED_ALONE = 2
"""So often may a run be refused while nothing else of its agent asks, and others were served: then it is given up."""


class Refusals:
    """The throttles of all agents, and the flights that wait in line.

    A refused run keeps its flight, with the attempts that it made, and goes to the end of its agent's line: the next
    one shows whether the server is busy. Neither `max_attempts` nor the run's time-out count the wait. It is given up

    - when the server serves others, and refuses this one also when nobody else asks (`REFUSED_ALONE`): the request
      itself is refused, as one that is too large for the limit is, and no waiting helps it;
    - when the server refuses everybody again and again (`Throttle.barren`);
    - when it asks for a longer wait than `LONGEST_HOLD_S`.

    A run that was refused after others were served holds up nobody else: it rests by itself.

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
        self._served: dict[str, int] = {}  # runs by agent
        self._first: dict[str, float] = {}  # by run: when it asked first
        self._last_served: dict[str, float] = {}  # by agent
        self._busy_at: dict[str, float] = {}  # by agent: the last refusal that may mean that the server is busy
        self.parked: dict[str, Flight] = {}
        """By run id."""

    def refused(self, flight: Flight, concurrency: int) -> bool:
        """The server refused a run: put it back into the line. False when it shall not wait, and its failure stands."""
        failed, agent = flight.refused, flight.plan.agent.hash
        if failed is None:
            return False
        throttle = self._throttles.setdefault(agent, Throttle())
        now = time.monotonic()
        flight.refusals += 1
        own = self._is_own(flight)
        number = 1 + flight.refused_alone if own else throttle.number(flight.asked_at)
        wait_s = self._agents[agent].retries.wait_s(number, failed.retry_after_s)
        if wait_s > LONGEST_HOLD_S:
            # A back-off of our own is never so long: it is the server that asks.
            asked = f"{failed.error.message}; it asks to wait {spoken_seconds(failed.retry_after_s or wait_s)}"
            flight.give_up(replace(failed.error, message=asked))
            return False
        if own:
            return self._refused_alone(flight, failed, wait_s, now)
        if throttle.lone(self._waiting.busy(agent)):
            throttle.passed_over()
            return self._refused_alone(flight, failed, wait_s, now)
        self._busy_at[agent] = now
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
        self._served[agent] = self._served.get(agent, 0) + 1
        self._last_served[agent] = time.monotonic()
        throttle = self._throttles.get(agent)
        if throttle is None:
            throttle = self._throttles[agent] = Throttle()
        raised = throttle.accepted(flight.asked_at, self._wanted(agent, concurrency))
        if not raised:
            return False
        self._apply(agent, throttle, concurrency, told=True)
        return True

    def _is_own(self, flight: Flight) -> bool:
        """Whether the refusal is about this run: it was refused before, the server has served others since it asked
        first, and it refused no run for the first time since this one asked."""
        agent = flight.plan.agent.hash
        first = self._first.setdefault(flight.run, flight.asked_at)
        served = self._last_served.get(agent, 0.0) >= first
        return flight.refusals > 1 and served and self._busy_at.get(agent, 0.0) < flight.asked_at

    def _refused_alone(self, flight: Flight, failed: Failed, wait_s: float, now: float) -> bool:
        """It rests by itself, and asks when nobody else does. False when it has had its chances."""
        agent = flight.plan.agent.hash
        flight.refused_alone += flight.refusals > 1 and self._waiting.was_alone(flight.plan)
        if flight.refused_alone >= REFUSED_ALONE:
            waited = now - self._first[flight.run]
            flight.give_up(
                replace(
                    failed.error,
                    message=f"{failed.error.message}; refused {flight.refusals} times in {waited:.3g} s, also alone, "
                    f"while {self._served[agent]:,} other runs were answered",
                    mend="the server refuses this request, not the pace: it may be larger than the limit of tokens "
                    "a minute. Shorten the prompt or the tools, or raise the limit at the provider",
                )
            )
            return False
        flight.again_in(wait_s, failed)
        flight.park()
        self.parked[flight.run] = flight
        self._waiting.put_back(flight.plan, rest_s=wait_s, alone=True)
        self._wake_in(wait_s)
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
