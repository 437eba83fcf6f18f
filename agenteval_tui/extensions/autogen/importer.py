"""AutoGen's messages and events: lines, a list, or an object with `messages`, each with `source` and `type`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from agenteval_tui.agents.usage import UsageReader
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.formats.importers.format import Format, by_value
from agenteval_tui.formats.importers.message_formats import as_object, objects_in, plain_text, with_attachments
from agenteval_tui.formats.importers.recording import Recording, Skipped, skipped_element, with_unread
from agenteval_tui.formats.importers.session_log import Session, session_recording
from agenteval_tui.formats.stream.json_stream import BrokenElement, JsonElement
from agenteval_tui.transcripts.codec import content_text

NAME = "autogen"
_TYPES = frozenset(
    {
        "TextMessage",
        "MultiModalMessage",
        "StopMessage",
        "HandoffMessage",
        "ToolCallRequestEvent",
        "ToolCallExecutionEvent",
        "ToolCallSummaryMessage",
        "ThoughtEvent",
        "MemoryQueryEvent",
        "UserInputRequestedEvent",
        "ModelClientStreamingChunkEvent",
        "StructuredMessage",
        "CodeGenerationEvent",
        "CodeExecutionEvent",
        "SelectSpeakerEvent",
        "UserMessage",
        "AssistantMessage",
        "SystemMessage",
        "FunctionExecutionResultMessage",
    }
)
_NOT_SAID = ("ModelClientStreamingChunkEvent", "UserInputRequestedEvent", "SelectSpeakerEvent")


def can_read(value: Any) -> bool:
    """Whether a file's first value is a message, a list of messages, or an object with messages."""
    if isinstance(value, list):
        return bool(value) and _is_message(value[0])
    if not isinstance(value, Mapping):
        return False
    messages = value.get("messages")
    return _is_message(value) or (isinstance(messages, list) and bool(messages) and _is_message(messages[0]))


def _is_message(value: Any) -> bool:
    kind = as_object(value).get("type")
    return isinstance(kind, str) and kind in _TYPES and "content" in value


def recordings(elements: Iterable[JsonElement | BrokenElement]) -> Iterator[Recording | Skipped]:
    """A run for each object or list; messages that follow one another are one run."""
    loose: list[Any] = []
    number = 0
    lost = ""
    for element in elements:
        if isinstance(element, BrokenElement):
            skipped = skipped_element(element)
            lost = lost or (skipped.reason if skipped.unread else "")
            yield skipped
        elif isinstance(element.value, list):
            number += 1
            yield _run(element.value, {}, number, element.line)
        elif isinstance(element.value, Mapping) and isinstance(element.value.get("messages"), list):
            number += 1
            yield _run(element.value["messages"], element.value, number, element.line)
        elif _is_message(element.value):
            loose.append(element.value)
        else:
            yield Skipped("not a message of AutoGen: it has no `type` and `content`", element.line)
    if loose:
        run = _run(loose, {}, number + 1, 1)
        yield with_unread(run, lost) if lost and isinstance(run, Recording) else run


def _run(messages: list[Any], about: Mapping[str, Any], number: int, line: int) -> Recording | Skipped:
    session = Session(f"conversation-{number}", agent=NAME)
    session.source = [("", about)] if about else [("[]", message) for message in messages]
    session.finish_reason = plain_text(about.get("stop_reason"))
    session.usage, thought = UsageReader(), ""
    for message in messages:
        if not isinstance(message, Mapping):
            return Skipped("a message is not an object", line)
        session.usage.add(message.get("models_usage"))
        session.saw(message.get("created_at"))
        if message.get("type") == "ThoughtEvent":
            thought = content_text(message.get("content"))
            continue
        for entry in _messages(message):
            if thought and entry["role"] == "assistant":
                entry, thought = {**entry, "reasoning": thought}, ""
            session.messages.append(entry)
    try:
        return session_recording(session)
    except AgentevalError as error:
        return Skipped(error.what, line)


def _messages(message: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    kind, content = plain_text(message.get("type")), message.get("content")
    source = plain_text(message.get("source"))
    results = [entry for entry in objects_in(content) if "call_id" in entry]
    calls = [entry for entry in objects_in(content) if "arguments" in entry]
    thought = message.get("thought")
    more = {"reasoning": content_text(thought)} if thought else {}
    if results:
        for result in results:
            answer: dict[str, Any] = {
                "role": "tool",
                "tool_call_id": result.get("call_id"),
                "content": content_text(result.get("content")),
            }
            answer |= {"name": result.get("name"), "is_error": result.get("is_error") is True}
            yield with_attachments(answer, result.get("content"))
    elif calls:
        tool_calls = [
            {"id": call.get("id"), "function": {"name": call.get("name"), "arguments": call.get("arguments")}}
            for call in calls
        ]
        yield {"role": "assistant", "content": "", "tool_calls": tool_calls, "name": source, **more}
    elif kind == "SystemMessage":
        yield {"role": "system", "content": content_text(content)}
    elif kind == "UserMessage" or (source.casefold() in ("user", "human") and kind != "AssistantMessage"):
        yield with_attachments({"role": "user", "content": content_text(content)}, content)
    elif kind not in _NOT_SAID:
        turn = {"role": "assistant", "content": content_text(content), "name": source, **more}
        yield with_attachments(turn, content)


FORMAT = Format(
    name=NAME,
    title="AutoGen messages",
    looks_like="objects with `source`, `type` (TextMessage, ...) and `content`",
    can_read=can_read,
    recordings=by_value(recordings),
    rank=95,
)
