"""Joining the pieces of a Chat Completions reply, in all the dialects that servers speak."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from agenteval_tui.agents.interface import (
    AgentEvent,
    ReasoningDelta,
    TextDelta,
    ToolArgumentsDelta,
    ToolCallStarted,
)
from agenteval_tui.transcripts.model import Usage


class ServerSaidError(Exception):
    """The reply is an error of the server, in place of an answer or in the midst of one. `error` is as it came."""

    def __init__(self, error: Any) -> None:
        super().__init__(str(error))
        self.error = error


class NoReplyError(Exception):
    """This is no Chat Completions reply; the text says what it is instead."""


@dataclass(slots=True)
class CallParts:
    """A tool call as far as it has come. `id` is ours where the server gave none. `started`: it was announced."""

    key: int
    id: str
    index: int | None
    name: str = ""
    arguments: list[str] = field(default_factory=list)
    given_id: str = ""
    started: bool = False

    @property
    def arguments_text(self) -> str:
        """The arguments as the JSON text on the wire."""
        return "".join(self.arguments)


class Reply:
    """One reply, from chunks or whole. `first_key`: the number of its first tool call within the run.

    What came is in `text`, `calls`, `finish_reason`, `usage`, `model`.
    """

    def __init__(self, first_key: int = 0) -> None:
        self.text: list[str] = []
        self.calls: list[CallParts] = []
        self.finish_reason = ""
        self.model = ""
        self.usage: Usage | None = None
        self._next_key = first_key
        self._by_index: dict[int, CallParts] = {}  # the last call at each index
        self._by_id: dict[str, CallParts] = {}

    def take(self, chunk: Any) -> Iterator[AgentEvent]:
        """The events of one chunk of a stream, or of a whole reply. Raises `ServerSaidError`, `NoReplyError`."""
        if not isinstance(chunk, Mapping):
            raise NoReplyError(f"a JSON {type(chunk).__name__} where an object is due")
        if chunk.get("error"):
            raise ServerSaidError(chunk["error"])
        if isinstance(chunk.get("model"), str):
            self.model = self.model or chunk["model"]
        self._take_usage(chunk)
        for choice in _mappings(chunk.get("choices")):
            if choice.get("index") in (0, None):
                yield from self._take_choice(choice)

    def announce_rest(self) -> Iterator[AgentEvent]:
        """At the end of the reply: calls whose name never came are announced without one."""
        for call in self.calls:
            if not call.started:
                yield from self._start(call)

    def _take_choice(self, choice: Mapping[str, Any]) -> Iterator[AgentEvent]:
        if choice.get("error"):
            raise ServerSaidError(choice["error"])
        if isinstance(choice.get("finish_reason"), str):
            self.finish_reason = choice["finish_reason"]
        delta = choice.get("delta")
        whole = not isinstance(delta, Mapping)
        if whole:
            delta = choice.get("message")
        if not isinstance(delta, Mapping):
            return
        for key in ("reasoning_content", "reasoning"):
            if isinstance(delta.get(key), str) and delta[key]:
                yield ReasoningDelta(delta[key])
                break
        for event in _content(delta.get("content")):
            if isinstance(event, TextDelta):
                self.text.append(event.text)
            yield event
        if isinstance(delta.get("refusal"), str) and delta["refusal"]:
            self.text.append(delta["refusal"])
            yield TextDelta(delta["refusal"])
        for part in _mappings(delta.get("tool_calls")):
            yield from self._take_call(part, whole=whole)
        if isinstance(delta.get("function_call"), Mapping):
            yield from self._take_call({"index": 0, "function": delta["function_call"]})

    def _take_call(self, part: Mapping[str, Any], *, whole: bool = False) -> Iterator[AgentEvent]:
        call = self._new_call(part) if whole else self._call_of(part)
        function = part.get("function")
        if not isinstance(function, Mapping):
            return
        name = function.get("name")
        if isinstance(name, str) and name and not call.name:
            call.name = name
        if call.name and not call.started:
            yield from self._start(call)
        arguments = function.get("arguments")
        if arguments is None or arguments == "":
            return
        text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
        call.arguments.append(text)
        if call.started:
            yield ToolArgumentsDelta(call.key, text)

    def _start(self, call: CallParts) -> Iterator[AgentEvent]:
        call.started = True
        yield ToolCallStarted(call.key, call.id, call.name)
        if call.arguments:
            yield ToolArgumentsDelta(call.key, call.arguments_text)

    def _call_of(self, part: Mapping[str, Any]) -> CallParts:
        """The call that a fragment belongs to.

        By index as a rule. Some servers leave the index out, or give every call the index 0: then a new id begins a
        new call, and a fragment without an id belongs to the last one.
        """
        index, given = _index_and_id(part)
        if index is not None:
            call = self._by_index.get(index)
        elif given:
            call = self._by_id.get(given) or (self.calls[-1] if self.calls else None)
        else:
            call = self.calls[-1] if self.calls else None
            # A fragment with a name of its own begins a call, once the last one has its name.
            if call is not None and call.name and _has_name(part):
                call = None
        if call is None or (given and call.given_id and call.given_id != given):
            return self._new_call(part)
        if given and not call.given_id and not call.started:
            call.id = call.given_id = given
            self._by_id[given] = call
        return call

    def _new_call(self, part: Mapping[str, Any]) -> CallParts:
        index, given = _index_and_id(part)
        key = self._next_key
        self._next_key += 1
        call = CallParts(key, given or f"call_{key + 1}", index, given_id=given)
        self.calls.append(call)
        if index is not None:
            self._by_index[index] = call
        if given:
            self._by_id[given] = call
        return call

    def _take_usage(self, chunk: Mapping[str, Any]) -> None:
        raw = chunk.get("usage")
        if not isinstance(raw, Mapping) and isinstance(chunk.get("x_groq"), Mapping):
            raw = chunk["x_groq"].get("usage")
        if isinstance(raw, Mapping):
            # Some send the figures so far with every chunk: the last ones count.
            self.usage = Usage(
                input_tokens=_count(raw, "prompt_tokens"),
                output_tokens=_count(raw, "completion_tokens"),
                cached_tokens=_count(raw.get("prompt_tokens_details"), "cached_tokens"),
                reasoning_tokens=_count(raw.get("completion_tokens_details"), "reasoning_tokens"),
                cost=_number(raw.get("cost")),
            )


def _index_and_id(part: Mapping[str, Any]) -> tuple[int | None, str]:
    index, given = part.get("index"), part.get("id")
    return index if isinstance(index, int) else None, given if isinstance(given, str) else ""


def _has_name(part: Mapping[str, Any]) -> bool:
    function = part.get("function")
    return isinstance(function, Mapping) and bool(function.get("name"))


def _content(content: Any) -> Iterator[TextDelta | ReasoningDelta]:
    """Text, or a list of parts: text and thinking (which may be a list of parts itself)."""
    if isinstance(content, str):
        if content:
            yield TextDelta(content)
        return
    for part in content if isinstance(content, list) else ():
        if isinstance(part, str):
            yield TextDelta(part)
        elif isinstance(part, Mapping):
            if isinstance(part.get("text"), str):
                yield TextDelta(part["text"])
            elif "thinking" in part:
                thinking = part["thinking"]
                for inner in thinking if isinstance(thinking, list) else [thinking]:
                    text = inner.get("text") if isinstance(inner, Mapping) else inner
                    if isinstance(text, str) and text:
                        yield ReasoningDelta(text)


def _mappings(value: Any) -> Iterator[Mapping[str, Any]]:
    return (one for one in value if isinstance(one, Mapping)) if isinstance(value, list) else iter(())


def _count(raw: Any, key: str) -> int | None:
    value = raw.get(key) if isinstance(raw, Mapping) else None
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
