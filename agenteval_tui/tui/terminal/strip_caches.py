"""Painted lines get each of their caches when something is first kept in it, and are never in one of their own.

Textual gives every line seven caches when it is made, and makes a line for each step of a widget's way to the screen.
Nearly all of these caches stay empty, and they are most of what a line costs in time and memory. A line that is as wide
as it should be is kept in its own cache: it is garbage that only a collection finds, and most of what that finds while
somebody types.

With a Textual whose private parts are not known (`textual_support.py`) lines are made as Textual makes them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import wraps
from typing import Any

from rich.segment import Segment
from rich.style import Style
from textual.cache import FIFOCache
from textual.strip import Strip

from agenteval_tui.tui.terminal.textual_support import is_known

STANDS_ON: dict[str, str] = {
    "textual.strip:Strip.__init__": "ce1d8154dca8",
    "textual.strip:Strip.adjust_cell_length": "38b84efba40d",
    "textual.strip:Strip.divide": "f6764f25c39e",
    "textual.cache:FIFOCache.__init__": "8166ad535d58",
}
"""What is replaced or relied on, with the first digits of the SHA-256 of its source."""

SIZES = {
    "_divide_cache": 4,
    "_crop_cache": 16,
    "_style_cache": 16,
    "_filter_cache": 4,
    "_line_length_cache": 4,
    "_crop_extend_cache": 4,
    "_offsets_cache": 4,
}
"""Textual's, by the names of the attributes."""

IS_KNOWN = is_known(STANDS_ON, {"textual.strip:Strip.__init__": " ".join(SIZES)})

MAKE_OF_TEXTUAL = Strip.__init__
_ADJUST_OF_TEXTUAL = Strip.adjust_cell_length
_DIVIDE_OF_TEXTUAL = Strip.divide


@wraps(MAKE_OF_TEXTUAL)
def _make(strip: Strip, segments: Iterable[Segment], cell_length: int | None = None) -> None:
    strip._segments = list(segments)
    strip._cell_length = cell_length
    strip._render_cache = strip._link_ids = strip._cell_count = None


@wraps(_ADJUST_OF_TEXTUAL)
def _adjusted(strip: Strip, cell_length: int, style: Style | None = None) -> Strip:
    return strip if strip.cell_length == cell_length else _ADJUST_OF_TEXTUAL(strip, cell_length, style)


@wraps(_DIVIDE_OF_TEXTUAL)
def _divided(strip: Strip, cuts: Iterable[int]) -> Sequence[Strip]:
    cuts = list(cuts)
    if cuts and cuts[0] == strip.cell_length and (len(cuts) == 1 or cuts[1] > cuts[0]):
        return [strip]
    return _DIVIDE_OF_TEXTUAL(strip, cuts)


def _missing(strip: Strip, name: str) -> FIFOCache[Any, Any]:
    """The cache of this name, which `strip` has from now on."""
    size = SIZES.get(name)
    if size is None:
        raise AttributeError(f"{type(strip).__name__!r} object has no attribute {name!r}")
    cache: FIFOCache[Any, Any] = FIFOCache(size)
    setattr(strip, name, cache)
    return cache


def use_late_caches() -> None:
    """Let lines that are made from now on get their caches late."""
    if IS_KNOWN:
        Strip.__init__ = _make  # type: ignore[method-assign, assignment]
        Strip.adjust_cell_length = _adjusted  # type: ignore[method-assign, assignment]
        Strip.divide = _divided  # type: ignore[method-assign, assignment]
        Strip.__getattr__ = _missing  # type: ignore[attr-defined]
