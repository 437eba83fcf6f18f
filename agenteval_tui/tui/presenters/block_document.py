"""Blocks of text one below the other, of which only what is looked at is laid out.

Heights are exact for what was seen and estimates for the rest. Long texts are laid out in pieces, so that no
keystroke lays out megabytes. Blocks fold.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from typing import Protocol

from msgspec import Struct
from msgspec.structs import replace

from agenteval_tui.core.numbers import count
from agenteval_tui.tui.presenters.arguments import Body
from agenteval_tui.tui.presenters.block_layout import KEY, TIE, Fold, FoldedText, Range, Row, lay_out
from agenteval_tui.tui.presenters.prefix_sums import Heights
from agenteval_tui.tui.presenters.transcript_blocks import FOLDED_BY_HAND, Block, BlockKey
from agenteval_tui.tui.styled_text import Cell, Line, fit

PIECE = 16_000  # characters laid out at once
_BLANK = 40  # characters of white space that are written out where a text has nothing else
_KEPT = 256  # pieces whose rows are kept


class Piece(Struct, eq=False):
    """Characters `start`..`end` of a block's text. With a `limit` it is the whole block, folded to this many rows."""

    block: int
    start: int
    end: int | None
    limit: int | None = None
    exact: bool = False


class BlockPosition(Struct, frozen=True):
    """What is at a row: the row of a block's text (None: the head line above it), and whether it is its first."""

    block: int
    row: Row | None
    first: bool


class Keyed(Protocol):
    """A block: what names it, and whether stepping stops at it."""

    @property
    def key(self) -> BlockKey:
        """Its name."""

    @property
    def is_step(self) -> bool:
        """Does "next step" stop here?"""


class BlocksDocument(ABC):
    """What a view of blocks shows. Heights are exact where `settle` was called, and estimates elsewhere."""

    blocks: Sequence[Keyed]

    def __init__(self) -> None:
        self._heights = Heights()

    @property
    def height(self) -> int:
        """Rows of all of it; partly an estimate."""
        return self._heights.total

    @abstractmethod
    def set_width(self, width: int) -> None:
        """Lay out for another width."""

    @abstractmethod
    def line(self, row: int) -> Line:
        """Row `row`; () behind the end."""

    @abstractmethod
    def spot(self, row: int) -> BlockPosition | None:
        """What is at `row`; None behind the end."""

    @abstractmethod
    def block_at(self, row: int) -> int:
        """The block at `row`; the last one behind the end; -1 when there is none."""

    @abstractmethod
    def top(self, block: int) -> int:
        """The row at which a block begins."""

    @abstractmethod
    def bottom(self, block: int) -> int:
        """The row behind a block's last."""

    @abstractmethod
    def index_of(self, key: BlockKey) -> int | None:
        """The block with a key."""

    @abstractmethod
    def text(self, block: int) -> str:
        """What a person copies of a block."""

    @abstractmethod
    def text_between(self, first: int, first_character: int, last: int, last_character: int) -> str:
        """The text from `first_character` of row `first` to `last_character` of row `last`; -1: to the end."""

    @abstractmethod
    def is_folded(self, block: int) -> bool:
        """Is part of the block hidden?"""

    @abstractmethod
    def fold(self, block: int, *, folded: bool) -> None:
        """Fold or unfold a block by hand."""

    @abstractmethod
    def fold_all(self, *, folded: bool) -> None:
        """Fold or unfold everything."""

    def settle(self, row: int, count: int) -> None:
        """Make the heights of everything between `row` and `row + count` exact. What is above `row` stays."""
        self._heights.settle(row, count, self._measure)

    @abstractmethod
    def _measure(self, index: int) -> None:
        """Make height number `index` exact."""

    def anchor(self, row: int) -> tuple[BlockKey, int] | None:
        """What is at `row`, in a form that can be found again when heights change."""
        block = self.block_at(row)
        return None if block < 0 else (self.blocks[block].key, row - self.top(block))

    def row_of(self, anchor: tuple[BlockKey, int]) -> int | None:
        """The row where an anchor is now; None when its block is gone."""
        block = self.index_of(anchor[0])
        if block is None:
            return None
        return self.top(block) + min(anchor[1], max(self.bottom(block) - self.top(block) - 1, 0))


class BlockColumn(BlocksDocument):
    """The blocks, how high they are, and their rows at a width. Subclasses say what is coloured (`ranges_in`)."""

    def __init__(self, folds: dict[BlockKey, bool], text_width: int, heads: bool) -> None:
        """`heads`: each block has a line of its own above its text."""
        super().__init__()
        self.blocks: list[Block] = []
        self.folds = folds
        self._text_width = text_width
        self._heads = heads
        self._index: dict[BlockKey, int] = {}
        self._pieces: list[Piece] = []
        self._first: list[int] = []
        self._rows: OrderedDict[Piece, list[Row]] = OrderedDict()
        self._bodies: dict[int, Body] = {}

    # Shape

    @property
    def margin(self) -> int:
        """Cells before the text of a row."""
        raise NotImplementedError

    def text_between(self, first: int, first_character: int, last: int, last_character: int) -> str:
        """The text without what is before it, from `first_character` of row `first` to `last_character` of row `last`;
        -1: to the end."""
        parts: list[str] = []
        for row in range(first, min(last + 1, self.height)):
            spot = self.spot(row)
            if spot is None or spot.row is None or spot.row.fold:
                continue
            text = "".join(cell for cell, _ in spot.row.cells)
            begin = max(first_character - self.margin, 0) if row == first else 0
            end = len(text) if row != last or last_character < 0 else max(last_character - self.margin, 0)
            parts.append(text[begin:end] + ("" if row == last else " " if spot.row.soft else "\n"))
        return "".join(parts)

    def block_at(self, row: int) -> int:
        if not self._pieces:
            return -1
        piece, _ = self._heights.at(max(row, 0))
        return self._pieces[min(piece, len(self._pieces) - 1)].block

    def top(self, block: int) -> int:
        return self._heights.top(self._first[block])

    def bottom(self, block: int) -> int:
        return self._heights.top(self._end(block))

    def index_of(self, key: BlockKey) -> int | None:
        return self._index.get(key)

    def spot(self, row: int) -> BlockPosition | None:
        index, into = self._heights.at(row)
        if index >= len(self._pieces):
            return None
        piece = self._pieces[index]
        first = index == self._first[piece.block]
        if self._heads and first:
            if into == 0:
                return BlockPosition(piece.block, None, True)
            into -= 1
        rows = self._layout(piece)
        if into >= len(rows):
            return BlockPosition(piece.block, Row((), 0, 0, False), False)
        return BlockPosition(piece.block, rows[into], first and into == 0)

    def row_at(self, block: int, offset: int) -> int:
        """The row that shows character `offset` of a block's text; unfolds the block when it is hidden."""
        piece_index = self._piece_of(block, offset)
        rows = self._layout(self._pieces[piece_index])
        if (rows[-1].fold and offset >= rows[-1].start) or self._in_fold(block, offset):
            self.fold(block, folded=False)
            piece_index = self._piece_of(block, offset)
            rows = self._layout(self._pieces[piece_index])
        self._measure(piece_index)
        into = next((n for n, row in enumerate(rows) if offset < row.end), len(rows) - 1)
        return self._heights.top(piece_index) + into + (self._heads and piece_index == self._first[block])

    # Text and folds

    def text(self, block: int) -> str:
        """The raw text of a block, as it was stored (for a tool call: its name and arguments, formatted)."""
        text = self.blocks[block].text
        return text if text is not None else self.body(block).text

    def body(self, block: int) -> Body:
        """The text of a block with its colours."""
        body = self._bodies.get(block)
        if body is None:
            body = self._bodies[block] = self.blocks[block].body()
        return body

    def is_folded(self, block: int) -> bool:
        if self._limit(block) is None:
            return False
        return self._layout(self._pieces[self._first[block]])[-1].fold or bool(self._folds_of(block))

    def fold(self, block: int, *, folded: bool) -> None:
        self.folds[self.blocks[block].key] = folded
        start, stop = self._first[block], self._end(block)
        pieces = self._cut(block)
        self._drop(start, stop)
        self._pieces[start:stop] = pieces
        # One block only: heights of all others are known, and stay.
        self._heights.splice(start, stop, [self._estimate(piece) for piece in pieces])
        moved = len(pieces) - (stop - start)
        # A block that unfolds has more pieces: those behind it have other numbers.
        if moved:
            self._first[block + 1 :] = [first + moved for first in self._first[block + 1 :]]
        self._measure(start)

    def fold_all(self, *, folded: bool) -> None:
        self.folds.update((block.key, folded) for block in self.blocks)
        self._rebuild(0)

    def ranges_in(self, block: int, start: int, end: int) -> Sequence[Range]:
        """What looks special between `start` and `end` of a block's text."""
        return ()

    def _hidden_marks(self, block: int, offset: int) -> int:
        """How many marks the fold hides behind `offset`."""
        return 0

    def _is_marked(self, block: int, start: int, end: int) -> bool:
        """Is something between `start` and `end` marked, so that it must be seen?"""
        return False

    # Nested values

    def _folds_of(self, block: int) -> list[Fold]:
        """The nested values that are folded while the block is: those in which nothing is marked."""
        if self.blocks[block].make is None:
            return []
        return [fold for fold in self.body(block).folds if not self._is_marked(block, fold.start, fold.end)]

    def _in_fold(self, block: int, offset: int) -> bool:
        return self._limit(block) is not None and any(fold.start <= offset < fold.end for fold in self._folds_of(block))

    # Making and measuring

    def _reshape(self, text_width: int, heads: bool) -> None:
        self._text_width, self._heads = text_width, heads
        self._rebuild(0)

    def _replace(self, start: int, blocks: Iterable[Block]) -> None:
        """Put `blocks` in place of all from number `start`."""
        old = self.blocks[start : start + 1]
        # The pieces of the first block that changes are kept: where it only grew, most of them are as before.
        pieces = self._pieces[self._first[start] : self._end(start)] if old else []
        heights = [self._heights[self._first[start] + number] for number in range(len(pieces))]
        for block in self.blocks[start:]:
            self._index.pop(block.key, None)
        del self.blocks[start:]
        self.blocks.extend(blocks)
        self._index.update((block.key, start + index) for index, block in enumerate(self.blocks[start:]))
        for index in [index for index in self._bodies if index >= start]:
            del self._bodies[index]
        self._rebuild(start)
        if old and start < len(self.blocks) and _grew(old[0], self.blocks[start]):
            # A message that streams: all its pieces but the last are as before.
            place = self._first[start]
            for number, piece in enumerate(pieces[:-1]):
                mine = self._pieces[place + number]
                if piece.exact and (mine.start, mine.end, mine.limit) == (piece.start, piece.end, piece.limit):
                    mine.exact = True
                    self._heights.set(place + number, heights[number])

    def _rebuild(self, block: int) -> None:
        """Cut the blocks from number `block` into pieces again."""
        start = self._first[block] if block < len(self._first) else len(self._pieces)
        self._drop(start, len(self._pieces))
        del self._pieces[start:], self._first[block:]
        for index in range(block, len(self.blocks)):
            self._first.append(len(self._pieces))
            self._pieces.extend(self._cut(index))
        self._heights.splice(start, len(self._heights), [self._estimate(piece) for piece in self._pieces[start:]])

    def _drop(self, start: int, stop: int) -> None:
        for piece in self._pieces[start:stop]:
            self._rows.pop(piece, None)

    def _end(self, block: int) -> int:
        return self._first[block + 1] if block + 1 < len(self._first) else len(self._pieces)

    def _cut(self, index: int) -> list[Piece]:
        limit = self._limit(index)
        if limit is not None:
            return [Piece(index, 0, None, limit)]
        text = self.text(index)
        size = _shown_size(text)
        pieces: list[Piece] = []
        start = 0
        while size - start > PIECE:
            # Cut where a line ends, else at a space: a row must not be broken by the cut.
            end = text.rfind("\n", start, start + PIECE) + 1
            if end <= start:
                end = text.rfind(" ", start, start + PIECE) + 1
            if end <= start:
                end = start + PIECE
            pieces.append(Piece(index, start, end))
            start = end
        pieces.append(Piece(index, start, size))
        return pieces

    def _limit(self, index: int) -> int | None:
        """How many rows of the block are shown when it is longer than that; None: all."""
        block = self.blocks[index]
        folded = self.folds.get(block.key)
        if folded is None:
            return block.fold
        return min(block.fold or FOLDED_BY_HAND, FOLDED_BY_HAND) if folded else None

    def _estimate(self, piece: Piece) -> int:
        # To lay out all of a transcript can take seconds: only what is seen is measured, the rest must be about right.
        head = self._heads and piece.start == 0
        if piece.end is not None:
            text = self.text(piece.block)
            lines = text.count("\n", piece.start, piece.end) + (piece.end == _shown_size(text))
            return self._rows_of(lines, piece.end - piece.start) + head
        block, most = self.blocks[piece.block], (piece.limit or 0) + 1
        if block.characters > 2 * most * self._text_width:
            return most + head  # however its lines are broken, which would have to be counted through megabytes
        return min(self._rows_of(block.lines, block.characters), most) + head

    def _rows_of(self, lines: int, characters: int) -> int:
        """The approximate number of rows for these lines and characters."""
        lines = max(lines, 1)
        return lines + max(characters - lines * self._text_width // 2, 0) // self._text_width

    def _measure(self, index: int) -> None:
        piece = self._pieces[index]
        if piece.exact:
            return
        rows = len(self._layout(piece)) + (self._heads and piece.start == 0)
        piece.exact = True
        if rows != self._heights[index]:
            self._heights.set(index, rows)

    def _layout(self, piece: Piece) -> list[Row]:
        known_rows = self._rows.get(piece)
        if known_rows is not None:
            self._rows.move_to_end(piece)
            return known_rows
        rows = self._rows[piece] = self._lay_out(piece)
        if len(self._rows) > _KEPT:
            self._rows.popitem(last=False)
        return rows

    def _lay_out(self, piece: Piece) -> list[Row]:
        style = self.blocks[piece.block].style
        text = self.text(piece.block)
        if not text:
            return [Row((("(nothing)", "dim"),), 0, 0, False)]
        if len(text) <= _BLANK and text.isspace():
            return [Row(((f"(white space: {json.dumps(text)})", "dim"),), 0, 0, False)]
        end = size = _shown_size(text) if piece.end is None else piece.end
        most = None
        if piece.limit is not None:
            # A row that says "one more row" is no use in place of that row: look two further.
            most = piece.limit + 2
            # No more characters than can be in these rows are laid out, however long the text is.
            end = min(end, most * self._text_width + 2)
        if piece.limit is not None and (folds := self._folds_of(piece.block)):
            return self._lay_out_folded(piece.block, piece.limit, FoldedText(text, folds), style)
        ranges = self.ranges_in(piece.block, piece.start, end)
        rows = lay_out(text, piece.start, end, self._text_width, base=style, ranges=ranges, limit=most)
        if piece.limit is None or (end == size and len(rows) <= piece.limit + 1):
            return rows
        return [*rows[: piece.limit], self._fold_row(piece.block, text, rows[piece.limit - 1])]

    def _lay_out_folded(self, block: int, limit: int, folded: FoldedText, style: str) -> list[Row]:
        """The rows of a block with summaries in place of nested values."""
        around = {
            styled_range: None for start, end in folded.gaps for styled_range in self.ranges_in(block, start, end)
        }
        ranges = folded.ranges(around)
        size = _shown_size(folded.text)
        laid_out = lay_out(folded.text, 0, size, self._text_width, base=style, ranges=ranges, limit=limit + 2)
        rows = [
            replace(row, cells=_untied(row.cells), start=folded.back(row.start), end=folded.back(row.end))
            for row in laid_out
        ]
        if len(rows) <= limit + 1:
            return rows
        return [*rows[:limit], self._fold_row(block, folded.full, rows[limit - 1])]

    def _fold_row(self, block: int, text: str, last: Row) -> Row:
        """The line that replaces the rows after `last`: how many more lines there are, and the key to see them."""
        size = _shown_size(text)
        lines = text.count("\n", last.end, size) + last.soft
        hidden = max(lines, -(-(size - last.end) // self._text_width), 1)
        cells: list[Cell] = [(f"… {count(hidden, 'more line')}", "dim")]
        marked = self._hidden_marks(block, last.end)
        if marked:
            cells.append((f", evidence in them ({marked})", "accent"))
        cells.append(("  f", "bold accent"))
        return Row(fit(cells, self._text_width), last.end, len(text), False, fold=True)

    def _piece_of(self, block: int, offset: int) -> int:
        for index in range(self._first[block], self._end(block)):
            end = self._pieces[index].end
            if end is None or offset < end:
                return index
        return self._end(block) - 1

    def _forget(self, blocks: Iterable[int]) -> None:
        """Blocks look different: lay them out again when they are seen."""
        for block in blocks:
            if block < len(self._first):
                for piece in self._pieces[self._first[block] : self._end(block)]:
                    self._rows.pop(piece, None)
                    piece.exact = False


def _untied(cells: Line) -> Line:
    """The cells with ordinary spaces before the key that unfolds a summary."""
    return tuple((text.replace(TIE, " ") if text == KEY else text, style) for text, style in cells)


def _shown_size(text: str) -> int:
    """The length of `text` without the newlines at its end, which would be empty rows."""
    size = len(text)
    while size and text[size - 1] in "\r\n":
        size -= 1
    return size or len(text)


def _grew(old: Block, new: Block) -> bool:
    return old.key == new.key and old.text is not None and new.text is not None and new.text.startswith(old.text)
