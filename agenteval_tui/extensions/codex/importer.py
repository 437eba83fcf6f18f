"""Codex' sessions (`~/.codex/sessions/.../rollout-*.jsonl`): items as the Responses API has them, and events; and what
`codex exec --json` prints, where an item is a message, or a call with its result.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from msgspec.structs import replace

from agenteval_tui.agents.models.hosted_calls import hosted_call
from agenteval_tui.agents.usage import UsageReader
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.formats.importers.format import Format, by_value
from agenteval_tui.formats.importers.message_formats import objects_in, plain_text
from agenteval_tui.formats.importers.recording import Recording, Skipped, skipped_element
from agenteval_tui.formats.importers.session_log import Session, SessionRequest, session_recording
from agenteval_tui.formats.stream.json_stream import BrokenElement, JsonElement
from agenteval_tui.transcripts.codec import content_text

NAME = "codex"
_KINDS = ("session_meta", "response_item", "event_msg", "turn_context", "compacted")
_BEGINS = ("thread.started", "session.created")
_PRINTED = (*_BEGINS, "turn.started", "turn.completed", "turn.failed", "item.started", "item.updated", "item.completed")


def can_read(value: Any) -> bool:
    """Whether a file's first value is a line of a session."""
    if not isinstance(value, Mapping):
        return False
    return value.get("type") in _PRINTED or (value.get("type") in _KINDS and isinstance(value.get("payload"), Mapping))


def recordings(elements: Iterable[JsonElement | BrokenElement]) -> Iterator[Recording | Skipped]:
    """A run for each session of the file."""
    session, tracker = Session("", agent=NAME), _Seen()
    printed: _Printed | None = None
    for element in elements:
        if isinstance(element, BrokenElement):
            yield skipped_element(element)
            continue
        line = element.value
        if isinstance(line, Mapping) and (line.get("type") in _PRINTED or (printed and line.get("type") == "error")):
            # Several sessions may be printed into one file.
            if printed is not None and line.get("type") in _BEGINS:
                yield from _ended(printed.whole())
                printed = None
            printed = printed or _Printed()
            printed.take(line)
            continue
        if not isinstance(line, Mapping) or not isinstance(line.get("payload"), Mapping):
            yield Skipped("not a line of a session: it has no `payload`", element.line)
            continue
        payload = line["payload"]
        # A head after messages begins another session; before them it only says the same again.
        if line.get("type") == "session_meta" and session.messages:
            yield from _ended(session, tracker)
            session, tracker = Session("", agent=NAME), _Seen()
        session.source.append((plain_text(line.get("type")), payload))
        session.saw(line.get("timestamp"))
        _take(session, tracker, plain_text(line.get("type")), payload)
    yield from _ended(session, tracker)
    if printed is not None:
        yield from _ended(printed.whole())


def _ended(session: Session, tracker: _Seen | None = None) -> Iterator[Recording | Skipped]:
    if tracker is not None:
        tracker.end()
        session.requests = tracker.requests
    if session.source:
        try:
            yield session_recording(session)
        except AgentevalError as error:
            yield Skipped(error.what, place=f"session {session.id[:60]}")


class _Seen:
    """What the model saw of a session, item by item, and the requests that came of it."""

    def __init__(self) -> None:
        self.requests: list[SessionRequest] | None = []
        self._seen: list[dict[str, Any]] = []
        self._answer: list[dict[str, Any]] = []
        self._usage: Mapping[str, Any] | None = None  # of the answer that is open
        self._total: object = None

    def counted(self, info: Mapping[str, Any]) -> None:
        """The tokens of the last request, and of all so far. They are told again when nothing was asked meanwhile."""
        last, total = info.get("last_token_usage"), info.get("total_token_usage")
        if not isinstance(last, Mapping) or total == self._total:
            return
        self._total = total
        if self._answer:
            self._usage = last
        # The count may come after the next item, which ended the answer.
        elif self.requests and self.requests[-1].usage is None:
            self.requests[-1] = replace(self.requests[-1], usage=last)

    def add(self, items: Iterable[dict[str, Any]]) -> None:
        """Items that were added to the conversation."""
        for item in items:
            if _is_of_model(item):
                self._answer.append(item)
            else:
                self.end()
                self._seen.append(item)

    def compacted(self, payload: Mapping[str, Any]) -> None:
        """Another history took the place of the conversation. Older logs have only its summary: from then on, what the
        model saw is not known."""
        self.end()
        history = payload.get("replacement_history")
        if not isinstance(history, list):
            self.requests = None
            return
        self._seen = [item for entry in objects_in(history) for item in _items(entry, 0)]

    def end(self) -> None:
        """The answer is whole."""
        if self._answer and self.requests is not None:
            self.requests.append(SessionRequest(tuple(self._seen), tuple(self._answer), self._usage))
        self._seen += self._answer
        self._answer, self._usage = [], None


def _is_of_model(item: Mapping[str, Any]) -> bool:
    kind = plain_text(item.get("type"))
    return item.get("role") == "assistant" or kind == "reasoning" or kind.endswith("_call")


def _take(session: Session, tracker: _Seen, kind: str, payload: Mapping[str, Any]) -> None:
    if kind == "session_meta":
        session.id = plain_text(payload.get("id"))
        instructions = payload.get("base_instructions") or payload.get("instructions")
        session.system = instructions.get("text") if isinstance(instructions, Mapping) else instructions
    elif kind == "turn_context":
        session.model = plain_text(payload.get("model")) or session.model
    elif kind == "event_msg":
        _event(session, tracker, payload)
    elif kind == "response_item":
        items = _items(payload, len(session.messages))
        session.messages += items
        tracker.add(items)
    elif kind == "compacted":
        tracker.compacted(payload)


def _event(session: Session, tracker: _Seen, payload: Mapping[str, Any]) -> None:
    if payload.get("type") == "token_count" and isinstance(payload.get("info"), Mapping):
        tracker.counted(payload["info"])
        total = payload["info"].get("total_token_usage")
        if isinstance(total, Mapping):
            # Each count is that of the whole session so far.
            session.usage = UsageReader()
            session.usage.add(total)
    elif payload.get("type") in ("error", "stream_error"):
        session.error = plain_text(payload.get("message")) or "an error"
    elif payload.get("type") == "task_complete":
        session.error = ""  # what broke before was tried again


def _items(payload: Mapping[str, Any], number: int) -> list[dict[str, Any]]:
    """The items that `message_formats` reads."""
    kind = plain_text(payload.get("type"))
    if (hosted := hosted_call(payload)) is not None and not hosted.result:  # what came back is told later, or never
        call_id = hosted.id or f"{hosted.name}_{number}"
        return [{"type": "function_call", "call_id": call_id, "name": hosted.name, "arguments": hosted.arguments}]
    if kind == "message":
        return [{key: value for key, value in payload.items() if key != "type"}]
    if kind.endswith(("_call", "_call_output")) or kind == "reasoning":
        return [dict(payload)]
    return []


class _Printed:
    """What `codex exec --json` prints of a session. An item is told when it starts and when it ends: the last telling
    counts, in the place of the first."""

    def __init__(self) -> None:
        self._session = Session("", agent=NAME)
        self._items: dict[tuple[int, str], Mapping[str, Any]] = {}
        self._turn = 0

    def take(self, line: Mapping[str, Any]) -> None:
        """One line of it."""
        session, kind = self._session, plain_text(line.get("type"))
        session.source.append(("", line))
        session.saw(line.get("timestamp"))
        if kind in _BEGINS:
            session.id = plain_text(line.get("thread_id") or line.get("session_id"))
        elif kind == "turn.started":
            self._turn += 1
        elif kind == "turn.completed":
            session.error = ""  # what broke before was tried again
            session.usage = UsageReader()
            session.usage.add(line.get("usage"))
        elif kind in ("turn.failed", "error"):
            error = line.get("error")
            message = error.get("message") if isinstance(error, Mapping) else line.get("message")
            session.error = plain_text(message) or "an error"
        elif isinstance(item := line.get("item"), Mapping):
            self._items[self._turn, plain_text(item.get("id")) or f"item {len(self._items)}"] = item

    def whole(self) -> Session:
        """The session."""
        for (turn, name), item in self._items.items():
            self._session.messages += _printed_item(item, f"{name}_{turn}", self._session.notes)
        return self._session


def _printed_item(item: Mapping[str, Any], call_id: str, notes: list[str]) -> list[dict[str, Any]]:
    """The messages that an item is. The tool of a call that names none is called as the item's type is."""
    kind = plain_text(item.get("type") or item.get("item_type"))
    if kind in ("agent_message", "assistant_message", "plan"):
        return [{"role": "assistant", "content": plain_text(item.get("text"))}]
    if kind == "reasoning":
        return [{"type": "reasoning", "summary": [plain_text(item.get("text"))]}]
    if kind == "error":
        notes.append(f"Codex told an error and went on: {plain_text(item.get('message'))}")
        return []
    if kind not in _GIVEN:
        return [{"role": "assistant", "content": [{"type": kind or "item", **item}]}]
    arguments = (
        item.get("arguments") if kind == "mcp_tool_call" else {key: item[key] for key in _GIVEN[kind] if key in item}
    )
    name = plain_text(item.get("tool")) or kind
    call = {"id": call_id, "function": {"name": name, "arguments": arguments}}
    messages: list[dict[str, Any]] = [{"role": "assistant", "content": "", "tool_calls": [call]}]
    status, error = item.get("status"), item.get("error")
    if status != "in_progress":
        failed = bool(error) or status in ("failed", "declined") or item.get("exit_code") not in (None, 0)
        output = error.get("message") if isinstance(error, Mapping) else _gave(item, kind)
        messages.append({"role": "tool", "tool_call_id": call_id, "content": plain_text(output), "is_error": failed})
    return messages


_GIVEN = {
    "command_execution": ("command",),
    "file_change": ("changes",),
    "mcp_tool_call": ("arguments",),
    "collab_tool_call": ("prompt", "receiver_thread_ids"),
    "web_search": ("query", "action"),
    "todo_list": ("items",),
}
"""What the call was made with, by the type of its item."""


def _gave(item: Mapping[str, Any], kind: str) -> object:
    """What came back of a call."""
    if kind == "command_execution":
        return item.get("aggregated_output")
    result = item.get("result")
    if isinstance(result, Mapping):
        return content_text(result.get("content")) or result.get("structured_content")
    return item.get("agents_states") if kind == "collab_tool_call" else result if result is not None else ""


FORMAT = Format(
    name=NAME,
    title="Codex sessions",
    looks_like="lines with `type`, `timestamp` and `payload`, or what `codex exec --json` prints",
    can_read=can_read,
    recordings=by_value(recordings),
    gathered=True,
    rank=65,
)
