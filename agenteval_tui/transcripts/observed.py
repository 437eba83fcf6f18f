"""What a transcript can contain: which kinds of thing whoever made it could see.

A transcript without tool calls says two different things: that the agent made none, or that they weren't observed. Who
makes a transcript says with a note which kinds it could not see; nothing is judged by these.
"""

from __future__ import annotations

from typing import Literal

from msgspec.structs import replace

from agenteval_tui.core.numbers import count
from agenteval_tui.transcripts.model import Note, Transcript

ObservedKind = Literal["text", "tool_calls", "tool_results", "reasoning", "usage", "requests"]
KINDS: tuple[ObservedKind, ...] = ("text", "tool_calls", "tool_results", "reasoning", "usage", "requests")
SAID_ELSEWHERE = frozenset[ObservedKind](("usage", "requests"))
"""Kinds that a transcript has or has not, without a note that says so."""

TEXT_ONLY = "text_only"
NO_CALLS_OPTION = "no_calls_option"
NOTHING_AT_PATH = "nothing_at_path"
DUMPED = "dumped"
NOT_IN_STATE = "not_in_state"
NOTHING_PRINTED = "nothing_printed"
FORMAT_WITHOUT_CALLS = "format_without_calls"
UNREAD_CALLS = "unread_calls"
UNMATCHED_RESULT = "unmatched_result"
UNKNOWN_REQUESTS = "unknown_requests"
ASKED_PAST = "asked_past"

_CALLS: frozenset[ObservedKind] = frozenset(("tool_calls", "tool_results"))
_UNSEEN: dict[str, frozenset[ObservedKind]] = {
    TEXT_ONLY: _CALLS | {"reasoning"},
    NO_CALLS_OPTION: _CALLS,
    NOTHING_AT_PATH: _CALLS,
    FORMAT_WITHOUT_CALLS: _CALLS,
    DUMPED: _CALLS | {"text", "reasoning"},
    NOT_IN_STATE: frozenset(("text",)),
    NOTHING_PRINTED: frozenset(("text",)),
    "open_spans": _CALLS,
    "unrecorded": _CALLS,
    ASKED_PAST: _CALLS | {"requests"},
    UNREAD_CALLS: _CALLS,
    UNMATCHED_RESULT: _CALLS,
}
"""What was not seen, by the code of the note that says so."""
_NO_CALLS = (
    "audio",
    "citation",
    "compaction",
    "data-",
    "document",
    "file",
    "image",
    "input_",
    "output_",
    "reasoning",
    "redacted_thinking",
    "refusal",
    "source",
    "step-",
    "text",
    "thinking",
    "video",
)
"""How types of parts start that aren't tool calls."""
TOLD_BY_AGENT = frozenset((TEXT_ONLY, NO_CALLS_OPTION, NOTHING_AT_PATH, DUMPED, UNREAD_CALLS))
"""Codes that are about what an agent itself gives: they don't hold where its requests to models were captured."""


def may_be_call(kind: str) -> bool:
    """Whether a part of this type, which can't be read, may be a tool call."""
    return not kind.lower().startswith(_NO_CALLS)


def _is_type(name: str) -> bool:
    return " " not in name


def _missing(note: Note) -> frozenset[ObservedKind]:
    """What was not seen, by a note. Of something that an agent gave and that can't be read, the note says the type; of
    a message's parts (which have a place) another note says whether they may be calls."""
    if note.code == "unread" and not note.place:
        return _CALLS if _is_type(note.what) and may_be_call(note.what) else frozenset()
    return _UNSEEN.get(note.code, frozenset())


def unseen(transcript: Transcript, kinds: frozenset[ObservedKind]) -> tuple[ObservedKind, Note] | None:
    """Of these kinds, one that whoever made the transcript could not see, and the note that says why; None if all of
    them could be seen."""
    for note in transcript.notes:
        missing = _missing(note) & kinds
        if missing:
            return next(kind for kind in KINDS if kind in missing), note
    if "requests" in kinds and transcript.requests is None:
        return "requests", Note(UNKNOWN_REQUESTS, "")
    return None


def observes(transcript: Transcript) -> tuple[ObservedKind, ...]:
    """The kinds that the transcript could contain, in the order of `KINDS`. Usage is measured or not: it is among them
    if any figure is there. So are the requests to models, if they were recorded."""
    missing = frozenset[ObservedKind]().union(*map(_missing, transcript.notes))
    measured = bool(transcript.usage.counted_tokens) or transcript.usage.cost is not None
    has = {"usage": measured, "requests": transcript.requests is not None}
    return tuple(kind for kind in KINDS if has.get(kind, kind not in missing))


def may_call_in_words(transcript: Transcript, turns: int) -> bool:
    """Whether the agent may have called tools that its requests don't show as calls: models were offered none, and
    still asked more than once a turn, as agents ask that read calls in a text."""
    requests = transcript.requests
    if requests is None or transcript.tool_calls or any(requests.tools) or "tools" in requests.unrecorded:
        return False
    return sum(request.answer is not None for request in requests.references) > turns


def calls_phrase(transcript: Transcript) -> str:
    """How many tools the agent called: `3 tool calls`, `at least 3 tool calls`, `tool calls not known`."""
    calls = count(len(transcript.tool_calls), "tool call")
    if unseen(transcript, frozenset(("tool_calls",))) is None:
        return calls
    return f"at least {calls}" if transcript.tool_calls else "tool calls not known"


def without_calls(transcript: Transcript, format_name: str) -> Transcript:
    """A transcript of a file that has no place for tool calls, or leaves them out: it says so, unless some are there
    all the same."""
    if transcript.tool_calls:
        return transcript
    return replace(transcript, notes=(*transcript.notes, Note(FORMAT_WITHOUT_CALLS, format_name)))
