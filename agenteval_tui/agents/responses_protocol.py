"""The Responses API: a conversation as the items of its requests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from agenteval_tui.agents.conversation import CallIds, Said
from agenteval_tui.agents.interface import ToolCallFinished, ToolSpec
from agenteval_tui.agents.openai_options import OpenAIOptions
from agenteval_tui.agents.responses_reply import ResponsesReply

_FEWEST_TOKENS = 16  # a smaller `max_output_tokens` is refused


class ResponsesProtocol:
    """`POST /responses`. The whole conversation is sent each time; nothing rests on what the server stored."""

    path = "responses"
    models_path = "models"

    def __init__(self, options: OpenAIOptions) -> None:
        least = options.max_tokens is not None and options.max_tokens < _FEWEST_TOKENS
        self._options = options.model_copy(update={"max_tokens": _FEWEST_TOKENS}) if least else options

    def begin(self, messages: Sequence[Said], tools: Sequence[ToolSpec], seed: int) -> ResponsesDialogue:
        """A conversation that begins with these messages."""
        return ResponsesDialogue(self._options, messages, tools)

    def key_headers(self, key: str) -> dict[str, str]:
        """The key as a bearer token, or in the header of `api_key_header`."""
        return self._options.key_headers(key)


class ResponsesDialogue:
    """One run's conversation."""

    def __init__(self, options: OpenAIOptions, messages: Sequence[Said], tools: Sequence[ToolSpec]) -> None:
        self._options = options
        self._ids = CallIds({call.id for one in messages for call in one.calls})
        self._items = [item for message in messages for item in _told(message)]
        self._tools = [_declared(spec) for spec in tools]

    def body(self) -> dict[str, Any]:
        """The JSON of the next request."""
        return self._options.responses_body(self._items, self._tools)

    def reply(self, first_key: int) -> ResponsesReply:
        """What reads the answer."""
        return ResponsesReply(first_key)

    def go_on(self, reply: ResponsesReply, results: Mapping[int, ToolCallFinished]) -> None:
        """Add the output's items, the thinking among them, and the results of the calls.

        Models that think want their thinking back between a call and its result. A server that stores nothing takes
        it only in encrypted form, and knows none of its own ids.
        """
        calls = list(reply.calls)
        answered: list[dict[str, Any]] = []
        for item in reply.items:
            if item.get("type") == "function_call" and calls:
                call = calls.pop(0)
                call_id = self._ids.fresh(call.id)
                answered.append(_result(call_id, results[call.key].result))
                item = {**item, "call_id": call_id, "arguments": call.arguments_text or "{}"}
            elif item.get("type") == "reasoning" and not self._options.store and not item.get("encrypted_content"):
                continue
            if not self._options.store and item.get("type") in ("function_call", "message"):
                item = {key: value for key, value in item.items() if key not in ("id", "status")}
            self._items.append(dict(item))
        for call in calls:  # calls whose item never ended
            call_id = self._ids.fresh(call.id)
            self._items.append(_call(call_id, call.name, call.arguments_text))
            answered.append(_result(call_id, results[call.key].result))
        self._items += answered


def _told(message: Said) -> Iterable[dict[str, Any]]:
    if message.text or not message.calls:
        yield {"role": message.role, "content": message.text}
    for call in message.calls:
        yield _call(call.id, call.name, call.arguments)
    for call in message.calls:
        yield _result(call.id, call.result)


def _call(call_id: str, name: str, arguments: str) -> dict[str, Any]:
    return {"type": "function_call", "call_id": call_id, "name": name, "arguments": arguments or "{}"}


def _result(call_id: str, text: str) -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": call_id, "output": text}


def _declared(spec: ToolSpec) -> dict[str, Any]:
    # Not strict: that is the API's default and refuses most schemas that people write.
    function = {"name": spec.name, "description": spec.description, "parameters": spec.parameters}
    return {"type": "function", "strict": False, **function}
