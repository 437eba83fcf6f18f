"""Panes of which one is shown at a time, as a line of names."""

from __future__ import annotations

from collections.abc import Mapping

from agenteval_tui.core.display import one_line
from agenteval_tui.tui.styled_text import Cell, Line, fit, spread, width_of
from agenteval_tui.tui.widgets.line_block import LineBlock

VIEWS = {"transcript": "transcript", "difference": "difference", "branches": "where runs diverge"}
"""The tabs of Inspect: what the agent did, beside another run, and in all repetitions."""


class PaneTabs(LineBlock):
    """The names of panes of which one is shown at a time; the shown one is in brackets. A click tells the screen,
    which asks `pane_at`."""

    def __init__(self, id: str) -> None:
        super().__init__(id=id)
        self._ends: tuple[tuple[str, int], ...] = ()

    def draw(self, names: Mapping[str, str], active: str, right: tuple[Cell, ...]) -> None:
        """`names`: what each pane is called, by pane; `right` is at the end of the line."""

        def lines(width: int) -> list[Line]:
            cells, self._ends = tab_cells(names, active, width)
            room = width - width_of(cells)
            return [spread(cells, right, width) if width_of(right) <= room else fit(cells, width)]

        self.show(lines)

    def pane_at(self, x: int) -> str:
        """The pane whose name is in column `x`; "" for none."""
        return next((name for name, end in self._ends if x < end), "")


def tab_cells(names: Mapping[str, str], active: str, width: int) -> tuple[Line, tuple[tuple[str, int], ...]]:
    """The names of tabs in a line, the active one in brackets, and the column behind each. Where there is no room for
    all of them the others shrink, letter by letter; none goes."""
    for most in (*range(max(map(len, names.values()), default=1), 0, -1), 0):
        cells: list[Cell] = [(" ", "")] if most else []
        ends = []
        for pane, name in names.items():
            if pane == active:
                cells.append((f"[{name}]", "bold accent"))
            else:
                cells.append((f" {one_line(name, most) if most else name[:1]} ", "dim"))
            ends.append((pane, width_of(cells)))
        if width_of(cells) <= width:
            break
    return tuple(cells), tuple(ends)
