"""Figures of foreign transcripts that can't be so: tokens below zero, a time that is an object, a cost that is a text.

Each is left out by itself, and a note says which: nothing else of the run is wrong because of it.
"""

from __future__ import annotations

import math
from typing import Any

from msgspec.structs import replace

from agenteval_tui.transcripts.model import Note, Step, Timing, ToolCall, Transcript, Usage

MOST_TOKENS = 1_000_000_000_000
MOST_DOLLARS = 1_000_000.0
MOST_MS = 3_200_000_000_000.0
"""A hundred years. A tool call may begin before its run, but not by more."""
LEFT_OUT = "figure"
"""The code of the note on a figure."""
_SHOWN = 40
_TOKENS = tuple(name for name in Usage.__struct_fields__ if name != "cost")


def _tokens_in(value: object) -> int | None:
    """A number of tokens; None for what can't be one: negative, no number, broken, or larger than any model reads."""
    number = _within(value, 0, MOST_TOKENS)
    return int(number) if number is not None and number.is_integer() else None


def _dollars_in(value: object) -> float | None:
    """A cost in US dollars; None for what can't be one."""
    return _within(value, 0, MOST_DOLLARS)


def duration_in(value: object) -> float | None:
    """A length of time in milliseconds; None for what can't be one."""
    return _within(value, 0, MOST_MS)


def _moment_in(value: object) -> float | None:
    """Milliseconds since the run's start, before it too; None for what can't be so."""
    return _within(value, -MOST_MS, MOST_MS)


def _within(value: object, least: float, most: float) -> float | None:
    """The number; None for anything else, and outside these limits, which not-a-number always is."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if least <= value <= most else None


def shown_figure(value: object) -> str:
    """A figure that was not accepted, in a few characters."""
    if isinstance(value, float) and math.isnan(value):
        return "not a number"
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > 10**30:
        return "a number of more than 30 digits"  # to write all of them may be forbidden
    return repr(value)[:_SHOWN]


def with_possible_figures(transcript: Transcript) -> Transcript:
    """The transcript without the figures that can't be so, each named in a note; the same object if all can be."""
    left_out: dict[str, Any] = {}
    usage = _usage(transcript.usage, "usage", left_out)
    user_usage = _usage(transcript.user_usage, "user_usage", left_out)
    timing = _timing(transcript.timing, left_out)
    calls = tuple([_call(call, left_out) for call in transcript.tool_calls])
    if not left_out:
        return transcript
    notes = [Note(LEFT_OUT, shown_figure(value), name) for name, value in left_out.items()]
    return replace(
        transcript,
        usage=usage,
        user_usage=user_usage,
        timing=timing,
        tool_calls=calls,
        notes=(*transcript.notes, *(note for note in notes if note not in transcript.notes)),
    )


def _usage(usage: Usage, place: str, left_out: dict[str, Any]) -> Usage:
    changed: dict[str, Any] = {}
    for name in _TOKENS:
        value = getattr(usage, name)
        if value is not None and (value.__class__ is not int or not 0 <= value <= MOST_TOKENS):
            changed[name] = _tokens_in(value)
    if usage.cost is not None and (cost := _dollars_in(usage.cost)) != usage.cost:
        changed["cost"] = cost
    if not changed:
        return usage
    left_out.update({f"{place}.{name}": getattr(usage, name) for name, value in changed.items() if value is None})
    return replace(usage, **changed)


def _timing(timing: Timing, left_out: dict[str, Any]) -> Timing:
    changed: dict[str, Any] = {}
    for name in ("first_token_ms", "total_ms"):
        value = getattr(timing, name)
        if value is not None and duration_in(value) is None:
            left_out[f"timing.{name}"] = value
            changed[name] = None
    steps = [step for step in timing.steps if _is_possible(step, left_out)]
    if len(steps) != len(timing.steps):
        changed["steps"] = tuple(steps)
    return replace(timing, **changed) if changed else timing


def _is_possible(step: Step, left_out: dict[str, Any]) -> bool:
    for name, value in (
        ("started_ms", _moment_in(step.started_ms)),
        ("duration_ms", duration_in(step.duration_ms)),
    ):
        if value is None:
            left_out.setdefault(f"timing.steps.{name}", getattr(step, name))
            return False
    return True


def _call(call: ToolCall, left_out: dict[str, Any]) -> ToolCall:
    changed: dict[str, Any] = {}
    for name, read in (("started_ms", _moment_in), ("duration_ms", duration_in)):
        value = getattr(call, name)
        if value is not None and read(value) is None:
            left_out.setdefault(f"tool_calls.{name}", value)
            changed[name] = None
    return replace(call, **changed) if changed else call
