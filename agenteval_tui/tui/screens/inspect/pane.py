"""A pane of Inspect: a column under a title that says what it shows, and whether it has the keys; and their tabs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from textual.containers import Vertical

from agenteval_tui.tui.presenters.run_header import pane_title
from agenteval_tui.tui.styled_text import Cell, Line, spread, width_of
from agenteval_tui.tui.widgets.line_block import LineBlock


class Pane(Vertical):
    """`PANE` is its name: the widget in it that takes the keys has it as its id, the pane `<PANE>-pane`."""

    PANE: ClassVar[str] = ""

    def __init__(self) -> None:
        super().__init__(id=f"{self.PANE}-pane", classes="pane")

    @property
    def has_keys(self) -> bool:
        """Is it the pane that the keys go to?"""
        return self.has_class("active")

    def heading(self) -> tuple[str, str]:
        """What it shows, and how much or which. Panes override it."""
        raise NotImplementedError

    def title_line(self) -> LineBlock:
        """Its first line; a click on it is the screen's."""
        return LineBlock(self._title_lines, id=f"{self.PANE}-title", classes="pane-title")

    def retitle(self) -> None:
        """Show the title anew, if it changed."""
        self.query_one(f"#{self.PANE}-title", LineBlock).show(self._title_lines)

    def _title_lines(self, width: int) -> list[Line]:
        return pane_title(*self.heading(), width, self.has_keys)


class PaneTabs(LineBlock):
    """Narrow screens show one pane at a time; this line names them all."""

    def __init__(self) -> None:
        super().__init__(id="tabs")
        self._ends: tuple[tuple[str, int], ...] = ()

    def draw(self, names: Mapping[str, str], active: str, right: tuple[Cell, ...]) -> None:
        """`names`: what each pane is called, by pane; `right` stands at the end of the line."""

        def lines(width: int) -> list[Line]:
            cells: list[Cell] = [(" ", "")]
            ends = []
            for pane, name in names.items():
                chosen = pane == active
                cells.append((f"[{name}]" if chosen else f" {name} ", "bold accent" if chosen else "dim"))
                cells.append(("  ", ""))
                ends.append((pane, width_of(cells) - 2))
            self._ends = tuple(ends)
            return [spread(cells, right, width)]

        self.show(lines)

    def pane_at(self, x: int) -> str:
        """The pane whose name stands in column `x`; "" for none."""
        return next((name for name, end in self._ends if x < end), "")
