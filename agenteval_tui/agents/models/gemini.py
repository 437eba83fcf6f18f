"""The kind `gemini`: a server that speaks Google's Gemini API, with our own loop of tool calls."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from agenteval_tui.agents.base import AgentEvent, Noted, ReasoningDelta, ToolCallFinished, ToolSpec
from agenteval_tui.agents.http.errors import error_in, is_error, words_in
from agenteval_tui.agents.http.sse import ServerEvent
from agenteval_tui.agents.models.attachments import SentFile, parts_of, received, refuse
from agenteval_tui.agents.models.gemini_options import GeminiOptions
from agenteval_tui.agents.models.hosted_calls import HostedCall, code_result, executed_code
from agenteval_tui.agents.models.loop import ModelAgent
from agenteval_tui.agents.models.message_mapping import ProviderMessage, arguments_object
from agenteval_tui.agents.models.stream import (
    CallParts,
    EmptyResponseError,
    ModelProtocol,
    ModelReply,
    ProviderError,
    decoded_object,
    listed,
    string,
    text_at,
)
from agenteval_tui.transcripts.model import Note

# The arguments of a call must be an object; this holds those of an earlier call that are none.
_INVALID = "INVALID_JSON"
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


class GeminiAgent(ModelAgent[GeminiOptions]):
    """Talks to Google's Gemini API, or to a server that speaks as it does."""

    options_model = GeminiOptions
    usual_address = " (without the /v1beta/models/... at its end)"

    def _protocol(self, options: GeminiOptions) -> ModelProtocol:
        return GeminiProtocol(options)


class GeminiProtocol:
    """`POST /v1beta/models/MODEL:streamGenerateContent`."""

    models_path = "v1beta/models?pageSize=1000"  # a page has 50 otherwise

    def __init__(self, options: GeminiOptions) -> None:
        self._options = options
        self.path = options.path

    def begin(self, messages: Sequence[ProviderMessage], tools: Sequence[ToolSpec], seed: int) -> GeminiDialogue:
        """A conversation that begins with these messages."""
        return GeminiDialogue(self._options, messages, tools, seed)


class GeminiDialogue:
    """One run's conversation."""

    def __init__(
        self, options: GeminiOptions, messages: Sequence[ProviderMessage], tools: Sequence[ToolSpec], seed: int
    ) -> None:
        self._options = options
        self._seed = seed
        # The API has one system instruction and no such messages.
        self._system = "\n\n".join(
            message.text for message in messages if message.role in ("system", "developer") and message.text
        )
        self._contents: list[dict[str, Any]] = []
        for message in messages:
            if message.role not in ("system", "developer"):
                self._tell(message)
        self._tools = [
            {"name": spec.name, "description": spec.description, "parametersJsonSchema": spec.parameters}
            for spec in tools
        ]

    def body(self) -> dict[str, Any]:
        """The JSON of the next request."""
        return self._options.body(self._system, self._contents, self._tools, self._seed)

    def reply(self, first_key: int) -> GeminiReply:
        """What reads the answer."""
        return GeminiReply(first_key)

    def add_results(self, reply: GeminiReply, results: Mapping[int, ToolCallFinished]) -> None:
        """Add the model's parts as they came, signatures of its thoughts among them, and the results of its calls."""
        # Unchanged: the server refuses thoughts whose signatures do not fit.
        self._add("model", reply.parts)
        answers = []
        for call in reply.calls:
            done = results[call.key]
            # An id goes back only where the server gave one.
            answers.append(_result(call.given_id, call.name, done.result, done.error))
        self._add("user", answers)

    def _tell(self, message: ProviderMessage) -> None:
        parts = [_part(part) for part in parts_of(message)]
        answers: list[dict[str, Any]] = []
        for call in message.calls:
            parsed = arguments_object(call.arguments)
            args = {_INVALID: call.arguments} if parsed is None else parsed
            # Calls are told apart by their order: an id that the model did not give might not be taken.
            parts.append({"functionCall": {"name": call.name, "args": args}})
            answers.append(_result("", call.name, call.result, call.failed))
        self._add("model" if message.role == "assistant" else "user", parts)
        self._add("user", answers)

    def _add(self, role: str, parts: list[dict[str, Any]]) -> None:
        """Another message of the same role is appended to its last one. A content without parts is refused."""
        if not parts:
            return
        if self._contents and self._contents[-1]["role"] == role:
            self._contents[-1]["parts"] += parts
        else:
            self._contents.append({"role": role, "parts": parts})


def _part(part: str | SentFile) -> dict[str, Any]:
    if isinstance(part, str):
        return {"text": part}
    if part.url:
        media_type = part.media_type if "*" not in part.media_type else ""
        if not media_type:
            raise refuse(part, "the Gemini API", "write its `media_type`: image/png, image/jpeg, application/pdf, ...")
        return {"fileData": {"mimeType": media_type, "fileUri": part.url}}
    return {"inlineData": {"mimeType": part.media_type, "data": part.base64}}


def _result(given_id: str, name: str, text: str, error: bool) -> dict[str, Any]:
    response: dict[str, Any] = {"name": name, "response": {"error" if error else "result": text}}
    return {"functionResponse": {**response, "id": given_id} if given_id else response}


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
