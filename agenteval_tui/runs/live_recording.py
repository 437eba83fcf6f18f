"""Shows a recording to watchers while its program runs: an execution with one run, which a watcher can stop."""

from __future__ import annotations

import asyncio
from types import TracebackType

from msgspec.structs import replace

from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.ids import now_ms
from agenteval_tui.runs.events import (
    AgentFinished,
    Command,
    Ended,
    EventSink,
    Graded,
    Planned,
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
from agenteval_tui.transcripts.model import Transcript


class LiveRecording:
    """Can be watched inside an `async with` block. Call `show` for each change, and `end` when the run is stored. If
    the block raises, the watchers read the reason.

    `stopped` is set when a watcher ends the recording. `handshake`: the connection to the process that started this one
    and is about to watch.
    """

    def __init__(self, execution: str, title: str, ref: RunRef, *, handshake: Handshake | None = None) -> None:
        self.stopped = asyncio.Event()
        self.execution = execution
        self.run = ref.run
        self._title = title
        self._stored = False
        self._handshake = handshake or Handshake()
        self._expected = self._handshake.expected
        self._socket = LiveSocket(execution, title, self._command, required=self._expected)
        self._events = EventSink(self._socket.tell)
        self._state = RunState(ref, "running", 1, now_ms())

    async def __aenter__(self) -> LiveRecording:
        """Open the socket for watchers. If there can't be a socket, raises `AgentevalError` if a watcher is expected,
        and continues without if not."""
        self._socket.reserve()
        started = self._state.started_ms or 0
        # Before the socket opens: a watcher's snapshot needs it.
        self._events.tell(Planned, self.execution, self._title, (self._state.ref,), 0, started)
        try:
            watched = await self._socket.open()
        except AgentevalError:
            self._socket.remove()
            raise
        if watched is not None:
            self._handshake.runs(watched)
        self._events.tell(RunStarted, self.run, 1, started)
        return self

    def show(self, transcript: Transcript) -> None:
        """Show the transcript so far."""
        parts, dropped = last_parts(transcript)
        used = transcript.usage
        self._state = replace(
            self._state,
            parts=parts,
            dropped=dropped,
            input_tokens=used.input_tokens,
            output_tokens=used.output_tokens,
            cost=used.cost,
        )
        self._events.tell(RunShown, self._state.copy())

    def end(self, transcript: Transcript, judged: GradedRun, duration_ms: float) -> None:
        """Show the result of the stored run."""
        # First: if the program fails from here on, the watchers still read that the run is stored.
        self._stored = True
        self.show(transcript)
        run, used, error = self.run, transcript.usage, transcript.error
        self._events.tell(UsageCounted, run, used.input_tokens, used.output_tokens, used.cost)
        self._events.tell(AgentFinished, run, duration_ms, "" if error is None else error.message)
        self._events.tell(Graded, run, duration_ms=duration_ms, **judged.as_event)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Tell the watchers how it ended, and close the socket."""
        status, message = "cancelled" if self.stopped.is_set() else "finished", ""
        if error is not None or not self._stored:
            status, message = "failed", self._failure(error)
        self._events.tell(Ended, status, message, now_ms())
        await self._socket.close(expected=self._expected)
        self._socket.remove()

    def _failure(self, error: BaseException | None) -> str:
        why = error.sentence if isinstance(error, AgentevalError) else ""
        if self._stored:
            return f"the run is stored, but {why or 'then the program failed'}"
        return f"this was not stored: {why}" if why else "this was not stored"

    def _command(self, command: Command) -> None:
        if command.verb == "cancel":
            self.stopped.set()
