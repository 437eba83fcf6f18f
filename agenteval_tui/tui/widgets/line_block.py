"""A block of a few lines that a presenter made: title bars, key bars, summaries. Not focusable, not scrolling."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from textual.events import Click
from textual.geometry import Size
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.tui.style_tokens import palette_of
from agenteval_tui.tui.styled_text import Line, error_lines

Lines = Sequence[Line]


class LineBlock(Widget):
    """Shows what `make(width)` gives; repaints only when that changed.

    `show(make)` sets it. Height follows the CSS (`height: auto` takes as many rows as there are lines).
    """

    @dataclass
    class Clicked(Message):
        """Somebody clicked at column `x` of row `y`."""

        block: LineBlock
        x: int
        y: int

    def __init__(
        self, make: Callable[[int], Lines] | None = None, *, id: str | None = None, classes: str | None = None
    ):
        super().__init__(id=id, classes=classes)
        self._make: Callable[[int], Lines] = make or (lambda width: ())
        self._shown: tuple[int, Lines] = (-1, ())

    def show(self, make: Callable[[int], Lines]) -> None:
        """Show what `make` gives from now on."""
        self._make = make
        width, old = self._shown
        if width <= 0:
            if self.display:  # what is hidden needs no room: a layout takes longer than all else that a key does
                self.refresh(layout=True)
            return
        new = make(width)
        if list(new) != list(old):
            self._shown = (width, new)
            self.refresh(layout=self.styles.is_auto_height and len(new) != len(old))

    def retell(self) -> None:
        """The lines may be others now: ask for them again."""
        self.show(self._make)

    def lines(self, width: int) -> Lines:
        """The lines at a width, made anew only when the width changed."""
        if self._shown[0] != width:
            self._shown = (width, self._make(width))
        return self._shown[1]

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return len(self.lines(width))

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        lines = self.lines(width)
        line = lines[y] if y < len(lines) else ()
        return palette_of(self).strip(line, width).apply_style(self.rich_style)

    def on_click(self, event: Click) -> None:
        self.post_message(self.Clicked(self, event.x, event.y))

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self.refresh()


class TitleBar(LineBlock):
    """The first lines of a screen: the strip with the screens on a panel, and what the screen says below it."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"title-bar--strip"}

    def render_line(self, y: int) -> Strip:
        if y:
            return super().render_line(y)
        width = self.size.width
        on_panel = self.get_component_rich_style("title-bar--strip")
        return palette_of(self).strip(self.lines(width)[0], width).apply_style(on_panel)


class Note(LineBlock):
    """What a form says below its fields, behind an empty line; in place of it what is wrong, while something is."""

    def __init__(self, usual: Callable[[int], Lines], *, id: str) -> None:
        super().__init__(self._what_is_said, id=id)
        self._usual = usual
        self.error: AgentevalError | None = None

    def complain(self, error: AgentevalError | None) -> None:
        """Say what is wrong; None: nothing is."""
        self.error = error
        self.retell()

    def _what_is_said(self, width: int) -> Lines:
        return [(), *(error_lines(self.error, width) if self.error is not None else self._usual(width))]
