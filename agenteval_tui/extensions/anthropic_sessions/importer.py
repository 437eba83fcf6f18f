"""Logs of Anthropic's managed agents: lines of `["client.beta.sessions.events.stream", {event}]`.

As LangSmith's client records them: a session's creation, what was sent, and the stream of its events.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from msgspec import field
from msgspec.structs import replace

from agenteval_tui.agents.usage import UsageReader
from agenteval_tui.formats.importers.format import Format, by_value
from agenteval_tui.formats.importers.message_formats import as_object, plain_text, transcript_of, with_attachments
from agenteval_tui.formats.importers.recording import Recording, Skipped, as_id, first_user_text, skipped_element
from agenteval_tui.formats.importers.session_log import Session
from agenteval_tui.formats.importers.usage_import import moment_ms, with_usage
from agenteval_tui.formats.stream.json_stream import BrokenElement, JsonElement
from agenteval_tui.transcripts.codec import content_text
from agenteval_tui.transcripts.model import RunError, Step, Timing, ToolCall

_CALLS = "client.beta.sessions."
_CREATED, _STREAMED = f"{_CALLS}create", f"{_CALLS}events.stream"


def can_read(value: Any) -> bool:
    """Whether a file's first value is the name of a call to the sessions' interface."""
    return isinstance(value, str) and value.startswith(_CALLS)


class _Session(Session):
    """What was seen of a session, with the times of the model's turns and of tools."""

    usage: UsageReader = field(default_factory=UsageReader)
    turns: dict[str, float] = field(default_factory=dict)  # when a model's unfinished turn started, by its id
    steps: list[Step] = field(default_factory=list)
    used: dict[str, list[float]] = field(default_factory=dict)  # when a tool was called, and when it answered


def recordings(elements: Iterable[JsonElement | BrokenElement]) -> Iterator[Recording | Skipped]:
    """A run for each session of the file."""
    session = _Session("")
    name: Any = None
    for element in elements:
        if isinstance(element, BrokenElement):
            yield skipped_element(element)
        elif isinstance(element.value, str):
            name = element.value
        elif isinstance(element.value, Mapping):
            if name == _CREATED:
                yield from _run(session)
                session = _created(element.value)
                session.source.append(("create", element.value))
            else:
                if name == _STREAMED:
                    _take(session, element.value)
                session.source.append((name.removeprefix(_CALLS) if isinstance(name, str) else "", element.value))
    yield from _run(session)


def _created(event: Mapping[str, Any]) -> _Session:
    agent = as_object(event.get("agent"))
    model = agent.get("model")
    named = model.get("id") if isinstance(model, Mapping) else model
    return _Session(plain_text(event.get("id")), plain_text(agent.get("name")), plain_text(named), agent.get("system"))


def _take(session: _Session, event: Mapping[str, Any]) -> None:
    who, _, what = plain_text(event.get("type")).partition(".")
    content = event.get("content")
    moment = moment_ms(event.get("processed_at"))
    if moment is not None:
        session.saw(event["processed_at"])
        _time(session, plain_text(event.get("id")), what, event, moment)
    if what == "message" and who in ("user", "agent"):
        role = "user" if who == "user" else "assistant"
        session.messages.append(with_attachments({"role": role, "content": content_text(content)}, content))
    elif who == "agent" and what == "thinking" and content:
        session.messages.append({"type": "reasoning", "summary": content})
    elif who == "agent" and what.endswith("tool_use"):
        call = {"call_id": event.get("id"), "name": event.get("name"), "arguments": event.get("input")}
        session.messages.append({"type": "function_call", **call})
    elif what.endswith("tool_result"):
        answer = {"role": "tool", "tool_call_id": _answered(event), "content": content_text(content)}
        session.messages.append(with_attachments({**answer, "is_error": bool(event.get("is_error"))}, content))
    elif what == "model_request_end":
        session.usage.add(event.get("model_usage"))
    elif what == "error":
        error = event.get("error")
        session.error = plain_text(error.get("message") if isinstance(error, Mapping) else error) or "an error"
    elif what == "status_idle" and isinstance(event.get("stop_reason"), Mapping):
        session.finish_reason = plain_text(event["stop_reason"].get("type"))


def _time(session: _Session, event_id: str, what: str, event: Mapping[str, Any], moment: float) -> None:
    """Times of the model's turns and of tools, out of the events that they begin and end with."""
    if what == "model_request_start":
        session.turns[event_id] = moment
    elif what == "model_request_end":
        started = session.turns.pop(plain_text(event.get("model_request_start_id")), None)
        if started is not None and session.began is not None:
            session.steps.append(Step(session.model or "model", started - session.began, max(0.0, moment - started)))
    elif what.endswith("tool_use"):
        session.used[event_id] = [moment]
    elif what.endswith("tool_result"):
        session.used.get(_answered(event), []).append(moment)


def _answered(event: Mapping[str, Any]) -> str:
    """The id of the call that a tool's result answers."""
    keys = ("tool_use_id", "mcp_tool_use_id", "custom_tool_use_id")
    return plain_text(next((event[key] for key in keys if event.get(key)), None))


def _timed(call: ToolCall, session: _Session) -> ToolCall:
    times = session.used.get(call.id)
    if not times or session.began is None:
        return call
    duration = max(0.0, times[1] - times[0]) if len(times) > 1 else None
    return replace(call, started_ms=times[0] - session.began, duration_ms=duration)


def _run(session: _Session) -> Iterator[Recording | Skipped]:
    if not session.id and not session.messages:
        return
    if (
        not any(message.get("role") == "assistant" or "call_id" in message for message in session.messages)
        and not session.error
    ):
        yield Skipped("the agent says nothing in this session", place=session.id)
        return
    transcript = transcript_of(session.messages, system=session.system)
    total = None if session.began is None or session.ended is None else session.ended - session.began
    transcript = replace(
        with_usage(transcript, session.usage),
        tool_calls=tuple(_timed(call, session) for call in transcript.tool_calls),
        timing=Timing(total_ms=total, steps=tuple(session.steps)),
        model=session.model,
        finish_reason=session.finish_reason,
        error=RunError.told("anthropic", session.error) if session.error else None,
    )
    name = session.id or "session"
    yield Recording(
        test_id=as_id(name),
        test_name=f"{session.agent} {name}".strip(),
        transcript=transcript,
        prompt=first_user_text(transcript),
        agent=session.agent or session.model,
        started_ms=session.began,
        source=tuple(session.source),
    )


FORMAT = Format(
    name="anthropic-sessions",
    title="logs of Anthropic's managed agents",
    looks_like='lines of `["client.beta.sessions...", {...}]`',
    can_read=can_read,
    recordings=by_value(recordings),
    gathered=True,
    rank=70,
)
