"""Usage, figures and moments as other tools write them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import datetime, tzinfo
from typing import Any

from msgspec.structs import replace

from agenteval_tui.agents.usage import UsageReader
from agenteval_tui.transcripts.model import Transcript, Usage

_left_out: ContextVar[list[str] | None] = ContextVar("figures that were left out", default=None)


@contextmanager
def figures_left_out() -> Iterator[list[str]]:
    """Collects what was read in the block as a figure and can't be one: its name, "" where that isn't told."""
    names: list[str] = []
    token = _left_out.set(names)
    try:
        yield names
    finally:
        _left_out.reset(token)


def leave_out(name: str = "") -> None:
    """A figure of the file can't be so, and was left out."""
    names = _left_out.get()
    if names is not None:
        names.append(name)


def with_usage(transcript: Transcript, used: UsageReader) -> Transcript:
    """The transcript with the usage that was read, and what must be said of it; as it is if nothing was read."""
    usage = transcript.usage if used.total == Usage() and not used.notes else used.total
    notes = tuple(note for note in used.notes if note not in transcript.notes)
    return replace(transcript, usage=usage, notes=(*transcript.notes, *notes))


def number(value: Any) -> float | None:
    """A finite number, also one written as text; None for everything else."""
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            return None
    # In Python a bool is a number, in a file it is none.
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        figure = float(value)
    # JSON's whole numbers have no limit, a float has one.
    except OverflowError:
        figure = math.inf
    if not math.isfinite(figure):
        leave_out()
        return None
    return figure


def share(value: Any) -> float | None:
    """A number from 0 to 1; None for everything else. A score on another scale does not say what is enough."""
    parsed = number(value)
    return parsed if parsed is not None and 0 <= parsed <= 1 else None


def moment_ms(value: Any, zone: tzinfo | None = None) -> float | None:
    """Milliseconds since 1970 of an ISO date and time; None when it is none. `zone`: of a time that says none; None:
    that of this machine."""
    if not isinstance(value, str):
        return None
    try:
        moment = datetime.fromisoformat(value)
        return (moment if moment.tzinfo is not None else moment.replace(tzinfo=zone)).timestamp() * 1000
    # A time that the platform's clock can't express: OSError on Windows, OverflowError elsewhere.
    except (ValueError, OverflowError, OSError):
        return None
