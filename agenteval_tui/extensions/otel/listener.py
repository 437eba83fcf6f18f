"""An execution whose runs are sent: each trace that arrives is a run, watched while it grows, and graded at its end.

It is of the kind "import", as a file of traces is: what was recorded elsewhere is graded here, and asks no agent.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Annotated

from msgspec import Struct
from msgspec.structs import replace

from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.ids import new_id, now_ms
from agenteval_tui.core.numbers import count
from agenteval_tui.core.options import Options, limits
from agenteval_tui.core.outcomes import DECIDED
from agenteval_tui.extensions.otel.export_request import SentEvent, SentSpan
from agenteval_tui.extensions.otel.open_traces import OpenTrace, OpenTraces
from agenteval_tui.formats.importers.recording import Recording, Skipped, as_id
from agenteval_tui.formats.importers.trace_names import is_by_chance, question_name
from agenteval_tui.formats.recorded_run import planned_run, run_end, storable
from agenteval_tui.grading.grade import grade
from agenteval_tui.grading.sentences import verdict_sentence
from agenteval_tui.grading.spec import CriterionSpec
from agenteval_tui.history.records import ExecutionRecord, PlannedRun, RunEnded
from agenteval_tui.history.store import Store
from agenteval_tui.runs.events import (
    AgentFinished,
    Command,
    Ended,
    EventSink,
    Graded,
    Planned,
    RunAdded,
    RunRef,
    RunShown,
    RunStarted,
    RunState,
    UsageCounted,
)
from agenteval_tui.runs.grading_pool import GradedRun
from agenteval_tui.runs.handshake import Handshake
from agenteval_tui.runs.live_socket import LiveSocket
from agenteval_tui.runs.run_stream import last_parts
from agenteval_tui.suites.projects import project_here

SOURCE = "otel"
QUIET_S, PATIENCE_S = 2.0, 60.0
SHOW_S = 0.1
"""How long what comes is gathered before it is shown."""
UNNAMED = "traces"
"""The suite of programs that do not say what they are called."""


class ListeningOptions(Options, frozen=True, kw_only=True):
    """Where traces come to, when one is complete (seconds), and when it ends (`most` None: when somebody stops it)."""

    port: Annotated[int, limits("The port; 0 for any free one.", "N", ge=0, le=65_535)] = 4318
    most: Annotated[int, limits("End after N runs (default: on Ctrl-C).", "N", ge=1)] | None = None
    quiet_after: Annotated[
        float,
        limits(
            "A trace with its first span is complete after this time without new spans.", "SECONDS", ge=0.1, le=3600
        ),
    ] = QUIET_S
    patience: Annotated[
        float,
        limits(
            "A trace without its first span is stored as it is after this time without new spans.",
            "SECONDS",
            ge=0.1,
            le=86_400,
        ),
    ] = PATIENCE_S


class ListenerSettings(Struct, frozen=True):
    """`criteria` grade each run. A trace is complete when its first span has come and nothing more for `quiet_s`
    seconds, without that span after `patience_s`. `most`: end after this many runs (0: never)."""

    criteria: tuple[CriterionSpec, ...] = ()
    quiet_s: float = QUIET_S
    patience_s: float = PATIENCE_S
    most: int = 0
    title: str = "traces"


class HeardRun(Struct, frozen=True):
    """A trace that was stored as a run. `again`: it had been stored before, and more of it came."""

    trace: str
    planned: PlannedRun
    ended: RunEnded
    notes: tuple[str, ...] = ()
    again: bool = False


class Listener:
    """Stores the spans from `take` as runs. Calls `on_run` for each stored run. `handshake`: the connection to the
    process that started this one and is about to watch."""

    def __init__(
        self,
        store: Store,
        options: ListenerSettings,
        on_run: Callable[[HeardRun], None],
        *,
        handshake: Handshake | None = None,
    ) -> None:
        self.execution = new_id()
        self.runs = 0
        self.skipped: Counter[str] = Counter()
        """Why traces did not become runs, and how many."""
        self._store = store
        self._options = options
        self._on_run = on_run
        self._title = options.title
        self._traces = OpenTraces(options.quiet_s, options.patience_s)
        self._known: dict[str, _Run] = {}  # by trace; those that may still change
        self._begun = 0
        self._repetitions: Counter[tuple[str, str]] = Counter()
        self._handshake = handshake or Handshake()
        self._socket = LiveSocket(self.execution, self._title, self._command, required=self._handshake.expected)
        self._events = EventSink(self._socket.tell)
        self._changed: dict[str, OpenTrace] = {}
        self._news = asyncio.Event()
        self._stopped = False

    @property
    def late(self) -> int:
        """The number of spans that arrived too late for their runs."""
        return self._traces.late

    @property
    def unwatchable(self) -> str:
        """Why the app can't watch it; "" if it can."""
        return self._socket.unwatchable

    def take(self, spans: Sequence[SentSpan], events: Sequence[SentEvent]) -> None:
        """Take new spans and events. Call it in the event loop's thread."""
        self._changed.update(self._traces.add(spans, events, time.monotonic()))
        self._news.set()

    def stop(self) -> None:
        """Stop listening. The open traces become runs as they are."""
        self._stopped = True
        self._news.set()

    async def run(self, source: str) -> None:
        """Store new traces until `stop`. `source`: the address of the listener."""
        # Before the execution is in the history: whoever sees it there can watch it.
        self._socket.reserve()
        began = now_ms()
        record = ExecutionRecord(
            id=self.execution,
            title=self._title,
            kind="import",
            source=source,
            suite_keys=(),
            started_ms=began,
            options={"format": SOURCE},
            project=project_here(),
        )
        await asyncio.wrap_future(self._store.begin_execution(record, ()))
        self._events.tell(Planned, self.execution, self._title, (), 0, began)
        status, message = "failed", "not all that came was stored"
        try:
            try:
                watched = await self._socket.open()
                if watched is not None:
                    self._handshake.runs(watched)
                await self._store_what_comes()
            finally:
                # What came is stored, also where listening ends with an error.
                for trace in self._traces.all():
                    await self._end(trace)
                # The store first, then the event: a watcher that is told of the end finds it in the history.
                await asyncio.wrap_future(self._store.end_execution(self.execution, "finished"))
            status, message = "finished", ""
        except AgentevalError as error:
            message = f"{message}: {error.sentence}"
            raise
        finally:
            self._events.tell(Ended, status, message, now_ms())
            await self._socket.close()
            self._socket.remove()

    async def _store_what_comes(self) -> None:
        while not self._stopped:
            await self._wait()
            self._show_changed()
            for trace in self._traces.closed(time.monotonic()):
                await self._end(trace)
            for forgotten in self._traces.forgotten():
                self._known.pop(forgotten, None)
            if self._options.most and self.runs >= self._options.most:
                break

    async def _wait(self) -> None:
        """Wait for new spans, or until a trace is complete, but at least `SHOW_S` seconds."""
        due = self._traces.next_s()
        with suppress(TimeoutError):
            await asyncio.wait_for(self._news.wait(), None if due is None else max(0.0, due - time.monotonic()))
        if not self._stopped:
            await asyncio.sleep(SHOW_S)
        # After the pause: all that came in it is shown at once.
        self._news.clear()

    def _show_changed(self) -> None:
        """Show the changed traces. Each is read whole, so several requests in the meantime are shown once."""
        for trace in self._changed.values():
            self._show(trace)
        self._changed.clear()

    def _command(self, command: Command) -> None:
        if command.verb == "cancel":
            self.stop()

    def _show(self, trace: OpenTrace) -> None:
        """Send the present state of a trace to the watchers."""
        recording = trace.recording()
        if isinstance(recording, Skipped):
            return
        run = self._known.get(trace.id)
        if run is None:
            run = self._begin(trace, recording)
        elif not run.stored:
            self._rename(run, trace, _named(recording, trace))
        run.state.parts, run.state.dropped = last_parts(recording.transcript)
        self._events.tell(RunShown, run.state.copy())

    def _begin(self, trace: OpenTrace, recording: Recording) -> _Run:
        planned = self._planned(trace, _named(recording, trace))
        ref = _ref(planned)
        started = now_ms()
        run = self._known[trace.id] = _Run(planned, RunState(ref, "running", 1, started))
        self._begun += 1
        self._events.tell(RunAdded, ref)
        self._events.tell(RunStarted, planned.id, 1, started)
        return run

    def _planned(self, trace: OpenTrace, named: Recording) -> PlannedRun:
        suite = trace.service or UNNAMED
        self._repetitions[suite, named.test_id] += 1
        repetition = self._repetitions[suite, named.test_id]
        place, key = self._begun, f"listen:{suite}"
        return planned_run(
            named,
            self.execution,
            position=place,
            suite_key=key,
            suite=suite,
            source=SOURCE,
            repetition=repetition,
            specs=self._options.criteria,
        )

    async def _end(self, trace: OpenTrace) -> None:
        recording = trace.recording()
        if isinstance(recording, Skipped):
            self.skipped[recording.reason] += 1
            return
        run = self._known.get(trace.id) or self._begin(trace, recording)
        again = run.stored
        # The names of the first span, which has come by now, or never does.
        stored = storable(_named(recording, trace))
        if not again:
            self._rename(run, trace, stored)
            await asyncio.wrap_future(self._store.add_runs(self.execution, [run.planned]))
        notes = stored.notes
        if trace.left_out:
            notes = (*notes, f"{trace.left_out:,} spans of it were left out: a trace may have no more")
        ended = self._ended(run.planned, stored)
        await asyncio.wrap_future(self._store.run_ended(ended))
        run.stored = True
        self.runs += not again
        self._tell_end(run, ended, again)
        self._on_run(HeardRun(trace.id, run.planned, ended, notes, again))

    def _rename(self, run: _Run, trace: OpenTrace, named: Recording) -> None:
        """Give the run the names that the trace has now, and tell the watchers if they are new."""
        run.planned = self._planned_anew(run.planned, trace, named)
        ref = _ref(run.planned)
        if ref != run.state.ref:
            run.state = replace(run.state, ref=ref)
            self._events.tell(RunAdded, ref)

    def _planned_anew(self, before: PlannedRun, trace: OpenTrace, named: Recording) -> PlannedRun:
        """The first span, which comes last, has the names of test and agent: what was shown until now was a guess."""
        if (before.test_id, before.agent, before.suite_name) == (named.test_id, named.agent, trace.service or UNNAMED):
            return before
        # Its number is free again, unless a later run has the next one.
        if self._repetitions[before.suite_name, before.test_id] == before.repetition:
            self._repetitions[before.suite_name, before.test_id] -= 1
        planned_run = self._planned(trace, named)
        return replace(planned_run, id=before.id, position=before.position)

    def _tell_end(self, run: _Run, ended: RunEnded, again: bool) -> None:
        """Send the outcome to the watchers. If the run was stored before, this replaces its outcome."""
        usage, error, duration = ended.transcript.usage, ended.transcript.error, ended.duration_ms or 0.0
        message = error.message if error is not None else ""
        graded = GradedRun(ended.status, ended.score, ended.results, ended.warnings, ended.why)
        run.state = replace(
            run.state,
            status=graded.status,
            score=graded.score,
            failed=graded.failed,
            not_made=graded.not_made if graded.status in DECIDED else 0,
            error=message,
            duration_ms=duration,
            input_tokens=usage.input_tokens,
            output_tokens=usage.output_tokens,
            cost=usage.cost,
        )
        # A watcher has had its end: only its outcome is replaced.
        if again:
            self._events.tell(RunShown, run.state.copy())
        else:
            key = run.planned.id
            self._events.tell(UsageCounted, key, usage.input_tokens, usage.output_tokens, usage.cost)
            self._events.tell(AgentFinished, key, duration, message)
            self._events.tell(Graded, key, duration_ms=duration, **graded.as_event)
        run.state.parts = []  # the history has them

    def _ended(self, planned: PlannedRun, recording: Recording) -> RunEnded:
        ended = run_end(planned.id, recording)
        if not self._options.criteria:
            return ended
        verdict = grade(recording.transcript, self._options.criteria, recording.variables)
        return replace(
            ended,
            status=str(verdict.outcome),
            score=verdict.score,
            results=(*verdict.results, *recording.results),
            warnings=verdict.warnings,
            why=verdict_sentence(verdict) if recording.transcript.error is None else ended.why,
        )


def _ref(planned: PlannedRun) -> RunRef:
    return RunRef(
        planned.id,
        test=planned.test_id,
        test_name=planned.test_name,
        variation=planned.variation,
        row=0,
        repetition=planned.repetition,
        agent=planned.agent,
        suite=planned.suite_name,
    )


class _Run(Struct):
    """A trace that watchers know as a run."""

    planned: PlannedRun
    state: RunState
    stored: bool = False


def _names_test(trace: OpenTrace) -> bool:
    return any(
        attribute.get("key") == "agenteval.test.id"
        for span in trace.spans.values()
        for attribute in span.get("attributes") or ()
    )


def _named(recording: Recording, trace: OpenTrace) -> Recording:
    """A trace that does not name its test is called by what was asked: equal questions repeat one test. An agent that
    has no name is called as the program that sent the trace."""
    agent = recording.agent or trace.service or recording.transcript.model or UNNAMED
    recording = replace(recording, agent=agent)
    if recording.test_name != trace.id and not (is_by_chance(recording.test_name) and not _names_test(trace)):
        return recording
    name = question_name(recording.prompt) or next((str(span.get("name")) for span in trace.spans.values()), trace.id)
    return replace(recording, test_id=as_id(name), test_name=name)


def loss_notes(
    skipped: Mapping[str, int], late: int, refused: int, last_refusal: str, *, option: str = "--quiet-after"
) -> tuple[str, ...]:
    """A sentence each. `skipped`: traces left out, by reason, the most frequent first; `late`: spans that came after
    their run was stored; `refused`: requests that could not be read, and why the last one could not. `option`: what
    lets a trace wait longer, as the reader writes it."""
    notes = [f"{count(times, 'trace')} left out: {reason}" for reason, times in skipped.items()]
    if late:
        notes.append(
            f"{count(late, 'span')} came too late and {'was' if late == 1 else 'were'} left out; increase {option}"
        )
    if refused:
        notes.append(f"{count(refused, 'request')} could not be read completely; the last one: {last_refusal}")
    return tuple(notes)
