"""Claude Code's sessions (`~/.claude/projects/*/SESSION.jsonl`): a line an event, messages as Anthropic's API has them.

An answer that came in pieces is several lines with the same message id; each piece repeats the usage so far.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.formats.importers.format import Format, by_value
from agenteval_tui.formats.importers.message_formats import plain_text
from agenteval_tui.formats.importers.recording import Recording, Skipped, skipped_element
from agenteval_tui.formats.importers.session_log import Session, session_recording
from agenteval_tui.formats.stream.json_stream import BrokenElement, JsonElement

NAME = "claude-code"
_SAID = ("user", "assistant")
_ABOUT = ("summary", "system", "file-history-snapshot", "queue-operation", "progress", "custom-title", "ai-title")


def can_read(value: Any) -> bool:
    """Whether a file's first value is an event of a session."""
    if not isinstance(value, Mapping):
        return False
    kind = value.get("type")
    if kind in _SAID:
        return "sessionId" in value and isinstance(value.get("message"), Mapping)
    return kind in _ABOUT and bool(value.keys() & {"sessionId", "leafUuid", "messageId"})


def recordings(elements: Iterable[JsonElement | BrokenElement]) -> Iterator[Recording | Skipped]:
    """A run for each session of the file; what an agent gave to an agent below it is a run of its own."""
    sessions: dict[str, Session] = {}
    before: list[Mapping[str, Any]] = []  # what stands before the first event that names its session
    for element in elements:
        if isinstance(element, BrokenElement):
            yield skipped_element(element)
            continue
        event = element.value
        if not isinstance(event, Mapping):
            yield Skipped("not an event: it is not an object", element.line)
            continue
        name = plain_text(event.get("sessionId")) or next(iter(sessions), "")
        if not name:
            before.append(event)
            continue
        if event.get("isSidechain") is True:
            name = f"{name} {plain_text(event.get('agentId')) or 'sidechain'}"
        session = sessions.setdefault(name, Session(name, agent=NAME))
        session.source += [(plain_text(one.get("type")), one) for one in before]
        before.clear()
        session.source.append((plain_text(event.get("type")), event))
        session.saw(event.get("timestamp"))
        if event.get("type") in _SAID and isinstance(event.get("message"), Mapping):
            _take(session, event)
    for session in sessions.values():
        try:
            yield session_recording(session)
        except AgentevalError as error:
            yield Skipped(error.what, place=f"session {session.id[:60]}")


def _take(session: Session, event: Mapping[str, Any]) -> None:
    message = dict(event["message"])
    before = session.messages[-1] if session.messages else None
    if event.get("isMeta") is True or event.get("isCompactSummary") is True:
        message["name"] = "claude-code"
    together = before is not None and message.get("id") is not None and before.get("id") == message["id"]
    if together and before is not None:
        blocks = [*_blocks(before.get("content")), *_blocks(message.get("content"))]
        kept = {key: one for key, one in message.items() if one is not None}
        session.messages[-1] = {**before, **kept, "content": blocks}  # the usage is that of the whole answer so far
    else:
        session.messages.append(message)
    if event.get("isApiErrorMessage") is True:
        session.error = plain_text(event.get("error")) or "the request failed"


def _blocks(content: Any) -> list[Any]:
    if isinstance(content, list):
        return content
    return [{"type": "text", "text": content}] if content else []


FORMAT = Format(
    name=NAME,
    looks_like="Claude Code sessions: lines with `type`, `sessionId` and `message`",
    can_read=can_read,
    recordings=by_value(recordings),
    rank=64,
)
