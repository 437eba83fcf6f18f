"""The edges of a sheet: its title and subject in the upper one, its keys in the lower one, rules between its parts."""

from __future__ import annotations

from collections.abc import Sequence

from agenteval_tui.core.display import one_line
from agenteval_tui.tui.styled_text import Cell, Line, cell_len, fit, width_of

Keys = Sequence[tuple[str, str]]
"""What a sheet's keys do: (key as people read it, what it does), most important first, the one that closes it last."""

MOST_TITLE = 200  # characters


def upper_edge(title: str, subject: str, width: int) -> Line:
    """`╭─ title ───── subject ─╮`. The subject gives way to the title."""
    named = fit(((one_line(title, MOST_TITLE), "bold"),), max(width - 6, 1))
    room = width - 6 - width_of(named) - 4
    about = fit(((one_line(subject, MOST_TITLE), "accent"),), room) if subject and room >= min(8, len(subject)) else ()
    end: Line = ((" ", ""), *about, (" ", "")) if about else ()
    return _between("╭─", ((" ", ""), *named, (" ", "")), end, "─╮", width)


def section_rule(title: str, width: int) -> Line:
    """`├─ preview ────────┤`."""
    named: Line = ((f" {one_line(title, MOST_TITLE)} ", "bold"),) if title else ()
    return _between("├─", named, (), "─┤", width)


def lower_edge(keys: Keys, width: int) -> Line:
    """`╰─ enter apply   esc close ────╯`."""
    cells: list[Cell] = [(" ", "")]
    for key, what in shown_keys(keys, width):
        cells += [(key, "bold accent"), (f" {what}   ", "")]
    if len(cells) > 1:
        cells[-1] = (cells[-1][0][:-2], "")
    return _between("╰─", tuple(cells) if len(cells) > 1 else (), (), "─╯", width)


def shown_keys(keys: Keys, width: int) -> Keys:
    """The keys that there is room for: the last one, which closes the sheet, stays longest."""
    visible = list(keys)
    while len(visible) > 1 and sum(cell_len(key) + cell_len(what) + 4 for key, what in visible) > width - 3:
        del visible[-2]
    return visible


def key_at(keys: Keys, width: int, column: int) -> str:
    """The key that is named at this column of the lower edge, "" for none."""
    at = 3
    for key, what in shown_keys(keys, width):
        end = at + cell_len(key) + 1 + cell_len(what)
        if at <= column < end:
            return key
        at = end + 3
    return ""


def _between(start: str, left: Line, right: Line, end: str, width: int) -> Line:
    left = fit(left, max(width - len(start) - len(end) - width_of(right), 0))
    rule = "─" * max(width - len(start) - len(end) - width_of(left) - width_of(right), 0)
    return fit(((start, "rule"), *left, (rule, "rule"), *right, (end, "rule")), width)
