"""What a model was asked for one of its answers: the exact request, as a recording has it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct


class OfferedTool(Struct, frozen=True):
    """A tool that the model could call. `parameters` is its JSON Schema; {} where the request has none."""

    name: str
    description: str = ""
    parameters: Mapping[str, Any] = {}


class ModelRequest(Struct, frozen=True):
    """A request. `number` counts from 1, in the order of time; `line`: which agent asked (1: the first), as far as
    requests tell agents apart.

    `messages` are as OpenAI has them, without the system prompt. `previous`: the id of what the server keeps of the
    conversation; then this is not all that the model saw. `parameters`: all else that was asked for. `cached_tokens`:
    how many tokens of the prompt the server had in its cache, None where it does not say. `error`: why there is no
    answer.
    """

    number: int
    line: int
    model: str = ""
    system: str = ""
    messages: tuple[Mapping[str, Any], ...] = ()
    tools: tuple[OfferedTool, ...] = ()
    parameters: Mapping[str, Any] = {}
    previous: str = ""
    cached_tokens: int | None = None
    error: str = ""


def content_of(message: Mapping[str, Any]) -> str:
    """The text of a message; the calls of one that has no text."""
    content = message.get("content")
    if isinstance(content, str) and content:
        return content
    calls = message.get("tool_calls")
    functions = (
        [one.get("function") or {} for one in calls if isinstance(one, Mapping)] if isinstance(calls, list) else []
    )
    return ", ".join(f"{one.get('name')}({one.get('arguments')})" for one in functions)
