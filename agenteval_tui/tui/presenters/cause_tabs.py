"""The tabs that Causes and Review share: what is wrong, and what waits for a person."""

from __future__ import annotations

from agenteval_tui.tui.styled_text import Cell

TABS = ("causes", "review")


def cause_tabs(active: str) -> list[Cell]:
    """The names of both screens at the start of a title line; the shown one in brackets."""
    cells: list[Cell] = []
    for name in TABS:
        cells += [(f"[{name}]", "bold accent") if name == active else (name, "dim"), ("  ", "")]
    return [*cells, (" ", "")]


def tab_at(x: int, active: str) -> str:
    """The tab at a column of `cause_tabs`, which begins behind one cell; "" for none."""
    column = 1
    for text, _ in cause_tabs(active):
        if column <= x < column + len(text):
            return text.strip("[] ")
        column += len(text)
    return ""
