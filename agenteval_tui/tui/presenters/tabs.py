"""The first line of a pane: its title, or tabs: names, of which one is shown at a time, the shown one in brackets."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from agenteval_tui.core.display import one_line
from agenteval_tui.tui.presenters.status_style import RULE
from agenteval_tui.tui.styled_text import Cell, Line, cell_len, fit, pad, plain, width_of

Much = str | Line | Callable[[int], Line]
"""How much of it a pane shows: a word or two, or cells; what gives way by itself is made for a width."""

BESIDE_NAME = 6
"""Cells beside the name that how much a pane shows does not have."""
LEAST_ROOM = 8  # cells of how much, however long the name is


def pane_title(name: str, much: Much, width: int, active: bool) -> list[Line]:
    """The first line of a pane: what it shows, a rule, how much of it; tinted where it is `active`: has the focus."""
    room = max(width - cell_len(name) - BESIDE_NAME, LEAST_ROOM)
    end = fit(((one_line(much), "dim"),) if isinstance(much, str) else much(room) if callable(much) else much, room)
    used = cell_len(name) + (width_of(end) + 2 if plain(end) else 1) + 2
    cells: list[Cell] = [(" ", ""), (name, "bold"), (" ", ""), (RULE * max(width - used, 0), "rule")]
    if plain(end):
        cells += [(" ", ""), *end, (" ", "")]
    if not active:
        return [fit(cells, width)]
    # Muted words and lines are too faint on the tint, and so is the widget's own colour.
    clear = {"dim": "", "rule": "accent"}
    tinted = [(text, f"foreground {clear.get(style, style)} on-focus") for text, style in cells]
    return [pad(tinted, width, "on-focus")]


Ends = tuple[tuple[str, int], ...]
"""Each tab, and the column behind its name."""
INSPECT_TABS = {
    "transcript": "transcript",
    "difference": "difference",
    "branches": "where runs diverge",
    "error": "error",
    "output": "output",
    "state": "state",
    "context": "context",
}
"""What the agent did, beside another run, and in all repetitions; why it did not finish, what its
code printed, what it left behind, what its model was asked."""
SOME_RUNS = frozenset(("error", "output", "state", "context"))
"""Those of `INSPECT_TABS` that only some runs have."""
CAUSE_TABS = {"causes": "causes", "review": "review"}
"""What is wrong, and what waits for a person."""


_SHORT = {"where runs diverge": "diverge", "difference": "diff"}
"""What a tab is called where the whole names have no room; the first one gives way first."""


def tab_cells(names: Mapping[str, str], active: str, width: int, indent: int = 1) -> tuple[Line, Ends]:
    """The names of tabs in a line, behind `indent` blank cells, and where each ends. Where there is no room for all of
    them the others shrink, long names first, then letter by letter; none goes."""
    for whole, short in _SHORT.items():
        if indent + sum(len(name) + 2 for name in names.values()) > width:
            names = {tab: short if name == whole and tab != active else name for tab, name in names.items()}
    for most in (*range(max(map(len, names.values()), default=1), 0, -1), 0):
        cells: list[Cell] = [(" " * indent, "")] if most and indent else []
        ends = []
        for tab, name in names.items():
            if tab == active:
                cells.append((f"[{name}]", "bold accent"))
            else:
                cells.append((f" {one_line(name, most) if most else name[:1]} ", "dim"))
            ends.append((tab, width_of(cells)))
        if width_of(cells) <= width:
            break
    return tuple(cells), tuple(ends)


def cause_tab_at(active: str, x: int, width: int) -> str:
    """The tab in column `x` of a title that begins with `CAUSE_TABS`, behind one blank cell; "" for none."""
    return tab_at(tab_cells(CAUSE_TABS, active, width, 0)[1], x - 1)


def tab_at(ends: Ends, x: int) -> str:
    """The tab whose name is in column `x`; "" for none."""
    return next((tab for tab, end in ends if x < end), "") if x >= 0 else ""
