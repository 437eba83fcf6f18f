"""The difference of two transcripts as a very long page: steps side by side, what is alike folded to its number."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import OrderedDict
from collections.abc import Sequence

from msgspec import Struct

from agenteval_tui.analysis.trajectory_alignment import Alignment, Pair
from agenteval_tui.core.display import one_line
from agenteval_tui.core.numbers import count, decimal
from agenteval_tui.history.records import RunRow
from agenteval_tui.tui.presenters.block_document import BlockPosition, BlocksDocument
from agenteval_tui.tui.presenters.block_layout import Row
from agenteval_tui.tui.presenters.difference_rows import DOTS, DiffRow, half_width, pair_rows
from agenteval_tui.tui.presenters.prefix_sums import Heights
from agenteval_tui.tui.presenters.status_style import mark, word_of_run
from agenteval_tui.tui.presenters.transcript_blocks import BlockKey
from agenteval_tui.tui.styled_text import Cell, Line, fit, fit_reason, width_of
from agenteval_tui.views.difference import alike_text

WIDE = 110
"""Cells from which the two stand side by side."""
_AROUND = 1  # steps alike that are shown before and after a difference
_LEAST = 2  # steps that are worth a fold
_KEPT = 400  # blocks whose rows are kept


class Block(Struct, frozen=True):
    """Pairs `first`..`last`: one pair, or several alike behind one line. `key`: ("pair", n) or ("fold", first)."""

    key: BlockKey
    first: int
    last: int
    is_step: bool = True

    @property
    def is_fold(self) -> bool:
        """Does a line stand for all of it?"""
        return self.key[0] == "fold"


class DifferenceDocument(BlocksDocument):
    """Lines of an alignment at a width. `height` and `line` agree where `settle` was called."""

    def __init__(self, alignment: Alignment, width: int = 80) -> None:
        super().__init__()
        self.alignment = alignment
        self.width = width
        self.differences = alignment.differences
        self._groups = _groups(alignment.pairs)
        self._open: set[int] = set()  # folds that were opened, by their first pair
        self._full: set[int] = set()  # pairs that are shown in full
        self._rows: OrderedDict[BlockKey, list[DiffRow]] = OrderedDict()
        self._exact: list[bool] = []
        self._firsts: list[int] = []
        self.blocks: list[Block] = []
        self._build()

    @property
    def is_wide(self) -> bool:
        """Are the two side by side?"""
        return self.width >= WIDE

    def pair(self, block: int) -> Pair:
        """The pair of a block; of a fold its first."""
        return self.alignment.pairs[self.blocks[block].first]

    def next_difference(self, block: int, direction: int) -> int | None:
        """The block of the next difference after (1) or before (-1) `block`; goes round. None: there is none."""
        if not self.differences:
            return None
        here = self.blocks[block].first if 0 <= block < len(self.blocks) else -1
        if direction > 0:
            place = bisect_right(self.differences, here)
            return self.block_of(self.differences[place % len(self.differences)])
        return self.block_of(self.differences[bisect_left(self.differences, here) - 1])

    def number_of(self, block: int) -> int:
        """Which difference the block is, from 1; 0 for none."""
        if not 0 <= block < len(self.blocks):
            return 0
        here = self.blocks[block].first
        place = bisect_left(self.differences, here)
        return place + 1 if place < len(self.differences) and self.differences[place] == here else 0

    def block_of(self, pair: int) -> int:
        """The block that shows a pair."""
        return max(bisect_right(self._firsts, pair) - 1, 0)

    # What a view of blocks asks

    def set_width(self, width: int) -> None:
        if width != self.width:
            self.width = width
            self._build()

    def block_at(self, row: int) -> int:
        return min(self._heights.at(max(row, 0))[0], len(self.blocks) - 1)

    def top(self, block: int) -> int:
        return self._heights.top(block)

    def bottom(self, block: int) -> int:
        return self._heights.top(block + 1)

    def index_of(self, key: BlockKey) -> int | None:
        """The block that shows the pair of a key."""
        return self.block_of(key[1]) if 0 <= key[1] < len(self.alignment.pairs) else None

    def line(self, row: int) -> Line:
        hit = self._row(row)
        return () if hit is None else hit[1].line

    def spot(self, row: int) -> BlockPosition | None:
        hit = self._row(row)
        if hit is None:
            return None
        return BlockPosition(hit[0], Row(hit[1].line, 0, 0, False, fold=hit[1].fold), False)

    def text(self, block: int) -> str:
        return "\n".join(row.text for row in self._laid_out(block))

    def text_between(self, first: int, first_character: int, last: int, last_character: int) -> str:
        """The rows `first`..`last`, as shown, cut where the selection begins and ends."""
        parts: list[str] = []
        for row in range(first, min(last + 1, self.height)):
            text = "".join(cell for cell, _ in self.line(row))
            begin = first_character if row == first else 0
            parts.append(text[begin : len(text) if row != last or last_character < 0 else last_character].rstrip())
        return "\n".join(parts)

    def is_folded(self, block: int) -> bool:
        return self.blocks[block].is_fold or any(row.fold for row in self._laid_out(block))

    def fold(self, block: int, *, folded: bool) -> None:
        """Open a fold, or show all of a pair; or fold it again, with the steps alike around it."""
        own = self.blocks[block]
        group = next((group for group in self._groups if group[0] <= own.first < group[1]), None)
        if own.is_fold and not folded:
            self._open.add(own.first)
        elif not folded:
            self._full.add(own.first)
        elif own.first in self._full:
            self._full.discard(own.first)
        elif group is not None:
            self._open.discard(group[0])
        self._rows.pop(own.key, None)
        self._build()

    def fold_all(self, *, folded: bool) -> None:
        """Fold everything that is alike, or open it."""
        self._full.clear()
        self._open = set() if folded else {group[0] for group in self._groups}
        self._build()

    # Inside

    def _build(self) -> None:
        self.blocks = []
        folds = {first: last for first, last in self._groups if first not in self._open}
        number = 0
        while number < len(self.alignment.pairs):
            last = folds.get(number, number + 1)
            self.blocks.append(Block(("fold" if number in folds else "pair", number), number, last))
            number = last
        self._firsts = [block.first for block in self.blocks]
        self._exact = [False] * len(self.blocks)
        self._rows.clear()
        self._heights = Heights([self._estimate(block) for block in self.blocks])

    def _estimate(self, block: Block) -> int:
        if block.is_fold:
            return 1
        pair = self.alignment.pairs[block.first]
        room = max((half_width(self.width) if self.is_wide else self.width) - 14, 8)
        sizes = [1 + len(step.text) // room for step in (pair.left, pair.right) if step is not None]
        most = 4 if pair.state == "same" else 24
        return min(max(sizes) if self.is_wide else sum(sizes), most)

    def _measure(self, index: int) -> None:
        if not self._exact[index]:
            self._exact[index] = True
            rows = len(self._laid_out(index))
            if rows != self._heights[index]:
                self._heights.set(index, rows)

    def _row(self, row: int) -> tuple[int, DiffRow] | None:
        index, into = self._heights.at(max(row, 0))
        if index >= len(self.blocks):
            return None
        rows = self._laid_out(index)
        return index, rows[into] if into < len(rows) else DiffRow(())

    def _laid_out(self, index: int) -> list[DiffRow]:
        block = self.blocks[index]
        diff_rows = self._rows.get(block.key)
        if diff_rows is not None:
            self._rows.move_to_end(block.key)
            return diff_rows
        if block.is_fold:
            diff_rows = [fold_row(self.alignment.pairs[block.first : block.last], self.width)]
        else:
            full = block.first in self._full
            pair = self.alignment.pairs[block.first]
            diff_rows = pair_rows(pair, self.width, wide=self.is_wide, full=full) or [DiffRow(())]
        self._rows[block.key] = diff_rows
        if len(self._rows) > _KEPT:
            self._rows.popitem(last=False)
        return diff_rows


def fold_row(pairs: Sequence[Pair], width: int) -> DiffRow:
    """The line that stands for steps which are the same on both sides."""
    calls = sum(1 for pair in pairs if pair.step.kind == "call")
    tools = f", {count(calls, 'tool call')}" if calls else ""
    words = f"{DOTS} {alike_text(len(pairs))}{tools}"
    return DiffRow(fit(((f"  {words}", "dim"),), width), words, fold=True)


def run_line(row: RunRow, sign: Cell, width: int) -> Line:
    """One of the two runs: its sign in the difference, outcome, repetition, agent, why it did not pass."""
    cells: list[Cell] = [sign, (" ", ""), mark(row.status), (" ", ""), (f"run {row.repetition}", "bold")]
    score = f" {decimal(row.score)}" if row.score is not None else ""
    cells.append((f"  {word_of_run(row.status, row.why)}{score}", ""))
    name = one_line(row.test_id, 40) + (f" · {one_line(row.variation, 40)}" if row.variation else "")
    cells.append((f"  {name}  {one_line(row.agent, 30)}", "dim"))
    why = one_line(row.why or row.error_message, 300)
    if why and row.status != "passed":
        cells += [("  ", ""), (fit_reason(why, width - width_of(cells) - 2), "dim")]
    return fit(cells, width)


def _groups(pairs: Sequence[Pair]) -> list[tuple[int, int]]:
    """Stretches of pairs that are the same and not next to a difference."""
    groups: list[tuple[int, int]] = []
    start = 0
    for number in range(len(pairs) + 1):
        if number < len(pairs) and pairs[number].state == "same":
            continue
        # A step beside each difference stays in view; at both ends of the runs there is none.
        first = start + (_AROUND if start else 0)
        last = number - (_AROUND if number < len(pairs) else 0)
        if last - first >= _LEAST:
            groups.append((first, last))
        start = number + 1
    return groups
