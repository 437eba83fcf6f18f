"""What models were asked for their answers: the exact requests, each text once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any

from msgspec import Struct, json

from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.ids import short_id


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
    prompt, list of tools and set of parameters stands in a table, once."""

    messages: tuple[Mapping[str, Any], ...] = ()
    systems: tuple[str, ...] = ()
    tools: tuple[tuple[OfferedTool, ...], ...] = ()
    parameters: tuple[Mapping[str, Any], ...] = ()
    references: tuple[RequestReference, ...] = ()

    @classmethod
    def of(cls, requests: Iterable[ModelRequest]) -> ModelRequests:
        """The tables of these requests."""
        messages, systems, tools, parameters = _Table(), _Table(), _Table(), _Table()
        references = tuple(
            [
                RequestReference(
                    one.line,
                    one.model,
                    systems.place(one.system),
                    tuple(_stretches(map(messages.place, one.messages))),
                    tools.place(one.tools),
                    parameters.place(one.parameters),
                    one.previous,
                    one.cached_tokens,
                    one.error,
                    one.answer,
                )
                for one in requests
            ]
        )
        return cls(
            tuple(messages.entries), tuple(systems.entries), tuple(tools.entries), tuple(parameters.entries), references
        )

    @property
    def is_complete(self) -> bool:
        """Whether the tables have all that the requests refer to."""
        return all(
            one.system < len(self.systems)
            and one.tools < len(self.tools)
            and one.parameters < len(self.parameters)
            and all(0 <= first <= end <= len(self.messages) for first, end in one.messages)
            for one in self.references
        )

    @cached_property
    def all(self) -> tuple[ModelRequest, ...]:
        """The requests with their texts."""
        return tuple([self._whole(number, one) for number, one in enumerate(self.references, 1)])

    def before(self, number: int) -> ModelRequest | None:
        """The last request before this one (from 1) of the same agent; None for its first."""
        line = self.references[number - 1].line
        place = next((place for place in range(number - 2, -1, -1) if self.references[place].line == line), None)
        return None if place is None else self.all[place]

    def for_answer(self, message: int) -> ModelRequest | None:
        """The request that led to a message of the transcript; None where that is not known."""
        return next((one for one in reversed(self.all) if one.answer == message), None)

    def _whole(self, number: int, one: RequestReference) -> ModelRequest:
        messages = tuple([self.messages[place] for first, end in one.messages for place in range(first, end)])
        return ModelRequest(
            number,
            one.line,
            one.model,
            self.systems[one.system],
            messages,
            self.tools[one.tools],
            self.parameters[one.parameters],
            one.previous,
            one.cached_tokens,
            one.error,
            one.answer,
        )


class _Table:
    """Entries, each once, by their content."""

    def __init__(self) -> None:
        self.entries: list[Any] = []
        self._places: dict[bytes, int] = {}

    def place(self, entry: Any) -> int:
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
    if isinstance(content, str) and content:
        return content
    calls = message.get("tool_calls")
    functions = (
        [one.get("function") or {} for one in calls if isinstance(one, Mapping)] if isinstance(calls, list) else []
    )
    return ", ".join(f"{one.get('name')}({one.get('arguments')})" for one in functions)
