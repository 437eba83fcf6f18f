"""The ends of runs, and of the execution: by themselves, by somebody's wish, at a limit, or because it can't go on."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.ids import now_ms
from agenteval_tui.runs.attempt import RunAttempts
from agenteval_tui.runs.early_stopping import Repetitions
from agenteval_tui.runs.events import AgentFinished, Ended, Graded, RunShown, RunState
from agenteval_tui.runs.execution_state import ExecutionState
from agenteval_tui.runs.grade_run import CANCELLED, SKIPPED, GradedRun, judge
from agenteval_tui.runs.pending_writes import PendingWrite
from agenteval_tui.runs.response_cache import request_hash
from agenteval_tui.runs.store_records import run_ended, run_never_begun
from agenteval_tui.transcripts.finish_reason import ending_of
from agenteval_tui.transcripts.model import Transcript

if TYPE_CHECKING:
    pass

log = logging.getLogger(__name__)

FAILED = "failed"
STOPPED = "stopped"


class RunCompletion(ExecutionState):
    """Ends runs. What must survive goes to the store first, then out."""

    def _request_hash(self, flight: RunAttempts) -> str:
        agent = self._agents[flight.plan.agent.hash]
        if not agent.fingerprint:
            return ""
        return request_hash(agent.fingerprint, flight.request, flight.plan.turns, variables=agent.reads_variables)

    def _landed(self, flight: RunAttempts) -> Transcript | None:
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
        ending = ending_of(transcript)
        ended = ("", "") if ending is None else (ending.code, ending.finish_reason)
        self._tell(AgentFinished, flight.run, flight.duration_ms, error, mend, flight.cached, *ended)
        return transcript

    def _end_flight(self, flight: RunAttempts, reason: str) -> None:
        """End a run from outside, because its time is over or somebody wants it."""
        if flight.task is None or flight.stop:
            return
        flight.stop = reason
        flight.task.cancel()
        flight.timer = self._loop.call_later(self._grace_s, self._give_up, flight)

    def _give_up(self, flight: RunAttempts) -> None:
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

    def _settle(self, flight: RunAttempts, transcript: Transcript, judged: GradedRun) -> None:
        """Hand the ended run to the store; `Graded` goes out when it is on the disk."""
        flight.settled = True
        self._agents[flight.plan.agent.hash].let_go(flight.run)
        self._tally.landed(flight, judged.status)
        answered = transcript.error is None and judged.status not in (CANCELLED, SKIPPED)
        request = self._request_hash(flight) if answered else ""
        self._ends.add(run_ended(flight, judged, transcript, request), judged)
        group = self._repetitions.get(flight.run) if self._repetitions else None
        if group is not None and group.add(judged.status):
            self._skip(group)

    def _stored(self, end: PendingWrite) -> None:
        self._graded(end.run, end.judged, end.duration_ms)

    def _graded(self, run: str, judged: GradedRun, duration_ms: float) -> None:
        self._tally.count(judged.status)
        self._tell(Graded, run, judged.status, judged.score, judged.failed, duration_ms, judged.not_made)

    def _skip(self, group: Repetitions) -> None:
        """The pass rate is known: what waits of these repetitions is not needed. What is in flight ends normally."""
        judged = GradedRun.nothing(SKIPPED, group.why)
        for run in self._waiting.not_needed(group):
            parked = self._refusals.parked.pop(run.ref.run, None)
            if parked is None:
                self._ends.add(run_never_begun(run, judged), judged)
            else:
                self._close_parked(parked, judged)

    def _close_parked(self, flight: RunAttempts, judged: GradedRun) -> None:
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
            self._close_parked(parked, GradedRun.nothing(CANCELLED, "cancelled while its agent's server was busy"))
        else:
            judged = GradedRun.nothing(CANCELLED, "cancelled before it began")
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
            self._store.keep_attempts(run, tuple(flight.failed_attempts))
            self._tell(RunShown, RunState(run))

    async def _end(self) -> Ended:
        status = self._stopping or "finished"
        message = "; ".join(filter(None, (self._message, *self._remarks())))
        try:
            await asyncio.wrap_future(self._store.end_execution(self.plan.execution_id, status, message))
        except AgentevalError as error:
            status, message = FAILED, message or str(error)
        if status == CANCELLED:
            # The store cancels what still waits together with the execution.
            nothing = GradedRun.nothing(CANCELLED)
            dropped, self._dropped = self._dropped, []
            for run in dropped:
                self._graded(run.ref.run, nothing, 0.0)
        self._tell_progress()
        ended: Ended = self._tell(Ended, status, message, now_ms())
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
