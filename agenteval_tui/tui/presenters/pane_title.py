"""The first line of a pane."""

from __future__ import annotations

from collections.abc import Callable

from agenteval_tui.core.display import one_line
from agenteval_tui.tui.presenters.status_style import UNICODE
from agenteval_tui.tui.styled_text import Cell, Line, cell_len, fit, pad, plain, width_of

Much = str | Line | Callable[[int], Line]
"""How much of it a pane shows: a word or two, or cells; what gives way by itself is made for a width."""

BESIDE_NAME = 6
"""Cells beside the name that how much a pane shows does not have."""
LEAST_ROOM = 8


def pane_title(name: str, much: Much, width: int, active: bool) -> list[Line]:
    """The first line of a pane: what it shows, a rule, how much of it; tinted where it is `active`: has the focus."""
    rule = "─" if UNICODE else "-"
    room = max(width - cell_len(name) - BESIDE_NAME, LEAST_ROOM)
    end = fit(((one_line(much), "dim"),) if isinstance(much, str) else much(room) if callable(much) else much, room)
    used = cell_len(name) + (width_of(end) + 2 if plain(end) else 1) + 2
    cells: list[Cell] = [(" ", ""), (name, "bold"), (" ", ""), (rule * max(width - used, 0), "rule")]
    if plain(end):
        cells += [(" ", ""), *end, (" ", "")]
    if not active:
        return [fit(cells, width)]
    # Muted words and lines are too faint on the tint, and so is the widget's own colour.
    clear = {"dim": "", "rule": "accent"}
    tinted = [(text, f"foreground {clear.get(style, style)} on-focus") for text, style in cells]
    return [pad(tinted, width, "on-focus")]
