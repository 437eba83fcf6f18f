"""The engine: runs a plan, many runs at once, and tells what happens in events.

It works alike in the process of a command line, in an execution's own process, and in a test. It knows no screen:
whoever watches gets events, and steers with commands. What must survive goes to the store first, then out.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from agenteval_tui.agents.interface import AgentRequest
from agenteval_tui.runs.budget import Budget, Used
from agenteval_tui.runs.cached import request_hash
from agenteval_tui.runs.calm import calm
from agenteval_tui.runs.ends import End, Ends
from agenteval_tui.runs.events import (
    AgentFinished,
    Command,
    Ended,
    Event,
    Graded,
    Planned,
    Progress,
    RunShown,
    RunState,
    UsageCounted,
)
from agenteval_tui.runs.executors.interface import executor_of
from agenteval_tui.runs.flight import Flight
from agenteval_tui.runs.judging import Judging
from agenteval_tui.runs.plan import Plan, RunPlan
from agenteval_tui.runs.prepared import Prepared, prepare_agents
from agenteval_tui.runs.records import begin, run_ended, run_never_begun
from agenteval_tui.runs.refusals import Refusals
from agenteval_tui.runs.stopping import Repetitions, repetitions_of
from agenteval_tui.runs.tally import Tally
from agenteval_tui.runs.verdicts import CANCELLED, SKIPPED, Judged, judge
from agenteval_tui.runs.waiting import WaitingRuns
from agenteval_tui.text.identity import now_ms
from agenteval_tui.text.problems import AgentevalError
from agenteval_tui.transcripts.model import Transcript

if TYPE_CHECKING:
    from agenteval_tui.history.replies import StoredReply
    from agenteval_tui.history.store import Store
    from agenteval_tui.runs.executors.interface import Executor

log = logging.getLogger(__name__)

MERGE_S = 0.05
"""Texts of a run are gathered for so long before they go out."""
TICKS_A_PROGRESS = 5
GRACE_S = 5.0
"""How long an agent may clean up after it was cancelled or timed out; then the run is settled without it."""
FAILED = "failed"
STOPPED = "stopped"


class Engine:
    """One execution. `emit` is called in the event loop's thread with every event, in order.

    `prepare()` finds what can be found wrong before anything is run; `run()` calls it if nobody has. `command()` must
    be called in the loop's thread. `env` holds the variables that agents may use; `retry_base_s` is the first
    back-off. `pid` is the process that does the work, where that is not this one. The store is left open.
    """

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
        self._ends = Ends(store, self._stored, self._fail, self._check_finished)
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
        self._flights: dict[str, Flight] = {}
        self._dropped: list[RunPlan] = []
        self._unwanted: list[str] = []  # runs that were cancelled before the start
        self._tally = Tally()
        self._figures: tuple[Any, ...] = ()
        self._ticks = 0
        self._timer: asyncio.TimerHandle | None = None
        self._judging = Judging(plan, store, self._env, retry_base_s)
        self._executor: Executor | None = None

    def prepare(self) -> None:
        """Make the agents. Raises `AgentevalError` where one is wrong (unknown kind or option, missing variable)."""
        self._executor = executor_of(self.plan)
        agents = prepare_agents(self.plan, self._store, self._env, self._retry_base_s, self._executor)
        self._agents.update(agents)
        self._judging = Judging(self.plan, self._store, self._env, self._retry_base_s)

    async def run(self) -> Ended:
        """Run all of the plan; gives the last event. Raises `AgentevalError` when it can't begin.

        When the awaiting task is cancelled, the execution is: runs in flight are recorded as cancelled first.
        """
        if not self._agents:
            self.prepare()
        self._loop = asyncio.get_running_loop()
        try:
            if self._executor is not None:
                await self._connect(self._executor)
            await self._begin()
            self._tick()
            with calm():
                self._fill()
                try:
                    await self._finished.wait()
                except asyncio.CancelledError:
                    self.command(Command("cancel"))
                    await self._finished.wait()
                    await self._end()
                    raise
                return await self._end()
        finally:
            if self._timer is not None:
                self._timer.cancel()
            await self._close_agents()

    def command(self, command: Command) -> None:
        """Do what a watcher says, also before `run()`. What makes no sense (an unknown run, a limit of 0) is left
        alone."""
        match command:
            case Command("pause"):
                self._paused = True
            case Command("resume"):
                self._paused = False
                self._tally.pace.forget()
                self._fill()
            case Command("set_concurrency", number=number) if number > 0:
                self._limit = number
                self._tally.pace.forget()
                self._fill()
            case Command("cancel", run="") if not self._stopping:
                self._stop(CANCELLED)
            case Command("cancel", run=run) if run:
                self._cancel(run)
            case _:
                return
        self._tell_progress()

    # The beginning

    async def _connect(self, executor: Executor) -> None:
        threads = await executor.open(self._cut_off)
        if self.plan.cluster is not None and self.plan.cluster.all_threads:
            self._limit = max(threads, 1)

    async def _begin(self) -> None:
        plan, started_ms = self.plan, now_ms()
        self._began = time.monotonic()
        await asyncio.wrap_future(begin(self._store, plan, started_ms, self._pid))
        self._line_up()
        refs = {one.ref.run: one.ref for one in plan.earlier} | {one.ref.run: one.ref for one in plan.runs}
        shown = tuple(refs[run] for run in plan.order if run in refs) if plan.order else tuple(refs.values())
        limits = plan.limits
        self._tell(
            Planned, plan.execution_id, plan.title, shown, self._limit, started_ms,
            limits.cost, limits.tokens, limits.seconds,
        )  # fmt: skip
        self._begun = True
        for one in plan.earlier:
            self._tally.earlier(one)
            self._tell(AgentFinished, one.ref.run, one.duration_ms, one.error)
            if (one.input_tokens, one.output_tokens, one.cost) != (None, None, None):
                self._tell(UsageCounted, one.ref.run, one.input_tokens, one.output_tokens, one.cost)
            self._tell(Graded, one.ref.run, one.status, one.score, one.failed, one.duration_ms)
        for run in self._unwanted:
            self._cancel(run)
        if self._stopping:  # all of it was cancelled before it began
            self._dropped.extend(self._waiting.clear())
        for group in {id(one): one for one in self._repetitions.values()}.values():
            if group.answer != "open":  # by runs that ended before
                self._skip(group)

    def _line_up(self) -> None:
        """All runs of the plan into the line; what ended earlier counts for repetitions that may stop early."""
        plan = self.plan
        earlier: list[tuple[str, Any, str]] = []
        if plan.earlier and any(run.stop is not None for run in plan.runs):
            suites = {row.id: row.suite_key for row in self._store.runs_of_execution(plan.execution_id)}
            earlier = [(suites.get(one.ref.run, ""), one.ref, one.status) for one in plan.earlier]
        self._repetitions = repetitions_of(plan.runs, earlier)
        limits = {name: agent.limit for name, agent in self._agents.items() if agent.limit is not None}
        self._waiting = WaitingRuns(plan.runs, limits, self._repetitions)
        self._refusals = Refusals(self._waiting, self._agents, self._tell, self._fill_in)

    # Workers

    def _fill(self) -> None:
        """As many workers as there is room for. A worker ends when there is nothing more that it may begin."""
        if self._begun and not self._paused and not self._stopping and not self._held_up():
            for _ in range(min(self._limit - len(self._workers), self._waiting.ready())):
                task = self._loop.create_task(self._work())
                self._workers.add(task)
                task.add_done_callback(self._worker_ended)
        self._check_finished()

    def _worker_ended(self, task: asyncio.Task[None]) -> None:
        error = None if task.cancelled() else task.exception()
        if error is not None:
            log.error("a worker broke", exc_info=error)
            if task in self._workers:
                self._fail(f"an error in the program: {type(error).__name__}: {error}")
        self._workers.discard(task)
        self._fill()

    async def _work(self) -> None:
        task = asyncio.current_task()
        assert task is not None
        while task in self._workers:  # not any more when it was given up
            if self._paused or self._stopping or len(self._workers) > self._limit or self._held_up():
                return
            run = self._waiting.take()
            if run is None:
                return
            flight = self._refusals.parked.pop(run.ref.run, None) or self._flight(run)
            flight.task = task
            self._flights[flight.run] = flight
            try:
                await self._fly(flight)
            finally:
                flight.task = None
                while flight.stop and task.cancelling():
                    task.uncancel()  # it was the run that was cancelled; the worker goes on
                if self._flights.pop(flight.run, None) is not None:
                    self._waiting.release(run)
            # An agent that never waits would let nobody else have a turn: events, commands, the store.
            await asyncio.sleep(0)
            await self._ends.room.wait()

    def _flight(self, run: RunPlan) -> Flight:
        one, ref = self._agents[run.agent.hash], run.ref
        request = AgentRequest(
            run.messages, one.config, run.context, ref.test, ref.repetition, run.seed, run.tool_calls, ref.run
        )
        return Flight(run, one.agent, request, one.retries, self._tell, one.price, one.withheld)

    async def _fly(self, flight: Flight) -> None:
        stored: tuple[StoredReply, ...] = ()
        try:
            known = await self._known(flight) if self.plan.cache else None
            if known is not None:
                flight.take(known)
            else:
                await flight.fly()
                if flight.refused is not None and self._back_in_line(flight):
                    return
            transcript = self._landed(flight)
            if transcript is None:
                return
            if transcript.error is None and known is None and self._refusals.accepted(flight, self._limit):
                self._fill()
            judged, stored = await self._judging.judge(flight.plan, transcript)
        except asyncio.CancelledError:
            if not flight.stop:
                raise
            transcript = self._landed(flight)
            if transcript is None:
                return
            judged = judge(flight.plan, transcript)
        if stored:
            # Before the run's end: a result is never in the history without what it rests on.
            self._store.keep_replies(flight.run, stored)
        self._settle(flight, transcript, judged)

    def _back_in_line(self, flight: Flight) -> bool:
        """The server refused the run: whether it waits for another turn."""
        if self._stopping or flight.stop:
            return False
        waits = self._refusals.refused(flight, self._limit)
        if waits:
            self._flights.pop(flight.run)
        return waits

    def _fill_in(self, seconds: float) -> None:
        # A little later than that: the two clocks that are compared need not agree to the last digit.
        self._loop.call_later(seconds + 0.001, self._fill)

    async def _known(self, flight: Flight) -> Transcript | None:
        """The answer in the history to the same request, where such answers were asked for."""
        if self.plan.cache == "first" and flight.plan.ref.repetition > 1:
            return None
        asked = self._request_hash(flight)
        if not asked or flight.attempt:
            return None
        try:
            found = await asyncio.to_thread(self._store.cached, asked)
        except AgentevalError:
            return None  # a history that can't be read only means that the agent is asked
        return None if found is None else found[1]

    def _request_hash(self, flight: Flight) -> str:
        agent = self._agents[flight.plan.agent.hash].fingerprint
        return request_hash(agent, flight.request, flight.plan.turns) if agent else ""

    def _landed(self, flight: Flight) -> Transcript | None:
        """The agent is done: say so. None when the run was settled without it, meanwhile."""
        if flight.settled:
            return None
        if flight.landed:  # it was being graded when it was ended
            return flight.transcript()
        flight.land()
        transcript = flight.transcript()
        error, mend = "", ""
        if transcript.error is not None:
            error, mend = transcript.error.message, transcript.error.mend
        self._tell(AgentFinished, flight.run, flight.duration_ms, error, mend, flight.cached)
        return transcript

    def _end_flight(self, flight: Flight, reason: str) -> None:
        """End a run from outside, because its time is over or somebody wants it."""
        if flight.task is None or flight.stop:
            return
        flight.stop = reason
        flight.task.cancel()
        flight.timer = self._loop.call_later(self._grace_s, self._give_up, flight)

    def _give_up(self, flight: Flight) -> None:
        """The agent does not let go: settle the run with what there is, and let its task be."""
        if flight.settled or flight.task is None:
            return
        log.warning("agent %s did not end within %g s after it was stopped", flight.plan.ref.agent, self._grace_s)
        flight.land()
        transcript = flight.transcript()
        self._workers.discard(flight.task)
        if self._flights.pop(flight.run, None) is not None:
            self._waiting.release(flight.plan)
        self._settle(flight, transcript, judge(flight.plan, transcript))
        self._fill()

    # Ends

    def _settle(self, flight: Flight, transcript: Transcript, judged: Judged) -> None:
        """Hand the ended run to the store; `Graded` goes out when it is on the disk."""
        flight.settled = True
        self._tally.landed(flight, judged.status)
        answered = transcript.error is None and judged.status not in (CANCELLED, SKIPPED)
        request = self._request_hash(flight) if answered else ""
        self._ends.add(run_ended(flight, judged, transcript, request), judged)
        group = self._repetitions.get(flight.run) if self._repetitions else None
        if group is not None and group.add(judged.status):
            self._skip(group)

    def _stored(self, end: End) -> None:
        self._graded(end.run, end.judged, end.duration_ms)

    def _graded(self, run: str, judged: Judged, duration_ms: float) -> None:
        self._tally.count(judged.status)
        self._tell(Graded, run, judged.status, judged.score, judged.failed, duration_ms)

    def _skip(self, group: Repetitions) -> None:
        """The pass rate is known: what waits of these repetitions is not needed. What is in flight ends normally."""
        judged = Judged.nothing(SKIPPED, group.why)
        for run in self._waiting.not_needed(group):
            parked = self._refusals.parked.pop(run.ref.run, None)
            if parked is None:
                self._ends.add(run_never_begun(run, judged), judged)
            else:
                self._close_parked(parked, judged)

    def _close_parked(self, flight: Flight, judged: Judged) -> None:
        """End a run that was refused and stood in the line: its attempts are kept."""
        flight.refused = None
        flight.land()
        self._settle(flight, flight.bare(), judged)

    def _cancel(self, run_id: str) -> None:
        if not self._begun:
            self._unwanted.append(run_id)
            return
        flight = self._flights.get(run_id)
        if flight is not None:
            self._end_flight(flight, CANCELLED)
            return
        run = self._waiting.remove(run_id)
        if run is None:
            return
        parked = self._refusals.parked.pop(run_id, None)
        if parked is not None:
            self._close_parked(parked, Judged.nothing(CANCELLED, "cancelled while its agent's server was busy"))
        else:
            judged = Judged.nothing(CANCELLED, "cancelled before it began")
            self._ends.add(run_never_begun(run, judged), judged)

    def _fail(self, message: str) -> None:
        """The execution can't go on: nothing that ends now would be kept."""
        if self._stopping != FAILED:
            self._message = message
            self._stop(FAILED)

    def _stop(self, status: str) -> None:
        self._stopping = status
        for run_id in list(self._refusals.parked):
            self._cancel(run_id)
        self._dropped.extend(self._waiting.clear())
        for flight in list(self._flights.values()):
            self._end_flight(flight, CANCELLED)
        self._check_finished()

    def _cut_off(self, message: str) -> None:
        """Nothing can be run any more where it was to run. What is in flight ends with an error of its own; what
        waits stays queued in the history."""
        if self._stopping:
            return
        self._stopping, self._message = FAILED, message
        for run_id in list(self._refusals.parked):
            self._cancel(run_id)
        self._dropped.extend(self._waiting.clear())
        self._check_finished()

    def _check_finished(self) -> None:
        if self._workers or self._flights or self._ends.waiting or not (self._begun or self._stopping):
            return
        if len(self._waiting) and not self._stopping:
            reached = self._held_up()
            if reached:
                self._stop_at(reached)
        if self._stopping == STOPPED or not len(self._waiting):
            self._finished.set()

    def _stop_at(self, limit: str) -> None:
        """A limit was reached, and nothing is in flight. What waits stays queued in the history: it can be resumed."""
        self._stopping = STOPPED
        self._message = f"{limit} was reached after {self._tally.ended} of {self._total} runs"
        while self._refusals.parked:
            run, flight = self._refusals.parked.popitem()
            self._tally.gave_up(flight)
            self._tell(RunShown, RunState(run))

    def _held_up(self) -> str:
        """The limit that lets no run begin now, in words; "" when one may."""
        if not self._budget.limited:
            return ""
        spent = [flight.spent for flight in self._flights.values() if not flight.settled]
        in_flight = [Used(one.cost or 0.0, one.total_tokens or 0) for one in spent]
        used = self._tally.used(self._judging.usage)
        return self._budget.holds_up(used, self._tally.paid, in_flight, time.monotonic() - self._began)

    async def _end(self) -> Ended:
        status = self._stopping or "finished"
        message = "; ".join(filter(None, (self._message, *self._remarks())))
        try:
            await asyncio.wrap_future(self._store.end_execution(self.plan.execution_id, status, message))
        except AgentevalError as error:
            status, message = FAILED, message or str(error)
        if status == CANCELLED:
            # The store cancels what still waits together with the execution.
            nothing = Judged.nothing(CANCELLED)
            dropped, self._dropped = self._dropped, []
            for run in dropped:
                self._graded(run.ref.run, nothing, 0.0)
        self._tell_progress()
        ended: Ended = self._tell(Ended, status, message)
        return ended

    def _remarks(self) -> list[str]:
        """What a person should know of an execution that went well."""
        said = []
        if self._tally.skipped:
            said.append(f"{self._tally.skipped} of {self._total} runs were not needed")
        if self.plan.limits.cost is not None and self._tally.unpriced:
            names = ", ".join(sorted(self._tally.unpriced))
            said.append(f"the limit on cost did not count {names}: what its tokens cost is not known")
        return said

    async def _close_agents(self) -> None:
        await self._judging.close()
        for one in self._agents.values():
            try:
                await asyncio.wait_for(one.agent.close(), self._grace_s)
            except Exception:
                log.warning("an agent could not be closed", exc_info=True)
        if self._executor is not None:
            await self._executor.close()

    # Events

    def _tell(self, kind: type[Any], *values: Any) -> Any:
        self._seq += 1
        event = kind(self._seq, *values)
        try:
            self._emit(event)
        except Exception:
            # Whoever watches must not be able to stop what is being run and paid for.
            log.exception("a watcher broke")
        return event

    def _tick(self) -> None:
        """Every 50 ms: send the texts that were gathered, end what takes too long, store what runs; every fifth time
        the figures too."""
        now = time.monotonic()
        for flight in self._flights.values():
            flight.flush()
            if now >= flight.deadline and not flight.landed:
                self._end_flight(flight, "timeout")
            if flight.noted != flight.attempt:
                # Runs that end within one tick go from the queue to their outcome: half the work for the store.
                flight.noted = flight.attempt
                self._store.run_started(flight.run, flight.attempt, flight.started_ms)
        self._ticks += 1
        if self._ticks % TICKS_A_PROGRESS == 0:
            if not self._paused:
                self._tally.pace.sample(now, self._tally.ended)
            self._tell_progress()
            if self._budget.limited:
                self._check_finished()  # time is used up also while nothing happens
        self._timer = self._loop.call_later(MERGE_S, self._tick)

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
