"""Strips that cost few bytes: what a slow line feels is how often the style changes."""

from __future__ import annotations

from collections.abc import Iterable

from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from agenteval_tui.tui.styled_text import cell_len


def minimal_strip(segments: Iterable[Segment], width: int) -> Strip:
    """The segments as a strip of `width` cells with neighbours joined that look the same."""
    return Strip(joined((text, style) for text, style, _ in segments), width)


def joined(parts: Iterable[tuple[str, Style | None]]) -> list[Segment]:
    """Texts with their styles as segments, with neighbours joined that look the same.

    Spaces show no colour but the background's: they join a neighbour with the same background, whatever its colour.
    """
    alike: list[tuple[str, Style | None]] = []
    for text, style in parts:
        if alike and (alike[-1][1] is style or alike[-1][1] == style):
            alike[-1] = (alike[-1][0] + text, style)
        elif text:
            alike.append((text, style))
    merged: list[tuple[str, Style | None]] = []
    for text, style in alike:
        if merged:
            before, before_style = merged[-1]
            if before_style == style or (text.isspace() and _blank_alike(before_style, style)):
                merged[-1] = (before + text, before_style)
                continue
            if before.isspace() and _blank_alike(before_style, style):
                merged[-1] = (before + text, style)
                continue
        merged.append((text, style))
    return [Segment(text, style) for text, style in merged]


def _blank_alike(style: Style | None, other: Style | None) -> bool:
    """Does a space look the same in both styles?"""
    if style is None or other is None:
        return False
    if style.bgcolor != other.bgcolor:
        return False
    return not any((style.underline, style.strike, style.reverse, other.underline, other.strike, other.reverse))


def selected(strip: Strip, start: int, end: int, style: Style) -> Strip:
    """The strip with its characters `start` to `end` (-1: the last) as selected text."""
    # A strip is cut in cells, of which a character may have two.
    text, width = strip.text, strip.cell_length
    start, end = cell_len(text[:start]), width if end < 0 else cell_len(text[:end])
    head, middle, tail = strip.crop(0, start), strip.crop(start, end), strip.crop(end, width)
    painted = Strip([Segment(text, (old or style) + style) for text, old, _ in middle], middle.cell_length)
    return Strip.join([head, painted, tail])
