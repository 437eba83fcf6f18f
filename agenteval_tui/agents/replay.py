"""The kind `replay`: recorded transcripts, given back exactly."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

from agenteval_tui.agents import recordings
from agenteval_tui.agents.interface import (
    AgentEvent,
    AgentRequest,
    AgentSetup,
    CheckReport,
    Done,
    Failed,
    Recorded,
    TextDelta,
    ToolArgumentsDelta,
    ToolCallFinished,
    ToolCallStarted,
    TurnEnded,
)
from agenteval_tui.agents.options import read_options
from agenteval_tui.agents.replay_options import ReplayOptions
from agenteval_tui.text.problems import AgentevalError
from agenteval_tui.transcripts.codec import arguments_text
from agenteval_tui.transcripts.model import RunError, Transcript

_PIECE = 16  # characters of an answer that is shown piece by piece


class ReplayAgent:
    """Gives the n-th repetition of a test its n-th recording, byte for byte.

    With `pace` the text and calls appear over the recorded time first; what counts is the transcript at the end.
    """

    options_model = ReplayOptions

    def __init__(self, setup: AgentSetup) -> None:
        self._setup = setup
        self._options = read_options(ReplayOptions, setup.name, setup.config)
        self._loading = asyncio.Lock()
        self._library: recordings.Library | None = None

    async def run(self, request: AgentRequest) -> AsyncIterator[AgentEvent]:
        """One recording: its events at the chosen pace, then `Recorded` and `Done` (or the recorded `Failed`)."""
        try:
            transcript = self._choose(await self._recordings(), request)
        except AgentevalError as error:
            yield Failed(RunError.told("recording", _with_place(error), error.mend))
            return
        if self._options.pace:
            spoken = sum(message.role != "system" for message in request.messages)
            for delay_ms, event in _as_events(transcript, spoken):
                await asyncio.sleep(delay_ms / 1000 * self._options.pace)
                yield event
        yield Recorded(transcript)
        if transcript.error is not None:
            yield Failed(transcript.error)
        else:
            yield Done(transcript.finish_reason or "stop", transcript.model)

    async def check(self, thorough: bool = False) -> CheckReport:
        """Reads the recordings and says how many there are."""
        began = time.perf_counter()
        try:
            library = await self._recordings()
        except AgentevalError as error:
            return CheckReport(False, _with_place(error), mend=error.mend)
        took = (time.perf_counter() - began) * 1000
        return CheckReport(True, f"{len(library)} recordings of {len(library.tests)} named tests", took)

    async def close(self) -> None:
        """Nothing is open."""

    async def _recordings(self) -> recordings.Library:
        async with self._loading:
            if self._library is None:
                self._library = await asyncio.to_thread(self._load)
            return self._library

    def _load(self) -> recordings.Library:
        options = self._options
        if options.file is not None:
            return recordings.read_file(self._setup.base_dir / Path(options.file).expanduser())
        if options.transcripts is not None:
            return recordings.Library(recordings.from_value({**options.transcripts}, f"agent {self._setup.name!r}"))
        if self._setup.transcripts is None:
            raise AgentevalError(
                "there is no history to replay from", where=f"agent {self._setup.name!r}", mend="use `file`"
            )
        stored = self._setup.transcripts(options.execution or "last")
        return recordings.Library(
            recordings.Recording(test, transcript) for test, found in stored.items() for transcript in found
        )

    def _choose(self, library: recordings.Library, request: AgentRequest) -> Transcript:
        found = library.find(request.test_id, request.messages)
        if not found:
            named = ", ".join(library.tests[:5]) + (", …" if len(library.tests) > 5 else "")
            raise AgentevalError(
                f"no recording of test {request.test_id!r}, and none that begins with its prompt",
                mend=f"recorded tests: {named}" if named else "the recordings name no tests",
            )
        if request.repetition > len(found) and self._options.beyond == "error":
            raise AgentevalError(
                f"repetition {request.repetition} of test {request.test_id!r} has no recording: there are {len(found)}",
                mend=f"set `repeat: {len(found)}` in the test, or `beyond: repeat` in the agent",
            )
        return found[(request.repetition - 1) % len(found)]


def _as_events(transcript: Transcript, given: int) -> Iterator[tuple[float, AgentEvent]]:
    """The recording as if it happened: (milliseconds to wait before, event).

    `given` messages were in the request, system messages not counted.
    """
    spoken = [message for message in transcript.messages if message.role != "system"]
    turns = [message for message in spoken[given:] if message.role == "assistant"]
    pieces = sum(1 + len(turn.content) // _PIECE for turn in turns) or 1
    tools = sum(call.duration_ms or 0.0 for call in transcript.tool_calls)
    each = max(0.0, (transcript.timing.total_ms or 0.0) - tools) / pieces
    for turn in turns:
        for start in range(0, len(turn.content), _PIECE):
            yield each, TextDelta(turn.content[start : start + _PIECE])
        for index in turn.tool_calls:
            call = transcript.tool_calls[index]
            yield each / max(1, len(turn.tool_calls)), ToolCallStarted(index, call.id, call.name)
            yield 0.0, ToolArgumentsDelta(index, arguments_text(call))
        yield 0.0, TurnEnded()
        for index in turn.tool_calls:
            call = transcript.tool_calls[index]
            if call.result is not None:
                error = call.status == "error"
                yield call.duration_ms or 0.0, ToolCallFinished(index, call.result, error, call.duration_ms)


def _with_place(error: AgentevalError) -> str:
    return f"{error.where}: {error.what}" if error.where else error.what
