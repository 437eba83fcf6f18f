"""Replies in protocols that no agent here speaks, of programs that are recorded: Amazon Bedrock's Converse API, and
Ollama's own API (`/api/chat`, `/api/generate`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec.structs import replace

from agenteval_tui.agents.base import AgentEvent, ReasoningDelta
from agenteval_tui.agents.http.errors import error_in, words_in
from agenteval_tui.agents.http.sse import ServerEvent
from agenteval_tui.agents.models.stream import (
    CallParts,
    EmptyResponseError,
    ModelReply,
    ProviderError,
    decoded_object,
    listed,
    place_at,
    string,
    text_at,
)

_FILTERED = ("guardrail_intervened", "content_filtered")
_REASONS = {
    "end_turn": "stop",
    "max_tokens": "length",
    "tool_use": "tool_calls",
    **dict.fromkeys(_FILTERED, "content_filter"),
}


class ConverseReply(ModelReply):
    """One reply of the Converse API. A stream is of events whose names say what they are."""

    protocol = "Converse"
    nothing = "a message without content, and without a reason why it ended"

    def __init__(self, first_key: int = 0) -> None:
        super().__init__(first_key)
        self._calls_at: dict[int, CallParts] = {}

    def take(self, sent: ServerEvent) -> Iterator[AgentEvent]:
        event = decoded_object(sent.data)
        if event.get("error"):
            raise ProviderError(error_in(event))
        place = place_at(event, "contentBlockIndex")
        if sent.name == "contentBlockStart" and isinstance(event.get("start"), Mapping):
            yield from self._begin(place, event["start"])
        elif sent.name == "contentBlockDelta" and isinstance(event.get("delta"), Mapping):
            yield from self._grow(place, event["delta"])
        elif sent.name == "messageStop":
            self._stop(event)
        elif sent.name == "metadata":
            self.take_usage(event.get("usage"))

    def take_whole(self, text: str) -> Iterator[AgentEvent]:
        value = decoded_object(text)
        output = value.get("output")
        message = output.get("message") if isinstance(output, Mapping) else None
        if not isinstance(message, Mapping):
            raise EmptyResponseError(f"an object without `output.message` ({words_in(text)[:200]})")
        self.take_usage(value.get("usage"))
        for place, block in enumerate(listed(message, "content")):
            yield from self._begin(place, block)
            yield from self._grow(place, block)
        self._stop(value)

    def rest(self) -> Iterator[AgentEvent]:
        # An answer may be empty when the server says why it ended.
        self.usable = self.usable or bool(self.finish_reason)
        yield from super().rest()

    def _begin(self, place: int, block: Mapping[str, Any]) -> Iterator[AgentEvent]:
        called = block.get("toolUse")
        if isinstance(called, Mapping):
            call = self._calls_at[place] = self.add_call(string(called.get("toolUseId")))
            yield from self.take_name(call, called.get("name"))

    def _grow(self, place: int, delta: Mapping[str, Any]) -> Iterator[AgentEvent]:
        yield from self.add_text(text_at(delta, "text"))
        called, thought = delta.get("toolUse"), delta.get("reasoningContent")
        # A stream has the arguments as pieces of their JSON, a whole reply as an object.
        if isinstance(called, Mapping) and place in self._calls_at:
            yield from self.add_arguments(self._calls_at[place], called.get("input"))
        if isinstance(thought, Mapping):
            told = thought.get("reasoningText")
            text = text_at(told if isinstance(told, Mapping) else thought, "text")
            if text:
                yield ReasoningDelta(text)

    def _stop(self, holder: Mapping[str, Any]) -> None:
        reason = string(holder.get("stopReason"))
        self.finish_reason = _REASONS.get(reason, reason)


class OllamaReply(ModelReply):
    """One reply of Ollama: a stream with a JSON object on each line, or one object."""

    protocol = "Ollama"

    def take(self, sent: ServerEvent) -> Iterator[AgentEvent]:
        yield from self._take(decoded_object(sent.data))

    def take_whole(self, text: str) -> Iterator[AgentEvent]:
        value = decoded_object(text)
        if not {"message", "response", "error"} & value.keys():
            raise EmptyResponseError(f"an object without `message` ({words_in(text)[:200]})")
        yield from self._take(value)

    def _take(self, chunk: Mapping[str, object]) -> Iterator[AgentEvent]:
        if chunk.get("error"):
            raise ProviderError(error_in(chunk))
        self.model = string(chunk.get("model")) or self.model
        # `/api/generate` has the text beside what `/api/chat` has around its message.
        message = chunk.get("message")
        holder, key = (message, "content") if isinstance(message, Mapping) else (chunk, "response")
        if thought := text_at(holder, "thinking"):
            yield ReasoningDelta(thought)
        yield from self.add_text(text_at(holder, key))
        for called in listed(holder, "tool_calls"):
            function = called.get("function")
            if isinstance(function, Mapping):
                # A call comes whole, and an object is its arguments.
                call = self.add_call(string(called.get("id")))
                yield from self.take_name(call, function.get("name"))
                yield from self.add_arguments(call, function.get("arguments") or {})
        if chunk.get("done") is True:
            self._end(chunk)

    def _end(self, chunk: Mapping[str, object]) -> None:
        # The last object has the figures of the whole answer. Of a prompt that it knows already it counts nothing.
        self.take_usage({key: chunk[key] for key in ("prompt_eval_count", "eval_count") if key in chunk})
        if self.usage is not None:
            self.usage = replace(self.usage, cost=0.0)  # no request is paid for, on the own machine or Ollama's
        reason = string(chunk.get("done_reason")) or "stop"
        # The API has no reason of its own for calls.
        self.finish_reason = "tool_calls" if self.calls and reason == "stop" else reason
        self.usable = True
