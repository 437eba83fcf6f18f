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
    session.usage.add({
        "input_tokens": _sum(value.get("input_token_count")), "output_tokens": _sum(value.get("output_token_count"))
    })  # fmt: skip
    found = session_recording(session)
    if not found.transcript.tool_calls and _WRITTEN.match(found.transcript.final_output):
        note = Note("unread_calls", "they are written as a text")
        found = replace(found, transcript=replace(found.transcript, notes=(*found.transcript.notes, note)))
    seconds = _sum(value.get("latency"))
    timing = replace(found.transcript.timing, total_ms=None if seconds is None else seconds * 1000)
    return replace(found, test_name=session.id, transcript=replace(found.transcript, timing=timing))


def _answers(result: Any) -> Iterator[dict[str, Any]]:
    """One answer, or for several turns a list of turns, each a list of steps."""
    if isinstance(result, str):
        yield {"role": "assistant", "content": result}
    elif all(isinstance(one, Mapping) for one in as_list(result)):
        yield {
            "role": "assistant",
            "content": "",
            "tool_calls": [_call(one, name) for one in as_list(result) for name in one],
        }
    else:
        for one in as_list(result):
            yield from _answers(one)


def _call(given: Mapping[str, Any], name: str) -> dict[str, Any]:
    return {"id": None, "function": {"name": name, "arguments": given[name]}}


def _sum(value: Any) -> float | None:
    """A figure, or that of all turns and steps."""
    if isinstance(value, list):
        known = [one for one in map(_sum, value) if one is not None]
        return sum(known) if known else None
    return number(value)


FORMAT = Format(
    name=NAME,
    looks_like="BFCL results: lines with `id`, `result` and `input_token_count`",
    can_read=can_read,
    recordings=run_per_value(_recording, can_read=can_read, refusal="not a result: it has no `id` and `result`"),
    rank=67,
)
