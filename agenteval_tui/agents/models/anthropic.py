"""The kind `anthropic`: a server that speaks the Messages API, with our own loop of tool calls."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agenteval_tui.agents.base import AgentEvent, ReasoningDelta, ToolCallFinished, ToolSpec
from agenteval_tui.agents.http.errors import error_in
from agenteval_tui.agents.http.sse import ServerEvent
from agenteval_tui.agents.models.anthropic_options import AnthropicOptions
from agenteval_tui.agents.models.attachments import SentFile, parts_of, refuse
from agenteval_tui.agents.models.hosted_calls import HostedCall
from agenteval_tui.agents.models.loop import ModelAgent
from agenteval_tui.agents.models.message_mapping import CallIds, ProviderMessage, arguments_object
from agenteval_tui.agents.models.stream import (
    CallParts,
    ModelProtocol,
    ModelReply,
    ProviderError,
    decoded_object,
    listed,
    place_at,
    reply_with,
    string,
    text_at,
)
from agenteval_tui.core.json_values import parsed_json
from agenteval_tui.transcripts.codec import content_text
from agenteval_tui.transcripts.model import SYSTEM_ROLES

_NOT_IN_IDS = re.compile(r"[^a-zA-Z0-9_-]")
# An input must be an object; Anthropic's own advice for one that is not valid JSON.
_INVALID = "INVALID_JSON"
# Why an answer ended, in the words of Chat Completions where there is one that says exactly that. The others
# (stop_sequence, pause_turn, model_context_window_exceeded, ...) stay as they are.
_REASONS = {"end_turn": "stop", "max_tokens": "length", "tool_use": "tool_calls", "refusal": "content_filter"}
_TEXTS = ("application/json", "application/xml", "application/yaml")
# A piece of a block -> the field of the block that it continues.
_GROWS = {"text_delta": "text", "thinking_delta": "thinking", "signature_delta": "signature"}


class AnthropicAgent(ModelAgent[AnthropicOptions]):
    """Talks to Anthropic, or to a server that speaks as it does."""

    options_model = AnthropicOptions
    usual_address = " (without the /v1/messages at its end)"

    def _protocol(self, options: AnthropicOptions) -> ModelProtocol:
        return MessagesProtocol(options)


# The Messages API: a conversation as its requests hold it


class MessagesProtocol:
    """`POST /v1/messages`."""

    path = "v1/messages"
    models_path = "v1/models?limit=1000"  # a page has 20 otherwise

    def __init__(self, options: AnthropicOptions) -> None:
        self._options = options

    def begin(self, messages: Sequence[ProviderMessage], tools: Sequence[ToolSpec], seed: int) -> MessagesDialogue:
        """A conversation that begins with these messages."""
        return MessagesDialogue(self._options, messages, tools)


class MessagesDialogue:
    """One run's conversation."""

    def __init__(
        self, options: AnthropicOptions, messages: Sequence[ProviderMessage], tools: Sequence[ToolSpec]
    ) -> None:
        self._options = options
        self._ids = CallIds()
        # The API has one system prompt and no such messages.
        self._system = "\n\n".join(
            message.text for message in messages if message.role in SYSTEM_ROLES and message.text
        )
        self._messages: list[dict[str, Any]] = []
        for message in messages:
            if message.role not in SYSTEM_ROLES:
                self._tell(message)
        self._tools = [
            {"name": spec.name, "description": spec.description, "input_schema": spec.parameters} for spec in tools
        ]

    def body(self) -> dict[str, Any]:
        """The JSON of the next request."""
        return self._options.body(self._system, self._messages, self._tools)

    def reply(self, first_key: int) -> MessagesReply:
        """What reads the answer."""
        return MessagesReply(first_key)

    def add_results(self, reply: MessagesReply, results: Mapping[int, ToolCallFinished]) -> None:
        """Add the model's blocks, thinking and signatures among them, and the results of its calls."""
        blocks: list[dict[str, Any]] = []
        answers: list[dict[str, Any]] = []
        for block, call in reply.blocks:
            if call is not None:
                # The server refuses ids with other characters, and an id that is there twice.
                call_id = self._id(call.id)
                blocks.append({**block, "id": call_id, "name": call.name, "input": _input(call.arguments_text)})
                done = results[call.key]
                answers.append(_result(call_id, done.result, done.error))
            # An empty text is refused when it comes back.
            elif block.get("type") != "text" or block.get("text"):
                blocks.append(block)
        self._add("assistant", blocks)
        # All results in one message: a message of the user's between a call and its result is refused.
        self._add("user", answers)

    def _tell(self, message: ProviderMessage) -> None:
        blocks = [_block(part) for part in parts_of(message)]
        answers: list[dict[str, Any]] = []
        for call in message.calls:
            call_id = self._id(call.id)
            blocks.append({"type": "tool_use", "id": call_id, "name": call.name, "input": _input(call.arguments)})
            answers.append(_result(call_id, call.result, call.failed))
        self._add("assistant" if message.role == "assistant" else "user", blocks)
        self._add("user", answers)

    def _add(self, role: str, blocks: list[dict[str, Any]]) -> None:
        """Roles alternate: another message of the same role is appended to its last one. Empty blocks are refused."""
        if not blocks:
            return
        if self._messages and self._messages[-1]["role"] == role:
            self._messages[-1]["content"] += blocks
        else:
            self._messages.append({"role": role, "content": blocks})

    def _id(self, call_id: str) -> str:
        return self._ids.fresh(_NOT_IN_IDS.sub("_", call_id))


def _block(part: str | SentFile) -> dict[str, Any]:
    if isinstance(part, str):
        return {"type": "text", "text": part}
    if part.is_image:
        return {"type": "image", "source": _source(part)}
    title = {"title": part.name} if part.name else {}
    if part.media_type == "application/pdf" or part.url:
        return {"type": "document", "source": _source(part), **title}
    if part.media_type.startswith("text/") or part.media_type in _TEXTS:
        text = part.data.decode("utf-8", "replace")
        return {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": text}, **title}
    raise refuse(part, "the Messages API", "give an image, a PDF or a text")


def _source(part: SentFile) -> dict[str, Any]:
    if part.url:
        return {"type": "url", "url": part.url}
    return {"type": "base64", "media_type": part.media_type, "data": part.base64}


def _input(arguments: str) -> dict[str, Any]:
    parsed = arguments_object(arguments)
    return {_INVALID: arguments} if parsed is None else parsed


def _result(call_id: str, text: str, error: bool) -> dict[str, Any]:
    result: dict[str, Any] = {"type": "tool_result", "tool_use_id": call_id, "content": text}
    return {**result, "is_error": True} if error else result


# Joining the pieces of a reply of the Messages API

_HOSTED = ("server_tool_use", "mcp_tool_use")
"""Blocks of calls of tools that the server runs."""


class MessagesReply(ModelReply):
    """One reply of the Messages API. `blocks` are its blocks as they go back to the server: thinking with its
    signature, the server's own tools, everything but our calls' ids unchanged."""

    protocol = "Messages"
    nothing = "a message without content, and without a reason why it ended"

    def __init__(self, first_key: int = 0) -> None:
        super().__init__(first_key)
        self._blocks: dict[int, dict[str, Any]] = {}
        self._calls_at: dict[int, CallParts] = {}
        self._json: dict[int, list[str]] = {}  # the input of the server's own tools
        self._hosted: dict[str, int] = {}  # id of a call of the server's own tools without an answer: its place
        self._pieces: dict[int, dict[str, list[str]]] = {}  # place of a block -> field -> what it grew by
        self._counts: dict[str, Any] = {}

    @property
    def blocks(self) -> list[tuple[dict[str, Any], CallParts | None]]:
        """The blocks in order, each with the call that it is."""
        blocks: list[tuple[dict[str, Any], CallParts | None]] = []
        for place in sorted(self._blocks):
            block = self._blocks[place]
            for name, pieces in self._pieces.get(place, {}).items():
                # Joined once, at the end: adding each piece to a text would copy it each time.
                block = {**block, name: string(block.get(name)) + "".join(pieces)}
            if place in self._json:
                block = {**block, "input": parsed_json("".join(self._json[place])) or block.get("input") or {}}
            blocks.append((block, self._calls_at.get(place)))
        return blocks

    def take(self, sent: ServerEvent) -> Iterator[AgentEvent]:
        chunk = decoded_object(sent.data)
        kind = string(chunk.get("type")) or sent.name
        # An error comes in the middle of a stream whose status was 200.
        if kind == "error" or chunk.get("error"):
            raise ProviderError(error_in(chunk))
        if kind == "message_start":
            message = chunk.get("message")
            if isinstance(message, Mapping):
                self.model = self.model or string(message.get("model"))
                self._take_usage(message.get("usage"))
        elif kind == "content_block_start":
            if isinstance(chunk.get("content_block"), Mapping):
                yield from self._begin(place_at(chunk, "index"), chunk["content_block"])
        elif kind == "content_block_delta":
            if isinstance(chunk.get("delta"), Mapping):
                yield from self._grow(place_at(chunk, "index"), chunk["delta"])
        elif kind == "content_block_stop":
            yield from self._end(place_at(chunk, "index"))
        elif kind == "message_delta":
            if isinstance(chunk.get("delta"), Mapping):
                self._stop(chunk["delta"].get("stop_reason"))
            self._take_usage(chunk.get("usage"))
        elif kind == "message_stop":
            self.over = True

    def take_whole(self, text: str) -> Iterator[AgentEvent]:
        value = reply_with("content", text)
        if value.get("error"):
            raise ProviderError(error_in(value))
        self.model = string(value.get("model"))
        self._take_usage(value.get("usage"))
        for place, block in enumerate(listed(value, "content")):
            yield from self._begin(place, block)
            yield from self._end(place)
        self._stop(value.get("stop_reason"))

    def rest(self) -> Iterator[AgentEvent]:
        # An answer may be empty when the server says why it ended.
        self.usable = self.usable or bool(self._blocks) or bool(self.finish_reason)
        # Calls whose answer comes with the next request, after `pause_turn`, or never.
        for place in self._hosted.values():
            yield from self._tell_hosted(place, None)
        self._hosted.clear()
        yield from super().rest()

    def _begin(self, place: int, block: Mapping[str, Any]) -> Iterator[AgentEvent]:
        self._blocks[place] = dict(block)
        kind = block.get("type")
        if kind == "tool_use":
            self._calls_at[place] = self.add_call(string(block.get("id")), index=place)
            yield from self.take_name(self._calls_at[place], block.get("name"))
        # The answer of a tool that the server runs is a block of its own: the call is told with it.
        elif string(kind).endswith("tool_result") and string(block.get("tool_use_id")) in self._hosted:
            called_at = self._hosted.pop(string(block.get("tool_use_id")))
            yield from self._tell_hosted(called_at, block)
        elif kind in _HOSTED:
            self._hosted[string(block.get("id"))] = place
        elif kind == "text":
            yield from self.add_text(text_at(block, "text"))
        elif kind == "thinking" and string(block.get("thinking")):
            yield ReasoningDelta(block["thinking"])

    def _grow(self, place: int, delta: Mapping[str, Any]) -> Iterator[AgentEvent]:
        kind = string(delta.get("type"))
        if kind == "input_json_delta":
            text = string(delta.get("partial_json"))
            if place in self._calls_at:
                yield from self.add_arguments(self._calls_at[place], text)
            else:
                self._json.setdefault(place, []).append(text)
        elif kind == "citations_delta":
            block = self._blocks.get(place, {})
            block["citations"] = [*(block.get("citations") or []), delta.get("citation")]
        else:
            name = _GROWS.get(kind) or kind.removesuffix("_delta")
            other = string(delta.get(name)) or string(delta.get("content"))
            text = text_at(delta, "text") if kind == "text_delta" else other
            if name not in ("text", "thinking", "signature"):
                name = "content"  # such as compaction_delta
            # Some servers leave out the beginning of a block.
            self._blocks.setdefault(place, {"type": "text"})
            self._pieces.setdefault(place, {}).setdefault(name, []).append(text)
            if kind == "text_delta":
                yield from self.add_text(text)
            elif kind == "thinking_delta" and text:
                yield ReasoningDelta(text)

    def _end(self, place: int) -> Iterator[AgentEvent]:
        """A block is complete. A call whose input came with its beginning has its arguments now."""
        call = self._calls_at.get(place)
        if call is None or call.arguments:
            return
        arguments = self._blocks[place].get("input")
        yield from self.add_arguments(call, arguments if isinstance(arguments, str) else arguments or {})

    def _tell_hosted(self, place: int, answer: Mapping[str, Any] | None) -> Iterator[AgentEvent]:
        """A call of a tool that the server ran, with its answer; None: it has none."""
        block = self._blocks[place]
        arguments = "".join(self._json.get(place, ())) or json.dumps(block.get("input") or {}, ensure_ascii=False)
        content = None if answer is None else answer.get("content")
        failed = answer is not None and (
            answer.get("is_error") is True
            or (isinstance(content, Mapping) and string(content.get("type")).endswith("_error"))
        )
        result = None if answer is None else content_text(content)
        yield from self.add_hosted(
            HostedCall(string(block.get("id")), string(block.get("name")), arguments, result, failed)
        )

    def _stop(self, reason: Any) -> None:
        if isinstance(reason, str) and reason:
            self.finish_reason = _REASONS.get(reason, reason)
            # The server's own tools took long: it continues when it gets its message back.
            self.unfinished = reason == "pause_turn"

    def _take_usage(self, raw: object) -> None:
        """The figures at the end count; those that they leave out are at the beginning."""
        if isinstance(raw, Mapping):
            self._counts.update((name, value) for name, value in raw.items() if value is not None)
            self.take_usage(self._counts)
