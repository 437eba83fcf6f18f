"""The difference of two transcripts on the screen: goes from difference to difference, folds what is alike."""

from __future__ import annotations

from textual.message import Message

from agenteval_tui.analysis.trajectory_alignment import Alignment
from agenteval_tui.tui.presenters.difference import DifferenceDocument
from agenteval_tui.tui.widgets.blocks_view import BlocksView


class DifferenceView(BlocksView, can_focus=True):
    """Shows an alignment: side by side where there is room, else one above the other."""

    class Moved(Message):
        """The cursor is on another block now."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._alignment = Alignment(())
        self._document: DifferenceDocument | None = None

    @property
    def document(self) -> DifferenceDocument:
        """The lines; laid out for 80 cells while the widget has no size."""
        if self._document is None:
            self._document = DifferenceDocument(self._alignment, self._width() or 80)
        return self._document

    def show(self, alignment: Alignment) -> None:
        """Show another difference, at its first one."""
        self._alignment = alignment
        self._document = None
        document = self.document
        self.cursor = 0 if document.blocks else -1
        self._resize_content()
        self._scroll(0)
        self.refresh()
        if document.differences:
            self.go_to_pair(document.differences[0])

    def go_to_pair(self, pair: int) -> None:
        """Put the cursor on a pair of steps, a little below the first row."""
        self._show_block(self.document.block_of(pair))

    def next_difference(self, direction: int) -> bool:
        """Go to the difference after (1) or before (-1) the cursor; False when there is none."""
        block = self.document.next_difference(self.cursor, direction)
        if block is not None:
            self._show_block(block)
        return block is not None

    def toggle_fold(self) -> None:
        """Fold or unfold; the cursor stays on its step."""
        if self.cursor < 0:
            return
        document = self.document
        pair, anchor = document.blocks[self.cursor].first, document.anchor(self.scroll_offset.y)
        document.fold(self.cursor, folded=not document.is_folded(self.cursor))
        self.cursor = document.block_of(pair)
        self._keep(anchor)

    def fold_all(self, folded: bool) -> None:
        """Fold everything that is alike, or open it; the cursor stays on its step."""
        pair = self.document.blocks[self.cursor].first if self.cursor >= 0 else 0
        super().fold_all(folded)
        self.cursor = self.document.block_of(pair) if self.document.blocks else -1

    def _known(self) -> DifferenceDocument | None:
        return self._document

    def _tell_cursor(self) -> None:
        self.post_message(self.Moved())

    def _show_block(self, block: int) -> None:
        document, height = self.document, self._view_height()
        document.settle(document.top(block), height)
        self._resize_content()
        first, last = document.top(block), document.bottom(block)
        top = self.scroll_offset.y
        if first < top or last > top + height:
            # With what is before it in sight: that says where one is.
            self._scroll(max(first - min(height // 4, max(height - (last - first), 0)), 0))
        self.cursor = block
