"""The engine: runs a plan, many runs at once, and tells what happens in events.

It works alike in the process of a command line, in an execution's own process, and in a test. It knows no screen:
watchers get events, and steer with commands. What must survive goes to the store first, then out.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Callable, Mapping
from typing import Any

from msgspec.structs import replace

from agenteval_tui.agents.base import AsksUnrecorded, PaidRequests
from agenteval_tui.agents.process.python_tree import starts
from agenteval_tui.agents.recording.answers import RecordedAnswers
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.ids import now_ms
from agenteval_tui.core.numbers import count
from agenteval_tui.core.phrasing import listed
from agenteval_tui.history.execution_names import KeepCommits
from agenteval_tui.history.programs import KeepPrograms
from agenteval_tui.history.replies import StoredReply
from agenteval_tui.history.store import Store
from agenteval_tui.runs.agent_pool import Prepared, asked_hash, prepare_agents
from agenteval_tui.runs.around.execution import ExecutionSurroundings, needs_surroundings
from agenteval_tui.runs.around.plan import ServicePlan
from agenteval_tui.runs.around.record import ServiceState
from agenteval_tui.runs.attempt import RunAttempts
from agenteval_tui.runs.budget import Budget, SpendingLimit
from agenteval_tui.runs.completion import RunCompletion
from agenteval_tui.runs.early_stopping import repetitions_of
from agenteval_tui.runs.events import (
    AgentFinished,
    Command,
    Ended,
    Event,
    EventSink,
    Graded,
    HistoryAwaited,
    Planned,
    Progress,
    RunShown,
    RunState,
    ServiceChanged,
    UsageCounted,
)
from agenteval_tui.runs.execution_state import ExecutionState
from agenteval_tui.runs.executors.base import Executor, executor_of
from agenteval_tui.runs.grading_pool import CANCELLED, GradedRun, GradingPool, judge
from agenteval_tui.runs.installed_copies import installed_copies
from agenteval_tui.runs.plan.model import Plan, RunPlan
from agenteval_tui.runs.run_queue import WaitingRuns
from agenteval_tui.runs.simulated_user import SimulatedUsers
from agenteval_tui.runs.state_probes import StateProbes
from agenteval_tui.runs.store_records import begin, places_of_plan
from agenteval_tui.runs.throttle import Refusals, RequestRoom
from agenteval_tui.suites.commits import COMMITS_S, Commit, CommitReading
from agenteval_tui.transcripts.model import RunError, Transcript, Usage

log = logging.getLogger(__name__)

MERGE_S = 0.05
"""How long texts of a run are gathered before they are sent."""
TICKS_A_PROGRESS = 5
GRACE_S = 5.0
"""How long an agent may clean up after it was cancelled or timed out; then the run is ended without it."""
PROGRAMS_S = 5.0
"""How long the end of an execution waits until the projects of its agents are read."""
FAILED = "failed"
STOPPED = "stopped"
SERVICE = "service"
"""Why a run is stopped: a service that it needs has ended."""


class Engine:
    """One execution. `emit` is called in the event loop's thread with every event, in order.

    `prepare()` finds the problems that can be found before anything is run; `run()` calls it unless that was done.
    `command()` must be called in the loop's thread. `env` holds the variables that agents may use; `retry_base_s` is
    the first back-off. The store is left open.
    `recorded`: what answers the requests of a run to its models in place of the servers, by the run's id. `agents`:
    those of the plan, made before, and closed by who made them. `judges`: a limit of what judges may cost, apart from
    the plan's.
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
        recorded: Mapping[str, RecordedAnswers] | None = None,
        agents: Mapping[str, Prepared] | None = None,
        judges: SpendingLimit | None = None,
    ) -> None:
        self.plan = plan
        self.events = EventSink(emit)
        self.state = ExecutionState(plan, plan.concurrency, Budget(plan.limits))
        self._env = dict(os.environ) if env is None else env
        self._recorded = recorded or {}
        self._agents = agents
        self.grading = GradingPool(plan, store, self._env, retry_base_s, limit=judges)
        self._users = SimulatedUsers(self.state.agents, store)
        self._probes = StateProbes(plan, self._env)
        self._store = store
        self._retry_base_s = retry_base_s
        self._grace_s = grace_s
        self._tell = self.events.tell
        self._completion = RunCompletion(
            self.state,
            store,
            self._tell,
            changed=self._start_workers,
            failed=self._fail,
            over=self._run_over,
            grace_s=grace_s,
        )
        most = plan.limits.cost
        self._room = None if most is None else RequestRoom(self.state, most, self._used_by_others)
        self._refusals = Refusals(self.state, self._tell, self._start_workers_in)
        self._executor: Executor | None = None
        self._around: ExecutionSurroundings | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._finished = asyncio.Event()
        self._figures: tuple[Any, ...] = ()
        self._ticks = 0
        self._timer: asyncio.TimerHandle | None = None
        self._commits: CommitReading | None = None
        # Agents that were brought along may have imported another state of their project than is there now.
        self._has_programs = agents is not None

    def prepare(self) -> None:
        """Make the agents. Raises `AgentevalError` where one is wrong (unknown kind or option, missing variable)."""
        self._executor = executor_of(self.plan)
        self._around = self._surroundings()
        agents = self._agents
        if agents is None:
            agents = prepare_agents(self.plan, self._store, self._env, self._retry_base_s, self._executor)
        self.state.agents.update(agents)

    async def run(self) -> Ended:
        """Run all of the plan; gives the last event. Raises `AgentevalError` when it can't begin.

        When the awaiting task is cancelled, the execution is: runs in flight are recorded as cancelled first.
        """
        if not self.state.agents:
            self.prepare()
        self._loop = asyncio.get_running_loop()
        try:
            if self._executor is not None:
                await self._connect(self._executor)
            await self._begin()
            self._tick(self._loop)
            self._start_workers()
            try:
                await self._finished.wait()
            except asyncio.CancelledError:
                # The runs in flight were paid for: what they did until now is stored before the task ends.
                self.command(Command("cancel"))
                await self._finished.wait()
                await self._end()
                raise
            return await self._end()
        finally:
            if self._timer is not None:
                self._timer.cancel()
            await self._close()

    def command(self, command: Command) -> None:
        """Do what a watcher says, also before `run()`. What makes no sense (an unknown run, a limit of 0) is left
        alone."""
        state = self.state
        match command:
            case Command("pause"):
                state.paused = True
            case Command("resume"):
                state.paused = False
                # The rate of the last seconds holds the pause, or the other number at once.
                state.totals.pace.forget()
                self._start_workers()
            case Command("set_concurrency", number=number) if number > 0:
                state.limit = number
                state.totals.pace.forget()
                self._start_workers()
            case Command("cancel", run="") if not state.stopping:
                self._stop(CANCELLED)
            case Command("cancel", run=run) if run:
                self._completion.cancel(run)
            case _:
                return
        self._tell_progress()

    def history_awaited(self, message: str) -> None:
        """Tell the watchers that the history is waited for."""
        if self.state.begun:
            self._tell(HistoryAwaited, message)

    # The beginning

    async def _connect(self, executor: Executor) -> None:
        threads = await executor.open(self._executor_lost)
        # How many threads the workers of a cluster have is known only now.
        if self.plan.cluster is not None and self.plan.cluster.all_threads:
            self.state.limit = max(threads, 1)

    async def _begin(self) -> None:
        plan, state, started_ms = self.plan, self.state, now_ms()
        state.started_at = time.monotonic()
        # Stored before anything is sent: an execution that can't be stored must cost nothing.
        await asyncio.wrap_future(begin(self._store, plan, started_ms))
        # Beside the runs: git may take seconds in a large repository.
        self._commits = CommitReading(places_of_plan(plan))
        self._queue_runs()
        refs = {ref.run: ref for ref in [run.ref for run in plan.earlier] + [run.ref for run in plan.runs]}
        # A resumed execution shows its runs in the order in which they were planned first.
        run_refs = tuple(refs[run] for run in plan.order if run in refs) if plan.order else tuple(refs.values())
        limits = plan.limits
        self._tell(
            Planned,
            plan.execution_id,
            plan.title,
            run_refs,
            concurrency=state.limit,
            started_ms=started_ms,
            max_cost=limits.cost,
            max_tokens=limits.tokens,
            max_seconds=limits.seconds,
        )
        # Until here `cancel` only notes a run: nothing was stored that it could be the end of.
        state.begun = True
        # Runs that ended before a resume come in the same events as others, so watchers need no second way to show
        # them.
        for earlier_run in plan.earlier:
            state.totals.earlier(earlier_run)
            self._tell(AgentFinished, earlier_run.ref.run, earlier_run.duration_ms, earlier_run.error)
            if (earlier_run.input_tokens, earlier_run.output_tokens, earlier_run.cost) != (None, None, None):
                self._tell(
                    UsageCounted,
                    earlier_run.ref.run,
                    earlier_run.input_tokens,
                    earlier_run.output_tokens,
                    earlier_run.cost,
                )
            self._tell(
                Graded,
                earlier_run.ref.run,
                outcome=earlier_run.status,
                score=earlier_run.score,
                failed=earlier_run.failed,
                duration_ms=earlier_run.duration_ms,
                not_made=earlier_run.not_made,
            )
        # Cancelled by a watcher before there was a queue to take them out of.
        for run in state.cancelled_early:
            self._completion.cancel(run)
        if state.stopping:  # all of it was cancelled before it started
            state.drop_waiting()
        # All repetitions of a test share one object: it is looked at once.
        for group in {id(repetition): repetition for repetition in state.repetitions.values()}.values():
            if group.answer != "open":  # by runs that ended before
                self._completion.skip(group)

    def _queue_runs(self) -> None:
        """Put all runs of the plan into the line; runs that ended earlier count for repetitions that may stop early."""
        plan, state = self.plan, self.state
        earlier: list[tuple[str, Any, str]] = []
        if plan.earlier and any(run.stop is not None for run in plan.runs):
            # A `RunRef` has the suite's name, and two suites may have the same one: repetitions are told apart by the
            # key.
            suites = {row.id: row.suite_key for row in self._store.runs_of_execution(plan.execution_id)}
            earlier = [
                (suites.get(earlier_run.ref.run, ""), earlier_run.ref, earlier_run.status)
                for earlier_run in plan.earlier
            ]
        state.repetitions = repetitions_of(plan.runs, earlier)
        limits = {name: agent.limit for name, agent in state.agents.items() if agent.limit is not None}
        state.waiting = WaitingRuns(plan.runs, limits, state.repetitions)

    def _surroundings(self) -> ExecutionSurroundings | None:
        """What the runs need around them; None: nothing."""
        if not needs_surroundings(self.plan.runs):
            return None
        return ExecutionSurroundings(
            self.plan,
            self._store.path,
            self._env,
            service_changed=self._service_changed,
            service_died=self._service_died,
            # Looked up at each call: `_queue_runs` puts another queue there later.
            hold=lambda name: self.state.waiting.hold(name),
            free=lambda name: self.state.waiting.free(name),
            changed=self._start_workers,
        )

    def _service_changed(self, service: ServiceState) -> None:
        self._tell(ServiceChanged, service.name, service.status, service.error, service.fix)

    def _service_died(self, service: ServicePlan, error: RunError) -> None:
        """Runs that need it end with its error, and no others begin."""
        state = self.state
        for attempts in list(state.in_flight.values()):
            if attempts.around is not None and service in attempts.around.services:
                self._completion.stop(attempts, SERVICE, error)
        # Runs that need none of this service may end as usual.
        if not state.stopping:
            self._stop(FAILED, f"{error.message}; {error.fix}" if error.fix else error.message, cancel=False)

    def _run_over(self, run: RunPlan) -> None:
        if self._around is not None:
            self._around.run_over(run)

    # Workers

    def _start_workers(self) -> None:
        """As many workers as there is room for. A worker ends when there is nothing more that it may begin."""
        state, loop = self.state, self._loop
        if loop is not None and state.begun and not self._held_up():
            # No more than may begin now: a worker that finds nothing ends, and each end comes back here.
            for _ in range(min(state.limit - len(state.workers), state.waiting.ready())):
                task = loop.create_task(self._work())
                state.workers.add(task)
                task.add_done_callback(self._worker_ended)
        self._check_finished()

    def _start_workers_in(self, seconds: float) -> None:
        # A little later than that: the two clocks that are compared need not agree to the last digit.
        if self._loop is not None:
            self._loop.call_later(seconds + 0.001, self._start_workers)

    def _held_up(self) -> bool:
        """Whether no run may begin now."""
        state = self.state
        return state.paused or bool(state.stopping) or bool(state.limit_reached(self._used_by_others()))

    def _used_by_others(self) -> Usage:
        """What judges and simulated users have used."""
        return self.grading.usage + self._users.usage

    def _worker_ended(self, task: asyncio.Task[None]) -> None:
        error = None if task.cancelled() else task.exception()
        if error is not None:
            log.error("a worker broke", exc_info=error)
            # One that was given up counts no more: its run has its end already.
            if task in self.state.workers:
                self._fail(f"an error in the program: {type(error).__name__}: {error}")
        self.state.workers.discard(task)
        self._start_workers()

    async def _work(self) -> None:
        state, task = self.state, asyncio.current_task()
        assert task is not None
        while task in state.workers:  # not any more when it was given up
            # The limit may have been lowered since this worker started.
            if len(state.workers) > state.limit or self._held_up():
                return
            run = state.waiting.take()
            if run is None:
                return
            # A run that was refused keeps its attempts, and asks again.
            attempts = state.parked.pop(run.ref.run, None) or self._attempts(run)
            attempts.task = task
            state.in_flight[attempts.run] = attempts
            try:
                await self._execute(attempts)
            finally:
                # First: a late `stop` must not cancel this task, which goes on with another run.
                attempts.task = None
                while attempts.stop and task.cancelling():
                    task.uncancel()  # the run was cancelled; the worker continues
                # A run that was refused or given up has left its place already.
                if state.in_flight.pop(attempts.run, None) is not None:
                    state.waiting.release(run)
            # An agent that never waits would block everything else: events, commands, the store.
            await asyncio.sleep(0)
            # If the disk is slower than the agents, unwritten transcripts would fill the memory.
            await self._completion.writes.room.wait()

    def _attempts(self, run: RunPlan) -> RunAttempts:
        agent = self.state.agents[run.agent.hash]
        recorded = self._recorded.get(run.ref.run) or self._tape_answers(run)
        request = replace(run.request(agent.config), paid=self._paid_requests(run), recorded=recorded)
        attempts = RunAttempts(
            run,
            agent=agent.agent,
            request=request,
            retries=agent.retries,
            tell=self._tell,
            price=agent.price,
            withheld=agent.withheld,
            error_on_finish=agent.error_on_finish,
            user=self._users.of(run),
            around=self._around.of(run) if self._around is not None else None,
            probes=self._probes,
        )
        # Asked before each request, since other runs spend meanwhile.
        attempts.limit = lambda: self.state.used_up(self._used_by_others())
        attempts.room = self._room
        return attempts

    def _tape_answers(self, run: RunPlan) -> RecordedAnswers | None:
        """What answers the requests of a run that continues another from its tape; None: it does not."""
        if run.fork is None or run.fork.answers is None:
            return None
        # It reads the models' protocols: 100 ms for who runs tests.
        from agenteval_tui.runs.fork.tape import tape_answers

        return tape_answers(self._store, run.fork)

    def _paid_requests(self, run: RunPlan) -> PaidRequests | None:
        """What a continuation paid for when it was asked the last time, and did not come to its end."""
        if self.plan.kind != "fork" or run.fork is None or not run.fork.question:
            return None
        # It reads the models' protocols: 100 ms for who runs tests.
        from agenteval_tui.runs.unfinished_recording import UnfinishedRecording

        # Who asks the same continuation again finds its answers by these parts.
        parts = ["continuation", run.fork.run, run.fork.question, run.ref.repetition]
        unfinished_recording = self.state.unfinished[run.ref.run] = UnfinishedRecording(parts)
        return unfinished_recording

    async def _execute(self, attempts: RunAttempts) -> None:
        """One run, from its agent to its end."""
        completion = self._completion
        stored: tuple[StoredReply, ...] = ()
        try:
            cached = await self._cached_answer(attempts) if self.plan.cache else None
            if cached is not None:
                attempts.use_cached(cached)
            else:
                await attempts.ask()
                if attempts.refused is not None and self._back_in_line(attempts):
                    return
            transcript = completion.agent_finished(attempts)
            if transcript is None:
                return
            # Before the grading, which may wait for a judge: more runs may ask the server from now on.
            if transcript.error is None and cached is None and self._refusals.accepted(attempts):
                self._start_workers()
            judged, stored = await self.grading.judge(attempts.plan, transcript)
        except asyncio.CancelledError:
            # Only a stopped run is graded with what it has. Otherwise the execution itself is cancelled.
            if not attempts.stop:
                raise
            transcript = completion.agent_finished(attempts)
            if transcript is None:
                return
            judged = judge(attempts.plan, transcript)
        if attempts.around is not None and judged.status == "passed":
            # The working folder of a run that passed explains nothing.
            await asyncio.to_thread(attempts.around.forget)
            transcript = replace(transcript, workdir="")
        if stored:
            # Before the run's end: a result is never in the history without what it rests on.
            self._store.keep_replies(attempts.run, stored)
        completion.end(attempts, transcript, judged)

    def _back_in_line(self, attempts: RunAttempts) -> bool:
        """The server refused the run: whether it waits for another turn."""
        if self.state.stopping or attempts.stop:
            return False
        waits = self._refusals.refused(attempts)
        if waits:
            self.state.in_flight.pop(attempts.run)
        return waits

    async def _cached_answer(self, attempts: RunAttempts) -> Transcript | None:
        """The answer in the history to the same request, where such answers were asked for."""
        run = attempts.plan
        # A run that comes back from the line was looked up before it asked.
        if attempts.attempt or (self.plan.cache == "first" and run.ref.repetition > 1):
            return None
        if run.around is not None and run.around.has_effects:
            return None  # the answer without what the agent does to its surroundings is of no use
        request_hash = asked_hash(self.state.agents, run, attempts.request)
        if not request_hash:
            return None
        try:
            cached = await asyncio.to_thread(self._store.cached, request_hash)
        except AgentevalError:
            return None  # a history that can't be read only means that the agent is asked
        if cached is None or not {*run.state} <= {probe_state.name for probe_state in cached[1].state}:
            return None  # what it left behind was not read then
        return cached[1]

    def _tick(self, loop: asyncio.AbstractEventLoop) -> None:
        """Every 50 ms: send the texts that were gathered, end what takes too long, store what runs; every fifth time
        the figures too."""
        state, now = self.state, time.monotonic()
        # `stop` only cancels a task, and nothing here is awaited: no run leaves `in_flight` during the loop.
        for attempts in state.in_flight.values():
            attempts.flush()
            if now >= attempts.deadline and not attempts.finished:
                self._completion.stop(attempts, "timeout")
            if attempts.stored_attempt != attempts.attempt:
                # Runs that end within one tick go from the queue to their outcome: half the work for the store.
                attempts.stored_attempt = attempts.attempt
                self._store.run_started(attempts.run, attempts.attempt, attempts.started_ms)
        if self._commits is not None and self._commits.ready:
            self._keep_commits(self._commits.result())
        if all(prepared.identity.done() for prepared in state.agents.values()):
            self._keep_programs()
        self._ticks += 1
        if self._ticks % TICKS_A_PROGRESS == 0:
            if not state.paused:
                state.totals.pace.sample(now, state.totals.ended)
            self._tell_progress()
            if state.budget.limited:
                self._check_finished()  # time is used up also while nothing happens
        self._timer = loop.call_later(MERGE_S, self._tick, loop)

    def _keep_commits(self, commits: tuple[Commit, ...]) -> None:
        self._commits = None
        if commits:
            self._store.write(KeepCommits(self.plan.execution_id, commits))

    async def _wait_for_programs(self) -> None:
        """Keep what is known of the agents' code. A project on a slow disk does not hold up the end for longer."""
        reading = [asyncio.wrap_future(prepared.identity) for prepared in self.state.agents.values()]
        if reading and not self._has_programs:
            await asyncio.wait(reading, timeout=PROGRAMS_S)
            self._keep_programs()

    def _keep_programs(self) -> None:
        if self._has_programs:
            return
        self._has_programs = True
        programs: dict[str, dict[str, str]] = {}
        for prepared in self.state.agents.values():
            if not prepared.identity.done():
                continue
            if program := prepared.identity.result().program:
                programs.setdefault(prepared.name, {}).update(program)  # variations of it may start others
        if programs:
            self._store.write(KeepPrograms(self.plan.execution_id, programs))

    def _tell_progress(self) -> None:
        if not self.state.begun:
            return
        figures = self.state.progress(self.grading.usage, self._users.usage)
        # An execution that waits writes nothing to its watchers.
        if figures != self._figures:
            self._figures = figures
            self._tell(Progress, *figures)

    # The end

    def _stop(self, status: str, message: str = "", *, cancel: bool = True) -> None:
        """Begin no more runs; `cancel` those in flight, too."""
        state = self.state
        state.stopping, state.message = status, message or state.message
        # Runs that were refused made attempts, which are stored with their ends; those that never began are dropped
        # together.
        for run_id in list(state.parked):
            self._completion.cancel(run_id)
        state.drop_waiting()
        if cancel:
            for attempts in list(state.in_flight.values()):
                self._completion.stop(attempts, CANCELLED)
        self._check_finished()

    def _fail(self, message: str) -> None:
        """The execution can't go on: nothing that ends now would be kept."""
        # Each end that can't be stored comes here: the reason of the first one stands.
        if self.state.stopping != FAILED:
            self._stop(FAILED, message)

    def _executor_lost(self, message: str) -> None:
        """Nothing can be run any more where it was to run. What is in flight ends with an error of its own; what
        waits stays queued in the history."""
        # The first reason stands: whoever cancelled knows why, and workers are lost one after the other.
        if not self.state.stopping:
            self._stop(FAILED, message, cancel=False)

    def _check_finished(self) -> None:
        """See whether the execution is over, or can't go on because of a limit."""
        state = self.state
        # `Ended` is the last event: all that is in flight must have its end, and all ends must be on the disk.
        if state.workers or state.in_flight or self._completion.writes.waiting or not (state.begun or state.stopping):
            return
        # A limit ends the execution only when nothing is in flight. Before that, what is set aside for a run may turn
        # out to be more than it took, and another one may begin.
        if (len(state.waiting) or state.cut) and not state.stopping:
            reached = state.cut or state.limit_reached(self._used_by_others())
            if reached:
                self._stop_at(reached)
        # `finish` may begin the hooks behind the last run; this is called again when they are done.
        if (state.stopping == STOPPED or not len(state.waiting)) and (self._around is None or self._around.finish()):
            self._finished.set()

    def _stop_at(self, reached: str) -> None:
        """A limit lets no run begin (`reached`), and no run is in flight. Waiting runs stay queued in the history, and
        can be resumed."""
        state = self.state
        state.stopping = STOPPED
        state.message = f"{reached} after {state.totals.ended:,} of {count(state.total, 'run')}"
        while state.parked:
            run, attempts = state.parked.popitem()
            state.totals.requeued(attempts)
            self._store.keep_attempts(run, tuple(attempts.failed_attempts))
            # For watchers the run is queued again.
            self._tell(RunShown, RunState(attempts.plan.ref))

    async def _end(self) -> Ended:
        state = self.state
        status = state.stopping or "finished"
        message = "; ".join(filter(None, (state.message, *self._remarks())))
        try:
            startup_ms = sum(start.levels_ms for start in starts()) or None
            around = ""
            if self._around is not None:
                # Services end before the record is written: it has how each of them ended.
                await self._around.close()
                around = self._around.document()
            # An execution may be shorter than git takes: what it says is waited for, and not for ever.
            if self._commits is not None:
                self._keep_commits(await asyncio.to_thread(self._commits.result, COMMITS_S))
            await self._wait_for_programs()
            await asyncio.wrap_future(
                self._store.end_execution(self.plan.execution_id, status, message, startup_ms, around)
            )
        except AgentevalError as error:
            status, message = FAILED, message or str(error)
        if status == CANCELLED:
            # The store cancelled what still waited together with the execution; only the watchers must be told.
            nothing = GradedRun.nothing(CANCELLED)
            dropped, state.dropped = state.dropped, []
            for run in dropped:
                self._completion.tell_graded(run.ref.run, nothing, 0.0)
        self._tell_progress()
        return self._tell(Ended, status, message, now_ms())

    def _remarks(self) -> list[str]:
        """What a person should know of an execution that went well."""
        totals, remarks = self.state.totals, []
        if totals.skipped:
            remarks.append(f"{totals.skipped:,} of {self.state.total:,} runs were not needed")
        if self.plan.limits.cost is not None and totals.unpriced:
            names = ", ".join(sorted(totals.unpriced))
            remarks.append(f"the limit on cost did not count {names}: what its tokens cost is not known")
        remarks += filter(None, (start.remark() for start in starts()))
        remarks += [
            f"{prepared.name}: what it asks {listed(sorted(prepared.agent.unrecorded), 3)} is not recorded: its client "
            "can't be sent through the proxy; `capture: model` records clients that take their server's address from a "
            "variable"
            for prepared in self.state.agents.values()
            if isinstance(prepared.agent, AsksUnrecorded) and prepared.agent.unrecorded
        ]
        remarks += [f"{copy.agent}: {copy.problem}; {copy.fix}" for copy in installed_copies(self.plan.runs)]
        failed = () if self._around is None else self._around.failed_after
        remarks += [hook.error.message for hook in failed if hook.error is not None]
        return remarks

    async def _close(self) -> None:
        # What judges and simulated users are being asked ends before the agents that answer are closed.
        await self.grading.close()
        await self._users.close()
        if self._around is not None:
            await self._around.close()
        await self._probes.close()
        # Agents that were brought along are closed by who made them.
        for agent in () if self._agents is not None else self.state.agents.values():
            try:
                # The results are stored: an agent that hangs, or fails, while it closes must not keep the program.
                await asyncio.wait_for(agent.agent.close(), self._grace_s)
            except Exception:
                log.warning("an agent could not be closed", exc_info=True)
        if self._executor is not None:
            await self._executor.close()
