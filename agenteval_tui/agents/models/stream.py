"""What a model's protocol is to the tool loop: how a conversation is told, asked, and gone on with."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from msgspec import Struct, field
from pydantic_core import from_json

from agenteval_tui.agents.base import (
    AgentEvent,
    Failed,
    Noted,
    ReasoningDelta,
    TextDelta,
    ToolArgumentsDelta,
    ToolCallFinished,
    ToolCallStarted,
    ToolSpec,
    TurnEnded,
    UsageReported,
)
from agenteval_tui.agents.http.errors import ErrorMapper, error_in, is_error, is_markup, words_in
from agenteval_tui.agents.http.sse import ServerEvent
from agenteval_tui.agents.models.hosted_calls import HostedCall
from agenteval_tui.agents.models.message_mapping import ProviderMessage
from agenteval_tui.agents.models.requests import call_entry
from agenteval_tui.agents.usage import UsageReader
from agenteval_tui.core.json_values import parsed_json
from agenteval_tui.core.phrasing import on_one_line
from agenteval_tui.transcripts.model import Usage

_QUOTED = 200  # characters of an invalid reply that an error quotes
# bool before int: each bool is one.
_KINDS = (
    (str, "a text"),
    (bool, "true or false"),
    (int, "a number"),
    (float, "a number"),
    (list, "a list"),
    (Mapping, "an object"),
)


class StreamReply(ABC):
    """Reads one reply, as a stream or whole.

    `over`: the reply has ended, whatever the server still sends. `complete`: the answer is whole, so a stream that ends
    now was not cut. `streamed`: the reply is a stream (the HTTP client sets this, and `content_type`). `protocol` and
    `fix` are parts of an error: the expected kind of reply, and how to fix a different one.
    """

    over = False
    streamed = False
    content_type = ""
    protocol = "JSON"
    fix = ""

    @property
    @abstractmethod
    def complete(self) -> bool: ...

    @abstractmethod
    def take(self, sent: ServerEvent) -> Iterator[AgentEvent]:
        """The events of one event of a stream. Raises `ProviderError`, `EmptyResponseError`."""

    @abstractmethod
    def take_whole(self, text: str) -> Iterator[AgentEvent]:
        """The events of a reply that came at once. Raises `ProviderError`, `EmptyResponseError`."""

    def not_a_stream(self, line: str) -> EmptyResponseError:
        """What to say of a stream without a single event, whose first line is this one."""
        return EmptyResponseError(f"no server-sent events ({line[:_QUOTED]})")

    def rest(self) -> Iterator[AgentEvent]:
        """What can be said only at the end. Raises `EmptyResponseError` where nothing came that is an answer."""
        return iter(())


class ModelReply(StreamReply):
    """One reply of a model. `first_key`: the number of its first tool call within the run.

    Its content is in `text`, `calls`, `hosted` (calls of tools that the server ran itself), `finish_reason` (in the
    words of Chat Completions where those say the same), `usage` (`told_usage` as the server has it), `model`.
    `unfinished`: the model paused and continues when it is asked again. `usable`: it has at least part of an answer. A
    reply with a reason why it ended may be empty; one without either is not a reply.
    """

    nothing = "a reply without an answer"

    def __init__(self, first_key: int = 0) -> None:
        self.text: list[str] = []
        self.calls: list[CallParts] = []
        self.hosted: list[HostedCall] = []
        self.finish_reason = ""
        self.model = ""
        self.usage: Usage | None = None
        self.told_usage: Mapping[str, Any] = {}
        self.figures = UsageReader()
        self.unfinished = False
        self.usable = False
        self._next_key = first_key

    @property
    def complete(self) -> bool:
        return bool(self.finish_reason)

    def rest(self) -> Iterator[AgentEvent]:
        """Calls whose name never came are announced without one. Raises `EmptyResponseError` without an answer."""
        # A proxy or a wrong address may answer with a stream that has nothing in it: that must not count as an empty
        # answer.
        if not (self.usable or self.text or self.calls):
            raise EmptyResponseError(self.nothing)
        for call in self.calls:
            if not call.started:
                yield from self.start(call)

    def take_usage(self, raw: object) -> None:
        """The usage so far, in any dialect. Some servers send it with every piece: the last one counts."""
        if isinstance(raw, Mapping):
            # Each piece of usage is a whole one: figures of an earlier piece must not be left beside it.
            self.figures = UsageReader()
            self.usage, self.told_usage = self.figures.read(raw), raw

    def add_text(self, text: str) -> Iterator[AgentEvent]:
        """More of the answer; nothing for an empty text."""
        if text:
            self.text.append(text)
            yield TextDelta(text)

    def add_call(self, given_id: str, name: str = "", index: int | None = None) -> CallParts:
        """A new call; `start` announces it."""
        key = self._next_key
        self._next_key += 1
        # An id of our own begins with `call_`; only the server's own id is sent back (`given_id`).
        call = CallParts(key, given_id or f"call_{key + 1}", index, name, given_id=given_id)
        self.calls.append(call)
        return call

    @property
    def next_key(self) -> int:
        """The number of the first call of the next reply."""
        return self._next_key

    def add_hosted(self, call: HostedCall) -> Iterator[AgentEvent]:
        """A call of a tool that the server runs itself, so it needs no answer."""
        key = self._next_key
        self._next_key += 1
        self.hosted.append(call)
        self.usable = True
        yield ToolCallStarted(key, call.id or f"call_{key + 1}", call.name)
        yield ToolArgumentsDelta(key, call.arguments)
        if call.result is not None:
            yield ToolCallFinished(key, call.result, call.failed)

    def start(self, call: CallParts) -> Iterator[AgentEvent]:
        """Announce a call, with the arguments that have come so far."""
        call.started = True
        yield ToolCallStarted(call.key, call.id, call.name)
        if call.arguments:
            yield ToolArgumentsDelta(call.key, call.arguments_text)

    def take_name(self, call: CallParts, name: Any) -> Iterator[AgentEvent]:
        """A call's name, where it has none yet. The call is announced as soon as there is one."""
        call.name = call.name or string(name)
        if call.name and not call.started:
            yield from self.start(call)

    def add_arguments(self, call: CallParts, arguments: object) -> Iterator[AgentEvent]:
        """More of a call's arguments: a piece of their JSON text, or the value itself; None for nothing."""
        text = (
            arguments
            if isinstance(arguments, str)
            else ""
            if arguments is None
            else json.dumps(arguments, ensure_ascii=False)
        )
        if text:
            call.arguments.append(text)
            # What comes before the name is told with it (`start`).
            if call.started:
                yield ToolArgumentsDelta(call.key, text)


def end_of_turn(usage: Usage | None, figures: UsageReader) -> Iterator[AgentEvent]:
    """What follows a whole reply: the end of its message, what it used, and the figures that can't be so."""
    yield TurnEnded()
    yield UsageReported(usage or Usage())
    for note in figures.notes:
        yield Noted(note)


Reply = TypeVar("Reply", bound=ModelReply)


class Dialogue(Protocol[Reply]):
    """One run's conversation in the words of a protocol; it grows with each answer."""

    def body(self) -> dict[str, Any]:
        """The JSON of the next request."""
        ...

    def reply(self, first_key: int) -> Reply:
        """What reads the answer to it."""
        ...

    def add_results(self, reply: Reply, results: Mapping[int, ToolCallFinished]) -> None:
        """Add the model's message and the results of its calls, by their keys."""
        ...


class ModelClient(Protocol):
    """The way to a model. `server` is what errors may say of the other side, and what must not be repeated."""

    @property
    def server(self) -> ErrorMapper: ...

    def ask(self, path: str, reply: Any, *, json: dict[str, Any]) -> AsyncGenerator[AgentEvent, None]:
        """Send a request; the events of its reply as they come, which `reply` puts together. Ends early after a
        `Failed`."""
        ...

    async def get(self, path: str) -> tuple[Any, Failed | None]:
        """The JSON value at a path (None where there is none), or why it can't be had."""
        ...


class ModelProtocol(Protocol):
    """A protocol with an agent's options. `path` and `models_path` are added to the address."""

    @property
    def path(self) -> str: ...

    @property
    def models_path(self) -> str: ...

    def begin(self, messages: Sequence[ProviderMessage], tools: Sequence[ToolSpec], seed: int) -> Dialogue[Any]:
        """A conversation that begins with these messages."""
        ...


class ProviderError(Exception):
    """The reply is a server error, instead of an answer or in the middle of one. `error` is unchanged."""

    def __init__(self, error: Any) -> None:
        super().__init__(str(error))
        self.error = error


class EmptyResponseError(Exception):
    """This is not a reply of the protocol; the text says what it is instead. `fix`: the next step, if it is known."""

    def __init__(self, message: str, fix: str = "") -> None:
        super().__init__(message)
        self.fix = fix


class CutReplyError(EmptyResponseError):
    """The reply stops in the middle of its JSON. A stream that stops there was cut, as a stream that stops anywhere."""


class CallParts(Struct):
    """A tool call as far as it has come. `id` is ours where the server gave none. `started`: it was announced.

    `extra` is what else the server said of the call and wants back. `custom`: its argument is any text, no object.
    """

    key: int
    id: str
    index: int | None = None
    name: str = ""
    arguments: list[str] = field(default_factory=list)
    given_id: str = ""
    started: bool = False
    custom: bool = False
    extra: dict[str, Any] = field(default_factory=dict)

    @property
    def arguments_text(self) -> str:
        """The arguments as the JSON text on the wire."""
        return "".join(self.arguments)

    @property
    def complete(self) -> bool:
        """Whether the arguments are a whole JSON object, so that nothing can follow."""
        text = self.arguments_text.strip()
        # Most fragments end here: decoding each would take time that grows with the square of the length.
        if not (text.startswith("{") and text.endswith("}")):
            return False
        return parsed_json(text) is not None


def decoded(text: str) -> Any:
    """The JSON value of a text. Raises `EmptyResponseError`."""
    try:
        # Of each token of each stream: a sixth of the time that `json` takes.
        return from_json(text)
    except ValueError:
        pass  # it is stricter: half of a surrogate pair, very deep nesting
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        message = f"not JSON ({on_one_line(words_in(text), _QUOTED) or 'nothing at all'})"
        if is_markup(text):
            page = "a page for people answered: a login, a proxy or a wrong address"
            raise EmptyResponseError(
                f"a page of HTML ({on_one_line(words_in(text), _QUOTED)})", f"check the address: {page}"
            ) from None
        raise (CutReplyError if is_cut(text) else EmptyResponseError)(message) from None


def is_cut(text: str) -> bool:
    """Whether this is the beginning of a JSON object or list whose end is missing."""
    if text.lstrip()[:1] not in ("{", "["):
        return False
    try:
        from_json(text)
    except ValueError as error:
        return str(error).startswith("EOF while parsing")
    return False


def decoded_object(text: str) -> Mapping[str, Any]:
    """The JSON object of a text. Raises `EmptyResponseError`."""
    value = decoded(text)
    if not isinstance(value, Mapping):
        raise EmptyResponseError(f"a JSON {type(value).__name__} where an object is due")
    return value


def reply_with(key: str, text: str) -> Mapping[str, Any]:
    """A reply that came at once: an object with a list at `key`. Raises `ProviderError`, `EmptyResponseError`."""
    value = decoded_object(text)
    if not isinstance(value.get(key), list):
        if is_error(value):
            raise ProviderError(error_in(value))
        raise EmptyResponseError(f"an object without `{key}` ({words_in(text)[:_QUOTED]})")
    return value


def mappings(value: object) -> Iterator[Mapping[str, Any]]:
    """The objects in a list; nothing when it is none."""
    return (item for item in value if isinstance(item, Mapping)) if isinstance(value, list) else iter(())


def listed(holder: Mapping[str, Any], key: str) -> Iterator[Mapping[str, Any]]:
    """The objects of the list at `key`; nulls are nothing. Raises `EmptyResponseError` for anything else."""
    value = holder.get(key)
    if value is None:
        return
    if not isinstance(value, list):
        raise EmptyResponseError(f"`{key}` is {kind_of(value)} where a list is due")
    for item in value:
        if isinstance(item, Mapping):
            yield item
        elif item is not None:
            raise EmptyResponseError(f"`{key}` has {kind_of(item)} in it where an object is due")


def kind_of(value: object) -> str:
    """What a JSON value is, in words."""
    if value is None:
        return "null"
    return next((words for kind, words in _KINDS if isinstance(value, kind)), "something else")


def text_at(part: Mapping[str, Any], key: str) -> str:
    """The text at `key` of a piece of an answer; null is none. Raises `EmptyResponseError` for anything else."""
    text = part.get(key)
    if text is not None and not isinstance(text, str):
        raise EmptyResponseError(f"`{key}` of a piece of the answer is {kind_of(text)} where a text is due")
    return text or ""


def place_at(chunk: Mapping[str, Any], key: str) -> int:
    """The place, in the whole answer, of what a chunk belongs to; 0 where it does not say."""
    place = chunk.get(key)
    return place if isinstance(place, int) else 0


def string(value: object) -> str:
    """A text; "" when it is none."""
    return value if isinstance(value, str) else ""


class ReplyMessage:
    """The message that a reply becomes in a conversation, as Chat Completions has it. `before`: what comes before it,
    which is each call of a tool that the server ran itself, with its result."""

    def __init__(self, reply: ModelReply) -> None:
        self._reply = reply
        self._thoughts: list[str] = []
        self._told = 0
        """How many pieces of the reply's text are in `before`."""
        self.before: list[dict[str, Any]] = []

    def take(self, event: AgentEvent) -> None:
        """One event of the reply, as soon as the reply gave it."""
        if isinstance(event, ReasoningDelta):
            self._thoughts.append(event.text)
        elif isinstance(event, ToolCallFinished):
            self.before += _hosted(self._reply.hosted[-1], "".join(self._reply.text[self._told :]))
            self._told = len(self._reply.text)

    @property
    def empty(self) -> bool:
        """Whether the reply has nothing yet that a message could say."""
        return not (self._reply.text or self._reply.calls or self._thoughts)

    def fields(self) -> dict[str, Any]:
        """The message, as far as it has arrived."""
        reply = self._reply
        message: dict[str, Any] = {"role": "assistant", "content": "".join(reply.text[self._told :])}
        if self._thoughts:
            message["reasoning"] = "".join(self._thoughts)
        calls = [call_entry(call.id, call.name, call.arguments) for call in reply.hosted if call.result is None]
        calls += [call_entry(call.given_id, call.name, call.arguments_text) for call in reply.calls]
        if calls:
            message["tool_calls"] = calls
        return message


def _hosted(call: HostedCall, text: str) -> list[dict[str, Any]]:
    """A call that the server made and answered, as messages; `text`: what the model said before it."""
    answer: dict[str, Any] = {"role": "tool", "content": call.result or ""}
    if call.id:
        answer["tool_call_id"] = call.id
    if call.failed:
        answer["is_error"] = True
    calls = [call_entry(call.id, call.name, call.arguments)]
    return [{"role": "assistant", "content": text, "tool_calls": calls}, answer]
