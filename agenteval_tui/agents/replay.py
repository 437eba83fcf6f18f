"""The kind `replay`: recorded transcripts, given back exactly."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from agenteval_tui.agents.base import (
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
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.transcripts.codec import arguments_text, from_json
from agenteval_tui.transcripts.model import Message, RunError, Transcript

_PIECE = 16  # characters of an answer that is shown piece by piece
_TEST_KEYS = ("test", "test_id", "task_id", "id")
_TRANSCRIPT_KEYS = ("transcript", "messages", "traj")


class ReplayAgent:
    """Gives the n-th repetition of a test its n-th recording, byte for byte.

    With `pace` the text and calls appear over the recorded time first; what counts is the transcript at the end.
    """

    options_model = ReplayOptions

    def __init__(self, setup: AgentSetup) -> None:
        self._setup = setup
        self._options = read_options(ReplayOptions, setup.name, setup.config)
        self._loading = asyncio.Lock()
        self._library: Library | None = None

    async def run(self, request: AgentRequest) -> AsyncIterator[AgentEvent]:
        """One recording: its events at the chosen pace, then `Recorded` and `Done` (or the recorded `Failed`)."""
        try:
            transcript = self._choose(await self._recordings(), request)
        except AgentevalError as error:
            yield Failed(RunError.told("recording", error.problem, error.fix))
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
            return CheckReport(False, error.problem, fix=error.fix)
        took = (time.perf_counter() - began) * 1000
        return CheckReport(True, f"{len(library)} recordings of {len(library.tests)} named tests", took)

    async def close(self) -> None:
        """Nothing is open."""

    async def _recordings(self) -> Library:
        async with self._loading:
            if self._library is None:
                self._library = await asyncio.to_thread(self._load)
            return self._library

    def _load(self) -> Library:
        options = self._options
        if options.file is not None:
            return _read_file(self._setup.base_dir / Path(options.file).expanduser())
        if options.transcripts is not None:
            return Library(_from_value({**options.transcripts}, f"agent {self._setup.name!r}"))
        if self._setup.transcripts is None:
            raise AgentevalError(
                "there is no history to replay from", where=f"agent {self._setup.name!r}", fix="use `file`"
            )
        stored = self._setup.transcripts(options.execution or "last")
        return Library(
            Recording(test, transcript) for test, transcripts in stored.items() for transcript in transcripts
        )

    def _choose(self, library: Library, request: AgentRequest) -> Transcript:
        transcripts = library.find(request.test_id, request.messages)
        if not transcripts:
            named = ", ".join(library.tests[:5]) + (", …" if len(library.tests) > 5 else "")
            raise AgentevalError(
                f"no recording of test {request.test_id!r}, and none that begins with its prompt",
                fix=f"recorded tests: {named}" if named else "the recordings name no tests",
            )
        if request.repetition > len(transcripts) and self._options.beyond == "error":
            raise AgentevalError(
                f"repetition {request.repetition} of test {request.test_id!r} has no recording: "
                f"there are {len(transcripts)}",
                fix=f"set `repeat: {len(transcripts)}` in the test, or `beyond: repeat` in the agent",
            )
        return transcripts[(request.repetition - 1) % len(transcripts)]


def _as_events(transcript: Transcript, first: int) -> Iterator[tuple[float, AgentEvent]]:
    """The recording as if it happened: (milliseconds to wait before, event).

    `first`: how many messages were in the request, system messages not counted.
    """
    spoken = [message for message in transcript.messages if message.role != "system"]
    turns = [message for message in spoken[first:] if message.role == "assistant"]
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


# Recorded transcripts, read from a file or a mapping, and which of them belongs to a run


class Recording(Struct, frozen=True):
    """One recorded run: the id of its test ("" when the recording does not say) and what the agent did."""

    test: str
    transcript: Transcript


class Library:
    """Recordings, found by test id or, where recordings have none, by how their conversation begins."""

    def __init__(self, recordings: Iterable[Recording]) -> None:
        self._by_test: dict[str, list[Transcript]] = {}
        self._without_test: list[Transcript] = []
        for recording in recordings:
            if recording.test:
                self._by_test.setdefault(recording.test, []).append(recording.transcript)
            else:
                self._without_test.append(recording.transcript)

    def __len__(self) -> int:
        return sum(map(len, self._by_test.values())) + len(self._without_test)

    @property
    def tests(self) -> tuple[str, ...]:
        """The ids of the tests that have recordings, in the order of the recordings."""
        return tuple(self._by_test)

    def find(self, test: str, messages: Sequence[Message]) -> Sequence[Transcript]:
        """The recordings of test `test`, else those that begin with `messages` (system messages apart), in order."""
        if test in self._by_test:
            return self._by_test[test]
        start = _spoken(messages)
        return [
            transcript
            for transcript in self._everything()
            if start and _spoken(transcript.messages)[: len(start)] == start
        ]

    def _everything(self) -> Iterator[Transcript]:
        for transcripts in self._by_test.values():
            yield from transcripts
        yield from self._without_test


def _read_file(path: Path) -> Library:
    """The recordings in a .json or .jsonl file.

    An item is a transcript (this project's JSON or a list of OpenAI messages), or an object that holds one as
    `transcript`, `messages` or `traj` beside the id of its test (`test`, `test_id`, `task_id` or `id`). A .jsonl file
    has one item a line; a .json file one item, a list of items, or an object of test id -> item or list of items.
    Raises `AgentevalError` with the line of the first item that is none.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise AgentevalError(
            f"the recordings can't be read: {error.strerror}", where=str(path), fix="check the option `file`"
        ) from error
    except UnicodeDecodeError as error:
        raise AgentevalError("the recordings are not UTF-8", where=str(path), fix="save the file as UTF-8") from error
    if path.suffix.lower() in (".jsonl", ".ndjson"):
        return Library(_from_lines(text, path))
    return Library(_from_value(_decoded(text, str(path)), str(path)))


def _from_value(data: object, where: str) -> Iterator[Recording]:
    """The recordings in a decoded .json file or a mapping out of the configuration (see `_read_file`)."""
    if isinstance(data, Mapping) and not any(key in data for key in _TRANSCRIPT_KEYS):
        for test, value in data.items():
            for item in _listed(value):
                yield _recording(item, f"{where}: {test}", test=str(test))
    else:
        for number, item in enumerate(_listed(data), 1):
            yield _recording(item, f"{where}: item {number}")


def _from_lines(text: str, path: Path) -> Iterator[Recording]:
    # Only newlines end a line: a JSON string may hold other characters that `splitlines` takes for ends of line.
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            place = f"{path}:{number}"
            yield _recording(_decoded(line, place), place)


def _decoded(text: str, where: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise AgentevalError(f"this is not JSON: {error}", where=where, fix="fix or remove it") from error


def _listed(value: object) -> list[Any]:
    """A list of items; one item alone (an object, or a list of messages) is a list of one."""
    if not isinstance(value, list):
        return [value]
    is_messages = bool(value) and all(isinstance(item, Mapping) and "role" in item for item in value)
    return [value] if is_messages else value


def _recording(item: object, where: str, test: str = "") -> Recording:
    value = item
    if isinstance(item, Mapping):
        if not test:
            test_id = next((item[key] for key in _TEST_KEYS if isinstance(item.get(key), str | int)), "")
            test = str(test_id)
        if "transcript" in item:
            value = item["transcript"]
        elif isinstance(item.get("traj"), list):
            value = item["traj"]
    try:
        return Recording(test, from_json(value))
    except AgentevalError as error:
        raise AgentevalError(error.what, where=where, fix=error.fix) from error


def _spoken(messages: Sequence[Message]) -> list[tuple[str, str]]:
    return [(message.role, message.content.strip()) for message in messages if message.role != "system"]
