"""A scrolling view of lines that a presenter made: details, evidence, a streaming answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice, zip_longest
from typing import ClassVar

from textual.binding import BindingType
from textual.events import Click, Resize
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.selection import Selection
from textual.strip import Strip

from agenteval_tui.tui.actions import bindings
from agenteval_tui.tui.style_tokens import palette_of
from agenteval_tui.tui.styled_text import Line, plain, width_of
from agenteval_tui.tui.terminal.strips import selected


class LinesView(ScrollView, can_focus=True):
    """Shows what `make(width)` gives, which `show(make)` replaces; keeps its place when the content changes.

    `follow` keeps the last line in view while content grows (a streaming answer). A click tells the row.
    """

    DEFAULT_CSS = "LinesView { overflow-x: hidden; }"
    BINDINGS: ClassVar[list[BindingType]] = bindings("text")

    @dataclass
    class RowClicked(Message):
        """Somebody clicked on row `row` of the content."""

        row: int

    def __init__(
        self, make: Callable[[int], Sequence[Line]] | None = None, *, follow: bool = False, id: str | None = None
    ) -> None:
        super().__init__(id=id)
        self.follow = follow
        self._make: Callable[[int], Sequence[Line]] = make or (lambda width: ())
        self._lines: Sequence[Line] = ()
        self._width = 0
        self._measured: tuple[int, list[Line]] | None = None

    def show(self, make: Callable[[int], Sequence[Line]], *, keep_place: bool = True) -> None:
        """Show what `make` gives from now on; nothing is repainted when it is the same as before."""
        self._make = make
        self._measured = None
        if self._content_width() > 0:
            self._rebuild(keep_place)
        else:
            # Hidden: when it is seen again it may be as wide as before, and has something else to show. It may then be
            # painted before its size is told: without this, with what was painted of the lines before.
            self._width = -1
            self.refresh()

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        width = max(width - self.styles.scrollbar_size_vertical, 0)
        lines = self._lines_at(width)
        if not self.size and not self.follow:
            # The first layout knows then whether there is a scroll bar: it is not painted a second time for that.
            self._width, self._lines = width, lines
            self.set_reactive(LinesView.virtual_size, Size(width, len(lines)))
        return len(lines)

    def on_resize(self, event: Resize) -> None:
        if self._content_width() != self._width:
            self._rebuild(keep_place=True)

    def render_lines(self, crop: Region) -> list[Strip]:
        """Several lines. The first frame is painted before its size is told (`on_resize`): it has the lines already."""
        if self._width != (width := self._content_width()):
            self._lines = self._lines_at(width)
        return super().render_lines(crop)

    def render_line(self, y: int) -> Strip:
        width = self.scrollable_content_region.width
        row = y + self.scroll_offset.y
        line = self._lines[row] if 0 <= row < len(self._lines) else ()
        strip = palette_of(self).strip(line, width).apply_style(self.rich_style)
        selection = self.text_selection
        if selection is not None and (span := selection.get_span(row)) is not None:
            strip = selected(strip, *span, self.screen.get_component_rich_style("screen--selection"))
        return strip.apply_offsets(0, row)

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        """The text that was selected with the mouse."""
        rows = [plain(line).rstrip() for line in self._lines]
        return selection.extract("\n".join(rows)), "\n"

    def selection_updated(self, selection: Selection | None) -> None:
        """Paint what is selected."""
        self.refresh()

    def on_click(self, event: Click) -> None:
        row = event.y + self.scroll_offset.y
        # Who selects a text does not mean the row.
        if 0 <= row < len(self._lines) and self.text_selection is None:
            self.post_message(self.RowClicked(row))

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self.refresh()

    def action_page_down(self) -> None:
        self.scroll_page_down(animate=False)

    def action_half_page(self, direction: int) -> None:
        rows = max(self.size.height // 2, 1)
        self.scroll_to(y=self.scroll_target_y + direction * rows, animate=False)

    def action_page_up(self) -> None:
        self.scroll_page_up(animate=False)

    def action_scroll_home(self) -> None:
        self.scroll_home(animate=False)

    def action_scroll_end(self) -> None:
        self.scroll_end(animate=False)

    def action_scroll_down(self) -> None:
        self.scroll_to(y=self.scroll_target_y + 1, animate=False)

    def action_scroll_up(self) -> None:
        self.scroll_to(y=self.scroll_target_y - 1, animate=False)

    @property
    def content_width(self) -> int:
        """The cells of a line; 0 while it is hidden."""
        return self._content_width()

    def _content_width(self) -> int:
        # The scroll bar's column (`size` has it) is kept free, so that the text does not wrap anew when it appears.
        return max(self.size.width - self.styles.scrollbar_size_vertical, 0)

    def _lines_at(self, width: int) -> list[Line]:
        # Where the height is that of the content they are asked for twice.
        if self._measured is None or self._measured[0] != width:
            self._measured = (width, list(self._make(width)))
        return self._measured[1]

    def _rebuild(self, keep_place: bool) -> None:
        self._width = self._content_width()
        lines = self._lines_at(self._width)
        if lines == self._lines:
            self.virtual_size = Size(self._width, len(lines))
            return
        at_end = self.follow and self.scroll_offset.y >= self.max_scroll_y - 1
        before, self._lines = self._lines, lines
        if keep_place and len(lines) == len(before) and self.virtual_size.width == self._width:
            # An answer grows at its end: the rows that are as they were are not sent again.
            top, height = self.scroll_offset.y, self.size.height
            for row in range(top, min(top + height, len(lines))):
                if lines[row] != before[row]:
                    self.refresh(Region(0, row - top, self.size.width, 1))
            return
        height = self.size.height
        if not self.follow and not self.scroll_offset.y and self.show_vertical_scrollbar == (len(lines) > height):
            # The first rows are and stay in sight, and no scroll bar comes or goes: nothing is laid out anew, and
            # only the cells that differ are sent again.
            self.set_reactive(LinesView.virtual_size, Size(self._width, len(lines)))
            if self.show_vertical_scrollbar:
                self.vertical_scrollbar.window_virtual_size = len(lines)
            for row, (old, new) in enumerate(islice(zip_longest(before, lines, fillvalue=()), height)):
                if old != new:
                    self.refresh(Region(0, row, max(width_of(old), width_of(new)), 1))
            return
        self.virtual_size = Size(self._width, len(lines))
        if at_end:
            self.scroll_end(animate=False)
        elif not keep_place:
            self.scroll_home(animate=False)
        self.refresh()
