"""The transcript on the screen: scrolls, folds, searches, shows evidence; lays out only what is seen.

What is where is the presenter's business (`presenters/transcript.py`); this widget paints its lines and answers keys.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.actions import SkipAction
from textual.binding import Binding, BindingType
from textual.geometry import Region, Size
from textual.message import Message
from textual.reactive import reactive
from textual.scroll_view import ScrollView
from textual.selection import Selection
from textual.strip import Strip

from agenteval_tui.transcripts.model import Transcript
from agenteval_tui.tui.lines import Line
from agenteval_tui.tui.palette import Palette, palette_of
from agenteval_tui.tui.presenters.marks import Mark
from agenteval_tui.tui.presenters.transcript import Place, TranscriptDocument
from agenteval_tui.tui.presenters.transcript_blocks import BlockKey
from agenteval_tui.tui.strips import thrifty
from agenteval_tui.tui.widgets.virtual_list import CURSOR

_NEARBY = 3  # screens: a jump further than this need not land to the line


class TranscriptView(ScrollView, can_focus=True):
    """Shows a transcript. `cursor` is the index of the block with the bar at its side, -1 while there is none."""

    DEFAULT_CSS = Path(__file__).with_suffix(".tcss").read_text(encoding="utf-8")

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("down,j", "down", "Down", show=False, id="transcript.down"),
        Binding("up,k", "up", "Up", show=False, id="transcript.up"),
        Binding("pagedown,ctrl+f", "page(1)", "Next page", show=False, id="transcript.page_down"),
        Binding("pageup,ctrl+b", "page(-1)", "Previous page", show=False, id="transcript.page_up"),
        Binding("home,g", "first", "Start", show=False, id="transcript.first"),
        Binding("end,G", "last", "End", show=False, id="transcript.last"),
        Binding("right_square_bracket,J", "next_step", "Next step", show=False, id="transcript.next_step"),
        Binding("left_square_bracket,K", "previous_step", "Previous step", show=False, id="transcript.previous_step"),
        Binding("full_stop", "next_mark", "Next evidence", show=False, id="transcript.next_mark"),
        Binding("comma", "previous_mark", "Previous evidence", show=False, id="transcript.previous_mark"),
        Binding("f,enter", "toggle_fold", "Fold", show=False, id="transcript.fold"),
        Binding("F", "fold_all", "Fold all", show=False, id="transcript.fold_all"),
    ]

    cursor: reactive[int] = reactive(-1, repaint=False, init=False)

    @dataclass
    class Highlighted(Message):
        """The cursor is on another block now."""

        view: TranscriptView
        index: int
        key: BlockKey

        @property
        def control(self) -> TranscriptView:
            """The view that sent it."""
            return self.view

    @dataclass
    class PlaceShown(Message):
        """A mark or a found word was jumped to: `number` of `total`, from 1."""

        view: TranscriptView
        place: Place
        number: int
        total: int

        @property
        def control(self) -> TranscriptView:
            """The view that sent it."""
            return self.view

    def __init__(
        self,
        transcript: Transcript | None = None,
        *,
        marks: Sequence[Mark] = (),
        empty: Sequence[Line] = (),
        name: str | None = None,
        id: str | None = None,
        classes: str | None = None,
        disabled: bool = False,
    ) -> None:
        """`empty` is what is shown while there are no messages."""
        super().__init__(name=name, id=id, classes=classes, disabled=disabled)
        self._transcript = transcript or Transcript()
        self._marks: Sequence[Mark] = marks
        self._empty = tuple(empty)
        self._folds: dict[BlockKey, bool] = {}
        self._raw = False
        self._document: TranscriptDocument | None = None
        self._palette: Palette | None = None
        self._base: Style | None = None
        self._selected: Selection | None = None
        self._folded_all = False

    # What is shown

    @property
    def transcript(self) -> Transcript:
        """The transcript that is shown."""
        return self._transcript

    @property
    def document(self) -> TranscriptDocument:
        """The lines; laid out for 80 cells while the widget has no size."""
        if self._document is None:
            self._document = TranscriptDocument(
                self._transcript, marks=self._marks, folds=self._folds, width=self._width() or 80, raw=self._raw
            )
            self.set_reactive(TranscriptView.cursor, 0 if self._document.blocks else -1)
        return self._document

    def show_transcript(self, transcript: Transcript, *, marks: Sequence[Mark] = ()) -> None:
        """Show another transcript from its start; what was folded by hand in the one before is forgotten."""
        self._transcript = transcript
        self._marks = marks
        self._folds = {}
        self._folded_all = False
        self._reset()

    def update(self, transcript: Transcript) -> None:
        """Show a later state of the same transcript. Who looks at its end goes on looking at its end."""
        self._transcript = transcript
        if self._document is None:
            return
        following = self.is_vertical_scroll_end
        on_last = self.cursor >= len(self._document.blocks) - 1
        start = self._document.update(transcript)
        self._resize_content()
        if on_last or self.cursor < 0:
            self.cursor = len(self._document.blocks) - 1
        if following:
            self._scroll(self._document.height)
        first = self._document.top(start) if start < len(self._document.blocks) else self._document.height
        row = max(first - self.scroll_offset.y, 0)
        if row < self.size.height:
            self.refresh(Region(0, row, self.size.width, self.size.height - row))

    def set_marks(self, marks: Sequence[Mark]) -> None:
        """Mark other evidence."""
        self._marks = marks
        if self._document is not None:
            with_anchor = self._document.anchor(self.scroll_offset.y)
            self._document.set_marks(marks)
            self._keep(with_anchor)

    def show_raw(self, raw: bool) -> None:
        """Show the stored form as JSON, or the readable one; stays at the message where the cursor is."""
        if raw == self._raw:
            return
        message = self.document.message_of(self.cursor) if self.cursor >= 0 else 0
        self._raw = raw
        self._reset()
        block = self.document.block_of(message)
        if block is not None:
            self._go_to_block(block)

    @property
    def is_raw(self) -> bool:
        """Is the stored form shown?"""
        return self._raw

    @property
    def cursor_key(self) -> BlockKey | None:
        """What the cursor is on."""
        blocks = self.document.blocks
        return blocks[self.cursor].key if 0 <= self.cursor < len(blocks) else None

    @property
    def selected_text(self) -> str:
        """What was selected with the mouse, else the text of the block under the cursor, as it was stored."""
        selection = self.text_selection
        if selection is not None and (found := self.get_selection(selection)) is not None:
            return found[0]
        return self.document.text(self.cursor) if self.cursor >= 0 else ""

    # Going places

    def go_to_key(self, key: BlockKey) -> bool:
        """Put the cursor on a block; False when there is none with this key."""
        block = self.document.index_of(key)
        if block is not None:
            self._go_to_block(block)
        return block is not None

    def next_mark(self) -> Place | None:
        """Jump to the next evidence; None when nothing is marked."""
        return self._jump(self.document.places, 1)

    def previous_mark(self) -> Place | None:
        """Jump to the evidence before."""
        return self._jump(self.document.places, -1)

    def show_mark(self, mark: Mark) -> bool:
        """Jump to one of the marks; False when it has no place here."""
        for number, place in enumerate(self.document.places, 1):
            if place.mark == mark:
                self._show(place, number, len(self.document.places))
                return True
        return False

    def search(self, text: str) -> int:
        """Find `text`, go to the first place after the screen's first row; how often it is there. "" ends it."""
        found = self.document.search(text)
        if found:
            self._jump(self.document.matches, 1)
        self.refresh()
        return found

    def next_match(self) -> Place | None:
        """Jump to the next found word."""
        return self._jump(self.document.matches, 1)

    def previous_match(self) -> Place | None:
        """Jump to the found word before."""
        return self._jump(self.document.matches, -1)

    def next_step(self) -> None:
        """The next message or tool call."""
        self._step(1)

    def previous_step(self) -> None:
        """The message or tool call before."""
        self._step(-1)

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
        if self.cursor < 0:
            return
        height = self._view_height()
        before = self.scroll_offset.y
        self._scroll(before + direction * max(height - 1, 1))
        if self.scroll_offset.y == before:
            self.cursor = 0 if direction < 0 else len(self.document.blocks) - 1
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

    def action_next_mark(self) -> None:
        """The next evidence. Without any the key is for whoever holds this widget, who can say so."""
        if self.next_mark() is None:
            raise SkipAction

    def action_previous_mark(self) -> None:
        """The evidence before."""
        if self.previous_mark() is None:
            raise SkipAction

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
        key = self.cursor_key
        if key is not None and self.is_running:
            self.post_message(self.Highlighted(self, new, key))

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
            line = self._empty[row] if row < len(self._empty) else ()
            return self._palette.strip(line, width + 1).apply_style(base)
        if row >= document.height:
            return Strip.blank(width + 1, base)
        marked = document.block_at(row) == self.cursor
        bar_style = base + self._palette.style("accent" if self.has_focus else "dim")
        bar = Strip([Segment(CURSOR if marked else " ", bar_style)], 1)
        text = thrifty(self._palette.strip(document.line(row), width).apply_style(base), width)
        # The bar is a segment of its own, so that moving it repaints one cell a row.
        strip = Strip.join([bar, text])
        selection = self._selected
        if selection is not None and (span := selection.get_span(row)) is not None:
            strip = self._with_selection(strip, *span)
        return strip.apply_offsets(0, row)

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        """The text that was selected with the mouse, without the column of roles."""
        start, end = selection
        first, first_cell = (0, 0) if start is None else (start.y, max(start.x - 1, 0))
        last, last_cell = (self.document.height - 1, -1) if end is None else (end.y, max(end.x - 1, 0))
        return self.document.text_between(first, first_cell, last, last_cell), "\n"

    def selection_updated(self, selection: Selection | None) -> None:
        """Paint what is selected."""
        self.refresh()

    # Inside

    def _with_selection(self, strip: Strip, start: int, end: int) -> Strip:
        width = strip.cell_length
        end = width if end < 0 else min(end, width)
        style = self.screen.get_component_rich_style("screen--selection")
        head, middle, tail = strip.crop(0, start), strip.crop(start, end), strip.crop(end, width)
        painted = Strip([Segment(text, (old or style) + style) for text, old, _ in middle], middle.cell_length)
        return Strip.join([head, painted, tail])

    def _width(self) -> int:
        """Cells for the document: all but the bar's."""
        return max(self.scrollable_content_region.width - 1, 0)

    def _view_height(self) -> int:
        return self.scrollable_content_region.height

    def _reset(self) -> None:
        self._document = None
        before = self.cursor
        self._resize_content()
        self._scroll(0)
        self.refresh()
        if self.cursor >= 0 and (before != self.cursor or self.cursor == 0) and self.is_running:
            key = self.cursor_key
            assert key is not None
            self.post_message(self.Highlighted(self, self.cursor, key))

    def _resize_content(self) -> None:
        if self._width():
            document = self.document
            document.settle(self.scroll_offset.y, self._view_height())
            height = document.height if document.blocks else len(self._empty)
            self._tell_height(height)

    def _tell_height(self, height: int) -> None:
        """Heights get exact while one reads. That concerns the scrollbar, and no row in sight: repaint only it."""
        if self.virtual_size.height == height:
            return
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
        if 0 <= now - row <= _NEARBY * view:
            anchor = document.anchor(now)
            if anchor is not None:
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
        if self._document is None or not 0 <= block < len(self._document.blocks):
            return
        top = max(self._document.top(block) - self.scroll_offset.y, 0)
        bottom = min(self._document.bottom(block) - self.scroll_offset.y, self._view_height())
        if bottom > top:
            self.refresh(Region(0, top, self._width() + 1 if width is None else width, bottom - top))

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

    def _jump(self, places: Sequence[Place], direction: int) -> Place | None:
        place = self.document.next_place(places, self.scroll_offset.y, direction)
        if place is not None:
            self._show(place, places.index(place) + 1, len(places))
        return place

    def _show(self, place: Place, number: int, total: int) -> None:
        document = self.document
        before, total_height = document.current, document.height
        row = document.show_place(place)
        self._resize_content()
        top, height = self.scroll_offset.y, self._view_height()
        if not top + 1 <= row < top + height - 1:
            self._scroll(row - height // 3)
        if document.height != total_height:
            self.refresh()
        for block in {place.block} | ({before.block} if before is not None else set()):
            self._refresh_block(block)
        self.cursor = place.block
        self.post_message(self.PlaceShown(self, place, number, total))
