"""What an execution tells its watchers, and what they may tell it. JSON lines on a socket.

Each event is small, frozen and numbered (`seq`, from 1, without gaps, by execution). A new watcher first gets a
`Snapshot`, then everything with a higher number. `encode` and `decode_event` are the wire form: one line of JSON.
Numbers may be missing for a watcher that is slow (texts are merged) or that watches one run only.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Literal, Protocol, TypeVar

from msgspec import Struct, convert, field, to_builtins
from msgspec.structs import replace

from agenteval_tui.suites.row_keys import row_label

log = logging.getLogger(__name__)

IN_FLIGHT = ("running", "grading")
"""The statuses of a run that is at work."""


class RunRef(Struct, frozen=True, omit_defaults=True):
    """A planned run as watchers need it. `suite` is the name of its suite, told from the others of the execution: two
    may have a test of the same id.

    `row` is the row's place in the dataset's file, from 1, and `row_key` what the row is (`suites.row_keys`). `gate`:
    the pass rate that its test must reach (None: every run must pass).
    """

    run: str
    test: str
    test_name: str
    variation: str
    row: int
    repetition: int
    agent: str
    suite: str = ""
    row_key: str = ""
    gate: float | None = None

    @property
    def row_label(self) -> str:
        """What people call its row: the id that it has, or its place in the file; "" without a dataset."""
        return row_label(self.row, self.row_key)


class Event(Struct, frozen=True, omit_defaults=True):
    """The base of all events."""

    type: ClassVar[str] = ""
    seq: int


class Planned(Event, frozen=True, omit_defaults=True):
    """The first event: what will be run, in the order in which it is shown.

    `concurrency` 0: other programs begin its runs, and send them (`RunAdded`).
    """

    type: ClassVar[str] = "planned"
    execution: str
    title: str
    runs: tuple[RunRef, ...]
    concurrency: int
    started_ms: int
    max_cost: float | None = None
    max_tokens: int | None = None
    max_seconds: float | None = None


class RunAdded(Event, frozen=True, omit_defaults=True):
    """One more run, behind those that were planned: an execution that listens learns of its runs as they come. A run
    that is known already has new names: the earlier ones were a guess."""

    type: ClassVar[str] = "added"
    ref: RunRef


class TurnStarted(Event, frozen=True, omit_defaults=True):
    """The next user message of a test with several turns goes to the agent. `turn` counts from 1."""

    type: ClassVar[str] = "turn"
    run: str
    turn: int
    text: str
    simulated: bool = False
    """A simulated user wrote it."""


class Throttled(Event, frozen=True, omit_defaults=True):
    """The number of runs at once was changed for an agent, because its server asks for less (429) or takes more again.

    `wanted` is the number without that (`limit` equals it: all is as it was); `wait_s`: no new run of this agent begins
    before.
    """

    type: ClassVar[str] = "throttled"
    agent: str
    limit: int
    wanted: int
    wait_s: float = 0.0


class HistoryAwaited(Event, frozen=True, omit_defaults=True):
    """Ended runs wait for the history, which another program keeps locked. `message` says which file."""

    type: ClassVar[str] = "history_awaited"
    message: str


class ServiceChanged(Event, frozen=True, omit_defaults=True):
    """A service is starting, ready, reused (it was there already), failed (it did not get ready), died or ended.
    `error` says why, `fix` how to fix it."""

    type: ClassVar[str] = "service"
    name: str
    status: str
    error: str = ""
    fix: str = ""


class RunStarted(Event, frozen=True, omit_defaults=True):
    """A run left the queue. `attempt` counts from 1."""

    type: ClassVar[str] = "started"
    run: str
    attempt: int
    at_ms: int


class RunPreparing(Event, frozen=True, omit_defaults=True):
    """What a run needs before its agent is asked takes a moment: imports, hooks, a server. That is not the run's time.
    `took_ms`: how long it took, once it is there (None: not yet)."""

    type: ClassVar[str] = "preparing"
    run: str
    took_ms: float | None = None


class TextStreamed(Event, frozen=True, omit_defaults=True):
    """More of a run's answer; merged by run per 50 ms."""

    type: ClassVar[str] = "text"
    run: str
    text: str


class ReasoningStreamed(Event, frozen=True, omit_defaults=True):
    """More of a run's reasoning; merged by run per 50 ms."""

    type: ClassVar[str] = "reasoning"
    run: str
    text: str


class ToolStarted(Event, frozen=True, omit_defaults=True):
    """A tool call started. `key` names it within its run."""

    type: ClassVar[str] = "tool_started"
    run: str
    key: int
    name: str


class ToolArguments(Event, frozen=True, omit_defaults=True):
    """The call's arguments, as JSON text, complete."""

    type: ClassVar[str] = "tool_arguments"
    run: str
    key: int
    text: str


class ToolFinished(Event, frozen=True, omit_defaults=True):
    """The call's result (cut to what a screen can use; the whole is in the store)."""

    type: ClassVar[str] = "tool_finished"
    run: str
    key: int
    result: str
    error: bool


class UsageCounted(Event, frozen=True, omit_defaults=True):
    """Tokens and cost of a run so far."""

    type: ClassVar[str] = "usage"
    run: str
    input_tokens: int | None
    output_tokens: int | None
    cost: float | None


class AttemptFailed(Event, frozen=True, omit_defaults=True):
    """An attempt ended in an error that may pass; the next one starts after `retry_in_s`."""

    type: ClassVar[str] = "attempt_failed"
    run: str
    attempt: int
    message: str
    retry_in_s: float
    kind: str = ""
    fix: str = ""


class AroundProblem(Struct, frozen=True, omit_defaults=True):
    """Something around a run that failed and ends nothing: a hook `after` it, or a `probe` of its state. `name` says
    which one, `message` why, `fix` how to fix it."""

    kind: Literal["after", "probe"]
    name: str
    message: str
    fix: str = ""


class AgentFinished(Event, frozen=True, omit_defaults=True):
    """The agent is done (or failed: `error` says why, `fix` how to fix it) and grading starts. `cached`: the answer
    was in the history already, so no agent was asked. `ending` and `finish_reason`: why the answer ended
    (`transcripts.finish_reason`); "" if it ended normally."""

    type: ClassVar[str] = "finished"
    run: str
    duration_ms: float
    error: str
    fix: str = ""
    cached: bool = False
    ending: str = ""
    finish_reason: str = ""
    around: tuple[AroundProblem, ...] = ()
    """What went wrong around the run, and ends nothing."""
    tools_raised: tuple[str, ...] = ()
    """The names of the tools whose function raised. The model was told of it, and the agent went on."""


class Graded(Event, frozen=True, omit_defaults=True):
    """The run has its outcome and is in the store. `failed` names the criteria that did not pass, with the reason;
    `not_made` counts those that are in error."""

    type: ClassVar[str] = "graded"
    run: str
    outcome: str
    score: float | None
    failed: tuple[tuple[str, str], ...]
    duration_ms: float
    not_made: int = 0


class Progress(Event, frozen=True, omit_defaults=True):
    """Figures of the whole execution, a few times a second. `rate` is ended runs a second; `eta_s` None: unknown.

    Tokens and `cost` are the agents'; those of judges and simulated users are apart. `skipped` runs were not needed:
    their test was decided.
    """

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
    skipped: int = 0
    judged_tokens: int = 0
    judged_cost: float | None = None
    user_tokens: int = 0
    user_cost: float | None = None

    @property
    def total_cost(self) -> float | None:
        """US dollars of agents, judges and simulated users together, as far as they are known; None: nothing is."""
        costs = [cost for cost in (self.cost, self.judged_cost, self.user_cost) if cost is not None]
        return sum(costs) if costs else None

    @property
    def total_tokens(self) -> int:
        """Tokens of agents, judges and simulated users."""
        return self.input_tokens + self.output_tokens + self.judged_tokens + self.user_tokens


class Ended(Event, frozen=True, omit_defaults=True):
    """The last event: `status` is finished, cancelled, stopped (a limit was reached) or failed; `message` has the
    reason. `at_ms`: when (0: not told)."""

    type: ClassVar[str] = "ended"
    status: str
    message: str
    at_ms: int = 0


class StreamPart(Struct, frozen=True, omit_defaults=True):
    """A piece of what streamed, in order: `kind` is text, reasoning, tool or user (a later turn's message).

    Of text and reasoning the end is kept (`cut`: the beginning is missing). A tool has its `name`, `key`, `arguments`
    (JSON text), and, once it is `done`, its `result` and whether it was an `error`. `simulated`: a simulated user wrote
    it.
    """

    kind: str
    text: str = ""
    key: int = 0
    name: str = ""
    arguments: str = ""
    result: str = ""
    done: bool = False
    error: bool = False
    cut: bool = False
    simulated: bool = False


class RunState(Struct, omit_defaults=True):
    """One run as a watcher knows it. `status` is queued, running, grading, cancelled or an outcome; `parts` the end of
    what streamed (`dropped`: how many parts before them are no longer held).

    It changes during the run; an event holds a `copy`. On the wire it names its run by the id.
    """

    ref: RunRef
    status: str = "queued"
    attempt: int = 0
    started_ms: int | None = None
    duration_ms: float | None = None
    score: float | None = None
    failed: tuple[tuple[str, str], ...] = ()
    error: str = ""
    fix: str = ""
    cached: bool = False
    retries: tuple[str, ...] = ()
    retry_in_s: float | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost: float | None = None
    parts: list[StreamPart] = field(default_factory=list)
    dropped: int = 0
    not_made: int = 0
    """Its checks that could not run, if it has a verdict all the same."""
    ending: str = ""
    """What ended its answer, a code of `transcripts.finish_reason`; "": it ended by itself."""
    finish_reason: str = ""
    around: tuple[AroundProblem, ...] = ()
    tools_raised: tuple[str, ...] = ()
    preparing: bool = False
    """What it needs before its agent is asked is not there yet."""

    @property
    def text(self) -> str:
        """The end of the answer's text, without reasoning and tools."""
        return "\n\n".join(part.text for part in self.parts if part.kind == "text")

    @property
    def tools(self) -> list[StreamPart]:
        """The tool calls that are held, in order."""
        return [part for part in self.parts if part.kind == "tool"]

    @property
    def ended(self) -> bool:
        """True once the run has its outcome (or was cancelled)."""
        return self.status != "queued" and self.status not in IN_FLIGHT

    def copy(self, ref: RunRef | None = None) -> RunState:
        """The same, by itself; of the run `ref` where that is given."""
        # Parts are replaced and never changed, so the list alone is copied.
        return replace(self, ref=ref or self.ref, parts=list(self.parts))


class RunShown(Event, frozen=True, omit_defaults=True):
    """The whole state of one run: sent to a watcher that begins to watch it. Of `state.ref` only `run` is sure."""

    type: ClassVar[str] = "run"
    state: RunState


class Snapshot(Event, frozen=True, omit_defaults=True):
    """Everything since the start, for a watcher that comes later: `seq` is the last event that it contains.

    `states` holds the runs that left the queue, in plan order; `ended_runs` the ids of those that ended, in that order;
    `throttled` the agents that may not have as many runs at once as they should, `services` those that were started.
    """

    type: ClassVar[str] = "snapshot"
    planned: Planned
    states: tuple[RunState, ...]
    ended_runs: tuple[str, ...]
    progress: Progress | None
    ended: Ended | None
    throttled: tuple[Throttled, ...] = ()
    services: tuple[ServiceChanged, ...] = ()


EVENTS: dict[str, type[Event]] = {
    cls.type: cls
    for cls in (
        Planned,
        RunAdded,
        RunStarted,
        RunPreparing,
        TextStreamed,
        ReasoningStreamed,
        ToolStarted,
        ToolArguments,
        ToolFinished,
        TurnStarted,
        Throttled,
        ServiceChanged,
        HistoryAwaited,
        UsageCounted,
        AttemptFailed,
        AgentFinished,
        Graded,
        Progress,
        Ended,
        RunShown,
        Snapshot,
    )
}


_E = TypeVar("_E", bound=Event)


class Tell(Protocol):
    """`tell(EventClass, *fields)`: number an event, send it out, and give it."""

    def __call__(self, kind: type[_E], /, *values: Any, **named: Any) -> _E:
        """`values` and `named` are the event's fields behind its number."""
        ...


class EventSink:
    """Numbers the events of one execution, and hands each to `emit`."""

    def __init__(self, emit: Callable[[Event], None]) -> None:
        self.emit = emit
        self._seq = 0

    def tell(self, kind: type[_E], /, *values: Any, **named: Any) -> _E:
        """As `Tell` has it. Whoever watches must not be able to stop what is being run and paid for."""
        self._seq += 1
        event = kind(self._seq, *values, **named)
        try:
            self.emit(event)
        except Exception:
            log.exception("a watcher broke")
        return event


# Commands: what a watcher may say to an execution.

VERBS = ("pause", "resume", "cancel", "set_concurrency", "watch")


class Command(Struct, frozen=True, omit_defaults=True):
    """One of `VERBS`: pause, resume, cancel (a `run`, or all), set_concurrency (`number`), watch (`run`).

    After `watch` the watcher gets what streams (text, reasoning, tools) of that run only, beginning with `RunShown`;
    with an empty `run` it gets that of all runs again.
    """

    verb: str
    run: str = ""
    number: int = 0


def encode(message: Event | Command) -> str:
    """One line of JSON, without the newline. Fields that have their default value are left out."""
    plain: dict[str, Any] = to_builtins(message)
    # The names of a run are in `planned` already: with them in each state, a snapshot would tell all of them twice.
    if isinstance(message, Snapshot):
        plain["states"] = [_with_id(state) for state in plain["states"]]
    elif isinstance(message, RunShown):
        plain["state"] = _with_id(plain["state"])
    if isinstance(message, Event):
        plain["type"] = message.type
    # ASCII: what agents write may hold half of a surrogate pair, which no socket takes as UTF-8.
    return json.dumps(plain, ensure_ascii=True, separators=(",", ":"))


def decode_event(line: str | bytes) -> Event:
    """The event in a line. Fields that this version does not know are left out.

    Raises ValueError for another line.
    """
    data = _loaded(line)
    cls = EVENTS.get(str(data.get("type"))) if isinstance(data, dict) else None
    if cls is None:
        raise ValueError("not an event of an execution")
    try:
        if cls is RunShown:
            data["state"] = _with_ref(data["state"], {})
        elif cls is Snapshot:
            refs = {ref["run"]: ref for ref in data["planned"]["runs"]}
            data["states"] = [_with_ref(state, refs) for state in data["states"]]
        return convert(data, cls)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise ValueError(f"a broken `{data['type']}` event: {error}") from error


def decode_command(line: str | bytes) -> Command:
    """The command in a line. Raises ValueError when it is none."""
    command = convert(_loaded(line), Command)
    if command.verb not in VERBS:
        raise ValueError("not a command")
    return command


def _loaded(line: str | bytes) -> Any:
    try:
        return json.loads(line)
    except RecursionError:
        raise ValueError("this JSON is nested too deep") from None


def _with_id(state: Mapping[str, Any]) -> dict[str, Any]:
    """A state of a run that names its run by the id."""
    return {"run": state["ref"]["run"], **{name: value for name, value in state.items() if name != "ref"}}


def _with_ref(state: Mapping[str, Any], refs: Mapping[str, Any]) -> dict[str, Any]:
    """`refs`: the known runs, by id; of any other run only the id is known."""
    run = state["run"]
    return {
        **state,
        "ref": refs.get(run)
        or to_builtins(RunRef(run, test="", test_name="", variation="", row=0, repetition=0, agent="")),
    }
