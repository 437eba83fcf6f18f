"""The kind `gemini`: a server that speaks Google's Gemini API, with our own loop of tool calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agenteval_tui.agents.base import ToolCallFinished, ToolSpec
from agenteval_tui.agents.models.attachments import SentFile, parts_of, refuse
from agenteval_tui.agents.models.gemini_reply import GeminiReply
from agenteval_tui.agents.models.loop import ModelAgent
from agenteval_tui.agents.models.message_mapping import ProviderMessage, arguments_object
from agenteval_tui.agents.models.stream import (
    ModelProtocol,
)
from agenteval_tui.extensions.gemini.options import GeminiOptions

# The arguments of a call must be an object; this holds those of an earlier call that are none.
_INVALID = "INVALID_JSON"


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
