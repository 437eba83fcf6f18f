"""What a watcher of an execution knows: pure state, made of events. Screens and the command line show it.

The state is the same whether the events came from the start, from a snapshot on, or merged for a slow watcher.
All of it is bounded: of each run the end of what streamed, and that only for runs in flight and the last ended ones.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from agenteval_tui.core.outcomes import DECIDED
from agenteval_tui.runs.events import (
    IN_FLIGHT,
    AgentFinished,
    AttemptFailed,
    Ended,
    Event,
    Graded,
    HistoryAwaited,
    Planned,
    Progress,
    ReasoningStreamed,
    RunAdded,
    RunPreparing,
    RunShown,
    RunStarted,
    RunState,
    ServiceChanged,
    Snapshot,
    StreamPart,
    TextStreamed,
    Throttled,
    ToolArguments,
    ToolFinished,
    ToolStarted,
    TurnStarted,
    UsageCounted,
)

TEXT_TAIL = 8_000
"""Characters kept of one text or reasoning part."""
PARTS = 50
"""Parts kept of one run."""
RECENT = 20
"""Ended runs of which the parts are kept; those of older ones are in the store."""
RETRIES = 20
"""Failed attempts of one run whose messages are kept."""

NO_FAILURE = ("passed", "cancelled", "skipped")


class ExecutionView:
    """The state of one execution. Give every event to `apply`, in the order in which they came."""

    def __init__(self) -> None:
        self.seq = 0
        self.planned: Planned | None = None
        self.runs: dict[str, RunState] = {}
        """All runs by id, in plan order."""
        self.counts: dict[str, int] = {}
        """How many runs have which status; statuses that no run has may be missing or 0."""
        self.ended_runs: list[str] = []
        """The ids of the runs that ended, in that order."""
        self.failures: list[str] = []
        """Finished runs that did not pass and were neither cancelled nor skipped as not needed."""
        self.throttled: dict[str, Throttled] = {}
        """By name, the agents that may not have as many runs at once as they should: their servers ask for less."""
        self.services: dict[str, ServiceChanged] = {}
        """By name, the services that were started, as they are now."""
        self.progress: Progress | None = None
        self.ended: Ended | None = None
        self.not_made = 0
        """The checks that could not run, of the runs that have a verdict all the same."""
        self._lost = False
        self.awaits = ""
        """What is said while ended runs wait for the history, which another program keeps locked; else ""."""

    # What a screen asks for

    @property
    def execution(self) -> str:
        """The execution's id; "" before the first event."""
        return self.planned.execution if self.planned else ""

    @property
    def title(self) -> str:
        """The execution's title; "" before the first event."""
        return self.planned.title if self.planned else ""

    @property
    def total(self) -> int:
        """How many runs are planned."""
        return len(self.runs)

    @property
    def done(self) -> int:
        """How many runs have ended."""
        return len(self.ended_runs)

    @property
    def listens(self) -> bool:
        """Whether other programs begin its runs: there is nothing to pause, and no number at once."""
        return self.planned is not None and self.planned.concurrency == 0

    @property
    def eta_s(self) -> float | None:
        """Seconds until all runs have ended, as the execution estimates it; None: not known yet."""
        return self.progress.eta_s if self.progress and not self.ended and not self._lost else None

    @property
    def paused(self) -> bool:
        """True while no new runs are begun."""
        return bool(self.progress and self.progress.paused and not self.ended and not self._lost)

    @property
    def lost(self) -> bool:
        """Whether its process ended without saying that the execution did."""
        return self._lost and self.ended is None

    def lose(self) -> None:
        """Its process is dead: nothing runs any more. What was in flight waits to be resumed, as in the history."""
        if self.ended is not None:
            return
        self._lost = True
        self.throttled.clear()
        for run in self.in_flight():
            self._turn(run, "queued")

    def count(self, *statuses: str) -> int:
        """How many runs have one of these statuses."""
        return sum(self.counts.get(status, 0) for status in statuses)

    def in_flight(self) -> list[RunState]:
        """The runs that are running or being graded, in plan order."""
        return [run for run in self.runs.values() if run.status in IN_FLIGHT]

    # Events

    def apply(self, event: Event) -> str:
        """Take in one event; gives the id of the run that it concerns, or "" when it is about the whole."""
        _APPLY[type(event)](self, event)
        if event.seq > self.seq:
            self.seq = event.seq
        if isinstance(event, RunShown):
            return event.state.ref.run
        return event.ref.run if isinstance(event, RunAdded) else getattr(event, "run", "")

    @property
    def priced(self) -> bool:
        """Whether the cost of all runs is known, as far as their tokens are."""
        return all(
            run.cost is not None or run.cached or not (run.input_tokens or run.output_tokens)
            for run in self.runs.values()
        )

    def snapshot(self) -> Snapshot:
        """Everything up to now, for a watcher that comes later. Needs the `Planned` event first (else ValueError)."""
        if self.planned is None:
            raise ValueError("nothing is planned yet")
        states = tuple(run.copy() for run in self.runs.values() if run.status != "queued")
        return Snapshot(
            self.seq,
            planned=self.planned,
            states=states,
            ended_runs=tuple(self.ended_runs),
            progress=self.progress,
            ended=self.ended,
            throttled=tuple(self.throttled.values()),
            services=tuple(self.services.values()),
        )

    def shown(self, run_id: str) -> RunShown | None:
        """The state of one run as an event; None when there is no such run."""
        run = self.runs.get(run_id)
        return RunShown(self.seq, run.copy()) if run is not None else None

    def _planned(self, event: Planned) -> None:
        self.planned = event
        self.runs = {ref.run: RunState(ref) for ref in event.runs}
        self.counts = {"queued": len(self.runs)}
        self.ended_runs = []
        self.failures = []
        self.not_made = 0
        self.throttled = {}
        self.services = {}
        self.progress = None
        self.ended = None

    def _added(self, event: RunAdded) -> None:
        if self.planned is None:
            return
        run_state = self.runs.get(event.ref.run)
        if run_state is not None:  # its names were a guess
            runs = tuple([event.ref if ref.run == event.ref.run else ref for ref in self.planned.runs])
            self.planned = replace(self.planned, runs=runs)
            self.runs[event.ref.run] = run_state.copy(event.ref)
            return
        self.planned = replace(self.planned, runs=(*self.planned.runs, event.ref))
        self.runs[event.ref.run] = RunState(event.ref)
        self.counts["queued"] = self.counts.get("queued", 0) + 1

    def _snapshot(self, event: Snapshot) -> None:
        self._planned(event.planned)
        # States of queued runs are not in it: those are as planned.
        for state in event.states:
            run = self.runs.get(state.ref.run)
            if run is not None:
                self.runs[run.ref.run] = state.copy(run.ref)
                self._count("queued", state.status)
        self.ended_runs = [run for run in event.ended_runs if run in self.runs]
        self.failures = [run for run in self.ended_runs if self.runs[run].status not in NO_FAILURE]
        self.not_made = sum(self.runs[run].not_made for run in self.ended_runs)
        self.throttled = {throttled.agent: throttled for throttled in event.throttled}
        self.services = {service.name: service for service in event.services}
        self.progress = event.progress
        self.ended = event.ended
        self.seq = event.seq

    def _run_shown(self, event: RunShown) -> None:
        run_id = event.state.ref.run
        before = self.runs.get(run_id)
        if before is None:
            return
        after = self.runs[run_id] = event.state.copy(before.ref)
        self._count(before.status, after.status)
        if after.ended and before.ended:
            self._settled_again(before, after)
        elif after.ended:
            self._settled(run_id)

    def _started(self, event: RunStarted) -> None:
        run = self._unended(event.run)
        if run is None:
            return
        self._turn(run, "running")
        run.attempt = event.attempt
        run.retry_in_s = None
        if run.started_ms is None:
            run.started_ms = event.at_ms
        # A new attempt starts from the beginning: the text streamed by the broken one is not part of the answer.
        run.parts.clear()
        run.dropped = 0

    def _preparing(self, event: RunPreparing) -> None:
        run = self._flying(event.run)
        if run is not None:
            run.preparing = event.took_ms is None
            if event.took_ms is not None and run.started_ms is not None:
                # Clocks on screens show the run's own time, without the preparation.
                run.started_ms += round(event.took_ms)

    def _text(self, event: TextStreamed) -> None:
        self._stream(event.run, "text", event.text)

    def _reasoning(self, event: ReasoningStreamed) -> None:
        self._stream(event.run, "reasoning", event.text)

    def _stream(self, run_id: str, kind: str, text: str) -> None:
        run = self._flying(run_id)
        if run is None or not text:
            return
        last = run.parts[-1] if run.parts else None
        if last is None or last.kind != kind:
            last = StreamPart(kind)
            self._add_part(run, last)
        whole = last.text + text
        run.parts[-1] = StreamPart(kind, whole[-TEXT_TAIL:], cut=last.cut or len(whole) > TEXT_TAIL)

    def _turn_started(self, event: TurnStarted) -> None:
        run = self._flying(event.run)
        if run is not None:
            text, cut = event.text[-TEXT_TAIL:], len(event.text) > TEXT_TAIL
            self._add_part(run, StreamPart("user", text, key=event.turn, cut=cut, simulated=event.simulated))

    def _history_awaited(self, event: HistoryAwaited) -> None:
        self.awaits = event.message

    def _service(self, event: ServiceChanged) -> None:
        self.services[event.name] = event

    def _throttled(self, event: Throttled) -> None:
        if event.limit < event.wanted:
            self.throttled[event.agent] = event
        else:
            self.throttled.pop(event.agent, None)

    def _tool_started(self, event: ToolStarted) -> None:
        run = self._flying(event.run)
        if run is not None:
            self._add_part(run, StreamPart("tool", key=event.key, name=event.name))

    def _tool_arguments(self, event: ToolArguments) -> None:
        self._change_tool(event.run, event.key, arguments=event.text)

    def _tool_finished(self, event: ToolFinished) -> None:
        self._change_tool(event.run, event.key, result=event.result, error=event.error, done=True)

    def _change_tool(self, run_id: str, key: int, **changes: Any) -> None:
        run = self._flying(run_id)
        if run is None:
            return
        # From the end: a call that is still open is one of the last parts. One that was dropped is not found, and
        # nothing changes.
        for index in range(len(run.parts) - 1, -1, -1):
            part = run.parts[index]
            if part.kind == "tool" and part.key == key:
                run.parts[index] = replace(part, **changes)
                return

    def _usage(self, event: UsageCounted) -> None:
        run = self._flying(event.run)
        if run is not None:
            run.input_tokens = event.input_tokens
            run.output_tokens = event.output_tokens
            run.cost = event.cost

    def _attempt_failed(self, event: AttemptFailed) -> None:
        run = self._flying(event.run)
        if run is not None:
            run.retries = (*run.retries, event.message)[-RETRIES:]
            run.retry_in_s = event.retry_in_s

    def _agent_finished(self, event: AgentFinished) -> None:
        run = self._unended(event.run)
        if run is not None:
            self._turn(run, "grading")
            run.duration_ms = event.duration_ms
            run.error = event.error
            run.fix = event.fix
            run.ending = event.ending
            run.finish_reason = event.finish_reason
            run.around = event.around
            run.tools_raised = event.tools_raised
            run.cached = event.cached
            run.retry_in_s = None

    def _graded(self, event: Graded) -> None:
        run = self._unended(event.run)
        if run is None:
            return
        self._turn(run, event.outcome)
        run.score = event.score
        run.failed = event.failed
        run.not_made = event.not_made if event.outcome in DECIDED else 0
        run.duration_ms = event.duration_ms
        run.retry_in_s = None
        self.awaits = ""  # its end is on the disk
        self._settled(event.run)

    def _progress(self, event: Progress) -> None:
        self.progress = event

    def _ended(self, event: Ended) -> None:
        self.awaits = ""
        self.ended = event

    def _flying(self, run_id: str) -> RunState | None:
        """The run, if it is at work."""
        run = self.runs.get(run_id)
        return run if run is not None and run.status in IN_FLIGHT else None

    def _unended(self, run_id: str) -> RunState | None:
        """The run, if it can still change: a late event must not take an outcome away."""
        run = self.runs.get(run_id)
        return None if run is None or run.ended else run

    def _settled(self, run_id: str) -> None:
        self.ended_runs.append(run_id)
        self.not_made += self.runs[run_id].not_made
        if self.runs[run_id].status not in NO_FAILURE:
            self.failures.append(run_id)
        # Only one more has ended, so only one falls out.
        if len(self.ended_runs) > RECENT:
            self._forget_parts(self.runs[self.ended_runs[-RECENT - 1]])

    def _settled_again(self, before: RunState, after: RunState) -> None:
        """A run that ended has another outcome: of a trace that was stored, more arrived."""
        run_id = after.ref.run
        self.not_made += after.not_made - before.not_made
        if (after.status in NO_FAILURE) != (before.status in NO_FAILURE):
            self.failures = [run for run in self.ended_runs if self.runs[run].status not in NO_FAILURE]
        if run_id not in self.ended_runs[-RECENT:]:
            self._forget_parts(after)

    @staticmethod
    def _forget_parts(run: RunState) -> None:
        run.dropped += len(run.parts)
        run.parts.clear()

    def _turn(self, run: RunState, status: str) -> None:
        self._count(run.status, status)
        run.status = status

    def _count(self, old: str, new: str) -> None:
        self.counts[old] = self.counts.get(old, 0) - 1
        self.counts[new] = self.counts.get(new, 0) + 1

    @staticmethod
    def _add_part(run: RunState, part: StreamPart) -> None:
        run.parts.append(part)
        if len(run.parts) > PARTS:
            del run.parts[0]
            run.dropped += 1


_APPLY: dict[type[Event], Callable[[ExecutionView, Any], None]] = {
    Planned: ExecutionView._planned,
    RunAdded: ExecutionView._added,
    Snapshot: ExecutionView._snapshot,
    RunShown: ExecutionView._run_shown,
    RunStarted: ExecutionView._started,
    RunPreparing: ExecutionView._preparing,
    TextStreamed: ExecutionView._text,
    ReasoningStreamed: ExecutionView._reasoning,
    ToolStarted: ExecutionView._tool_started,
    ToolArguments: ExecutionView._tool_arguments,
    ToolFinished: ExecutionView._tool_finished,
    TurnStarted: ExecutionView._turn_started,
    Throttled: ExecutionView._throttled,
    ServiceChanged: ExecutionView._service,
    HistoryAwaited: ExecutionView._history_awaited,
    UsageCounted: ExecutionView._usage,
    AttemptFailed: ExecutionView._attempt_failed,
    AgentFinished: ExecutionView._agent_finished,
    Graded: ExecutionView._graded,
    Progress: ExecutionView._progress,
    Ended: ExecutionView._ended,
}
