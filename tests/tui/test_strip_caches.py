"""Lines that get their caches late keep what lines of Textual keep."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from rich.segment import Segment
from rich.style import Style
from textual.cache import FIFOCache
from textual.color import Color
from textual.filter import Monochrome
from textual.strip import Strip

from agenteval_tui.tui.terminal import strip_caches

BOLD = Style(bold=True)
GREY = Monochrome()
USES: dict[str, Callable[[Strip], object]] = {
    "_divide_cache": lambda strip: strip.divide([2, 7]),
    "_crop_cache": lambda strip: strip.crop(1, 6),
    "_style_cache": lambda strip: strip.apply_style(BOLD),
    "_filter_cache": lambda strip: strip.apply_filter(GREY, Color(0, 0, 0)),
    "_line_length_cache": lambda strip: strip.adjust_cell_length(12),
    "_crop_extend_cache": lambda strip: strip.crop_extend(1, 9, None),
    "_offsets_cache": lambda strip: strip.apply_offsets(1, 2),
}


def segments() -> list[Segment]:
    return [Segment("one ", Style(dim=True)), Segment("two", BOLD)]


def made_by_textual() -> Strip:
    """Whatever an app of an earlier test has replaced."""
    strip = Strip.__new__(Strip)
    strip_caches.MAKE_OF_TEXTUAL(strip, segments())
    return strip


@pytest.mark.parametrize("name", USES)
def test_a_line_has_a_cache_when_it_is_used_and_gives_what_textuals_gives(name: str) -> None:
    strip_caches.use_late_caches()
    late, theirs = Strip(segments()), made_by_textual()
    slot = vars(Strip)[name]
    with pytest.raises(AttributeError):
        slot.__get__(late)
    first = USES[name](late)
    assert first == USES[name](theirs)
    kept = slot.__get__(late)
    assert isinstance(kept, FIFOCache)
    assert kept._maxsize == getattr(theirs, name)._maxsize
    assert USES[name](late) is first, "it is kept"


def test_a_line_has_no_attributes_but_its_own() -> None:
    strip_caches.use_late_caches()
    with pytest.raises(AttributeError, match="other"):
        _ = Strip([]).other  # type: ignore[attr-defined]
    assert set(strip_caches.SIZES) == set(USES)
