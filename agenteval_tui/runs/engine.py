"""The engine: runs a plan, many runs at once, and tells what happens in events.

It works alike in the process of a command line, in an execution's own process, and in a test. It knows no screen:
whoever watches gets events, and steers with commands. What must survive goes to the store first, then out.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

from agenteval_tui.agents.interface import Agent, AgentRequest
from agenteval_tui.runs.calm import calm
from agenteval_tui.runs.events import AgentFinished, Command, Ended, Event, Graded, Planned, Progress
from agenteval_tui.runs.flight import MAX_ATTEMPTS, Flight, Retries
from agenteval_tui.runs.plan import Plan, RunPlan
from agenteval_tui.runs.plan_agents import expanded
from agenteval_tui.runs.records import begin, run_ended
from agenteval_tui.runs.tally import Tally
from agenteval_tui.runs.verdicts import CANCELLED, Asking, Judged, is_large, judge
from agenteval_tui.runs.waiting import WaitingRuns
from agenteval_tui.text.identity import now_ms
from agenteval_tui.text.problems import AgentevalError
from agenteval_tui.transcripts.model import Transcript

if TYPE_CHECKING:
    from agenteval_tui.history.store import Store
    from agenteval_tui.runs.asking import Answers, Asker

log = logging.getLogger(__name__)

MERGE_S = 0.05
"""Texts of a run are gathered for so long before they go out."""
TICKS_A_PROGRESS = 5
GRACE_S = 5.0
"""How long an agent may clean up after it was cancelled or timed out; then the run is settled without it."""
UNSTORED = 512
"""Ended runs that may wait for the store; then no new ones are begun."""
FAILED = "failed"


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
        self._agents: dict[str, tuple[Agent, Mapping[str, Any], Retries]] = {}
        self._waiting = WaitingRuns((), {})
        self._limit = plan.concurrency
        self._paused = False
        self._stopping = ""  # why no more runs are begun: cancelled or failed
        self._message = ""
        self._begun = False
        self._finished = asyncio.Event()
        self._room = asyncio.Event()
        self._room.set()
        self._workers: set[asyncio.Task[None]] = set()
        self._flights: dict[str, Flight] = {}
        self._dropped: list[RunPlan] = []
        self._unstored = 0
        self._written: deque[tuple[str, Judged, float, Future[Any]]] = deque()
        self._drain_asked = False
        self._tally = Tally()
        self._figures: tuple[Any, ...] = ()
        self._ticks = 0
        self._timer: asyncio.TimerHandle | None = None
        self._asker: Asker | None = None
        self._asks = Asking()

    def prepare(self) -> None:
        """Make the agents. Raises `AgentevalError` where one is wrong (unknown kind or option, missing variable)."""
        from agenteval_tui.agents.registry import make_agent
        from agenteval_tui.runs.recordings import recordings_of
        from agenteval_tui.suites.agents_file import environment_for

        limits: dict[str, int] = {}
        for run in self.plan.runs:
            one = run.agent
            if one.hash in self._agents:
                continue
            env = environment_for(one.base_dir, self._env)
            config = expanded(one, env)
            agent = make_agent(
                one.name,
                config,
                base_dir=one.base_dir,
                env=env,
                transcripts=lambda reference: recordings_of(self._store, reference),
            )
            retries = Retries(int(config.get("max_attempts") or MAX_ATTEMPTS), self._retry_base_s)
            self._agents[one.hash] = (agent, config, retries)
            if config.get("concurrency"):
                limits[one.hash] = int(config["concurrency"])
        self._waiting = WaitingRuns(self.plan.runs, limits)

    async def run(self) -> Ended:
        """Run all of the plan; gives the last event. Raises `AgentevalError` when it can't begin.

        When the awaiting task is cancelled, the execution is: runs in flight are recorded as cancelled first.
        """
        if not self._agents:
            self.prepare()
        self._loop = asyncio.get_running_loop()
        started_ms = now_ms()
        try:
            await asyncio.wrap_future(begin(self._store, self.plan, started_ms, self._pid))
            refs = tuple(run.ref for run in self.plan.runs)
            self._tell(Planned, self.plan.execution_id, self.plan.title, refs, self._limit, started_ms)
            self._begun = True
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

    # Workers

    def _fill(self) -> None:
        """As many workers as there is room for. A worker ends when there is nothing more that it may begin."""
        if self._begun and not self._paused and not self._stopping:
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
            if self._paused or self._stopping or len(self._workers) > self._limit:
                return
            run = self._waiting.take()
            if run is None:
                return
            agent, config, retries = self._agents[run.agent.hash]
            request = AgentRequest(run.messages, config, run.context, run.ref.test, run.ref.repetition, run.seed)
            flight = Flight(run, agent, request, retries, self._tell)
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
            await self._room.wait()

    async def _fly(self, flight: Flight) -> None:
        answers = None
        try:
            await flight.fly()
            transcript = self._landed(flight)
            if transcript is None:
                return
            replies = None
            if transcript.error is None and self._asks(flight.plan):
                answers = await self._answers(flight, transcript)
                replies = answers.replies
            if is_large(transcript) and transcript.error is None:
                judged = await asyncio.to_thread(judge, flight.plan, transcript, replies)
            else:
                judged = judge(flight.plan, transcript, replies)
        except asyncio.CancelledError:
            if not flight.stop:
                raise
            transcript = self._landed(flight)
            if transcript is None:
                return
            judged = judge(flight.plan, transcript)
        if answers is not None and answers.stored:
            # Before the run's end: a result is never in the history without what it rests on.
            self._store.keep_replies(flight.run, answers.stored)
        self._settle(flight, transcript, judged)

    async def _answers(self, flight: Flight, transcript: Transcript) -> Answers:
        """Ask what the run's criteria want to know of others."""
        from agenteval_tui.runs.asking import Asker, Case
        from agenteval_tui.runs.recordings import recordings_of

        if self._asker is None:
            self._asker = Asker(
                self.plan.respondents,
                env=self._env,
                known=self._store.known_reply,
                transcripts=lambda reference: recordings_of(self._store, reference),
                trust=self.plan.trust,
                retry_base_s=self._retry_base_s,
            )
        run = flight.plan
        return await self._asker.answer(Case(run.suite_key, run.specs, transcript, run.variables))

    def _landed(self, flight: Flight) -> Transcript | None:
        """The agent is done: say so. None when the run was settled without it, meanwhile."""
        if flight.settled:
            return None
        if flight.landed:  # it was being graded when it was ended
            return flight.transcript()
        flight.land()
        transcript = flight.transcript()
        error = transcript.error.message if transcript.error is not None else ""
        self._tell(AgentFinished, flight.run, flight.duration_ms, error)
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
        ended = run_ended(
            flight.run,
            judged,
            transcript,
            started_ms=flight.started_ms,
            duration_ms=flight.duration_ms,
            attempts=flight.attempt,
        )
        self._store_end(flight.run, judged, flight.duration_ms, self._store.run_ended(ended))

    def _store_end(self, run: str, judged: Judged, duration_ms: float, future: Future[Any]) -> None:
        self._unstored += 1
        if self._unstored >= UNSTORED:
            self._room.clear()

        def written(done: Future[Any]) -> None:
            # In the store's thread. One wake-up for all that a commit brought, not one each.
            self._written.append((run, judged, duration_ms, done))
            if not self._drain_asked:
                self._drain_asked = True
                self._loop.call_soon_threadsafe(self._drain)

        future.add_done_callback(written)

    def _drain(self) -> None:
        self._drain_asked = False
        while self._written:
            run, judged, duration_ms, future = self._written.popleft()
            self._unstored -= 1
            error = future.exception()
            if error is not None:
                self._fail(str(error))
                continue
            self._graded(run, judged, duration_ms)
        if self._unstored < UNSTORED // 2:
            self._room.set()
        self._check_finished()

    def _graded(self, run: str, judged: Judged, duration_ms: float) -> None:
        self._tally.count(judged.status)
        self._tell(Graded, run, judged.status, judged.score, judged.failed, duration_ms)

    def _cancel(self, run_id: str) -> None:
        flight = self._flights.get(run_id)
        if flight is not None:
            self._end_flight(flight, CANCELLED)
            return
        run = self._waiting.remove(run_id)
        if run is not None:
            judged = Judged(CANCELLED, None, (), 0, "cancelled before it began")
            transcript = Transcript(messages=run.messages)
            ended = run_ended(run_id, judged, transcript, started_ms=0, duration_ms=0, attempts=0)
            self._store_end(run_id, judged, 0.0, self._store.run_ended(ended))

    def _fail(self, message: str) -> None:
        """The execution can't go on: nothing that ends now would be kept."""
        if self._stopping != FAILED:
            self._message = message
            self._stop(FAILED)

    def _stop(self, status: str) -> None:
        self._stopping = status
        self._dropped.extend(self._waiting.clear())
        for flight in list(self._flights.values()):
            self._end_flight(flight, CANCELLED)
        self._check_finished()

    def _check_finished(self) -> None:
        if not self._workers and not self._flights and not self._unstored and not len(self._waiting):
            self._finished.set()

    async def _end(self) -> Ended:
        status = self._stopping or "finished"
        try:
            await asyncio.wrap_future(self._store.end_execution(self.plan.execution_id, status, self._message))
        except AgentevalError as error:
            status, self._message = FAILED, self._message or str(error)
        if status == CANCELLED:
            # The store cancels what still waits together with the execution.
            nothing = Judged(CANCELLED, None, (), 0, "")
            dropped, self._dropped = self._dropped, []
            for run in dropped:
                self._graded(run.ref.run, nothing, 0.0)
        self._tell_progress()
        ended: Ended = self._tell(Ended, status, self._message)
        return ended

    async def _close_agents(self) -> None:
        if self._asker is not None:
            await self._asker.close()
        for agent, _, _ in self._agents.values():
            try:
                await asyncio.wait_for(agent.close(), self._grace_s)
            except Exception:
                log.warning("an agent could not be closed", exc_info=True)

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
        self._timer = self._loop.call_later(MERGE_S, self._tick)

    def _tell_progress(self) -> None:
        figures = self._tally.figures(
            total=len(self.plan.runs),
            queued=len(self._waiting),
            dropped=len(self._dropped),
            flights=list(self._flights.values()),
            limit=self._limit,
            paused=self._paused,
        )
        if self._begun and figures != self._figures:
            self._figures = figures
            self._tell(Progress, *figures)
