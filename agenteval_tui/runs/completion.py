"""The ends of runs: by themselves, on request, at a limit, or because they are not needed.

An end goes to the store first. Watchers are told of it when it is on the disk, and not before.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from typing import Any

from msgspec import Struct

from agenteval_tui.grading.sentences import reading_sentence
from agenteval_tui.grading.spec import CriterionSpec
from agenteval_tui.grading.type_names import STATE
from agenteval_tui.history.records import RunEnded
from agenteval_tui.history.store import Store
from agenteval_tui.runs.agent_pool import asked_hash
from agenteval_tui.runs.attempt import RunAttempts
from agenteval_tui.runs.early_stopping import Repetitions
from agenteval_tui.runs.events import AgentFinished, AroundProblem, Graded, Tell
from agenteval_tui.runs.execution_state import ExecutionState
from agenteval_tui.runs.grading_pool import CANCELLED, SKIPPED, GradedRun, judge
from agenteval_tui.runs.plan.model import RunPlan
from agenteval_tui.runs.store_records import run_ended, run_never_begun
from agenteval_tui.transcripts.finish_reason import ending_of
from agenteval_tui.transcripts.model import RunError, Transcript
from agenteval_tui.transcripts.state import ReadingProblem

UNSTORED = 512
"""Ended runs that may wait for the store; then no new ones are begun."""
log = logging.getLogger(__name__)


class RunCompletion:
    """Ends the runs of one execution. What must survive goes to the store first, then out through `tell`.

    `changed` is called when another run may begin or the execution may be over, `failed` with the reason when ends
    can't be stored any more, `over` with each run that has its end. An agent that was stopped may take `grace_s`
    seconds to clean up; then its run is ended without it. All of it happens in the event loop's thread.
    """

    def __init__(
        self,
        state: ExecutionState,
        store: Store,
        tell: Tell,
        *,
        changed: Callable[[], None],
        failed: Callable[[str], None],
        over: Callable[[RunPlan], None],
        grace_s: float,
    ) -> None:
        self._over = over
        self.writes = PendingWrites(store, self._stored, failed, changed)
        self._state = state
        self._tell = tell
        self._changed = changed
        self._grace_s = grace_s
        self._waiting: set[asyncio.Task[None]] = set()

    def agent_finished(self, attempts: RunAttempts) -> Transcript | None:
        """The agent is done: say so, and give what it left behind. None when the run was ended without it."""
        # An agent that ignored its end may still return: its run was ended without it, and an end is never rewritten.
        if attempts.handed_to_store:
            return None
        if attempts.finished:  # it was being graded when it was ended
            return attempts.transcript()
        attempts.finish()
        transcript = attempts.transcript()
        error, ending = transcript.error, ending_of(transcript)
        self._tell(
            AgentFinished,
            attempts.run,
            attempts.duration_ms,
            error="" if error is None else error.message,
            fix="" if error is None else error.fix,
            cached=attempts.cached,
            ending="" if ending is None else ending.code,
            finish_reason="" if ending is None else ending.finish_reason,
            around=tuple(problems_around(transcript, attempts.plan.specs)),
            tools_raised=tools_that_raised(transcript),
        )
        return transcript

    def end(self, attempts: RunAttempts, transcript: Transcript, judged: GradedRun) -> None:
        """Hand the graded run to the store; `Graded` goes out when it is on the disk."""
        state = self._state
        attempts.handed_to_store = True  # first: whatever is called from here on must not end the run again
        state.agents[attempts.plan.agent.hash].release_run(attempts.run)
        # A player may keep a session for each run that it plays in.
        if attempts.user is not None:
            attempts.user.release()
        state.totals.add(attempts, judged.status)
        self._over(attempts.planned)
        # Only a whole answer may be used again for an equal request.
        answered = transcript.error is None and judged.status not in (CANCELLED, SKIPPED)
        request = asked_hash(state.agents, attempts.plan, attempts.request) if answered else ""
        self.writes.add(run_ended(attempts, judged, transcript, request), judged)
        group = state.repetitions.get(attempts.run) if state.repetitions else None
        if group is not None and group.add(judged.status):
            self.skip(group)

    def tell_graded(self, run: str, judged: GradedRun, duration_ms: float) -> None:
        """The run's end is on the disk: count it, and tell the watchers."""
        self._state.totals.count(judged.status)
        self._tell(Graded, run, duration_ms=duration_ms, **judged.as_event)

    def stop(self, attempts: RunAttempts, reason: str, error: RunError | None = None) -> None:
        """End a run in flight from outside: its time is over ("timeout"), the user wants it ("cancelled"), or a service
        has ended ("service", with the `error`)."""
        task = attempts.task
        if task is None or attempts.stop:
            return
        # The reason before the cancel: the worker tells by it that only this run ends, and goes on with the next one.
        attempts.stop, attempts.stopped_by = reason, error
        attempts.request.cut_off.late = reason == "timeout"
        task.cancel()
        attempts.timer = task.get_loop().call_later(self._grace_s, self._give_up, attempts)

    def cancel(self, run_id: str) -> None:
        """End one run, wherever it is. Does nothing when it has ended, or there is none."""
        state = self._state
        if not state.begun:
            # Nothing is stored yet that the end could be an end of.
            state.cancelled_early.append(run_id)
        elif (attempts := state.in_flight.get(run_id)) is not None:
            self.stop(attempts, CANCELLED)
        elif (run := state.waiting.remove(run_id)) is not None:
            busy = run_id in state.parked
            why = "cancelled while its agent's server was busy" if busy else "cancelled before it started"
            self._end_waiting(run, GradedRun.nothing(CANCELLED, why))

    def skip(self, group: Repetitions) -> None:
        """The pass rate is known: what waits of these repetitions is not needed. What is in flight ends normally."""
        judged = GradedRun.nothing(SKIPPED, group.why)
        for run in self._state.waiting.take_unneeded(group):
            self._end_waiting(run, judged)

    def _end_waiting(self, run: RunPlan, judged: GradedRun) -> None:
        """End a run that was taken out of the line. Of one that was refused, the attempts are kept."""
        attempts = self._state.parked.pop(run.ref.run, None)
        if attempts is None:
            self._over(run)
            self.writes.add(run_never_begun(run, judged), judged)
            return
        attempts.refused = None
        attempts.finish()
        self.end(attempts, attempts.bare(), judged)

    def _stored(self, write: PendingWrite) -> None:
        unfinished = self._state.unfinished.pop(write.run, None)
        if unfinished is not None:
            # An error is asked for anew: the same answers would lead to it again.
            if write.judged.status == CANCELLED:
                unfinished.leave()
            else:
                unfinished.done()
        self.tell_graded(write.run, write.judged, write.duration_ms)

    def _give_up(self, attempts: RunAttempts) -> None:
        """The agent does not let go: end the run with what there is, and let its task be."""
        if attempts.handed_to_store or attempts.task is None:
            return
        if attempts.surroundings_open:
            # The agent holds up what comes after it, or that takes its time.
            self._close_surroundings(attempts)
            return
        state, plan = self._state, attempts.plan
        log.warning("agent %s did not end within %g s after it was stopped", plan.ref.agent, self._grace_s)
        attempts.finish()
        transcript = attempts.transcript()
        # The task may hang for ever. Its worker counts no more, so that another one can take the place.
        state.workers.discard(attempts.task)
        if state.in_flight.pop(attempts.run, None) is not None:
            state.waiting.release(plan)
        self.end(attempts, transcript, judge(plan, transcript))
        self._changed()

    def _close_surroundings(self, attempts: RunAttempts) -> None:
        async def wait() -> None:
            await attempts.close_surroundings()
            self._give_up(attempts)

        task = asyncio.ensure_future(wait())
        self._waiting.add(task)  # the event loop alone would not keep it from being freed
        task.add_done_callback(self._waiting.discard)


class PendingWrites:
    """Hands ends to the store. `stored` is called in the loop's thread with each that is on the disk, `failed` with
    the reason for each that could not be written, `drained` after some came through."""

    def __init__(
        self,
        store: Store,
        stored: Callable[[PendingWrite], None],
        failed: Callable[[str], None],
        drained: Callable[[], None],
    ) -> None:
        self._store = store
        self._stored = stored
        self._failed = failed
        self._drained = drained
        self._written: deque[tuple[PendingWrite, Future[Any]]] = deque()
        self._drain_asked = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self.room = asyncio.Event()
        """Set while runs may be begun: the store keeps up."""
        self.room.set()
        self.waiting = 0
        """Ends that are not on the disk yet."""

    def add(self, ended: RunEnded, judged: GradedRun) -> None:
        """One more. Must be called in the event loop's thread."""
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
        self.waiting += 1
        if self.waiting >= UNSTORED:
            self.room.clear()
        # The end must not hold the future, which holds it: all results would stay until Python looks for cycles.
        end = PendingWrite(ended.run_id, judged, ended.duration_ms or 0.0)
        self._store.run_ended(ended).add_done_callback(lambda future: self._note(end, future))

    def _note(self, end: PendingWrite, future: Future[Any]) -> None:
        # In the store's thread. One wake-up for all that a commit brought, not one each.
        self._written.append((end, future))
        if not self._drain_asked and self._loop is not None:
            self._drain_asked = True
            self._loop.call_soon_threadsafe(self._drain)

    def _drain(self) -> None:
        self._drain_asked = False
        while self._written:
            end, future = self._written.popleft()
            self.waiting -= 1
            error = future.exception()
            if error is not None:
                self._failed(str(error))
            else:
                self._stored(end)
        # At half of it: else workers would be woken for each single end.
        if self.waiting < UNSTORED // 2:
            self.room.set()
        self._drained()


class PendingWrite(Struct, frozen=True):
    """An ended run that is being stored."""

    run: str
    judged: GradedRun
    duration_ms: float


_NOT_TRIED = (ReadingProblem.CONTINUED, ReadingProblem.TOOLS_RECORDED, ReadingProblem.STOPPED)


def problems_around(transcript: Transcript, specs: Iterable[CriterionSpec]) -> Iterator[AroundProblem]:
    """Hooks that failed after the run; then the probes that could not be read and that none of the criteria names: a
    criterion says it of its own probe."""
    for hook in transcript.hooks:
        if hook.phase == "after" and hook.error is not None:
            yield AroundProblem("after", hook.name, hook.error.message, hook.error.fix)
    if not transcript.state:
        return
    graded_probes = {_probe_of(spec) for spec in specs}
    for probe in transcript.state:
        readings = [reading for reading in (probe.after, probe.before) if reading is not None and reading.problem]
        if readings and probe.name not in graded_probes and readings[0].problem not in _NOT_TRIED:
            why = reading_sentence(readings[0].problem, readings[0].fields)
            yield AroundProblem("probe", probe.name, why)


def tools_that_raised(transcript: Transcript) -> tuple[str, ...]:
    """The names of the tools whose function raised, each once; not what is the run's error itself."""
    own = transcript.error.traceback if transcript.error is not None else None
    raised = [call.name for call in transcript.tool_calls if call.traceback is not None and call.traceback != own]
    return tuple(dict.fromkeys(raised))


def _probe_of(spec: CriterionSpec) -> object:
    if spec.prototype != STATE or not isinstance(spec.value, dict):
        return None
    name = spec.value.get("probe")
    return name if isinstance(name, str) else None
