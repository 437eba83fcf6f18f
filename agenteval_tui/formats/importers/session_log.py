"""A session that a coding agent logged: what its importers gather of it, and the run that comes of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from agenteval_tui.agents.recording.conversation import Asked
from agenteval_tui.agents.recording.imported_requests import asked_in, with_requests
from agenteval_tui.agents.usage import UsageReader
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.formats.importers.message_formats import transcript_of
from agenteval_tui.formats.importers.recording import Recording, as_id, first_user_text
from agenteval_tui.formats.importers.traced_requests import as_asked
from agenteval_tui.formats.importers.usage_import import moment_ms, with_usage
from agenteval_tui.transcripts.model import RunError
from agenteval_tui.transcripts.model_request import RequestPart

_TITLE = 80


class SessionRequest(Struct, frozen=True):
    """What a model was asked: `messages` in any dialect, and the `answer` that followed, as one or several. `usage`: of
    this request, in any dialect."""

    messages: tuple[dict[str, Any], ...]
    answer: tuple[dict[str, Any], ...]
    usage: Mapping[str, Any] | None = None


class Session(Struct):
    """What was seen of a session. `messages` are in any dialect that `message_formats` knows; `usage` is that of the
    whole session, where the log has one."""

    id: str
    agent: str = ""
    model: str = ""
    system: Any = None
    messages: list[dict[str, Any]] = field(default_factory=list)
    usage: UsageReader | None = None
    error: str = ""
    finish_reason: str = ""
    began: float | None = None
    ended: float | None = None
    took_ms: float | None = None
    """How long it took, where the log says it."""
    source: list[tuple[str, Any]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    requests: list[SessionRequest] | None = None
    """What models were asked, as far as a log has it: without system prompts unless `system` is one, without tools and
    parameters. None: it is not known."""

    def saw(self, moment: Any) -> None:
        """An event happened at this moment, an ISO date and time."""
        self.saw_ms(moment_ms(moment))

    def saw_ms(self, at: float | None) -> None:
        """An event happened at this moment, milliseconds since 1970; None: at one that is not known."""
        # Logs are not always in order: parallel calls end as they like.
        if at is not None:
            self.began = at if self.began is None else min(self.began, at)
            self.ended = at if self.ended is None else max(self.ended, at)


def session_recording(session: Session, source: Sequence[tuple[str, Any]] = (), *, ours: bool = False) -> Recording:
    """The run that a session is. Raises `AgentevalError` when the agent says nothing in it, unless it is a run of this
    program that comes back."""
    notes = list(session.notes)
    transcript = transcript_of(session.messages, system=session.system, notes=notes)
    if not ours and not session.error and not any(message.role == "assistant" for message in transcript.messages):
        raise AgentevalError("the agent says nothing in this session")
    total = session.took_ms
    if total is None and session.began is not None and session.ended is not None:
        total = session.ended - session.began
    transcript = replace(
        transcript,
        model=transcript.model or session.model,
        timing=replace(transcript.timing, total_ms=total),
        finish_reason=session.finish_reason or transcript.finish_reason,
        error=RunError.told(session.agent or "session", session.error[:20_000]) if session.error else None,
    )
    if session.usage is not None:
        transcript = with_usage(transcript, session.usage)
    if session.requests:
        transcript = with_requests(transcript, _asked(session))
    prompt = next(
        (message.content for message in transcript.messages if message.role == "user" and message.name is None), ""
    )
    prompt = prompt or first_user_text(transcript)
    return Recording(
        test_id=as_id(session.id or "session"),
        test_name=" ".join(prompt.split())[:_TITLE] or session.id or "session",
        transcript=transcript,
        prompt=prompt,
        agent=session.agent or transcript.model,
        started_ms=session.began,
        notes=tuple(notes),
        source=tuple(source or session.source),
    )


def _asked(session: Session) -> Iterator[Asked | None]:
    prompt = as_asked([{"role": "system", "content": session.system}] if session.system else []) or []
    unrecorded: tuple[RequestPart, ...] = ("tools", "parameters") if prompt else ("system", "tools", "parameters")
    read: dict[int, list[dict[str, Any]] | None] = {}  # each message once: it is in all later requests
    for number, session_request in enumerate(session.requests or ()):
        listed = [
            read[id(message)] if id(message) in read else read.setdefault(id(message), as_asked([message]))
            for message in session_request.messages
            if message.get("type") != "reasoning"
        ]
        conversation = None if None in listed else [message for messages in listed for message in messages or ()]
        yield asked_in(
            None if conversation is None else [*prompt, *conversation],
            as_asked(session_request.answer),
            number=number,
            model=session.model,
            unrecorded=unrecorded,
            usage=session_request.usage,
        )
