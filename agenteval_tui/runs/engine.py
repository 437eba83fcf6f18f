"""The engine: runs a plan, many runs at once, and tells what happens in events.

It works alike in the process of a command line, in an execution's own process, and in a test. It knows no screen:
whoever watches gets events, and steers with commands. What must survive goes to the store first, then out.
"""

from __future__ import annotations

import asyncio
import logging
import time
from typing import TYPE_CHECKING, Any

from agenteval_tui.agents.base import AgentRequest
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.ids import now_ms
from agenteval_tui.runs.agent_pool import prepare_agents
from agenteval_tui.runs.attempt import RunAttempts
from agenteval_tui.runs.completion import RunCompletion
from agenteval_tui.runs.early_stopping import repetitions_of
from agenteval_tui.runs.events import (
    AgentFinished,
    Command,
    Ended,
    Graded,
    HistoryAwaited,
    Planned,
    UsageCounted,
)
from agenteval_tui.runs.executors.base import executor_of
from agenteval_tui.runs.gc_tuning import calm
from agenteval_tui.runs.grade_run import CANCELLED, judge
from agenteval_tui.runs.grading_pool import GradingPool
from agenteval_tui.runs.plan.model import RunPlan
from agenteval_tui.runs.run_queue import WaitingRuns
from agenteval_tui.runs.store_records import begin
from agenteval_tui.runs.throttle import Refusals
from agenteval_tui.transcripts.model import Transcript

if TYPE_CHECKING:
    from agenteval_tui.history.replies import StoredReply
    from agenteval_tui.runs.executors.base import Executor

log = logging.getLogger(__name__)

MERGE_S = 0.05
"""Texts of a run are gathered for so long before they go out."""
TICKS_A_PROGRESS = 5


class Engine(RunCompletion):
    """One execution. `emit` is called in the event loop's thread with every event, in order.

    `prepare()` finds what can be found wrong before anything is run; `run()` calls it if nobody has. `command()` must
    be called in the loop's thread. `env` holds the variables that agents may use; `retry_base_s` is the first
    back-off. `pid` is the process that does the work, where that is not this one. The store is left open.
    """

    def prepare(self) -> None:
        """Make the agents. Raises `AgentevalError` where one is wrong (unknown kind or option, missing variable)."""
        self._executor = executor_of(self.plan)
        agents = prepare_agents(self.plan, self._store, self._env, self._retry_base_s, self._executor)
        self._agents.update(agents)
        self._judging = GradingPool(self.plan, self._store, self._env, self._retry_base_s)

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

    def history_awaited(self, message: str) -> None:
        """Tell the watchers that the history is waited for."""
        if self._begun:
            self._tell(HistoryAwaited, message)

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
            self._tell(Graded, one.ref.run, one.status, one.score, one.failed, one.duration_ms, one.not_made)
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

    def _flight(self, run: RunPlan) -> RunAttempts:
        one, ref = self._agents[run.agent.hash], run.ref
        request = AgentRequest(
            run.messages, one.config, run.context, ref.test, ref.repetition, run.seed, run.tool_calls, ref.run,
            variables=run.variables,
        )  # fmt: skip
        return RunAttempts(
            run, one.agent, request, one.retries, self._tell, one.price, one.withheld, one.error_on_finish
        )

    async def _fly(self, flight: RunAttempts) -> None:
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

    def _back_in_line(self, flight: RunAttempts) -> bool:
        """The server refused the run: whether it waits for another turn."""
        if self._stopping or flight.stop:
            return False
        waits = self._refusals.refused(flight, self._limit)
        if waits:
            self._flights.pop(flight.run)
        return waits

    async def _known(self, flight: RunAttempts) -> Transcript | None:
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

    async def _close_agents(self) -> None:
        await self._judging.close()
        for one in self._agents.values():
            try:
                await asyncio.wait_for(one.agent.close(), self._grace_s)
            except Exception:
                log.warning("an agent could not be closed", exc_info=True)
        if self._executor is not None:
            await self._executor.close()

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
