"""BFCL, the Berkeley function calling leaderboard: results of models (`id`, `result`), and its questions as tests."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from msgspec.structs import replace

from agenteval_tui.agents.usage import UsageReader
from agenteval_tui.formats.importers.format import Format, run_per_value
from agenteval_tui.formats.importers.message_formats import as_list, plain_text
from agenteval_tui.formats.importers.recording import Recording
from agenteval_tui.formats.importers.session_log import Session, session_recording
from agenteval_tui.formats.importers.usage_import import number
from agenteval_tui.transcripts.model import Note

NAME = "bfcl"
_WRITTEN = re.compile(r"\s*(```\w*\s*)?\[?\s*[A-Za-z_][\w.]*\(")
"""A model that was prompted for calls, and not given tools, writes them: `[name(argument=1)]`."""


def can_read(value: Any) -> bool:
    """Whether a value of the file is a model's result."""
    return isinstance(value, Mapping) and "id" in value and "result" in value and "input_token_count" in value


def _recording(value: Mapping[str, Any]) -> Recording:
    session = Session(plain_text(value["id"]), agent=plain_text(value.get("model_name")) or NAME, source=[("", value)])
    session.messages = list(_answers(value["result"]))
    session.usage = UsageReader()
    session.usage.add(
        {"input_tokens": _sum(value.get("input_token_count")), "output_tokens": _sum(value.get("output_token_count"))}
    )
    seconds = _sum(value.get("latency"))
    session.took_ms = None if seconds is None else seconds * 1000
    recording = session_recording(session)
    if not recording.transcript.tool_calls and _WRITTEN.match(recording.transcript.final_output):
        note = Note("unread_calls", "they are written as a text")
        recording = replace(
            recording, transcript=replace(recording.transcript, notes=(*recording.transcript.notes, note))
        )
    return replace(recording, test_name=session.id)


def _answers(result: Any) -> Iterator[dict[str, Any]]:
    """One answer, or for several turns a list of turns, each a list of steps."""
    if isinstance(result, str):
        yield {"role": "assistant", "content": result}
    elif all(isinstance(item, Mapping) for item in as_list(result)):
        yield {
            "role": "assistant",
            "content": "",
            "tool_calls": [_call(item, name) for item in as_list(result) for name in item],
        }
    else:
        for item in as_list(result):
            yield from _answers(item)


def _call(call: Mapping[str, Any], name: str) -> dict[str, Any]:
    return {"id": None, "function": {"name": name, "arguments": call[name]}}


def _sum(value: Any) -> float | None:
    """A figure, or that of all turns and steps."""
    if isinstance(value, list):
        figures = [figure for figure in map(_sum, value) if figure is not None]
        return sum(figures) if figures else None
    return number(value)


FORMAT = Format(
    name=NAME,
    title="BFCL results",
    looks_like="lines with `id`, `result` and `input_token_count`",
    can_read=can_read,
    recordings=run_per_value(_recording, can_read=can_read, refusal="not a result: it has no `id` and `result`"),
    rank=67,
)
