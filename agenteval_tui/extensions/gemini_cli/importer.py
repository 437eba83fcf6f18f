"""Gemini CLI's sessions (`~/.gemini/tmp/*/chats/session-*.json`): messages with their calls, thoughts and tokens."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agenteval_tui.agents.usage import UsageReader
from agenteval_tui.formats.importers.format import Format, run_per_value
from agenteval_tui.formats.importers.message_formats import as_list, objects_in, plain_text, value_at
from agenteval_tui.formats.importers.recording import Recording
from agenteval_tui.formats.importers.session_log import Session, session_recording
from agenteval_tui.transcripts.codec import content_text

NAME = "gemini-cli"


def can_read(value: Any) -> bool:
    """Whether a value of the file is a session."""
    return isinstance(value, Mapping) and "sessionId" in value and "projectHash" in value and "messages" in value


def _recording(value: Mapping[str, Any]) -> Recording:
    session = Session(plain_text(value.get("sessionId")), agent=NAME, source=[("", value)])
    for moment in (value.get("startTime"), value.get("lastUpdated")):
        session.saw(moment)
    session.usage = UsageReader()
    for message in objects_in(value.get("messages")):
        kind = message.get("type")
        session.saw(message.get("timestamp"))
        if kind == "user":
            session.messages.append({"role": "user", "content": content_text(message.get("content"))})
        elif kind == "gemini":
            session.messages += _answer(message)
            session.model = plain_text(message.get("model")) or session.model
            session.usage.add(message.get("tokens"))
        elif kind == "error":
            session.error = content_text(message.get("content")) or "an error"
    return session_recording(session)


def _answer(message: Mapping[str, Any]) -> list[dict[str, Any]]:
    calls = objects_in(message.get("toolCalls"))
    answer: dict[str, Any] = {"role": "assistant", "content": content_text(message.get("content"))}
    thoughts = [
        "\n".join(filter(None, (plain_text(thought.get("subject")), plain_text(thought.get("description")))))
        for thought in objects_in(message.get("thoughts"))
    ]
    if thoughts:
        answer["reasoning"] = "\n\n".join(thoughts)
    if calls:
        answer["tool_calls"] = [
            {"id": call.get("id"), "function": {"name": call.get("name"), "arguments": call.get("args")}}
            for call in calls
        ]
    return [answer, *(_result(call) for call in calls if call.get("result") is not None)]


def _result(call: Mapping[str, Any]) -> dict[str, Any]:
    """A tool's answer: the text in its function response, where there is one."""
    texts = []
    for part in as_list(call["result"]) or [call["result"]]:
        response = value_at(part, "functionResponse")
        inner = response.get("response") if isinstance(response, Mapping) else part
        if isinstance(inner, Mapping) and len(inner) == 1:
            inner = next(iter(inner.values()))
        texts.append(plain_text(inner))
    failed = call.get("status") in ("error", "cancelled")
    return {"role": "tool", "tool_call_id": call.get("id"), "content": "\n".join(texts), "is_error": failed}


FORMAT = Format(
    name=NAME,
    title="Gemini CLI sessions",
    looks_like="an object with `sessionId`, `projectHash` and `messages`",
    can_read=can_read,
    recordings=run_per_value(
        _recording, can_read=can_read, refusal="not a session: it has no `sessionId` and `messages`"
    ),
    rank=63,
)
