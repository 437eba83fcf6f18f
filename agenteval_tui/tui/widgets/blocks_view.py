"""Blocks of text one below the other: scrolls, folds, selects; lays out only what is seen.

What is where is the business of a document (a presenter's); this widget paints its lines and answers keys.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar, Generic, TypeVar

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import BindingType
from textual.geometry import Region, Size
from textual.reactive import reactive
from textual.scroll_view import ScrollView
from textual.selection import Selection
from textual.strip import Strip

from agenteval_tui.tui.actions import bindings, keyed
from agenteval_tui.tui.presenters.block_document import BlocksDocument
from agenteval_tui.tui.presenters.transcript_blocks import BlockKey
from agenteval_tui.tui.style_tokens import Palette, palette_of
from agenteval_tui.tui.styled_text import Line, hanging
from agenteval_tui.tui.terminal.strips import minimal_strip, selected
from agenteval_tui.tui.widgets.virtual_list import CURSOR

_NEARBY = 3  # screens: a jump further than this need not land to the line


D = TypeVar("D", bound=BlocksDocument)


class BlocksView(ScrollView, Generic[D], can_focus=True):
    """Shows a document. `cursor` is the index of the block with the bar at its side, -1 while there is none."""

    DEFAULT_CSS = Path(__file__).with_suffix(".tcss").read_text(encoding="utf-8")

    BINDINGS: ClassVar[list[BindingType]] = bindings("transcript")

    cursor: reactive[int] = reactive(-1, repaint=False, init=False)

    def __init__(
        self,
        *,
        empty: Sequence[Line] = (),
        id: str | None = None,
    ) -> None:
        """`empty` is what is shown while there are no blocks."""
        super().__init__(id=id)
        self._empty = tuple(empty)
        self._document: D | None = None  # None: not laid out yet
        self._palette: Palette | None = None
        self._base: Style | None = None
        self._selected: Selection | None = None
        self._folded_all = False

    @property
    def _margin(self) -> int:
        """Cells at the left that are not the document's: the bar, and what `_beside` paints."""
        return 1

    def _beside(self, row: int) -> Sequence[Segment]:
        """What is painted between the bar and a row of the document."""
        return ()

    @property
    def document(self) -> D:
        """What is shown; laid out for 80 cells while the widget has no size."""
        if self._document is None:
            self._document = self._make_document(self._width() or 80)
            # Without its watcher: the bar is painted with all the rest.
            self.set_reactive(BlocksView.cursor, 0 if self._document.blocks else -1)
        return self._document

    def _make_document(self, width: int) -> D:
        """What is to be shown, laid out for this width."""
        raise NotImplementedError

    def _tell_cursor(self) -> None:
        """The cursor is on another block now."""

    @property
    def cursor_key(self) -> BlockKey | None:
        """What the cursor is on."""
        blocks = self.document.blocks
        return blocks[self.cursor].key if 0 <= self.cursor < len(blocks) else None

    @property
    def selected_text(self) -> str:
        """What was selected with the mouse, else the text of the block under the cursor, as it was stored."""
        selection = self.text_selection
        if selection is not None and (selected := self.get_selection(selection)) is not None:
            return selected[0]
        return self.document.text(self.cursor) if self.cursor >= 0 else ""

    # Going places

    def go_to_key(self, key: BlockKey) -> bool:
        """Put the cursor on a block; False when there is none with this key."""
        block = self.document.index_of(key)
        if block is not None:
            self._go_to_block(block)
        return block is not None

    def toggle_fold(self) -> None:
        """Fold or unfold the block under the cursor."""
        if self.cursor < 0:
            return
        document = self.document
        document.fold(self.cursor, folded=not document.is_folded(self.cursor))
        self._resize_content()
        top = document.top(self.cursor)
        if top < self.scroll_offset.y:
            self._scroll(top)
        else:
            self._scroll(self.scroll_offset.y)
        self.refresh()

    def fold_all(self, folded: bool) -> None:
        """Fold everything to two rows a block, or unfold everything."""
        self._folded_all = folded
        anchor = self.document.anchor(self.scroll_offset.y)
        self.document.fold_all(folded=folded)
        self._keep(anchor)

    # Keys and mouse

    def action_down(self) -> None:
        """Through a long block by rows, then to the next."""
        self._walk(1)

    def action_up(self) -> None:
        """Through a long block by rows, then to the one before."""
        self._walk(-1)

    def action_page(self, direction: int) -> None:
        """A screenful; the cursor comes along."""
        self._scroll_by(direction, max(self._view_height() - 1, 1))

    def action_half_page(self, direction: int) -> None:
        """Half a screenful; the cursor comes along."""
        self._scroll_by(direction, max(self._view_height() // 2, 1))

    def _scroll_by(self, direction: int, rows: int) -> None:
        if self.cursor < 0:
            return
        height = self._view_height()
        before = self.scroll_offset.y
        self._scroll(before + direction * rows)
        if self.scroll_offset.y == before:
            self.cursor = 0 if direction < 0 else len(self.document.blocks) - 1
        # The cursor comes along only where it would be out of sight.
        elif not self._in_sight(self.cursor):
            self.cursor = self.document.block_at(self.scroll_offset.y + (0 if direction > 0 else height - 1))

    def action_first(self) -> None:
        """The start."""
        if self.cursor >= 0:
            self._scroll(0)
            self.cursor = 0

    def action_last(self) -> None:
        """The end."""
        if self.cursor >= 0:
            self._scroll(self.document.height)
            self.cursor = len(self.document.blocks) - 1

    def action_next_step(self) -> None:
        """The next message or tool call."""
        self._step(1)

    def action_previous_step(self) -> None:
        """The message or tool call before."""
        self._step(-1)

    def action_toggle_fold(self) -> None:
        """Fold or unfold."""
        self.toggle_fold()

    def action_fold_all(self) -> None:
        """Fold or unfold everything."""
        self.fold_all(not self._folded_all)

    def on_click(self, event: events.Click) -> None:
        """A click moves the cursor; on a row that stands for hidden ones it unfolds them."""
        inside = event.get_content_offset(self)
        if inside is None or self.cursor < 0 or self.text_selection is not None:
            return
        row = inside.y + self.scroll_offset.y
        if row >= self.document.height:
            return
        event.stop()
        self.cursor = self.document.block_at(row)
        spot = self.document.spot(row)
        if spot is not None and spot.row is not None and spot.row.fold:
            self.toggle_fold()

    # Painting

    def on_mount(self) -> None:
        """Say how high it is."""
        self._resize_content()

    def on_resize(self) -> None:
        """Lay out for the new width; the row at the top stays there."""
        if not self._width():
            return
        anchor = self.document.anchor(self.scroll_offset.y)
        self.document.set_width(self._width())
        self._keep(anchor)

    def notify_style_update(self) -> None:
        """The theme or the styles changed."""
        self._palette = self._base = None
        super().notify_style_update()

    def watch_cursor(self, old: int, new: int) -> None:
        """Move the bar."""
        self._refresh_bar(old)
        self._refresh_bar(new)
        if self.cursor_key is not None and self.is_running:
            self._tell_cursor()

    def on_focus(self) -> None:
        """The bar has colour with the focus."""
        self._refresh_bar(self.cursor)

    def on_blur(self) -> None:
        """The bar is dim without the focus."""
        self._refresh_bar(self.cursor)

    def validate_scroll_y(self, value: float) -> float:
        """Before anything comes into sight its height is made exact; what was in sight moves by whole rows only."""
        if self._document is not None and self._document.blocks and self._view_height():
            value = self._settled(value)
        return super().validate_scroll_y(value)

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Wheel steps start from where the view really is."""
        self.set_reactive(ScrollView.scroll_target_y, new_value)
        super().watch_scroll_y(old_value, new_value)

    def render_lines(self, crop: Region) -> list[Strip]:
        """Several lines: what they all need is looked up once."""
        self._base = self.rich_style
        self._selected = self.text_selection
        return super().render_lines(crop)

    def render_line(self, y: int) -> Strip:
        """Line `y` of the widget."""
        width = self._width()
        base = self._base or self.rich_style
        if self._palette is None:
            self._palette = palette_of(self)
        document = self.document
        row = y + self.scroll_offset.y
        if not document.blocks:
            lines = self._empty_lines(width)
            line = lines[row] if row < len(lines) else ()
            return self._palette.strip(line, width + self._margin).apply_style(base)
        if row >= document.height:
            return Strip.blank(width + self._margin, base)
        marked = document.block_at(row) == self.cursor
        bar_style = base + self._palette.style("accent" if self.has_focus else "dim")
        bar = Strip([Segment(CURSOR if marked else " ", bar_style)], 1)
        text = minimal_strip(self._palette.strip(document.line(row), width).apply_style(base), width)
        # The bar is a segment of its own, so that moving it repaints one cell a row.
        strip = Strip.join([bar, Strip(self._beside(row)).apply_style(base), text])
        selection = self._selected
        if selection is not None and (span := selection.get_span(row)) is not None:
            strip = selected(strip, *span, self.screen.get_component_rich_style("screen--selection"))
        return strip.apply_offsets(0, row)

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        """The text that was selected with the mouse, without the column of roles."""
        start, end = selection
        margin = self._margin
        first, first_character = (0, 0) if start is None else (start.y, max(start.x - margin, 0))
        last, last_character = (self.document.height - 1, -1) if end is None else (end.y, max(end.x - margin, 0))
        return self.document.text_between(first, first_character, last, last_character), "\n"

    def selection_updated(self, selection: Selection | None) -> None:
        """Paint what is selected."""
        self.refresh()

    # Inside

    def _width(self) -> int:
        """Cells for the document: all but those of the margin."""
        return max(self.scrollable_content_region.width - self._margin, 0)

    def _empty_lines(self, width: int) -> list[Line]:
        """What is shown while there are no blocks: no line of it is cut."""
        lines = keyed(self._empty, getattr(self.app, "keymap", {}))
        return [each for line in lines for each in hanging(line, width)]

    def _view_height(self) -> int:
        return self.scrollable_content_region.height

    def _resize_content(self) -> None:
        if self._width():
            document = self.document
            document.settle(self.scroll_offset.y, self._view_height())
            height = document.height if document.blocks else len(self._empty_lines(self._width()))
            self._tell_height(height)

    def _tell_height(self, height: int) -> None:
        """Heights get exact while one reads. That concerns the scrollbar, and no row in sight: repaint only it."""
        if self.virtual_size.height == height:
            return
        # Without the watcher of `virtual_size`, which would lay out and paint everything.
        if self.vertical_scrollbar.window_size:
            self.set_reactive(ScrollView.virtual_size, Size(0, height))
            self.vertical_scrollbar.window_virtual_size = height
        else:
            self.virtual_size = Size(0, height)

    def _settled(self, value: float) -> float:
        """Make everything exact that will be in sight at scroll position `value`; where that position is then."""
        document = self.document
        view = self._view_height()
        row = round(value)
        now = self.scroll_offset.y
        # Upwards, rows become exact above what is in sight, and move it; downwards they lie below.
        if 0 <= now - row <= _NEARBY * view:
            anchor = document.anchor(now)
            if anchor is not None:
                # Making heights exact moves rows, and brings others into sight: it ends when nothing moves any more.
                # The number is a bound, should that never be.
                for _ in range(8):
                    document.settle(max(row, 0), max(now - row, 0))
                    there = document.row_of(anchor)
                    if there is None or there == now:
                        break
                    row, now = row + there - now, there
        for _ in range(8):
            top = max(0, min(row, document.height - view))
            document.settle(top, view)
            if top == max(0, min(row, document.height - view)):
                break
        self._tell_height(document.height)
        return value + row - round(value)

    def _scroll(self, row: int) -> None:
        self.scroll_to(y=max(row, 0), animate=False, force=True)

    def _keep(self, anchor: tuple[BlockKey, int] | None) -> None:
        """Heights changed everywhere: bring what was at the top of the screen back there."""
        self._resize_content()
        row = None if anchor is None else self.document.row_of(anchor)
        if row is not None:
            self._scroll(row)
        self.refresh()

    def _refresh_bar(self, block: int) -> None:
        self._refresh_block(block, 1)

    def _refresh_block(self, block: int, width: int | None = None) -> None:
        document = self._document
        if document is None or not 0 <= block < len(document.blocks):
            return
        top = max(document.top(block) - self.scroll_offset.y, 0)
        bottom = min(document.bottom(block) - self.scroll_offset.y, self._view_height())
        if bottom > top:
            self.refresh(Region(0, top, self._width() + self._margin if width is None else width, bottom - top))

    def _in_sight(self, block: int) -> bool:
        top = self.scroll_offset.y
        return self.document.bottom(block) > top and self.document.top(block) < top + self._view_height()

    def _walk(self, direction: int) -> None:
        if self.cursor < 0:
            return
        document, height, top = self.document, self._view_height(), self.scroll_offset.y
        if not self._in_sight(self.cursor):
            self.cursor = document.block_at(top if direction > 0 else top + height - 1)
        elif (direction > 0 and document.bottom(self.cursor) > top + height) or (
            direction < 0 and document.top(self.cursor) < top
        ):
            self._scroll(top + direction)
        elif 0 <= self.cursor + direction < len(document.blocks):
            self._reveal(self.cursor + direction, direction)
            self.cursor += direction

    def _reveal(self, block: int, direction: int) -> None:
        """Scroll as little as shows the block; of one higher than the screen, the end that one comes to first."""
        document, height = self.document, self._view_height()
        document.settle(document.top(block), min(document.bottom(block) - document.top(block), height))
        self._resize_content()
        top, first, last = self.scroll_offset.y, document.top(block), document.bottom(block)
        if first >= top and last <= top + height:
            return
        fits = last - first <= height
        if direction > 0:
            self._scroll(last - height if fits and first > top else first)
        else:
            self._scroll(first if fits else last - height)

    def _go_to_block(self, block: int) -> None:
        self.document.settle(self.document.top(block), self._view_height())
        self._resize_content()
        top, height = self.scroll_offset.y, self._view_height()
        first, last = self.document.top(block), self.document.bottom(block)
        if first < top or last > top + height:
            self._scroll(first)
        self.cursor = block

    def _step(self, direction: int) -> None:
        blocks = self.document.blocks
        block = self.cursor + direction
        while 0 <= block < len(blocks) and not blocks[block].is_step:
            block += direction
        if 0 <= block < len(blocks):
            self._go_to_block(block)
