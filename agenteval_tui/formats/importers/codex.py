"""Codex' sessions (`~/.codex/sessions/.../rollout-*.jsonl`): items as the Responses API has them, and events."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from agenteval_tui.agents.usage import UsageReader
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.formats.importers.format import Format, by_value
from agenteval_tui.formats.importers.message_formats import plain_text
from agenteval_tui.formats.importers.recording import Recording, Skipped, skipped_element
from agenteval_tui.formats.importers.session_log import Session, session_recording
from agenteval_tui.formats.stream.json_stream import BrokenElement, JsonElement

NAME = "codex"
_KINDS = ("session_meta", "response_item", "event_msg", "turn_context", "compacted")
_BUILT_IN = {"local_shell_call": "local_shell", "web_search_call": "web_search"}


def can_read(value: Any) -> bool:
    """Whether a file's first value is a line of a session."""
    return isinstance(value, Mapping) and value.get("type") in _KINDS and isinstance(value.get("payload"), Mapping)


def recordings(elements: Iterable[JsonElement | BrokenElement]) -> Iterator[Recording | Skipped]:
    """A run for each session of the file."""
    session = Session("", agent=NAME)
    for element in elements:
        if isinstance(element, BrokenElement):
            yield skipped_element(element)
            continue
        line = element.value
        if not isinstance(line, Mapping) or not isinstance(line.get("payload"), Mapping):
            yield Skipped("not a line of a session: it has no `payload`", element.line)
            continue
        payload = line["payload"]
        if line.get("type") == "session_meta" and session.messages:
            yield from _ended(session)
            session = Session("", agent=NAME)
        session.source.append((plain_text(line.get("type")), payload))
        session.saw(line.get("timestamp"))
        _take(session, plain_text(line.get("type")), payload)
    yield from _ended(session)


def _ended(session: Session) -> Iterator[Recording | Skipped]:
    if session.source:
        try:
            yield session_recording(session)
        except AgentevalError as error:
            yield Skipped(error.what, place=f"session {session.id[:60]}")


def _take(session: Session, kind: str, payload: Mapping[str, Any]) -> None:
    if kind == "session_meta":
        session.id = plain_text(payload.get("id"))
        given = payload.get("base_instructions") or payload.get("instructions")
        session.system = given.get("text") if isinstance(given, Mapping) else given
    elif kind == "turn_context":
        session.model = plain_text(payload.get("model")) or session.model
    elif kind == "event_msg":
        _event(session, payload)
    elif kind == "response_item":
        session.messages += _items(payload, len(session.messages))


def _event(session: Session, payload: Mapping[str, Any]) -> None:
    if payload.get("type") == "token_count" and isinstance(payload.get("info"), Mapping):
        total = payload["info"].get("total_token_usage")
        if isinstance(total, Mapping):
            session.usage = UsageReader()
            session.usage.add(total)
    elif payload.get("type") in ("error", "stream_error"):
        session.error = plain_text(payload.get("message")) or "an error"
    elif payload.get("type") == "task_complete":
        session.error = ""  # what broke before was tried again


def _items(payload: Mapping[str, Any], number: int) -> list[dict[str, Any]]:
    """The items that `message_formats` reads. Codex' own kinds of call become calls of a tool of that name."""
    kind = plain_text(payload.get("type"))
    if kind in _BUILT_IN:
        call_id = plain_text(payload.get("call_id") or payload.get("id")) or f"{kind}_{number}"
        arguments = json.dumps(payload.get("action") or {})
        return [{"type": "function_call", "call_id": call_id, "name": _BUILT_IN[kind], "arguments": arguments}]
    if kind == "message":
        return [{key: one for key, one in payload.items() if key != "type"}]
    if kind in ("function_call", "function_call_output", "custom_tool_call", "custom_tool_call_output", "reasoning"):
        return [dict(payload)]
    return []


FORMAT = Format(
    name=NAME,
    looks_like="Codex sessions: lines with `type`, `timestamp` and `payload`",
    can_read=can_read,
    recordings=by_value(recordings),
    rank=65,
)
