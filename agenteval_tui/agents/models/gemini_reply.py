"""A reply of Google's Gemini API: of the kind `gemini`, and of programs that are recorded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec.structs import replace

from agenteval_tui.agents.base import AgentEvent, Noted, ReasoningDelta
from agenteval_tui.agents.http.errors import error_in, is_error, words_in
from agenteval_tui.agents.http.sse import ServerEvent
from agenteval_tui.agents.models.attachments import received
from agenteval_tui.agents.models.hosted_calls import HostedCall, code_result, executed_code
from agenteval_tui.agents.models.stream import (
    CallParts,
    EmptyResponseError,
    ModelReply,
    ProviderError,
    decoded_object,
    listed,
    string,
    text_at,
)
from agenteval_tui.transcripts.model import Note

# Why an answer ended, in the words of Chat Completions where there is one that says exactly that. The others
# (MALFORMED_FUNCTION_CALL, LANGUAGE, OTHER, ...) stay as they are.
_BLOCKED = ("SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "IMAGE_SAFETY")
_REASONS = {"STOP": "stop", "MAX_TOKENS": "length", **dict.fromkeys(_BLOCKED, "content_filter")}
# What is read of a part, or is only sent back; of another (an image, say) the run says so.
_READ = frozenset(
    (
        "text",
        "thought",
        "thoughtSignature",
        "functionCall",
        "partMetadata",
        "executableCode",
        "codeExecutionResult",
    )
)


class GeminiReply(ModelReply):
    """One reply of the Gemini API. `parts` are those of the model as they go back to the server."""

    protocol = "Gemini"
    nothing = "a reply without content, and without a reason why it ended"

    def __init__(self, first_key: int = 0) -> None:
        super().__init__(first_key)
        self.parts: list[dict[str, Any]] = []
        self._code: HostedCall | None = None  # that the server runs, without a result by now

    def take(self, sent: ServerEvent) -> Iterator[AgentEvent]:
        yield from self._take(decoded_object(sent.data))

    def take_whole(self, text: str) -> Iterator[AgentEvent]:
        value = decoded_object(text)
        if not {"candidates", "promptFeedback", "error"} & value.keys():
            if is_error(value):
                raise ProviderError(error_in(value))
            raise EmptyResponseError(f"an object without `candidates` ({words_in(text)[:200]})")
        yield from self._take(value)

    def rest(self) -> Iterator[AgentEvent]:
        yield from self._ran(None)
        # An answer may be empty when the server says why it ended.
        self.usable = self.usable or bool(self.parts) or bool(self.finish_reason)
        yield from super().rest()

    def _ran(self, result: tuple[str, bool] | None) -> Iterator[AgentEvent]:
        """The server ran the code that came last; None: it did not tell what the code gave."""
        code, self._code = self._code, None
        if code is not None and result is None:
            yield from self.add_hosted(code)
        elif code is not None and result is not None:
            yield from self.add_hosted(replace(code, result=result[0], failed=result[1]))

    def _take(self, chunk: Mapping[str, Any]) -> Iterator[AgentEvent]:
        if chunk.get("error"):
            raise ProviderError(error_in(chunk))
        self.model = string(chunk.get("modelVersion")) or self.model
        self.take_usage(chunk.get("usageMetadata"))
        feedback = chunk.get("promptFeedback")
        if isinstance(feedback, Mapping) and string(feedback.get("blockReason")):
            self.finish_reason = "content_filter"  # of the prompt: there is no candidate then
        for candidate in listed(chunk, "candidates"):
            if candidate.get("index") not in (None, 0):
                continue  # of several answers the first is the run's
            content = candidate.get("content")
            if isinstance(content, Mapping):
                for part in listed(content, "parts"):
                    yield from self._take_part(dict(part))
            reason = string(candidate.get("finishReason"))
            if reason:
                self.finish_reason = _REASONS.get(reason, reason)
        # The API has no reason of its own for calls.
        if self.calls and self.finish_reason == "stop":
            self.finish_reason = "tool_calls"

    def _take_part(self, part: dict[str, Any]) -> Iterator[AgentEvent]:
        called = part.get("functionCall")
        if isinstance(called, Mapping):
            self.parts.append(part)
            yield from self._call(called)
            return
        if (code := executed_code(part)) is not None:
            # Code before, whose result was not told.
            yield from self._ran(None)
            self._code = code
        elif (outcome := code_result(part)) is not None:
            yield from self._ran(outcome)
        text = text_at(part, "text")
        # A part without anything in it is refused when it comes back; one with a signature alone must go back.
        if text or set(part) - {"text", "thought"}:
            self.parts.append(part)
        for kind in sorted(part.keys() - _READ):
            if kind in ("inlineData", "inline_data", "fileData", "file_data"):
                yield from received(part, "image" if _is_image(part[kind]) else "file")
            else:
                yield Noted(Note("unread", kind))
        if part.get("thought") is True:
            if text:
                yield ReasoningDelta(text)
        else:
            yield from self.add_text(text)

    def _call(self, called: Mapping[str, Any]) -> Iterator[AgentEvent]:
        call: CallParts = self.add_call(string(called.get("id")))
        yield from self.take_name(call, called.get("name"))
        yield from self.add_arguments(call, called.get("args") or {})


def _is_image(data: object) -> bool:
    media_type = data.get("mimeType", data.get("mime_type")) if isinstance(data, Mapping) else ""
    return string(media_type).startswith("image/")
