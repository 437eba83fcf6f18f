"""The transcript: what an agent did in one run.

Transcripts are plain frozen data, because grading reads thousands on every keystroke. This module validates nothing:
the code that builds a transcript (an agent's recorder, an importer, `codec.from_json`) makes it well formed.

These records are also the JSON that is stored and printed, which leaves out what is as by default. A default that comes
from a factory is written all the same: the JSON has always had that field.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Annotated, Any, Literal, TypeVar

from msgspec import Meta, Struct, field
from msgspec.structs import replace

from agenteval_tui.core.document import Figure, one_of
from agenteval_tui.core.fingerprint import fingerprint
from agenteval_tui.transcripts.model_request import ModelRequests
from agenteval_tui.transcripts.state import ProbeState
from agenteval_tui.transcripts.traceback import Traceback


class ErrorCode(StrEnum):
    """Why an agent did not finish: a closed set, finer than an error's kind. Each code lists its fields; `fingerprint`
    is one of foreign text.

    Errors are told apart and grouped by these and by their fields, never by their sentences (`grading.causes`). A code
    stays what it is: histories hold it, and decisions are made about it.
    """

    TOLD = "told"  # an agent, a program, a server or a file said it in words of its own: fingerprint

    # The connection.
    NO_CONNECTION = "no_connection"  # why: unknown_host, lookup_failed, refused, no_route, closed
    CONNECT_TIMEOUT = "connect_timeout"
    REQUEST_TIMEOUT = "request_timeout"
    CLOSED_WITHOUT_ANSWER = "closed_without_answer"
    CUT_OFF = "cut_off"
    PROXY_UNREACHABLE = "proxy_unreachable"  # why: as of no_connection, or no_answer
    PROXY_PASSWORD = "proxy_password"  # noqa: S105 - no password, but that one is wanted
    TLS_EXPECTED = "tls_expected"
    NO_TLS = "no_tls"
    NOT_HTTP = "not_http"
    CERTIFICATE = "certificate"  # why: expired, not_yet_valid, other_host, self_signed, unknown_authority

    # What a server answers.
    STATUS = "status"  # status
    REDIRECT = "redirect"
    KEY_REFUSED = "key_refused"
    NO_PERMISSION = "no_permission"
    REGION = "region"
    NO_EMBEDDING = "no_embedding"
    NOT_AN_OBJECT = "not_an_object"
    TOO_LONG = "too_long"
    SILENCE = "silence"  # after: first_token, silence
    KEY_MISSING = "key_missing"  # variable

    # The agent, its program, and what runs it.
    NO_PROMPT = "no_prompt"
    MAX_STEPS = "max_steps"
    EXIT = "exit"  # status
    INPUT_ENDED = "input_ended"  # a program read on after the prompt, which was all there is: status
    NO_ANSWER = "no_answer"
    NOT_RECORDED = "not_recorded"  # a run from its recording asks something else: request (from 1), at, change
    PROMPT_ONLY = "prompt_only"  # it can't be told the answers that the conversation has already
    NOT_DONE = "not_done"  # it stopped without saying that it was done
    RUN_TIMEOUT = "run_timeout"
    CANCELLED = "cancelled"
    HOOK = "hook"  # a hook failed: phase, hook, why (exit, timeout, start, output, raised), status
    SERVICE = "service"  # a service that the run needs: service, why (exit, timeout, start, port)
    WORKDIR = "workdir"  # the run's working folder can't be made: why
    ENDING = "ending"  # ending: what `error_on_finish` names
    WORKER_LOST = "worker_lost"
    SCHEDULER_LOST = "scheduler_lost"
    NO_REASON = "no_reason"  # no reason was given

    # The simulated user: nothing that the agent did.
    USER_FAILED = "user_failed"  # its agent did not answer: why (a code of this list)
    USER_SILENT = "user_silent"  # it said nothing: when: opening, answer
    USER_TIMEOUT = "user_timeout"  # the run's time was over while it was asked


CallStatus = Literal["ok", "error", "pending"]
OK: CallStatus = "ok"


class Attachment(Struct, frozen=True, omit_defaults=True):
    """An image or a file of a message. What is graded is its `mark`, the text in its place in the message's content.

    `media_type` as in HTTP ("" where it was not said), `size` in bytes and `sha256` (hex) of its bytes: None and ""
    where only its `url` is known. The bytes are not here: `core.attachment_files` has them by their hash.
    `name` and `description` are somebody's words; no file is opened by that name.
    """

    media_type: str = ""
    size: Annotated[Figure | None, Meta(description="in bytes; absent where only an address is known")] = None
    sha256: Annotated[str, Meta(description="of its bytes, in hex")] = ""
    name: str = ""
    description: Annotated[str, Meta(description="what it shows, in words")] = ""
    url: str = ""
    mark: Annotated[str, Meta(description="the text in its place in the message's content")] = ""


SYSTEM_ROLES = ("system", "developer")
"""The roles of messages with a system prompt: OpenAI calls it "developer" for newer models."""


class Message(Struct, frozen=True, omit_defaults=True):
    """One message. `content` is text ("" when there is none), with the marks of its `attachments` where they stood.

    `tool_calls` holds indices into `Transcript.tool_calls`, in the order in which the message made them.
    `tool_call` is, for a `tool` message, the index of the call that it answers (None when it answers none known).
    `tool_call_id` and `name` are kept as the sender gave them. `simulated`: a simulated user wrote it.
    """

    role: str
    content: str = field(default_factory=str)
    reasoning: str = ""
    tool_calls: Annotated[tuple[Figure, ...], Meta(description="indices into the transcript's tool_calls")] = ()
    tool_call: Annotated[Figure | None, Meta(description="of a tool message: the call that it answers")] = None
    tool_call_id: str | None = None
    name: str | None = None
    simulated: Annotated[bool, Meta(description="a simulated user wrote it")] = False
    attachments: tuple[Attachment, ...] = ()


def known_by(messages: Iterable[Message]) -> list[list[str]]:
    """What tells the images and files of messages apart; [] for messages without any."""
    return [
        [attachment.mark, attachment.media_type, attachment.sha256, attachment.url]
        for message in messages
        for attachment in message.attachments
    ]


class ToolCall(Struct, frozen=True, omit_defaults=True):
    """One call of a tool.

    `arguments` is the decoded JSON value, an object as a rule. Arguments that are not valid JSON are kept as the
    text that came, with `malformed` true. `result` is the text that went back to the model; None while there is none.
    Times are milliseconds since the run's start. `message` is the index of the assistant message that made the call.
    `traceback`: where the tool's function raised, if that is known.
    """

    id: str
    name: str
    arguments: Annotated[Any, Meta(description="the decoded JSON value; text when it was malformed")]
    result: str | None = None
    status: CallStatus = field(default_factory=lambda: OK)
    started_ms: float | None = None
    duration_ms: float | None = None
    message: Figure | None = None
    malformed: bool = False
    traceback: Annotated[
        Traceback | None, Meta(description="where its function raised; absent where that is not known")
    ] = None


class Step(Struct, frozen=True, omit_defaults=True):
    """One turn of the model or one tool call: its name, start and length in milliseconds since the run's start.

    `setup`: something that was started for the agent (an interpreter, imports, tool servers). It is not part of the
    agent's time: the clock that measures all other times is paused meanwhile.
    """

    name: str
    started_ms: float
    duration_ms: float
    setup: bool = False


class Timing(Struct, frozen=True, omit_defaults=True):
    """Milliseconds: from the start to the first token, to the end, and by step. None: not measured.

    Steps with `setup` count in neither of the first two."""

    first_token_ms: float | None = None
    total_ms: float | None = None
    steps: tuple[Step, ...] = ()

    @property
    def setup(self) -> dict[str, float]:
        """How long what is not the agent's time took, in milliseconds by its name."""
        took: dict[str, float] = {}
        for step in self.steps:
            if step.setup:
                took[step.name] = took.get(step.name, 0.0) + step.duration_ms
        return took


_Number = TypeVar("_Number", int, float)


class Usage(Struct, frozen=True, omit_defaults=True):
    """Tokens, and cost in US dollars. None: not measured, or not measured of all requests.

    `input_tokens` includes the `cached_tokens`, which were read from a cache, and the `cache_write_tokens`, which were
    written into it; of these, `cache_write_1h_tokens` are kept for an hour, which costs more. `output_tokens` includes
    the `reasoning_tokens`.
    """

    input_tokens: Annotated[Figure | None, Meta(description="the tokens of the cache included")] = None
    output_tokens: Annotated[Figure | None, Meta(description="those of the reasoning included")] = None
    cached_tokens: Annotated[Figure | None, Meta(description="input tokens that were read from a cache")] = None
    reasoning_tokens: Figure | None = None
    cost: Annotated[float | None, Meta(description="US dollars")] = None
    cache_write_tokens: Annotated[
        Figure | None, Meta(description="of `input_tokens`, those that the server wrote into its cache")
    ] = None
    cache_write_1h_tokens: Annotated[
        Figure | None, Meta(description="of `cache_write_tokens`, those that the cache keeps for an hour")
    ] = None

    @property
    def total_tokens(self) -> int | None:
        """Input and output tokens together; None unless both were measured: one side is not the whole."""
        return None if self.input_tokens is None or self.output_tokens is None else self.counted_tokens

    @property
    def counted_tokens(self) -> int:
        """The input and output tokens that were measured: at least this many were used."""
        return (self.input_tokens or 0) + (self.output_tokens or 0)

    @property
    def all_written(self) -> Usage:
        """The same, if all its input had been written into a cache: what a request like it may cost at most."""
        return replace(self, cached_tokens=None, cache_write_tokens=self.input_tokens, cache_write_1h_tokens=None)

    def __add__(self, other: Usage) -> Usage:
        """Both together; what neither measured stays None. The cost is None if only one side's tokens have a price."""
        return Usage(
            _sum(self.input_tokens, other.input_tokens),
            output_tokens=_sum(self.output_tokens, other.output_tokens),
            cached_tokens=_sum(self.cached_tokens, other.cached_tokens),
            reasoning_tokens=_sum(self.reasoning_tokens, other.reasoning_tokens),
            cost=None if self._leaves_unpriced(other) or other._leaves_unpriced(self) else _sum(self.cost, other.cost),
            cache_write_tokens=_sum(self.cache_write_tokens, other.cache_write_tokens),
            cache_write_1h_tokens=_sum(self.cache_write_1h_tokens, other.cache_write_1h_tokens),
        )

    @property
    def unpriced(self) -> bool:
        """Whether tokens were used whose cost is not known, or only known in part."""
        return self.cost is None and bool(self.counted_tokens)

    def _leaves_unpriced(self, other: Usage) -> bool:
        """Whether this has tokens that the cost of the other is not for. A cost without input tokens is told of a
        request whose input tokens came before."""
        return self.unpriced and bool(other.counted_tokens) and (other.cost is None or other.input_tokens is not None)


def _sum(first: _Number | None, other: _Number | None) -> _Number | None:
    return other if first is None else first if other is None else first + other


USER = "user"
"""The kind of an error of the simulated user."""


class RunError(Struct, frozen=True, omit_defaults=True):
    """Why an agent did not finish: a class of error ("timeout", "connection", ...), one sentence, how to fix it.

    `code` (an `ErrorCode`) and `fields` say what exactly went wrong: errors are told apart and grouped
    by them, nothing reads the sentence. "": of a history, a file or a program without codes. `traceback`: where code
    raised it, if that is known.
    """

    kind: str
    message: str
    fix: str = field(default_factory=str)
    code: Annotated[str, Meta(description="what exactly went wrong; empty where no code says it")] = ""
    fields: Annotated[
        Mapping[str, Any], Meta(description="what the code is about; `fingerprint`: foreign words, reduced")
    ] = field(default_factory=dict)
    traceback: Annotated[Traceback | None, Meta(description="where it was raised; absent where that is not known")] = (
        None
    )

    @classmethod
    def raised(
        cls,
        message: str,
        fix: str = "",
        *,
        reduced: str = "",
        traceback: Traceback | None = None,
    ) -> RunError:
        """An exception of somebody's code. `reduced`: the message without the values of variables: the same fault is
        known by it, whichever values it had."""
        fields = {"fingerprint": fingerprint(reduced or message)}
        return cls("program", message, fix, ErrorCode.TOLD, fields, traceback)

    @classmethod
    def told(cls, kind: str, message: str, fix: str = "", code: str = ErrorCode.TOLD, **fields: Any) -> RunError:
        """An error whose sentence has words in it that are not ours: reduced, they are what it is known by."""
        return cls(kind, message, fix, code, {**fields, "fingerprint": fingerprint(message)})

    @property
    def of_user(self) -> bool:
        """Whether the simulated user is to blame, and not the agent."""
        return self.kind == USER

    @property
    def coded(self) -> RunError:
        """The same with a code: of an error that came without one, its sentence is somebody else's."""
        if self.code:
            return self
        return replace(RunError.told(self.kind, self.message, self.fix), traceback=self.traceback)


class Note(Struct, frozen=True, omit_defaults=True):
    """Something that a run must say although it went on. `code` is the class of it, `what` the particular thing, and
    `place` where in the transcript it was ("": not in one place).

    unread: an object or a part of a message that could not be read (its type). left_out: something that a transcript
    can't hold. figure: a figure that can't be so (its value). unmatched_result: the result of a call that
    was not made (the tool). interrupted: the agent stopped to ask a person (what it asks). usage: tokens or a cost that
    can't be so (names and values). model_error: the last request to a model failed (how). asked_again: requests that
    were made twice (how many). no_requests: the program asked no model that the proxy could see (why that may be).
    asked_past: the program asked models past the proxy (which servers). no_spans: it sent no span that tells what was
    said (why that may be). open_spans: spans that others belong to did
    not end (how many). user_turns: the simulated user had not ended the conversation when it had spoken as often as
    it may (how often). partly_priced: the cost of some requests is not known (the sum of the others). partly_counted:
    some requests have no count of tokens (the sum of the others). usage_total: a reported total is not the sum of its
    parts (figures). unrecorded: messages of an MCP server that did not reach the recording (how many, and of which
    server). text_only: an agent gives a text and nothing else (its type). no_calls_option: it is not said where in a
    reply its tool calls are. nothing_at_path: no reply had anything there (the path). dumped: what an agent gave is of
    a type that can't be read (the type), and is shown as JSON. format_without_calls: a file's format has none (its
    name). unread_calls: calls that could not be read (why). unknown_requests: what models were asked is not known (no
    transcript says it with a note). after_answer: what a model said last is not in the messages of the graph's state,
    which have an answer (the field of the state that it is in, or "no field"). not_in_state: the same, where they have
    none. answer_is_call: the last answer of its model, which is the run's, has calls (of which tools) and no text.
    not_printed: the program printed nothing of that answer. printed_answer: the answer is what the program printed,
    because its model said something else. nothing_printed: it printed nothing at all. after_hook: a
    hook after the run failed (how). real_tool: a tool ran although its result was to be a recorded one (its name).
    """

    code: str
    what: str
    place: str = ""

    @property
    def description(self) -> str:
        """The note in words."""
        what = f"{self.place} = {self.what}" if self.place else self.what
        return _NOTES.get(self.code, "{what}").format(what=what)


_NOTES = {
    "unread": "the agent gave something that could not be read: {what}",
    "left_out": "left out: {what}",
    "not_streamed": "run without streaming, because its model can't stream: {what}",
    "figure": "left out, because it can't be so: {what}",
    "unmatched_result": "a tool's result without its call: {what}",
    "usage": "what the agent reported as its usage can't be so, and is not counted: {what}",
    "interrupted": "the agent stopped to ask a person: {what}",
    "model_error": "the last request to a model was not answered: {what}",
    "asked_again": "asked again, because the first answer failed or was not used: {what}",
    "no_requests": "no request of a model was seen: {what}",
    "unknown_requests": "what the model saw is not recorded",
    "no_spans": "the transcript is what the agent told, no span said more: {what}",
    "open_spans": "its trace is not whole, calls may be missing: {what}",
    "user_turns": "the simulated user did not end the conversation: it reached max_turns ({what})",
    "unrecorded": "not recorded, because the recording did not answer in time: {what}",
    "asked_past": "not recorded, because the program asked past the proxy: {what}",
    "partly_counted": "more tokens were used than were counted: {what}, without those of some requests",
    "usage_total": "the reported tokens do not add up: {what}",
    "after_hook": "{what}",
    "real_tool": "the tool {what} ran for real: no equal call of it is recorded",
    "input_ended": "it asked for more than the prompt when it had answered, and that ended it: {what}",
    "text_only": "its tool calls are not known: it gives only a text ({what})",
    "no_calls_option": "its tool calls are not known: the agent has no option `tool_calls`",
    "nothing_at_path": "its tool calls are not known: no reply has anything at `{what}`",
    "dumped": "its answer is not known: agenteval can't read a {what}, and shows it as JSON",
    "after_answer": "its answer is the last message of its state; what a model said after that is in {what} "
    "(`output: FIELD` takes another field for the answer)",
    "not_in_state": "its answer is not known: its state has no message with it; what a model said last is in {what} "
    "(`output: FIELD` takes another field for the answer)",
    "answer_is_call": "its model's last answer is a call of {what}, without a text (`answer: printed` takes what the "
    "program prints for its answer)",
    "nothing_printed": "its answer is not known: what its model said last is not what the program gave, which printed "
    "nothing",
    "not_printed": "its answer is what its model said last, and the program printed nothing of it (`answer: printed` "
    "takes what it prints)",
    "printed_answer": "its answer is what it printed, because that is not what its model said last",
    "format_without_calls": "its tool calls are not known: this file of {what} has none",
    "unread_calls": "some of its tool calls are not known: {what}",
    "partly_priced": "the cost is at least {what}: the price of some requests is not known",
}


class Output(Struct, frozen=True, omit_defaults=True):
    """What the agent's code printed or logged at a time, in milliseconds since the run's start. `source`: stdout,
    stderr, or log, which has a `level` and the name of its `logger`."""

    at_ms: Annotated[float, Meta(description="since the start of the run")]
    source: Annotated[str, one_of("stdout", "stderr", "log")]
    text: str
    level: str = ""
    logger: str = ""


SETUP = "setup"
"""The kind of an error of what a run needs around it: a hook, a service, its working folder."""


class HookRun(Struct, frozen=True, omit_defaults=True):
    """A hook that ran: its `phase` (before_all, before, after, after_all), what it is called, and how long it took in
    milliseconds. `output`: the end of what it printed. `error`: why it failed; None: it did not. `attempt`: the attempt
    of the run that it belongs to; 0: to several runs."""

    phase: Annotated[str, one_of("before_all", "before", "after", "after_all")]
    name: Annotated[str, Meta(description="its command, or its Python function")]
    duration_ms: float
    output: Annotated[str, Meta(description="the end of what it printed")] = ""
    error: Annotated[RunError | None, Meta(description="why it failed; absent: it did not")] = None
    attempt: Annotated[int, Meta(description="the attempt of the run that it belongs to")] = 0


class Transcript(Struct, frozen=True):
    """Everything that one run of an agent left behind. `final_output` is the final answer's text; `log` what a program
    wrote to its standard error (the end of it), which nothing is judged by. `user_usage` is what the simulated user
    used: `usage` is the agent's alone. `output` is what its code printed and logged, at most 64 KB: the end of it;
    nothing is judged by it. `hooks` are those that ran before and after it; `workdir` is the folder that it worked in
    ("": it had none of its own). `state` is what the test's probes read before and after it. `requests` is what its
    models were asked for each of their answers; None where that is not known. `outputs` is what the agent returned
    beside its answer, by name, as JSON data (its answer among it)."""

    messages: tuple[Message, ...] = ()
    tool_calls: tuple[ToolCall, ...] = ()
    timing: Timing = Timing()
    usage: Usage = Usage()
    model: str = ""
    finish_reason: str = ""
    final_output: str = ""
    error: RunError | None = None
    log: str = ""
    notes: tuple[Note, ...] = ()
    user_usage: Usage = Usage()
    output: tuple[Output, ...] = ()
    hooks: tuple[HookRun, ...] = ()
    workdir: str = ""
    state: tuple[ProbeState, ...] = ()
    requests: ModelRequests | None = None
    outputs: Mapping[str, Any] = field(default_factory=dict)

    @property
    def final_message(self) -> int | None:
        """The index of the message whose text is `final_output`: the last assistant message with that text."""
        for index in range(len(self.messages) - 1, -1, -1):
            message = self.messages[index]
            if message.role == "assistant" and message.content == self.final_output:
                return index
        return None


def message_place(index: int) -> str:
    """The place of a note that is about a message as a whole."""
    return f"messages[{index}]"


def last_answer(messages: tuple[Message, ...]) -> str:
    """The final answer in `messages`: the text of the last assistant message that has any."""
    for message in reversed(messages):
        if message.role == "assistant" and message.content:
            return message.content
    return ""
