"""The difference of two transcripts as a very long page: what is alike is folded to its number of steps, and a pair
that differs has both texts side by side, or one above the other with - and + before what differs."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import OrderedDict
from collections.abc import Sequence

from msgspec import Struct

from agenteval_tui.analysis.text_diff import DiffSegment, compare_texts, in_order_of
from agenteval_tui.analysis.trajectory_alignment import Alignment, Pair, Step
from agenteval_tui.core.display import one_line
from agenteval_tui.core.numbers import count, decimal
from agenteval_tui.history.records import RunRow
from agenteval_tui.tui.presenters.arguments import Body, call_body
from agenteval_tui.tui.presenters.block_document import BlockPosition, BlocksDocument
from agenteval_tui.tui.presenters.block_layout import Range, Row, lay_out
from agenteval_tui.tui.presenters.prefix_sums import Heights
from agenteval_tui.tui.presenters.status_style import COLUMN_RULE, DOTS, mark, word_of_run
from agenteval_tui.tui.presenters.tool_results import result_body
from agenteval_tui.tui.presenters.transcript_blocks import ANSWER, CALL, BlockKey
from agenteval_tui.tui.styled_text import Cell, Line, fit, fit_reason, left, pad, width_of
from agenteval_tui.views.difference import alike_text, ended_text, has_failed

LABEL = 11
SIGN = 2

_ROWS_AROUND = 2  # unchanged rows shown before and after a difference
_SAME = 3  # rows of a step that is the same on both sides
_MOST = 24  # rows of a difference before someone unfolds it
_ALONE = {"result": 8, "system": 6, "reasoning": 8}  # and of such a step that only one side has
_UNFOLDED = 2_000  # rows of one that is unfolded: Inspect shows all of it
_COMPARED = 60_000  # characters of a text that are compared word by word

_SIGNS = {"left": ("-", "removed bold"), "right": ("+", "added bold")}
_WORDS = {"left": "removed bold underline", "right": "added bold underline"}
_STYLES = {"system": "dim", "reasoning": "reasoning italic", "error": "error"}
_ROLES = {"user": "role-user", "assistant": "role-assistant bold", "call": "role-tool", "result": "role-tool"}


class DiffRow(Struct, frozen=True):
    """A row over the whole width. `fold`: it stands for hidden ones. `text`: what a person copies of it."""

    line: Line
    text: str = ""
    fold: bool = False


class _Half(Struct, frozen=True):
    """A row of one of the two texts; `side` says whose difference it is, "" for text that both have."""

    cells: Line
    side: str = ""
    fold: bool = False


def half_width(width: int) -> int:
    """Cells of each of two columns."""
    return (width - len(COLUMN_RULE)) // 2


def pair_rows(pair: Pair, width: int, *, wide: bool, full: bool) -> list[DiffRow]:
    """The rows of a pair in `width` cells. `full`: with everything that is folded otherwise."""
    column = half_width(width) if wide else width
    room = max(column - SIGN - LABEL, 8)
    halves = _halves(pair, room, full=full)
    if wide:
        return _beside(pair.step, halves, column)
    return _below(pair.step, halves, column)


def body_of(step: Step, like: Step | None = None) -> Body:
    """A step's text with its colours. `like`: the step beside it, whose order of arguments is taken."""
    if step.kind == "result":
        return result_body(step.text)
    if step.kind == "state":
        return Body(f"{step.name} = {step.text}")
    if step.call is None or step.kind != "call":
        return Body(step.text)
    arguments = step.call.arguments
    if like is not None and like.call is not None and like.kind == "call":
        arguments = in_order_of(like.call.arguments, arguments)
    return call_body(step.name, arguments)


# What is where


def _halves(pair: Pair, room: int, *, full: bool) -> list[tuple[_Half | None, _Half | None]]:
    if pair.left is None or pair.right is None:
        side = "right" if pair.left is None else "left"
        body = body_of(pair.step)
        rows = _limited(
            _rows(body, pair.step, (0, len(body.text)), room, side, full=full),
            full,
            _ALONE.get(pair.step.kind, _MOST),
            side,
        )
        return [(None, row) if side == "right" else (row, None) for row in rows]
    mine = body_of(pair.left)
    if pair.state == "same":
        rows = _rows(mine, pair.left, (0, len(mine.text)), room, full=full)
        return [(row, row) for row in _limited(rows, full, _SAME, "")]
    theirs = body_of(pair.right, pair.left)
    stretches = compare_texts(mine.text[:_COMPARED], theirs.text[:_COMPARED])
    halves: list[tuple[_Half | None, _Half | None]] = []
    for number, diff_segment in enumerate(stretches):
        if diff_segment.same:
            halves += _alike(mine, pair.left, diff_segment, room, (number > 0, number + 1 < len(stretches)), full)
        else:
            left, right = diff_segment.left, diff_segment.right
            rows_left = _rows(mine, pair.left, left, room, "left", words=diff_segment.left_words, full=full)
            rows_right = _rows(theirs, pair.right, right, room, "right", words=diff_segment.right_words, full=full)
            halves += _zipped(_limited(rows_left, full, _MOST, "left"), _limited(rows_right, full, _MOST, "right"))
    rest = (max(len(mine.text) - _COMPARED, 0), max(len(theirs.text) - _COMPARED, 0))
    if any(rest):
        note = _Half(((f"… {rest[0]:,} and {rest[1]:,} more characters are not compared", "dim"),), fold=True)
        halves.append((note, note))
    if (not halves or pair.left.text == pair.right.text) and has_failed(pair.left) != has_failed(pair.right):
        # The same words with another outcome: a tool's error, or invisible white space.
        mine_ended, theirs_ended = ((ended_text(step), "error") for step in (pair.left, pair.right))
        halves.append((_Half((mine_ended,), "left"), _Half((theirs_ended,), "right")))
    return halves


def _alike(
    body: Body, step: Step, stretch: DiffSegment, room: int, between: tuple[bool, bool], full: bool
) -> list[tuple[_Half | None, _Half | None]]:
    """Lines that both have: the ones next to a difference; of the others how many."""
    rows = _rows(body, step, stretch.left, room, full=full)
    before, after = (_ROWS_AROUND if joined else 1 for joined in between)
    hidden = len(rows) - before - after
    if not full and hidden > 1:
        fold = _Half(((f"{DOTS} {alike_text(hidden, 'line')}", "dim"),), fold=True)
        # At the beginning of a text its first line says what it is.
        rows = [*rows[:before], fold, *rows[len(rows) - after :]]
    return [(row, row) for row in rows]


def _rows(
    body: Body,
    step: Step,
    span: tuple[int, int],
    room: int,
    side: str = "",
    *,
    words: Sequence[tuple[int, int]] = (),
    full: bool,
) -> list[_Half]:
    start, end = span
    if start == end and body.text:
        return []
    if body.text[start:end].endswith("\n"):
        end -= 1
        if end > start and body.text[end - 1] == "\r":
            end -= 1
    if not body.text:
        return [_Half((("(nothing)", "dim"),), side)]
    most = _UNFOLDED if full else 4 * _MOST
    differing = [Range(first, last, _WORDS[side], weight=5) for first, last in words] if side else []
    base = _STYLES.get(step.kind, "") or ("error" if has_failed(step) else "")
    # Enough for the rows that are shown: a megabyte on one line is not laid out for them.
    stop = min(end, start + most * room)
    laid_out = lay_out(body.text, start, stop, room, base=base, ranges=[*body.styles, *differing], limit=most)
    rows = [_Half(row.cells, side) for row in laid_out]
    if laid_out and laid_out[-1].end < end:
        rows.append(_Half(((f"… {end - laid_out[-1].end:,} more characters", "dim"),), side, fold=True))
    return rows


def _limited(rows: list[_Half], full: bool, most: int, side: str) -> list[_Half]:
    if full or len(rows) <= most + 1:
        return rows
    # Of a very long text not even the rows behind the fold are laid out.
    number = f"more than {len(rows) - most - 1:,}" if rows[-1].fold else f"{len(rows) - most:,}"
    return [*rows[:most], _Half(((f"… {number} more lines", "dim"),), side, fold=True)]


def _zipped(mine: Sequence[_Half], theirs: Sequence[_Half]) -> list[tuple[_Half | None, _Half | None]]:
    height = max(len(mine), len(theirs))
    return [
        (mine[row] if row < len(mine) else None, theirs[row] if row < len(theirs) else None) for row in range(height)
    ]


# Lines


def _beside(step: Step, rows: Sequence[tuple[_Half | None, _Half | None]], column: int) -> list[DiffRow]:
    diff_rows: list[DiffRow] = []
    begun = [False, False]
    for both in rows:
        cells: list[Cell] = []
        for number, half in enumerate(both):
            cells += pad(_column(step, half, first=half is not None and not begun[number]), column)
            begun[number] = begun[number] or half is not None
            if number == 0:
                cells.append((COLUMN_RULE, "rule"))
        fold = any(half is not None and half.fold for half in both)
        diff_rows.append(DiffRow(tuple(cells), "\t".join(_plain(half) for half in both), fold))
    return diff_rows


def _below(step: Step, rows: Sequence[tuple[_Half | None, _Half | None]], column: int) -> list[DiffRow]:
    """What is removed before what is added, in runs of rows that differ."""
    ordered: list[_Half] = []
    removed: list[_Half] = []
    added: list[_Half] = []
    for mine, theirs in rows:
        if mine is not None and mine is theirs:
            ordered += [*removed, *added, mine]
            removed, added = [], []
            continue
        removed += [mine] if mine is not None else []
        added += [theirs] if theirs is not None else []
    ordered += [*removed, *added]
    return [
        DiffRow(fit(_column(step, half, first=number == 0), column), _sign(half) + _plain(half), half.fold)
        for number, half in enumerate(ordered)
    ]


def _column(step: Step, half: _Half | None, *, first: bool) -> Line:
    if half is None:
        return ()
    sign, style = _SIGNS.get(half.side, (" ", ""))
    name = label_of(step) if first else ""
    role = _ROLES.get(step.kind, _STYLES.get(step.kind, "dim"))
    return ((left(sign, SIGN), style), (left(name, LABEL), role), *half.cells)


def label_of(step: Step) -> str:
    """Who did it: "user", "tool ▸"."""
    if step.kind == "call":
        return f"tool  {CALL}"
    if step.kind == "result":
        return f"      {ANSWER}"
    return one_line(step.kind, LABEL - 1)


def _plain(half: _Half | None) -> str:
    return "" if half is None else "".join(text for text, _ in half.cells)


def _sign(half: _Half) -> str:
    return left(_SIGNS.get(half.side, (" ", ""))[0], SIGN)


WIDE = 110
"""Cells from which the two stand side by side."""
_STEPS_AROUND = 1  # steps alike that are shown before and after a difference
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
        first = start + (_STEPS_AROUND if start else 0)
        last = number - (_STEPS_AROUND if number < len(pairs) else 0)
        if last - first >= _LEAST:
            groups.append((first, last))
        start = number + 1
    return groups
