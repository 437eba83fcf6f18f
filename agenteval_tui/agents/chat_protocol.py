"""Chat Completions: a conversation as its requests hold it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from agenteval_tui.agents.chat_reply import ChatReply
from agenteval_tui.agents.conversation import CallIds, Said
from agenteval_tui.agents.interface import ToolCallFinished, ToolSpec
from agenteval_tui.agents.openai_options import OpenAIOptions

_JOINED = ("text", "summary", "data")


class ChatProtocol:
    """`POST /chat/completions`."""

    path = "chat/completions"
    models_path = "models"

    def __init__(self, options: OpenAIOptions) -> None:
        self._options = options

    def begin(self, messages: Sequence[Said], tools: Sequence[ToolSpec], seed: int) -> ChatDialogue:
        """A conversation that begins with these messages."""
        return ChatDialogue(self._options, messages, tools, seed)

    def key_headers(self, key: str) -> dict[str, str]:
        """The key as a bearer token, or in the header of `api_key_header`."""
        return self._options.key_headers(key)


class ChatDialogue:
    """One run's conversation."""

    def __init__(self, options: OpenAIOptions, messages: Sequence[Said], tools: Sequence[ToolSpec], seed: int) -> None:
        self._options = options
        self._seed = seed
        self._ids = CallIds({call.id for one in messages for call in one.calls})
        self._messages = [made for message in messages for made in _told(message)]
        self._tools = [_declared(spec) for spec in tools]

    def body(self) -> dict[str, Any]:
        """The JSON of the next request."""
        return self._options.chat_body(self._messages, self._tools, self._seed)

    def reply(self, first_key: int) -> ChatReply:
        """What reads the answer."""
        return ChatReply(first_key)

    def go_on(self, reply: ChatReply, results: Mapping[int, ToolCallFinished]) -> None:
        """Add the model's message and the results of its calls."""
        ids = {call.key: self._ids.fresh(call.id) for call in reply.calls}
        calls = [{**_call(ids[one.key], one.name, one.arguments_text), **one.extra} for one in reply.calls]
        message: dict[str, Any] = {"role": "assistant", "content": "".join(reply.text) or None, "tool_calls": calls}
        if reply.thinking:
            message["reasoning_content"] = "".join(reply.thinking)
        if reply.details:
            message["reasoning_details"] = _merged(reply.details)
        self._messages.append(message)
        for one in reply.calls:
            self._messages.append(_result(ids[one.key], results[one.key].result))


def _told(message: Said) -> Iterable[dict[str, Any]]:
    told: dict[str, Any] = {"role": message.role, "content": message.text}
    if message.name is not None:
        told["name"] = message.name
    if message.calls:
        told["content"] = message.text or None
        told["tool_calls"] = [_call(call.id, call.name, call.arguments) for call in message.calls]
    yield told
    for call in message.calls:
        yield _result(call.id, call.result)


def _call(call_id: str, name: str, arguments: str) -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments or "{}"}}


def _result(call_id: str, text: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": text}


def _declared(spec: ToolSpec) -> dict[str, Any]:
    function = {"name": spec.name, "description": spec.description, "parameters": spec.parameters}
    return {"type": "function", "function": function}


def _merged(details: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Pieces of a stream's thinking put together: those of one kind and index follow one another."""
    made: list[dict[str, Any]] = []
    for piece in details:
        last = made[-1] if made else None
        same = (
            last is not None
            and piece.get("index") is not None
            and all(last.get(key) == piece.get(key) for key in ("type", "index"))
        )
        if last is None or not same:
            made.append(dict(piece))
            continue
        for key, value in piece.items():
            if key in _JOINED and isinstance(value, str) and isinstance(last.get(key), str):
                last[key] += value
            elif value is not None:
                last[key] = value
    return made
