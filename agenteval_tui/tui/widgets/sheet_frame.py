"""The frame of every sheet: title and subject in its upper edge, keys in its lower one, sections as rules.

It is as high as what is in it. Where the terminal has fewer rows, what scrolls gives way first, then the texts from the
last one on; both edges stay.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.geometry import Size
from textual.layout import Layout, WidgetPlacement
from textual.layouts.vertical import VerticalLayout
from textual.widget import Widget

from agenteval_tui.tui.actions import key_name
from agenteval_tui.tui.presenters.sheet_edges import Keys, key_at, lower_edge, section_rule, upper_edge
from agenteval_tui.tui.styled_text import Line
from agenteval_tui.tui.terminal.mounting import drop_messages, is_too_late
from agenteval_tui.tui.widgets.line_block import LineBlock

Text = str | Callable[[], str]
Width = Literal["small", "medium", "large"]
"""80, 100 and 120 columns, where the terminal has them."""


class Section(LineBlock):
    """A rule with a title: `├─ preview ─────┤`."""

    def __init__(self, title: Text, *, id: str | None = None) -> None:
        super().__init__(self._rule, id=id, classes="edge")
        self._title = title

    def _rule(self, width: int) -> list[Line]:
        return [section_rule(_current(self._title), width)]


@drop_messages(is_too_late)
class SheetFrame(Vertical):
    """Holds the parts of a sheet. What they say, and its keys, may change while it is shown: `retell` shows that."""

    DEFAULT_CSS = Path(__file__).with_suffix(".tcss").read_text(encoding="utf-8")

    def __init__(
        self, title: Text, keys: Keys | Callable[[], Keys], *, subject: Text = "", width: Width = "small"
    ) -> None:
        self._upper = LineBlock(self._upper_edge, id="head", classes="edge")
        self._lower = LineBlock(self._lower_edge, id="foot", classes="edge")
        super().__init__(self._upper, id="sheet", classes=width)
        self._title = title
        self._subject = subject
        self._keys = keys
        self._tallest: tuple[tuple[Size, int], int] = ((Size(0, 0), 0), 0)

    def compose(self) -> ComposeResult:
        yield self._lower

    def retell(self) -> None:
        """All that is said on the sheet may be something else now: its title and keys, its notes and sections."""
        for block in self.query(LineBlock):
            block.retell()

    @property
    def keys(self) -> Keys:
        """The keys that work now."""
        return self._keys() if callable(self._keys) else self._keys

    @property
    def layout(self) -> Layout:
        """Its parts below each other, in as many rows as there are."""
        return _LAYOUT

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """All rows of what is in it, and never fewer than before: a filter or a preview does not make it jump."""
        height = super().get_content_height(container, viewport, width)
        of, before = self._tallest
        if of == (viewport, width):
            height = max(height, before)
        self._tallest = ((viewport, width), height)
        return height

    def on_line_block_clicked(self, event: LineBlock.Clicked) -> None:
        """A click on a key does what the key does."""
        if event.block is self._lower:
            pressed = key_name(key_at(self.keys, event.block.size.width, event.x))
            if pressed:
                # From the app: a key that this frame sends would not go beyond it.
                self.app.call_later(self.app.simulate_key, pressed)

    def _upper_edge(self, width: int) -> list[Line]:
        return [upper_edge(_current(self._title), _current(self._subject), width)]

    def _lower_edge(self, width: int) -> list[Line]:
        return [lower_edge(self.keys, width)]


def _current(text: Text) -> str:
    return text() if callable(text) else text


class _SheetLayout(VerticalLayout):
    """Rows below each other, in as many rows as there are."""

    name = "sheet"

    def arrange(self, parent: Widget, children: list[Widget], size: Size, greedy: bool = True) -> list[WidgetPlacement]:
        """As the vertical layout; what is too much is taken away from what scrolls."""
        placements = super().arrange(parent, children, size, greedy)
        return _fitted(placements, size.height) if size.height else placements


_LAYOUT = _SheetLayout()


def _fitted(placements: Sequence[WidgetPlacement], rows: int) -> list[WidgetPlacement]:
    """The same parts in exactly this many rows."""
    heights = [placement.region.height for placement in placements]
    over = sum(heights) - rows
    scrolls = [number for number, each in enumerate(placements) if each.widget.styles.overflow_y == "auto"]
    while over > 0 and (tallest := max(scrolls, key=heights.__getitem__, default=-1)) >= 0 and heights[tallest] > 1:
        heights[tallest] -= 1
        over -= 1
    texts = [number for number in range(1, len(placements) - 1) if number not in scrolls]
    for number in (*reversed(texts), *reversed(scrolls)):
        cut = min(max(over, 0), heights[number])
        heights[number] -= cut
        over -= cut
    if over < 0 and len(placements) > 2:
        heights[scrolls[-1] if scrolls else -2] -= over
    y, placed = 0, []
    for placement, height in zip(placements, heights, strict=True):
        placed.append(placement._replace(region=placement.region._replace(y=y, height=height)))
        y += height
    return placed
