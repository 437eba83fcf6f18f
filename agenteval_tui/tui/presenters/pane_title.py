"""The first line of a pane."""

from __future__ import annotations

from agenteval_tui.core.display import one_line
from agenteval_tui.tui.presenters.status_style import UNICODE
from agenteval_tui.tui.styled_text import Cell, Line, cell_len, fit, pad, plain, width_of


def pane_title(name: str, much: str | Line, width: int, active: bool) -> list[Line]:
    """The first line of a pane: what it shows, a rule, how much of it; tinted where it is `active`: has the focus."""
    rule = "─" if UNICODE else "-"
    end = fit(((one_line(much), "dim"),) if isinstance(much, str) else much, max(width - cell_len(name) - 6, 8))
    used = cell_len(name) + (width_of(end) + 2 if plain(end) else 1) + 2
    cells: list[Cell] = [(" ", ""), (name, "bold"), (" ", ""), (rule * max(width - used, 0), "rule")]
    if plain(end):
        cells += [(" ", ""), *end, (" ", "")]
    if not active:
        return [fit(cells, width)]
    # Muted words and lines are too faint on the tint.
    clear = {"dim": "", "rule": "accent"}
    return [pad([(text, f"{clear.get(style, style)} on-focus") for text, style in cells], width, "on-focus")]
