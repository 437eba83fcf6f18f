"""A session that a coding agent logged: what its importers gather of it, and the run that comes of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from agenteval_tui.agents.usage import UsageReader
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.formats.importers.message_formats import transcript_of
from agenteval_tui.formats.importers.recording import Recording, as_id, first_user_text
from agenteval_tui.formats.importers.usage_import import moment_ms, with_usage
from agenteval_tui.transcripts.model import RunError

_TITLE = 80


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
    began: float | None = None
    ended: float | None = None
    took_ms: float | None = None
    """How long it took, where the log says it."""
    source: list[tuple[str, Any]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def saw(self, moment: Any) -> None:
        """An event happened at this moment (ISO, or a number)."""
        at = moment_ms(moment)
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
        error=RunError.told(session.agent or "session", session.error[:20_000]) if session.error else None,
    )
    if session.usage is not None:
        transcript = with_usage(transcript, session.usage)
    asked = next((one.content for one in transcript.messages if one.role == "user" and one.name is None), "")
    asked = asked or first_user_text(transcript)
    return Recording(
        test_id=as_id(session.id or "session"),
        test_name=" ".join(asked.split())[:_TITLE] or session.id or "session",
        transcript=transcript,
        prompt=asked,
        agent=session.agent or transcript.model,
        started_ms=session.began,
        notes=tuple(notes),
        source=tuple(source or session.source),
    )
