"""The formatted text of tool calls: what `ToolResponse` grades and the screens show beside the transcript."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from msgspec import Struct

from agenteval_tui.transcripts.model import ToolCall


class ArgumentRange(Struct, frozen=True):
    """Where a piece of the formatted text comes from: characters `start`..`end` are call `call`'s `argument`.

    `argument` is None for the tool's name.
    """

    start: int
    end: int
    call: int
    argument: str | None


def argument_text(value: object) -> str:
    """A value inside the quotes: a string as it is, any other JSON value as compact JSON."""
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def format_tool_calls(calls: Iterable[ToolCall]) -> str:
    """One block a call (`Toolname:`, the name, `Arguments:`, `name = "value"` lines), separated by blank lines.

    No calls: the empty string. The layout is Power UI's documented one (page 3, section 2).
    """
    return "\n\n".join(_block(call)[0] for call in calls)


def format_with_places(calls: Iterable[ToolCall]) -> tuple[str, tuple[ArgumentRange, ...]]:
    """`format_tool_calls(calls)`, and for each name and argument in it the place it comes from."""
    blocks: list[str] = []
    places: list[ArgumentRange] = []
    offset = 0
    for index, call in enumerate(calls):
        text, local = _block(call)
        places.extend(ArgumentRange(offset + start, offset + end, index, argument) for start, end, argument in local)
        blocks.append(text)
        offset += len(text) + 2
    return "\n\n".join(blocks), tuple(places)


def _block(call: ToolCall) -> tuple[str, list[tuple[int, int, str | None]]]:
    text = "Toolname:\n"
    places: list[tuple[int, int, str | None]] = [(len(text), len(text) + len(call.name), None)]
    text += f"{call.name}\n\nArguments:"
    for name, value in _arguments(call):
        line = f'\n{name} = "{argument_text(value)}"'
        places.append((len(text) + 1, len(text) + len(line), name))
        text += line
    return text, places


def _arguments(call: ToolCall) -> list[tuple[str, Any]]:
    if isinstance(call.arguments, dict):
        return [(str(name), value) for name, value in call.arguments.items()]
    # Malformed text and other JSON values have no names: Power UI's layout has no word for them, this is ours.
    return [] if call.arguments in (None, "") else [("arguments", call.arguments)]
