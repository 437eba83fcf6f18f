"""What an execution tells its watchers, and what they may tell it. JSON lines on a socket.

Each event is small, frozen and numbered (`seq`, from 1, without gaps, by execution). A new watcher first gets a
`Snapshot`, then everything with a higher number. `encode` and `decode` are the wire form.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, ClassVar


@dataclass(frozen=True, slots=True)
class RunRef:
    """A planned run as watchers need it."""

    run: str
    test: str
    test_name: str
    variation: str
    row: int
    repetition: int
    agent: str


@dataclass(frozen=True, slots=True)
class Event:
    """The base of all events."""

    type: ClassVar[str] = ""
    seq: int


@dataclass(frozen=True, slots=True)
class Planned(Event):
    """The first event: what will be run, in the order in which it is shown."""

    type: ClassVar[str] = "planned"
    execution: str
    title: str
    runs: tuple[RunRef, ...]
    concurrency: int
    started_ms: int


@dataclass(frozen=True, slots=True)
class RunStarted(Event):
    """A run left the queue. `attempt` counts from 1."""

    type: ClassVar[str] = "run_started"
    run: str
    attempt: int
    at_ms: int


@dataclass(frozen=True, slots=True)
class TextStreamed(Event):
    """More of a run's answer; merged by run per 50 ms."""

    type: ClassVar[str] = "text"
    run: str
    text: str


@dataclass(frozen=True, slots=True)
class ReasoningStreamed(Event):
    """More of a run's reasoning; merged by run per 50 ms."""

    type: ClassVar[str] = "reasoning"
    run: str
    text: str


@dataclass(frozen=True, slots=True)
class ToolStarted(Event):
    """A tool call began. `key` names it within its run."""

    type: ClassVar[str] = "tool_started"
    run: str
    key: int
    name: str


@dataclass(frozen=True, slots=True)
class ToolArguments(Event):
    """The call's arguments, as JSON text, complete."""

    type: ClassVar[str] = "tool_arguments"
    run: str
    key: int
    text: str


@dataclass(frozen=True, slots=True)
class ToolFinished(Event):
    """The call's result (cut to what a screen can use; the whole is in the store)."""

    type: ClassVar[str] = "tool_finished"
    run: str
    key: int
    result: str
    error: bool


@dataclass(frozen=True, slots=True)
class UsageCounted(Event):
    """Tokens and cost of a run so far."""

    type: ClassVar[str] = "usage"
    run: str
    input_tokens: int | None
    output_tokens: int | None
    cost: float | None


@dataclass(frozen=True, slots=True)
class AttemptFailed(Event):
    """An attempt ended in an error that may pass; the next one starts after `retry_in_s`."""

    type: ClassVar[str] = "attempt_failed"
    run: str
    attempt: int
    message: str
    retry_in_s: float


@dataclass(frozen=True, slots=True)
class AgentFinished(Event):
    """The agent is done (or failed) and grading begins."""

    type: ClassVar[str] = "finished"
    run: str
    duration_ms: float
    error: str


@dataclass(frozen=True, slots=True)
class Graded(Event):
    """The run has its outcome and is in the store. `failed` names the criteria that did not pass, with the reason."""

    type: ClassVar[str] = "graded"
    run: str
    outcome: str
    score: float | None
    failed: tuple[tuple[str, str], ...]
    duration_ms: float


@dataclass(frozen=True, slots=True)
class Progress(Event):
    """Figures of the whole execution, a few times a second. `rate` is ended runs a second; `eta_s` None: unknown."""

    type: ClassVar[str] = "progress"
    total: int
    queued: int
    running: int
    passed: int
    failed: int
    errors: int
    cancelled: int
    needs_review: int
    rate: float
    eta_s: float | None
    input_tokens: int
    output_tokens: int
    cost: float | None
    concurrency: int
    paused: bool


@dataclass(frozen=True, slots=True)
class Ended(Event):
    """The last event: `status` is finished, cancelled or failed (with the reason in `message`)."""

    type: ClassVar[str] = "ended"
    status: str
    message: str


@dataclass(frozen=True, slots=True)
class RunState:
    """A run in a snapshot: `status` is queued, running, grading or an outcome; `text` the end of what streamed."""

    run: str
    status: str
    attempt: int
    score: float | None
    text: str


@dataclass(frozen=True, slots=True)
class Snapshot(Event):
    """Everything since the start, for a watcher that comes later: `seq` is the last event that it contains."""

    type: ClassVar[str] = "snapshot"
    planned: Planned
    states: tuple[RunState, ...]
    progress: Progress | None
    ended: Ended | None


EVENTS: dict[str, type[Event]] = {
    cls.type: cls
    for cls in (
        Planned,
        RunStarted,
        TextStreamed,
        ReasoningStreamed,
        ToolStarted,
        ToolArguments,
        ToolFinished,
        UsageCounted,
        AttemptFailed,
        AgentFinished,
        Graded,
        Progress,
        Ended,
        Snapshot,
    )
}


# Commands: what a watcher may say to an execution.


@dataclass(frozen=True, slots=True)
class Command:
    """One of pause, resume, cancel (a `run`, or all), set_concurrency (`number`), watch (`run`: stream its text)."""

    verb: str
    run: str = ""
    number: int = 0


def encode(message: Event | Command) -> str:
    """One line of JSON, without the newline."""
    data = asdict(message)
    if isinstance(message, Event):
        data["type"] = message.type
        if isinstance(message, Snapshot):
            data["planned"]["type"] = Planned.type
    return json.dumps(data, ensure_ascii=True, separators=(",", ":"))


def decode_event(line: str) -> Event:
    """The event in a line. Raises ValueError when it is none."""
    return _event(json.loads(line))


def decode_command(line: str) -> Command:
    """The command in a line. Raises ValueError when it is none."""
    data = json.loads(line)
    if not isinstance(data, dict) or not isinstance(data.get("verb"), str):
        raise ValueError("not a command")
    return Command(data["verb"], str(data.get("run", "")), int(data.get("number", 0)))


def _event(data: Mapping[str, Any]) -> Event:
    cls = EVENTS.get(str(data.get("type")))
    if cls is None:
        raise ValueError(f"unknown event {data.get('type')!r}")
    known = {field.name for field in fields(cls)}
    values: dict[str, Any] = {key: value for key, value in data.items() if key in known}
    if cls is Planned:
        values["runs"] = tuple(RunRef(**one) for one in values["runs"])
    elif cls is Graded:
        values["failed"] = tuple((str(name), str(why)) for name, why in values["failed"])
    elif cls is Snapshot:
        values["planned"] = _event({**values["planned"], "type": "planned"})
        values["states"] = tuple(RunState(**one) for one in values["states"])
        for key, kind in (("progress", "progress"), ("ended", "ended")):
            if values.get(key) is not None:
                values[key] = _event({**values[key], "type": kind})
    try:
        return cls(**values)
    except TypeError as error:
        raise ValueError(str(error)) from error
