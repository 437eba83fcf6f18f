"""How many requests may be in flight: as many as the server takes, and as many as fit into the limit on cost.

The number of an agent's runs that may ask its server at once is learned from the server's refusals (429).

Additive increase, multiplicative decrease, as in TCP, with two differences. One refusal among many answers is about
that run, and not about the server: only a second refusal soon after it halves the limit. And requests that were in
flight at the cut and get an answer show how many the server takes at once: the limit does not stay below that number. A
burst of refusals counts once: requests from before the last cut do not cut again.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable

from msgspec.structs import replace

from agenteval_tui.agents.base import Failed
from agenteval_tui.core.numbers import spoken_seconds
from agenteval_tui.runs.attempt import RunAttempts
from agenteval_tui.runs.events import Tell, Throttled
from agenteval_tui.runs.execution_state import ExecutionState
from agenteval_tui.transcripts.model import RunError, Usage

MOST_BURSTS = 10
"""After this many bursts of refusals without a success between them, the server is not busy: it rejects all runs."""
ISOLATED = 2
"""A refusal is isolated if the answers since the last refusal are at least this many times the runs in flight."""
LONGEST_WAIT_S = 600.0
"""A server that asks for a longer wait is not busy: a quota is used up. The run ends with the server's message."""
MOST_REFUSALS_ITSELF = 2
"""A run is given up after this many further refusals while the server serves others, if one of these came while only
refused runs were asking."""


class Throttle:
    """One agent's limit. Times are seconds of one monotonic clock.

    `limit` is the number of runs at once, or None if nothing was refused (or if the limit has grown enough again). No
    run starts before `until`.
    """

    def __init__(self) -> None:
        self.limit: int | None = None
        self.until = 0.0
        self._cut_at = float("-inf")
        self._accepted = 0
        self._bursts = 0
        self._in_flight_at_cut = 0  # without the refused run
        self._answered_at_once = 0  # how many of those in flight at the cut were answered
        # Infinite, so that the first refusal of all is isolated, too: it may be about its own run.
        self._answers_since_refusal: float = float("inf")
        self._isolated_before = 0  # isolated refusals just before

    def number(self, asked_at: float) -> int:
        """The number of the burst that a refused run belongs to, which asked at `asked_at`. Counts from the last
        success."""
        return max(1, self._bursts) if asked_at < self._cut_at else self._bursts + 1

    @property
    def rejects_all(self) -> bool:
        """Whether waiting no longer makes sense."""
        return self._bursts >= MOST_BURSTS

    def is_isolated(self, busy: int) -> bool:
        """Whether a refusal now, with `busy` runs in flight, is one among many answers. Report such a refusal with
        `count_isolated`, and any other with `refused`."""
        return self._answers_since_refusal >= ISOLATED * max(busy, 1)

    def count_isolated(self) -> None:
        """Report an isolated refusal. The next refusal is not isolated if it comes soon."""
        self._answers_since_refusal, self._isolated_before = 0, 1

    def refused(self, asked_at: float, now: float, busy: int, wait_s: float) -> bool:
        """Report the refusal of a run that asked at `asked_at`, with `busy` runs in flight, and a wait of `wait_s`.

        Returns True if that cut the limit.
        """
        # Also without a cut: each refusal of a burst may ask for a longer wait.
        self.until = max(self.until, now + wait_s)
        self._answers_since_refusal = 0
        if asked_at < self._cut_at:
            return False
        self._cut_at = now
        self._accepted = self._answered_at_once = 0
        self._in_flight_at_cut = busy - 1
        # The run of an isolated refusal just before was one of those at once, and has left since.
        busy += self._isolated_before
        self._isolated_before = 0
        self._bursts += 1
        at_once = busy if self.limit is None else min(busy, self.limit)
        self.limit = max(1, at_once // 2)
        return True

    def accepted(self, asked_at: float, most: int) -> bool:
        """Report the answer to a run that asked at `asked_at`. `most`: the number of runs that could ask at once.

        Returns True if that raised the limit.
        """
        self._bursts = 0
        self._answers_since_refusal += 1
        if self.limit is None:
            return False
        # Asked before the cut and answered all the same: the server took at least so many at once.
        if asked_at < self._cut_at:
            self._answered_at_once = min(self._answered_at_once + 1, self._in_flight_at_cut)
            raised = self._answered_at_once > self.limit
            self.limit = max(self.limit, self._answered_at_once)
            return raised
        # One more at once after as many answers as the limit: about one more for each round trip.
        self._accepted += 1
        if self._accepted < self.limit:
            return False
        self._accepted = 0
        self.limit += 1
        if self.limit >= most:
            self.limit = None
        return True


# Runs that a busy server refused (429) wait in line again, and fewer runs of their agent ask at once


class Refusals:
    """The throttles of all agents, and the runs that wait in line.

    A refused run keeps its record of attempts and goes to the end of its agent's line; the next run shows whether the
    server is busy. Neither `max_attempts` nor the run's timeout counts the wait. A run is given up

    - if the server serves others, and refuses this run even if it asks alone (`MOST_REFUSALS_ITSELF`): the server
      refuses the request itself, for example because it is too large for the limit, and waiting doesn't help. Such runs
      ask together: if all are refused, no run was in the way of another;
    - if the server refuses all runs again and again (`Throttle.rejects_all`);
    - if the server asks for a longer wait than `LONGEST_WAIT_S`.

    A run that is refused after others were served does not delay the others: it waits alone.

    Calls `wake_in` with the seconds until more runs may start.
    """

    def __init__(self, state: ExecutionState, tell: Tell, wake_in: Callable[[float], object]) -> None:
        self._state = state
        self._tell = tell
        self._wake_in = wake_in
        self._throttles: dict[str, Throttle] = {}
        self._served: Counter[str] = Counter()  # runs by agent
        self._first: dict[str, float] = {}  # by run: when it asked first
        self._last_served: dict[str, float] = {}  # by agent
        self._busy_at: dict[str, float] = {}  # by agent: the last refusal that may mean that the server is busy

    def refused(self, attempts: RunAttempts) -> bool:
        """The server refused a run: put it back into the line. False when it shall not wait, and its failure stands."""
        failed, agent = attempts.refused, attempts.plan.agent.hash
        if failed is None:
            return False
        throttle = self._throttles.setdefault(agent, Throttle())
        now = time.monotonic()
        attempts.refusals += 1
        own = self._refuses_request(attempts)
        attempts.refused_itself += own
        # Also when this one is not refused for itself: it may be the last of a round that others wait for.
        self._count_refused_alone(attempts, now)
        # The back-off grows by what is refused: this run, or the agent's runs together.
        number = attempts.refused_itself if own else throttle.number(attempts.asked_at)
        wait_s = self._state.agents[agent].retries.wait_s(number, failed.retry_after_s)
        if wait_s > LONGEST_WAIT_S:
            # A back-off of our own is never so long: it is the server that asks.
            message = f"{failed.error.message}; it asks to wait {spoken_seconds(failed.retry_after_s or wait_s)}"
            attempts.give_up(replace(failed.error, message=message))
            return False
        if own:
            return self._retry_alone(attempts, failed, wait_s, now)
        # One refusal among many answers may be about this run alone: the others go on as they did.
        if throttle.is_isolated(self._state.waiting.in_flight(agent)):
            throttle.count_isolated()
            return self._retry_alone(attempts, failed, wait_s, now)
        self._busy_at[agent] = now
        cut = throttle.refused(attempts.asked_at, now, self._state.waiting.in_flight(agent), wait_s)
        self._apply(agent, throttle, announce=cut)
        if throttle.rejects_all:
            attempts.give_up(failed.error)
            return False
        # The queue holds all runs of the agent until then, so this one needs no rest of its own.
        self._requeue(attempts, failed, max(0.0, throttle.until - now))
        self._state.waiting.put_back(attempts.plan)
        return True

    def accepted(self, attempts: RunAttempts) -> bool:
        """The server served a run. True when more may ask at once now."""
        agent = attempts.plan.agent.hash
        self._served[agent] += 1
        self._last_served[agent] = time.monotonic()
        throttle = self._throttles.setdefault(agent, Throttle())
        if not throttle.accepted(attempts.asked_at, self._limit_without_refusals(agent)):
            return False
        self._apply(agent, throttle, announce=True)
        return True

    def _refuses_request(self, attempts: RunAttempts) -> bool:
        """Whether the refusal is about this run: it was refused before, the server has served others since it asked
        first, and it refused no run for the first time since this one asked."""
        agent = attempts.plan.agent.hash
        first = self._first.setdefault(attempts.run, attempts.asked_at)
        served = self._last_served.get(agent, 0.0) >= first
        return attempts.refusals > 1 and served and self._busy_at.get(agent, 0.0) < attempts.asked_at

    def _count_refused_alone(self, attempts: RunAttempts, now: float) -> None:
        """Count for all that were refused together with this run, while nothing else asked, that they were. Those of
        them that wait and have had their chances are given up: they ask no more, and end as soon as they may begin."""
        for name in self._state.waiting.refused(attempts.plan):
            run_attempts = attempts if name == attempts.run else self._state.parked.get(name)
            if run_attempts is None:
                continue  # cancelled meanwhile
            run_attempts.refused_alone = run_attempts.refused_alone or run_attempts.refused_itself > 0
            if (
                run_attempts is not attempts
                and run_attempts.refused is not None
                and self._has_no_chance_left(run_attempts)
            ):
                run_attempts.failed_attempts.pop()  # the run ends with it
                run_attempts.give_up(self._error_of_request(run_attempts, run_attempts.refused, now))
                self._state.waiting.wake(run_attempts.plan)

    def _has_no_chance_left(self, attempts: RunAttempts) -> bool:
        return attempts.refused_alone and attempts.refused_itself >= MOST_REFUSALS_ITSELF

    def _error_of_request(self, attempts: RunAttempts, failed: Failed, now: float) -> RunError:
        served, waited = self._served[attempts.plan.agent.hash], now - self._first[attempts.run]
        return replace(
            failed.error,
            message=f"{failed.error.message}; refused {attempts.refusals} times in {waited:.3g} s, also alone, "
            f"while {served:,} other runs were answered",
            fix="the server refuses this request, not the pace: it may be larger than the limit of tokens "
            "a minute. Shorten the prompt or the tools, or raise the limit at the provider",
        )

    def _retry_alone(self, attempts: RunAttempts, failed: Failed, wait_s: float, now: float) -> bool:
        """It rests by itself, and asks when no other run does. False when it has no chances left."""
        if self._has_no_chance_left(attempts):
            attempts.give_up(self._error_of_request(attempts, failed, now))
            return False
        self._requeue(attempts, failed, wait_s)
        self._state.waiting.put_back(attempts.plan, rest_s=wait_s, alone=True)
        self._wake_in(wait_s)
        return True

    def _requeue(self, attempts: RunAttempts, failed: Failed, wait_s: float) -> None:
        attempts.schedule_retry(wait_s, failed)
        attempts.park()
        self._state.parked[attempts.run] = attempts

    def _apply(self, agent: str, throttle: Throttle, *, announce: bool) -> None:
        self._state.waiting.throttle(agent, throttle.limit, throttle.until)
        hold_s = max(0.0, throttle.until - time.monotonic())
        if hold_s:
            self._wake_in(hold_s)
        if announce:
            usual = self._limit_without_refusals(agent)
            limit = usual if throttle.limit is None else min(throttle.limit, usual)
            self._tell(Throttled, self._state.agents[agent].name, limit, usual, round(hold_s, 3))

    def _limit_without_refusals(self, agent: str) -> int:
        own = self._state.agents[agent].limit
        limit = self._state.limit
        return limit if own is None else min(own, limit)


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
        # The only request is always sent, or nothing could be asked near the limit, where the bound is too high.
        if not others:
            return True
        used = self._state.totals.used(self._others()).cost + sum(
            run_attempts.spent.cost or 0.0 for run_attempts in running
        )
        # Sums of prices are not exact: what is over by their rounding is within the limit.
        return used + others + cost <= self._limit * (1 + 1e-9)
