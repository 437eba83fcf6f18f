"""A new criterion from what Inspect shows: a selection, a found text, the tool call under the cursor, or all calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from agenteval_tui.grading.criterion_templates import Starter, text_starter, tools_starter
from agenteval_tui.transcripts.model import ToolCall, Transcript
from agenteval_tui.tui.widgets.transcript_view import TranscriptView

LONGEST = 400
"""Characters of a text that a criterion may want: a whole answer is no criterion."""


def starter_at(view: TranscriptView, found: str) -> Starter | None:
    """What is selected with the mouse, else the call under the cursor, else `found` (what is searched for), else the
    message under the cursor; None when that is nothing, or too long."""
    key = view.cursor_key
    selection = view.text_selection
    if selection is not None and (text := (view.get_selection(selection) or ("", ""))[0].strip()):
        return text_starter(text) if len(text) <= LONGEST else None
    if key is not None and key[0] in ("call", "result"):
        calls = view.transcript.tool_calls
        return tools_starter(_expected([calls[key[1]]])) if key[1] < len(calls) else None
    text = found.strip()
    if not text and key is not None and key[0] == "message":
        message = view.transcript.messages[key[1]]
        text = message.content.strip() if message.role == "assistant" else ""
    return text_starter(text) if text and len(text) <= LONGEST else None


def starter_of_calls(transcript: Transcript) -> Starter | None:
    """All calls that went well, each once; None when there are none."""
    wanted = _expected([one for one in transcript.tool_calls if one.status == "ok" and not one.malformed])
    once = [one for place, one in enumerate(wanted) if one not in wanted[:place]]
    return tools_starter(once) if once else None


def _expected(calls: Sequence[ToolCall]) -> list[tuple[str, Mapping[str, object]]]:
    return [(one.name, one.arguments if isinstance(one.arguments, Mapping) else {}) for one in calls]
