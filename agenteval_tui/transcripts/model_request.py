"""What models were asked for their answers: the exact requests, each text once; and what a message of one says."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct, field
from msgspec.json import Encoder

from agenteval_tui.core.common_prefix import SharedStarts
from agenteval_tui.core.document import Count, Document, extended
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.ids import short_id
from agenteval_tui.transcripts.call_arguments import decode_arguments

RequestPart = Literal["system", "tools", "parameters"]
UNRECORDED: tuple[RequestPart, ...] = ("system", "tools", "parameters")


def _none() -> tuple[Any, ...]:
    """A default that is written, though it is empty: the JSON has always had these tables."""
    return ()


class OfferedTool(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A tool that the model could call. `parameters` is its JSON Schema; {} where the request has none."""

    name: str
    description: str = ""
    parameters: Annotated[Mapping[str, Any], Meta(description="its JSON Schema")] = {}


class AskedRequest(Document, frozen=True):
    """What is published of a request. With `previous`, this is not all that the model saw."""

    number: Annotated[Count, Meta(description="from 1, in the order of time")]
    line: Annotated[Count, Meta(description="which of `agents` asked, from 1")] = field(name="agent")
    model: str = ""
    system: str = ""
    messages: Annotated[
        tuple[Mapping[str, Any], ...], Meta(description="as OpenAI has them, without the system prompt")
    ] = ()
    tools: tuple[OfferedTool, ...] = ()
    parameters: Mapping[str, Any] = {}
    previous: Annotated[
        str, Meta(description="the id of what the server keeps of the conversation, which is not in the request")
    ] = ""
    cached_tokens: Count | None = None
    error: Annotated[str, Meta(description='why it has no answer; "": it has one')] = ""
    input_tokens: Annotated[
        Count | None, Meta(description="as the server counted them: those of the tools and of its cache included")
    ] = None


class ModelRequest(AskedRequest, frozen=True):
    """A request, and the transcript's message that it led to (from 0); None where there is none."""

    answer: int | None = None


class RequestLine(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """One conversation of a run with a model: of an agent, a sub-agent, a summariser, a maker of titles.

    `name`: as messages of the transcript name it; of a sub-agent that of the tool that called it. `about`: how its
    system prompt begins, or what it was asked first. `called_by`: the transcript's tool call that it worked for; None
    where none is known. `used_in`: the number (from 1) of the request of another line that has its last answer; None
    for none.
    """

    name: Annotated[str, Meta(description="as messages of the transcript name it")]
    about: Annotated[str, Meta(description="how its system prompt begins, or what it was asked first")] = ""
    called_by: Annotated[
        Count | None, Meta(description="the transcript's tool call that it worked for, from 0, if one is known")
    ] = None
    used_in: Annotated[
        Count | None, Meta(description="the request of another agent, from 1, that has its last answer, if one has")
    ] = None


class RequestReference(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A request whose texts are in tables (`ModelRequests`). `messages` are stretches of the table of messages, as
    (first, behind the last)."""

    line: Annotated[Count, Meta(description="which agent asked, from 1, as far as requests tell agents apart")] = field(
        name="agent"
    )
    model: str = ""
    # What comes from a factory is written also where it is 0 or empty.
    system: Annotated[Count, Meta(description="the place of the system prompt in `systems`")] = field(
        default_factory=int
    )
    messages: Annotated[
        tuple[tuple[Count, Count], ...],
        Meta(description="stretches of the table of messages: the first, and the one behind the last"),
    ] = field(default_factory=_none)
    tools: Annotated[Count, Meta(description="the place in `tools` of the list of those that could be called")] = field(
        default_factory=int
    )
    parameters: Annotated[Count, Meta(description="the place in `parameters`")] = field(default_factory=int)
    previous: Annotated[
        str,
        Meta(description="the id of what the server keeps of the conversation, which is not in the request"),
    ] = ""
    cached_tokens: Count | None = None
    error: Annotated[str, Meta(description="why there is no answer")] = ""
    answer: Annotated[Count | None, Meta(description="the transcript's message that it led to")] = None
    input_tokens: Annotated[Count | None, Meta(description="as the server counted them")] = None


class ModelRequests(Struct, frozen=True, dict=True, omit_defaults=True, forbid_unknown_fields=True):
    """All requests of a run in the order of time. A conversation is sent again and again, so that each message, system
    prompt, list of tools and set of parameters is in a table, once. `lines`: the conversations that they belong to.
    `unrecorded`: parts that were not recorded (`UNRECORDED`): they are empty, and the model may have seen them."""

    messages: Annotated[
        tuple[Mapping[str, Any], ...], Meta(description="as OpenAI has them, without system prompts; each once")
    ] = field(default_factory=_none)
    systems: tuple[str, ...] = field(default_factory=_none)
    tools: tuple[tuple[OfferedTool, ...], ...] = field(default_factory=_none)
    parameters: tuple[Mapping[str, Any], ...] = field(default_factory=_none)
    references: tuple[RequestReference, ...] = field(name="requests", default_factory=_none)
    lines: Annotated[
        tuple[RequestLine, ...], Meta(description="the agents that asked, in the order of their numbers")
    ] = ()
    unrecorded: Annotated[
        tuple[RequestPart, ...],
        Meta(description="parts of requests that were not recorded: they are empty, and the model may have seen some"),
    ] = ()

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
                    model=request.model,
                    system=systems.place(request.system),
                    messages=tuple(_stretches(messages.places(request.messages))),
                    tools=tools.place(request.tools),
                    parameters=parameters.place(request.parameters),
                    previous=request.previous,
                    cached_tokens=request.cached_tokens,
                    error=request.error,
                    answer=request.answer,
                    input_tokens=request.input_tokens,
                )
                for request in requests
            ]
        )
        return cls(
            tuple(messages.entries),
            systems=tuple(systems.entries),
            tools=tuple(tools.entries),
            parameters=tuple(parameters.entries),
            references=references,
            lines=tuple(lines),
            unrecorded=tuple([part for part in UNRECORDED if part in missing]),
        )

    def line(self, number: int) -> RequestLine:
        """The line with this number, from 1."""
        return self.lines[number - 1] if number <= len(self.lines) else RequestLine(f"agent {number}")

    @property
    def is_complete(self) -> bool:
        """Whether the tables have all that the requests refer to."""
        return all(
            reference.line >= 1
            and 0 <= reference.system < len(self.systems)
            and 0 <= reference.tools < len(self.tools)
            and 0 <= reference.parameters < len(self.parameters)
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

    def numbers_of_line(self, line: int) -> list[int]:
        """The numbers of the requests of an agent, in their order."""
        return [number for number, reference in enumerate(self.references, 1) if reference.line == line]

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

    def key(self, place: int) -> str:
        """What makes the message at a place of the table the same as another (`message_key`)."""
        key = self._keys.get(place)
        if key is None:
            key = self._keys[place] = message_key(self.messages[place])
        return key

    @cached_property
    def _keys(self) -> dict[int, str]:
        return {}

    def _whole(self, number: int, reference: RequestReference) -> ModelRequest:
        messages = tuple([message for first, end in reference.messages for message in self.messages[first:end]])
        return extended(
            ModelRequest,
            reference,
            number=number,
            system=self.systems[reference.system],
            messages=messages,
            tools=self.tools[reference.tools],
            parameters=self.parameters[reference.parameters],
        )


class _Table:
    """Entries, each once, by their content."""

    def __init__(self) -> None:
        self.entries: list[Any] = []
        self._places: dict[bytes, int] = {}
        self._known: dict[int, tuple[Any, int]] = {}  # by identity: a message that is asked again is mostly the same
        self._sequences = SharedStarts[list[int]]()

    def places(self, entries: Sequence[object]) -> list[int]:
        # By identity: these stay where they are in `_known`.
        return self._sequences.of(
            [*map(id, entries)], lambda shared, earlier: [*(earlier or ())[:shared], *map(self.place, entries[shared:])]
        )

    def place(self, entry: object) -> int:
        cached = self._known.get(id(entry))
        if cached is None:
            # The entry is kept with its place, as the id of one that is gone may be given to another.
            cached = self._known[id(entry)] = entry, self._place(entry)
        return cached[1]

    def _place(self, entry: object) -> int:
        try:
            key = _encoder.encode(entry)
        except UnicodeEncodeError:  # half of a pair of surrogates, which servers do send
            key = repr(entry).encode("ascii", "backslashreplace")
        place = self._places.setdefault(key, len(self.entries))
        if place == len(self.entries):
            self.entries.append(entry)
        return place


_encoder = Encoder(order="deterministic", enc_hook=str)


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
            fix="record it with `agenteval record`, or with `capture: model` of its agent",
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


def files_of(message: Mapping[str, Any]) -> str:
    """What tells the images and files of a message apart, each on a line of its own."""
    files = message.get("attachments")
    return "\n".join(
        " ".join(str(file[name]) for name in ("mark", "media_type", "url", "sha256") if file.get(name))
        for file in (files if isinstance(files, list | tuple) else ())
        if isinstance(file, Mapping)
    )


def _calls_text(message: Mapping[str, Any]) -> str:
    return ", ".join(f"{function.get('name')}({function.get('arguments')})" for function in functions_of(message))


def calls_of(message: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Its tool calls, as a program wrote them: servers refuse much of that, and it is kept."""
    calls = message.get("tool_calls")
    return [call for call in calls if isinstance(call, Mapping)] if isinstance(calls, list) else []


def functions_of(message: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The functions that its tool calls name, with their arguments."""
    functions = [call.get("function") for call in calls_of(message)]
    return [function for function in functions if isinstance(function, Mapping)]


def message_key(message: Mapping[str, Any]) -> str:
    """Role, text, calls, images and files: what the model sees of it. Frameworks write ids, the arguments of calls,
    names and thoughts of one and the same message otherwise from request to request."""
    functions = functions_of(message)
    if isinstance(older := message.get("function_call"), Mapping):  # what OpenAI had before `tool_calls`
        functions.append(older)
    calls = [[function.get("name"), decode_arguments(function.get("arguments"))[0]] for function in functions]
    files = [[file.get("sha256"), file.get("url")] for file in message.get("attachments") or ()]
    parts = [message.get("role"), str(message.get("content") or "").strip(), calls, *files]
    return json.dumps(parts, sort_keys=True, default=str)
