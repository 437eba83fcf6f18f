"""What models were asked for their answers: the exact requests, each text once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Literal

from msgspec import Struct, json

from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.ids import short_id

RequestPart = Literal["system", "tools", "parameters"]
UNRECORDED: tuple[RequestPart, ...] = ("system", "tools", "parameters")


class OfferedTool(Struct, frozen=True):
    """A tool that the model could call. `parameters` is its JSON Schema; {} where the request has none."""

    name: str
    description: str = ""
    parameters: Mapping[str, Any] = {}


class ModelRequest(Struct, frozen=True):
    """A request. `number` counts from 1, in the order of time; `line`: which agent asked (1: the first), as far as
    requests tell agents apart.

    `messages` are as OpenAI has them, without the system prompt. `previous`: the id of what the server keeps of the
    conversation; then this is not all that the model saw. `parameters`: all else that was asked for. `cached_tokens`:
    how many tokens of the prompt the server had in its cache, None where it does not say. `error`: why there is no
    answer. `answer`: the transcript's message that it led to (from 0); None where there is none.
    """

    number: int
    line: int
    model: str = ""
    system: str = ""
    messages: tuple[Mapping[str, Any], ...] = ()
    tools: tuple[OfferedTool, ...] = ()
    parameters: Mapping[str, Any] = {}
    previous: str = ""
    cached_tokens: int | None = None
    error: str = ""
    answer: int | None = None


class RequestLine(Struct, frozen=True):
    """One conversation of a run with a model: of an agent, a sub-agent, a summariser, a maker of titles.

    `name`: as messages of the transcript name it; of a sub-agent that of the tool that called it. `about`: how its
    system prompt begins, or what it was asked first. `called_by`: the transcript's tool call that it worked for; None
    where none is known. `used_in`: the number (from 1) of the request of another line that has its last answer; None
    for none.
    """

    name: str
    about: str = ""
    called_by: int | None = None
    used_in: int | None = None


class RequestReference(Struct, frozen=True):
    """A request whose texts are in tables (`ModelRequests`). `messages` are stretches of the table of messages, as
    (first, behind the last)."""

    line: int = 1
    model: str = ""
    system: int = 0
    messages: tuple[tuple[int, int], ...] = ()
    tools: int = 0
    parameters: int = 0
    previous: str = ""
    cached_tokens: int | None = None
    error: str = ""
    answer: int | None = None


class ModelRequests(Struct, frozen=True, dict=True):
    """All requests of a run in the order of time. A conversation is sent again and again, so that each message, system
    prompt, list of tools and set of parameters stands in a table, once. `lines`: the conversations that they belong to.
    `unrecorded`: what of them was not recorded (`UNRECORDED`): it is empty there, and the model may have seen some."""

    messages: tuple[Mapping[str, Any], ...] = ()
    systems: tuple[str, ...] = ()
    tools: tuple[tuple[OfferedTool, ...], ...] = ()
    parameters: tuple[Mapping[str, Any], ...] = ()
    references: tuple[RequestReference, ...] = ()
    lines: tuple[RequestLine, ...] = ()
    unrecorded: tuple[RequestPart, ...] = ()

    @classmethod
    def of(
        cls,
        requests: Iterable[ModelRequest],
        lines: Sequence[RequestLine] = (),
        unrecorded: Iterable[RequestPart] = (),
    ) -> ModelRequests:
        """The tables of these requests. `unrecorded` in any order."""
        missing = frozenset(unrecorded)
        messages, systems, tools, parameters = _Table(), _Table(), _Table(), _Table()
        references = tuple(
            [
                RequestReference(
                    request.line,
                    request.model,
                    systems.place(request.system),
                    tuple(_stretches(map(messages.place, request.messages))),
                    tools.place(request.tools),
                    parameters.place(request.parameters),
                    request.previous,
                    request.cached_tokens,
                    request.error,
                    request.answer,
                )
                for request in requests
            ]
        )
        return cls(
            tuple(messages.entries),
            tuple(systems.entries),
            tuple(tools.entries),
            tuple(parameters.entries),
            references,
            tuple(lines),
            tuple([part for part in UNRECORDED if part in missing]),
        )

    def line(self, number: int) -> RequestLine:
        """The line with this number, from 1."""
        return self.lines[number - 1] if number <= len(self.lines) else RequestLine(f"agent {number}")

    @property
    def is_complete(self) -> bool:
        """Whether the tables have all that the requests refer to."""
        return all(
            reference.line >= 1
            and reference.system < len(self.systems)
            and reference.tools < len(self.tools)
            and reference.parameters < len(self.parameters)
            and all(0 <= first <= end <= len(self.messages) for first, end in reference.messages)
            for reference in self.references
        )

    @property
    def all(self) -> tuple[ModelRequest, ...]:
        """The requests with their texts. Of a long run that is much: `request` gives one."""
        return tuple(map(self.request, range(1, len(self.references) + 1)))

    def request(self, number: int) -> ModelRequest:
        """The request with this number, from 1."""
        request = self._read.get(number)
        if request is None:
            request = self._read[number] = self._whole(number, self.references[number - 1])
        return request

    @cached_property
    def earlier(self) -> tuple[int, ...]:
        """Of each request, the number of the last one before it of the same agent; 0 for its first."""
        last: dict[int, int] = {}
        numbers = []
        for number, request_reference in enumerate(self.references, 1):
            numbers.append(last.get(request_reference.line, 0))
            last[request_reference.line] = number
        return tuple(numbers)

    def before(self, number: int) -> ModelRequest | None:
        """The last request before this one (from 1) of the same agent; None for its first."""
        earlier = self.earlier[number - 1]
        return self.request(earlier) if earlier else None

    def for_answer(self, message: int) -> ModelRequest | None:
        """The request that led to a message of the transcript; None where that is not known."""
        number = self._by_answer.get(message)
        return None if number is None else self.request(number)

    @cached_property
    def _by_answer(self) -> dict[int, int]:
        return {
            request_reference.answer: number
            for number, request_reference in enumerate(self.references, 1)
            if request_reference.answer is not None
        }

    @cached_property
    def _read(self) -> dict[int, ModelRequest]:
        return {}

    def _whole(self, number: int, reference: RequestReference) -> ModelRequest:
        messages = tuple([message for first, end in reference.messages for message in self.messages[first:end]])
        return ModelRequest(
            number,
            reference.line,
            reference.model,
            self.systems[reference.system],
            messages,
            self.tools[reference.tools],
            self.parameters[reference.parameters],
            reference.previous,
            reference.cached_tokens,
            reference.error,
            reference.answer,
        )


class _Table:
    """Entries, each once, by their content."""

    def __init__(self) -> None:
        self.entries: list[Any] = []
        self._places: dict[bytes, int] = {}
        self._known: dict[int, tuple[Any, int]] = {}  # by identity: a message that is asked again is mostly the same

    def place(self, entry: Any) -> int:
        cached = self._known.get(id(entry))
        if cached is None:
            cached = self._known[id(entry)] = entry, self._place(entry)
        return cached[1]

    def _place(self, entry: Any) -> int:
        try:
            key = _encoder.encode(entry)
        except UnicodeEncodeError:  # half of a pair of surrogates, which servers do send
            key = repr(entry).encode("ascii", "backslashreplace")
        place = self._places.setdefault(key, len(self.entries))
        if place == len(self.entries):
            self.entries.append(entry)
        return place


_encoder = json.Encoder(order="deterministic", enc_hook=str)


def _stretches(places: Iterable[int]) -> Iterator[tuple[int, int]]:
    first = end = -1
    for place in places:
        if place != end and first >= 0:
            yield first, end
        if place != end or first < 0:
            first = place
        end = place + 1
    if first >= 0:
        yield first, end


def recorded_requests(requests: ModelRequests | None, run: str) -> ModelRequests:
    """The requests of the run with this id. Raises `AgentevalError` where they are not known."""
    if requests is None:
        raise AgentevalError(
            f"what the model saw in run {short_id(run)} is not recorded",
            where=f"run {run}",
            mend="record it with `agenteval record`, or with `capture: model` of its agent",
        )
    return requests


def content_of(message: Mapping[str, Any]) -> str:
    """The text of a message; the calls of one that has no text."""
    content = message.get("content")
    return content if isinstance(content, str) and content else _calls_text(message)


def whole_text(message: Mapping[str, Any]) -> str:
    """The text of a message, and its calls."""
    content = message.get("content")
    return "\n".join(filter(None, (content if isinstance(content, str) else "", _calls_text(message))))


def _calls_text(message: Mapping[str, Any]) -> str:
    calls = message.get("tool_calls")
    functions = (
        [call.get("function") or {} for call in calls if isinstance(call, Mapping)] if isinstance(calls, list) else []
    )
    return ", ".join(f"{function.get('name')}({function.get('arguments')})" for function in functions)
