"""Logs of Anthropic's managed agents: lines of `["client.beta.sessions.events.stream", {event}]`.

As LangSmith's client records them: a session's creation, what was sent, and the stream of its events.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from agenteval_tui.exchange.foreign_usage import added, usage_from
from agenteval_tui.exchange.json_stream import Broken, Item
from agenteval_tui.exchange.message_dialects import plain_text, transcript_of
from agenteval_tui.exchange.recorded import Recording, Skipped, as_id, first_user_text
from agenteval_tui.transcripts.codec import content_text
from agenteval_tui.transcripts.model import RunError, Usage

NAME = "anthropic-sessions"
LOOKS_LIKE = 'logs of Anthropic\'s managed agents: lines of `["client.beta.sessions...", {...}]`'

_CALLS = "client.beta.sessions."
_CREATED, _STREAMED = f"{_CALLS}create", f"{_CALLS}events.stream"


def fits(value: Any) -> bool:
    """Whether a file's first value is the name of a call to the sessions' interface."""
    return isinstance(value, str) and value.startswith(_CALLS)


@dataclass(slots=True)
class _Session:
    """What was seen of a session."""

    id: str = ""
    agent: str = ""
    model: str = ""
    system: Any = None
    messages: list[dict[str, Any]] = field(default_factory=list)
    usage: Usage = field(default_factory=Usage)
    finish_reason: str = ""
    error: str = ""


def recordings(found: Iterable[Item | Broken]) -> Iterator[Recording | Skipped]:
    """A run for each session of the file."""
    session = _Session()
    name: Any = None
    for one in found:
        if isinstance(one, Broken):
            yield Skipped(one.reason, one.line, one.cut_off, counts=not one.note)
        elif isinstance(one.value, str):
            name = one.value
        elif isinstance(one.value, Mapping):
            if name == _CREATED:
                yield from _run(session)
                session = _created(one.value)
            elif name == _STREAMED:
                _take(session, one.value)
    yield from _run(session)


def _created(given: Mapping[str, Any]) -> _Session:
    agent = given["agent"] if isinstance(given.get("agent"), Mapping) else {}
    model = agent.get("model")
    named = model.get("id") if isinstance(model, Mapping) else model
    return _Session(plain_text(given.get("id")), plain_text(agent.get("name")), plain_text(named), agent.get("system"))


def _take(session: _Session, event: Mapping[str, Any]) -> None:
    who, _, what = plain_text(event.get("type")).partition(".")
    content = event.get("content")
    if what == "message" and who in ("user", "agent"):
        role = "user" if who == "user" else "assistant"
        session.messages.append({"role": role, "content": content_text(content)})
    elif who == "agent" and what == "thinking" and content:
        session.messages.append({"type": "reasoning", "summary": content})
    elif who == "agent" and what.endswith("tool_use"):
        call = {"call_id": event.get("id"), "name": event.get("name"), "arguments": event.get("input")}
        session.messages.append({"type": "function_call", **call})
    elif what.endswith("tool_result"):
        answered = event.get("tool_use_id") or event.get("mcp_tool_use_id") or event.get("custom_tool_use_id")
        answer = {"role": "tool", "tool_call_id": answered, "content": content_text(content)}
        session.messages.append({**answer, "is_error": bool(event.get("is_error"))})
    elif what == "model_request_end":
        session.usage = added(session.usage, usage_from(event.get("model_usage"), input_excludes_cache=True))
    elif what == "error":
        error = event.get("error")
        session.error = plain_text(error.get("message") if isinstance(error, Mapping) else error) or "an error"
    elif what == "status_idle" and isinstance(event.get("stop_reason"), Mapping):
        session.finish_reason = plain_text(event["stop_reason"].get("type"))


def _run(session: _Session) -> Iterator[Recording | Skipped]:
    if not session.id and not session.messages:
        return
    if not any(one.get("role") == "assistant" or "call_id" in one for one in session.messages) and not session.error:
        yield Skipped("the agent says nothing in this session", place=session.id)
        return
    transcript = replace(
        transcript_of(session.messages, system=session.system),
        usage=session.usage,
        model=session.model,
        finish_reason=session.finish_reason,
        error=RunError("anthropic", session.error) if session.error else None,
    )
    name = session.id or "session"
    yield Recording(
        test_id=as_id(name),
        test_name=f"{session.agent} {name}".strip(),
        transcript=transcript,
        prompt=first_user_text(transcript),
        agent=session.agent or session.model,
    )
