"""What OpenAI-compatible servers answer, as logs and batches keep it: with the request beside it, or alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agenteval_tui.exchange.message_dialects import is_message


def answered(value: Mapping[str, Any]) -> dict[str, Any] | None:
    """A logged answer as an object with `messages`; None when `value` is no answer.

    A chat completion (`choices`), a response (`output`), a line of a batch's output (`response.body`), or a request
    and its answer by those names; `messages` or `input` may also stand beside the answer.
    """
    answer = _inner(value, "response", "body")
    said = _said(answer)
    if said is None:
        return None
    request = _inner(value, "request", "body")
    asked = request.get("messages", request.get("input"))
    if isinstance(asked, str):
        asked = [{"role": "user", "content": asked}]
    before = [one for one in asked if is_message(one)] if isinstance(asked, list) else []
    if isinstance(request.get("instructions"), str) and request["instructions"]:
        before.insert(0, {"role": "system", "content": request["instructions"]})
    choices = answer.get("choices")
    finish = choices[0].get("finish_reason") if choices else answer.get("status")
    about = {"model": answer.get("model"), "usage": answer.get("usage"), "finish_reason": finish}
    named = value.get("custom_id") or value.get("id") or answer.get("id")
    return {**about, "id": named, "messages": [*before, *said]}


def _inner(value: Mapping[str, Any], *keys: str) -> Mapping[str, Any]:
    """What stands under the first key, and in it under the second, as far as they are there."""
    for key in keys:
        if isinstance(value.get(key), Mapping):
            value = value[key]
    return value


def _said(answer: Mapping[str, Any]) -> list[Any] | None:
    choices, output = answer.get("choices"), answer.get("output")
    if isinstance(choices, list) and choices and isinstance(choices[0], Mapping):
        message = choices[0].get("message")
        return [message] if is_message(message) else None
    if answer.get("object") == "response" and isinstance(output, list):
        return [one for one in output if is_message(one)] or None
    return None
