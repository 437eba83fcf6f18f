"""A reply of Ollama's own API (`/api/chat`, `/api/generate`), of programs that are recorded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec.structs import replace

from agenteval_tui.agents.base import AgentEvent, ReasoningDelta
from agenteval_tui.agents.http.errors import error_in, words_in
from agenteval_tui.agents.http.sse import ServerEvent
from agenteval_tui.agents.models.stream import (
    EmptyResponseError,
    ModelReply,
    ProviderError,
    decoded_object,
    listed,
    string,
    text_at,
)


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
