"""The transcript on the screen: searches, shows evidence, and does all that a view of blocks does.

What is where is the presenter's business (`presenters/transcript.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import ClassVar, Protocol

from rich.segment import Segment
from textual.actions import SkipAction
from textual.binding import BindingType
from textual.geometry import Region

from agenteval_tui.transcripts.model import Transcript
from agenteval_tui.tui.actions import bindings
from agenteval_tui.tui.presenters.highlights import Mark
from agenteval_tui.tui.presenters.transcript import Position, TranscriptDocument, number_of
from agenteval_tui.tui.presenters.transcript_blocks import BlockKey
from agenteval_tui.tui.style_tokens import palette_of
from agenteval_tui.tui.styled_text import Cell, Line
from agenteval_tui.tui.widgets.blocks_view import BlocksView


class Strip(Protocol):
    """A column beside the transcript."""

    def cell(self, step: int, *, first: bool) -> Cell:
        """What is beside a row of a message; `first`: the message begins there."""


class TranscriptView(BlocksView[TranscriptDocument], can_focus=True):
    """Shows a transcript. `cursor` is the index of the block with the bar at its side, -1 while there is none."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings("evidence"), *bindings("folds")]

    def __init__(
        self,
        transcript: Transcript | None = None,
        *,
        marks: Sequence[Mark] = (),
        empty: Sequence[Line] = (),
        id: str | None = None,
    ) -> None:
        """`empty` is what is shown while there are no messages."""
        super().__init__(empty=empty, id=id)
        self._transcript = transcript or Transcript()
        self._marks: Sequence[Mark] = marks
        self._folds: dict[BlockKey, bool] = {}
        self._raw = False
        self._has_strip = False
        self._strip: Strip | None = None

    # What is shown

    @property
    def transcript(self) -> Transcript:
        """The transcript that is shown."""
        return self._transcript

    def _make_document(self, width: int) -> TranscriptDocument:
        return TranscriptDocument(self._transcript, marks=self._marks, folds=self._folds, width=width, raw=self._raw)

    def _tell_cursor(self) -> None:
        if self._transcript.requests is not None and self.document.show_sight(self.document.message_of(self.cursor)):
            self.refresh()

    def show_transcript(
        self,
        transcript: Transcript,
        *,
        marks: Sequence[Mark] = (),
        document: TranscriptDocument | None = None,
        has_strip: bool = False,
    ) -> None:
        """Show another transcript from its start; what was folded by hand in the one before is forgotten.

        `document`: its lines, if somebody made them already, without marks (`lay_out`). `has_strip`: a column beside it
        is kept free for `show_strip`, so that nothing moves when that comes.
        """
        self._has_strip, self._strip = has_strip, None
        self._transcript = transcript
        self._marks = marks
        self._folds = {} if document is None else document.folds
        self._folded_all = False
        # One that was made elsewhere is the readable form, without marks.
        transcript_document = document if document is not None and not self._raw and not marks else None
        self._reset(transcript_document)

    @property
    def lay_out(self) -> Callable[[Transcript, bool], TranscriptDocument]:
        """What makes the lines of a transcript for this view, with a strip beside it or not; it may be called in a
        thread."""
        width = (self._width() or 80) + self._has_strip
        return lambda transcript, has_strip: TranscriptDocument(transcript, width=width - has_strip)

    def show_strip(self, strip: Strip | None) -> None:
        """Show another strip in the column that is kept free for it."""
        self._strip = strip
        if self._has_strip:
            self.refresh(Region(1, 0, 1, self.size.height))

    def update(self, transcript: Transcript) -> None:
        """Show a later state of the same transcript. A view at its end stays at its end."""
        self._transcript = transcript
        if self._document is None:
            return
        # Both are looked at before the text grows.
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

    # Going places

    def next_mark(self) -> Position | None:
        """Jump to the next evidence; None when nothing is marked."""
        return self._jump(self.document.places, 1)

    def previous_mark(self) -> Position | None:
        """Jump to the evidence before."""
        return self._jump(self.document.places, -1)

    def show_mark(self, mark: Mark) -> bool:
        """Jump to one of the marks; False when it has no place here."""
        place = next((place for place in self.document.places if place.mark == mark), None)
        if place is not None:
            self._show(place)
        return place is not None

    def search(self, text: str) -> int:
        """Find `text`, go to the first place after the screen's first row; how often it is there. "" ends it."""
        count = self.document.search(text)
        if count:
            self._jump(self.document.matches, 1)
        self.refresh()
        return count

    def searching(self, text: str) -> Iterator[int]:
        """The same in short slices, with how often it was found after each; goes to the first when it was found."""
        document = self.document
        went = False
        before = len(document.matches)
        for count in document.searching(text):
            if count != before or not count:
                self.refresh()
                before = count
            if count and not went:
                # The first at or below the first row; further ones may still be found before it.
                row = document.block_at(self.scroll_offset.y)
                if document.matches[-1].block >= row:
                    went = True
                    self._jump(document.matches, 1)
            yield count
        if document.matches and not went:
            self._jump(document.matches, 1)
        self.refresh()

    @property
    def match_number(self) -> tuple[int, int]:
        """Which of the found words one is at, from 1 (0: at none), and how many there are."""
        matches = self.document.matches
        return number_of(matches, self.document.current) + 1, len(matches)

    def next_match(self) -> Position | None:
        """Jump to the next found word."""
        return self._jump(self.document.matches, 1)

    def previous_match(self) -> Position | None:
        """Jump to the found word before."""
        return self._jump(self.document.matches, -1)

    # The strip

    @property
    def _margin(self) -> int:
        return 1 + self._has_strip

    def _beside(self, row: int) -> Sequence[Segment]:
        if not self._has_strip:
            return ()
        document = self.document
        block = document.block_at(row)
        sign, style = (" ", "")
        if self._strip is not None and (step := document.step_of(block)) is not None:
            first = document.first_of_step(block) and row == document.top(block)
            sign, style = self._strip.cell(step, first=first)
        if self._palette is None:
            self._palette = palette_of(self)
        return (Segment(sign, self._palette.style(style)),)

    # Keys and mouse

    def action_next_mark(self) -> None:
        """The next evidence. Without any the key is for whoever holds this widget, who can say so."""
        if self.next_mark() is None:
            raise SkipAction

    def action_previous_mark(self) -> None:
        """The evidence before."""
        if self.previous_mark() is None:
            raise SkipAction

    # Inside

    def _reset(self, document: TranscriptDocument | None = None) -> None:
        self._document = document
        if document is not None:
            document.set_width(self._width() or 80)
            self.set_reactive(TranscriptView.cursor, 0 if document.blocks else -1)
        before = self.cursor
        self._resize_content()
        self._scroll(0)
        self.refresh()
        # `set_reactive` tells nobody, and whoever shows the block at the cursor must hear of the new one.
        if self.cursor >= 0 and (before != self.cursor or self.cursor == 0) and self.is_running:
            self._tell_cursor()

    def _jump(self, places: Sequence[Position], direction: int) -> Position | None:
        place = self.document.next_place(places, self.scroll_offset.y, direction)
        if place is not None:
            self._show(place)
        return place

    def _show(self, place: Position) -> None:
        document = self.document
        before, total_height = document.current, document.height
        row = document.show_place(place)
        self._resize_content()
        top, height = self.scroll_offset.y, self._view_height()
        if not top + 1 <= row < top + height - 1:
            self._scroll(row - height // 3)
        # A fold was opened: all below it has moved.
        if document.height != total_height:
            self.refresh()
        for block in {place.block} | ({before.block} if before is not None else set()):
            self._refresh_block(block)
        self.cursor = place.block
