"""A part of a screen with a title line: what the part shows, how much of it, and whether it has the focus."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import ClassVar, Generic, TypeVar

from textual.app import ComposeResult
from textual.containers import Vertical

from agenteval_tui.tui.presenters.tabs import Ends, Much, pane_title, tab_at, tab_cells
from agenteval_tui.tui.styled_text import Cell, Line, fit, spread, width_of
from agenteval_tui.tui.terminal.mounting import drop_messages, is_too_late
from agenteval_tui.tui.widgets.line_block import LineBlock

C = TypeVar("C")

Heading = tuple[str, Much]
"""The left and right texts of a title: what the pane shows, and how much of it."""


class PaneTitle(LineBlock):
    """The title line of the container that it is in. That container has the CSS class `pane`: so the screen
    (`tui/pane_focus.py`) finds it, tints its title while the focus is in it, and zooms it.

        with Vertical(id="left", classes="pane"):
            yield PaneTitle(lambda: ("runs", "69"))
            yield VirtualList(id="runs")
    """

    def __init__(self, heading: Callable[[], Heading], *, id: str | None = None) -> None:
        super().__init__(self._title_lines, id=id, classes="pane-title")
        self._heading = heading
        self.active = False
        """Is the focus in its pane?"""

    def _title_lines(self, width: int) -> list[Line]:
        return pane_title(*self._heading(), width, self.active)


@drop_messages(is_too_late)
class TitledPane(Vertical, Generic[C]):
    """`NAME` is what the screen calls the pane; its own id is `<NAME>-pane`, that of the widget in it that takes the
    keys is `NAME`. `WORDS` stands for it where the screen is narrow and shows one pane at a time."""

    NAME: ClassVar[str]
    WORDS: ClassVar[str] = ""

    def __init__(self, controller: C) -> None:
        super().__init__(id=f"{self.NAME}-pane", classes="pane")
        self._controller = controller

    def compose(self) -> ComposeResult:
        yield PaneTitle(self.heading, id=f"{self.NAME}-title")
        yield from self.parts()

    def parts(self) -> ComposeResult:
        """What is below the title."""
        raise NotImplementedError

    def heading(self) -> Heading:
        """The title: its left and right texts."""
        raise NotImplementedError

    def focus_first(self) -> None:
        """Give the keys to what they go to first."""
        self.query_one(f"#{self.NAME}").focus()

    def retitle(self) -> None:
        """Update the title, if it changed."""
        self.query_one(f"#{self.NAME}-title", PaneTitle).retell()


class PaneTabs(LineBlock):
    """The names of panes of which one is shown at a time; the shown one is in brackets. A click tells the screen,
    which asks `pane_at`."""

    def __init__(self, id: str) -> None:
        super().__init__(id=id)
        self._ends: Ends = ()

    def draw(self, names: Mapping[str, str], active: str, right: tuple[Cell, ...]) -> None:
        """`names`: what each pane is called, by pane; `right` is at the end of the line."""

        def lines(width: int) -> list[Line]:
            cells, self._ends = tab_cells(names, active, width)
            room = width - width_of(cells)
            return [spread(cells, right, width) if width_of(right) <= room else fit(cells, width)]

        self.show(lines)

    def pane_at(self, x: int) -> str:
        """The pane whose name is in column `x`; "" for none."""
        return tab_at(self._ends, x)
