"""The Messages API: a conversation as its requests hold it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from agenteval_tui.agents.anthropic_options import AnthropicOptions
from agenteval_tui.agents.conversation import CallIds, Said, arguments_object
from agenteval_tui.agents.interface import ToolCallFinished, ToolSpec
from agenteval_tui.agents.messages_reply import MessagesReply

_NOT_IN_IDS = re.compile(r"[^a-zA-Z0-9_-]")
# An input must be an object; Anthropic's own advice for one that is not valid JSON.
_INVALID = "INVALID_JSON"


class MessagesProtocol:
    """`POST /v1/messages`."""

    path = "v1/messages"
    models_path = "v1/models?limit=1000"  # a page has 20 otherwise

    def __init__(self, options: AnthropicOptions) -> None:
        self._options = options

    def begin(self, messages: Sequence[Said], tools: Sequence[ToolSpec], seed: int) -> MessagesDialogue:
        """A conversation that begins with these messages."""
        return MessagesDialogue(self._options, messages, tools)

    def key_headers(self, key: str) -> dict[str, str]:
        """The key, and the version of the API that we speak."""
        headers = {"anthropic-version": self._options.version}
        if self._options.betas:
            headers["anthropic-beta"] = ",".join(self._options.betas)
        return {**headers, "x-api-key": key} if key else headers


class MessagesDialogue:
    """One run's conversation."""

    def __init__(self, options: AnthropicOptions, messages: Sequence[Said], tools: Sequence[ToolSpec]) -> None:
        self._options = options
        self._ids = CallIds()
        # The API has one system prompt and no such messages.
        self._system = "\n\n".join(one.text for one in messages if one.role in ("system", "developer") and one.text)
        self._messages: list[dict[str, Any]] = []
        for message in messages:
            if message.role not in ("system", "developer"):
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

    def go_on(self, reply: MessagesReply, results: Mapping[int, ToolCallFinished]) -> None:
        """Add the model's blocks, thinking and signatures among them, and the results of its calls."""
        blocks: list[dict[str, Any]] = []
        answers: list[dict[str, Any]] = []
        for block, call in reply.blocks:
            if call is not None:
                call_id = self._id(call.id)
                blocks.append({**block, "id": call_id, "name": call.name, "input": _input(call.arguments_text)})
                done = results[call.key]
                answers.append(_result(call_id, done.result, done.error))
            elif block.get("type") != "text" or block.get("text"):
                blocks.append(block)
        self._add("assistant", blocks)
        self._add("user", answers)

    def _tell(self, message: Said) -> None:
        blocks: list[dict[str, Any]] = [{"type": "text", "text": message.text}] if message.text else []
        answers: list[dict[str, Any]] = []
        for call in message.calls:
            call_id = self._id(call.id)
            blocks.append({"type": "tool_use", "id": call_id, "name": call.name, "input": _input(call.arguments)})
            answers.append(_result(call_id, call.result, call.error))
        self._add("assistant" if message.role == "assistant" else "user", blocks)
        self._add("user", answers)

    def _add(self, role: str, blocks: list[dict[str, Any]]) -> None:
        """Roles take turns: what the same one says next goes on with its last message. Empty blocks are refused."""
        if not blocks:
            return
        if self._messages and self._messages[-1]["role"] == role:
            self._messages[-1]["content"] += blocks
        else:
            self._messages.append({"role": role, "content": blocks})

    def _id(self, wanted: str) -> str:
        return self._ids.fresh(_NOT_IN_IDS.sub("_", wanted))


def _input(arguments: str) -> dict[str, Any]:
    given = arguments_object(arguments)
    return {_INVALID: arguments} if given is None else given


def _result(call_id: str, text: str, error: bool) -> dict[str, Any]:
    result: dict[str, Any] = {"type": "tool_result", "tool_use_id": call_id, "content": text}
    return {**result, "is_error": True} if error else result
