"""Conversations as training data: ShareGPT (`conversations`: `from`, `value`), and `prompt` with `completion`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from msgspec.structs import replace

from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.json_values import parsed_json
from agenteval_tui.formats.importers.format import Format, by_value
from agenteval_tui.formats.importers.message_formats import as_list, is_message, objects_in, plain_text
from agenteval_tui.formats.importers.recording import Recording, Skipped, skipped_element
from agenteval_tui.formats.importers.session_log import Session, session_recording
from agenteval_tui.formats.stream.json_stream import BrokenElement, JsonElement
from agenteval_tui.transcripts.observed import without_calls

NAME = "sharegpt"
_ROLES = {
    "human": "user",
    "user": "user",
    "gpt": "assistant",
    "chatgpt": "assistant",
    "assistant": "assistant",
    "model": "assistant",
    "bing": "assistant",
    "bard": "assistant",
    "system": "system",
    "tool": "tool",
    "observation": "tool",
    "function_response": "tool",
    "function_call": "call",
}


def can_read(value: Any) -> bool:
    """Whether a value of the file is a conversation."""
    if not isinstance(value, Mapping):
        return False
    turns = value.get("conversations")
    if isinstance(turns, list):
        return bool(turns) and isinstance(turns[0], Mapping) and "from" in turns[0]
    return _messages_of(value.get("prompt")) and _messages_of(value.get("completion"))


def _messages_of(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(map(is_message, value))


def recordings(elements: Iterable[JsonElement | BrokenElement]) -> Iterator[Recording | Skipped]:
    """A run for each conversation."""
    for number, element in enumerate(elements, 1):
        if isinstance(element, BrokenElement):
            yield skipped_element(element)
            continue
        value = element.value
        if not can_read(value):
            yield Skipped("not a conversation: it has no `conversations`", element.line)
            continue
        session = Session(plain_text(value.get("id")) or f"conversation-{number}", source=[("", value)])
        session.system = value.get("system")
        if "conversations" in value:
            session.messages = list(_messages_of_turns(value["conversations"], session.notes))
        else:
            session.messages = [*value["prompt"], *value["completion"]]
        try:
            recording = session_recording(session)
            if "conversations" in value and not _has_place_for_calls(value):
                recording = replace(recording, transcript=without_calls(recording.transcript, NAME))
            yield recording
        except AgentevalError as error:
            yield Skipped(error.what, element.line)


def _has_place_for_calls(value: Mapping[str, Any]) -> bool:
    """Whether a conversation is one with tools: ShareGPT's own has only what people and the model said; sets for
    training with tools have a list of these, or turns of calls."""
    turns = objects_in(value["conversations"])
    return "tools" in value or any(_ROLES.get(plain_text(turn.get("from"))) in ("call", "tool") for turn in turns)


def _messages_of_turns(turns: Any, notes: list[str]) -> Iterator[dict[str, Any]]:
    called = 0
    for number, turn in enumerate(as_list(turns), 1):
        if not isinstance(turn, Mapping):
            notes.append(f"turn {number} is not an object")
            continue
        who, text = plain_text(turn.get("from")), plain_text(turn.get("value"))
        role = _ROLES.get(who)
        if role is None:
            notes.append(f"turn {number} is from {who[:40]!r}, which is neither the user nor the model")
            yield {"role": "user", "content": text, "name": who}
        elif role == "call":
            called += 1
            yield {"role": "assistant", "content": "", "tool_calls": [_call(text, called)]}
        elif role == "tool" and called:
            yield {"role": "tool", "content": text, "tool_call_id": f"call_{called}"}
        else:
            yield {"role": "user" if role == "tool" else role, "content": text}


def _call(text: str, number: int) -> dict[str, Any]:
    """A call, which is JSON with `name` and `arguments`; what is not is kept as the call's text."""
    call = parsed_json(text)
    if not isinstance(call, Mapping) or not isinstance(call.get("name"), str):
        return {"id": f"call_{number}", "function": {"name": "function_call", "arguments": {"text": text}}}
    return {"id": f"call_{number}", "function": {"name": call["name"], "arguments": call.get("arguments")}}


FORMAT = Format(
    name=NAME,
    title="ShareGPT conversations",
    looks_like="objects with `conversations` (`from`, `value`), or messages in `prompt` and `completion`",
    can_read=can_read,
    recordings=by_value(recordings),
    rank=96,
)
