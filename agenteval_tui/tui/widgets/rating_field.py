"""A field for a rating: while it has the focus, the digits 1 to 5 are typed into it, as into any field."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from textual.binding import BindingType
from textual.events import Click
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from agenteval_tui.tui.actions import bindings
from agenteval_tui.tui.style_tokens import palette_of
from agenteval_tui.tui.styled_text import Cell, Line, fit, longest_that_fits, width_of
from agenteval_tui.views.label import RATINGS

_CELL = 4


class RatingField(Widget, can_focus=True):
    """Tells the rating as soon as it is typed or clicked. Keys that move go to whoever `Moved` is meant for."""

    DEFAULT_CSS = "RatingField { height: 1; background: $panel; }"
    BINDINGS: ClassVar[list[BindingType]] = bindings("rating")

    @dataclass
    class Rated(Message):
        """A rating 1 to 5."""

        rating: int

    @dataclass
    class Moved(Message):
        """A key that moves in what is read: down, up, page_down, page_up, start, end."""

        where: str

    def __init__(self, verdicts: Callable[[], Line], *, id: str) -> None:
        """`verdicts`: the text before the digits: the keys of the verdicts that are not ratings."""
        super().__init__(id=id)
        self._verdicts = verdicts

    def action_rate(self, rating: int) -> None:
        self.post_message(self.Rated(rating))

    def action_move(self, where: str) -> None:
        self.post_message(self.Moved(where))

    def on_click(self, event: Click) -> None:
        start = width_of(self._head())
        number = (event.x - start) // _CELL + 1
        if event.x >= start and number in RATINGS:
            self.action_rate(number)

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        line: Line = fit(self._cells(), width)
        return palette_of(self).strip(line, width).apply_style(self.rich_style)

    def _head(self) -> list[Cell]:
        return [(" ", ""), *self._verdicts(), ("rate ", "dim")]

    def _cells(self) -> list[Cell]:
        here = self.has_focus
        cells = self._head()
        cells += [(f" {number}  ", "bold accent" if here else "dim") for number in RATINGS]
        ends = f" 1 {RATINGS[1]}, 5 {RATINGS[5]}"
        ways: list[Line] = [(*cells, (f"{ends}; 4 or 5 pass", "dim")), (*cells, (ends, "dim"))]
        return list(longest_that_fits(ways, self.size.width)) if here else [*cells, (" press tab to rate", "dim")]
