"""A transcript as a very long page: which line is at a row, where evidence and found words are. No Textual here."""

from __future__ import annotations

import math
import re
import time
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from agenteval_tui.core.common_prefix import common_start
from agenteval_tui.core.display import one_line
from agenteval_tui.transcripts.model import Transcript
from agenteval_tui.transcripts.visible_messages import Sight
from agenteval_tui.tui.presenters.arguments import json_styles
from agenteval_tui.tui.presenters.block_document import BlockColumn
from agenteval_tui.tui.presenters.block_layout import TIE, Range
from agenteval_tui.tui.presenters.highlights import SIGN_STYLES, SIGNS, STYLES, Mark
from agenteval_tui.tui.presenters.tool_results import moved
from agenteval_tui.tui.presenters.transcript_blocks import BlockKey, blocks_of, raw_blocks
from agenteval_tui.tui.styled_text import Cell, Line, left, width_of

PIECE = 100_000
"""Characters that are looked through at once: well under a millisecond."""


def occurrences(text: str, words: str) -> Iterator[list[tuple[int, int]]]:
    """The places of `words` in each piece of `text`, in order, none overlapping another; [] for a piece without any."""
    folded_words, size = words.lower(), len(words)
    at = begin = 0
    while begin < len(text) or begin == 0:
        end = min(begin + PIECE, len(text))
        # What begins in this piece may end in the next.
        piece = text[begin : end + size - 1] if size else ""
        places: list[tuple[int, int]] = []
        small = piece.lower()
        if len(small) != len(piece) or len(folded_words) != size:
            # A few letters change their length with their case: offsets would lie. Slower, and right.
            for match in re.compile(re.escape(words), re.IGNORECASE).finditer(piece, max(at - begin, 0)):
                places.append((begin + match.start(), begin + match.end()))
        else:
            start = small.find(folded_words, max(at - begin, 0))
            while start >= 0:
                places.append((begin + start, begin + start + size))
                start = small.find(folded_words, start + size)
        # What was found may reach into the next piece, where nothing that overlaps it is found.
        if places:
            at = places[-1][1]
        yield places
        begin = end
        if begin >= len(text):
            break


MOST_MATCHES = 10_000  # of a search: a letter is found in megabytes of text more often than anyone looks
SLICE_SECONDS = 0.003
"""A search takes so long at once: keys are read between two slices."""

SIGN = 1  # cells at the left edge, for the signs of evidence
LABEL = 10  # cells of the column with roles
TIMES = 9  # cells at the right edge, for durations
_LONGEST_NOTE = 80  # characters of a note in the text: it is for a word or two
_NO_STEPS = ("ending", "unseen", "setup", "log", "error", "sight")  # blocks that show no message
_NARROW = 46  # below: roles are above their text
_ROOMY = 64  # from here: durations have a column of their own


class Position(Struct, frozen=True):
    """Characters `start`..`end` of block `block`'s text, and the mark there (None for a found word)."""

    block: int
    start: int
    end: int
    mark: Mark | None = None


class TranscriptDocument(BlockColumn):
    """Lines of a transcript at a width. `height` and `line` agree where `settle` was called.

    `places` are the marks in reading order, `matches` the found words; `current` is the one that stands out.
    """

    def __init__(
        self,
        transcript: Transcript,
        *,
        marks: Sequence[Mark] = (),
        folds: dict[BlockKey, bool] | None = None,
        width: int = 80,
        raw: bool = False,
    ) -> None:
        """`folds`: what was folded by hand; kept up to date, so that it can be given to the next document.

        `raw`: show the stored form, as JSON.
        """
        self.transcript = transcript
        self.raw = raw
        self.places: list[Position] = []
        self.matches: list[Position] = []
        self.current: Position | None = None
        self._marks = tuple(marks)
        self._query = ""
        self._messages: list[int] = []
        self._answers: dict[int, int] | None = None
        self._sight: Sight | None = None
        self._seen_at = 0  # the request for which messages are dim
        self._out_of_sight: frozenset[int] = frozenset()
        self._width = width
        super().__init__({} if folds is None else folds, *self._columns(width))
        self._make(0, 0)
        self.places = self._resolved()

    @property
    def width(self) -> int:
        """Cells that a line may take."""
        return self._width

    def set_width(self, width: int) -> None:
        if width != self._width:
            self._width = width
            self._reshape(*self._columns(width))

    def update(self, transcript: Transcript) -> int:
        """Show a transcript that grew: what is the same at its start is kept. The first block that changed."""
        # While a run streams, this is called many times a second: the blocks before stay laid out.
        first = 0 if self.raw else _common(self.transcript, transcript)
        self.transcript, self._sight = transcript, None
        start = bisect_left(self._messages, first)
        self._make(start, first)
        self.current = None
        self.places = self._resolved()
        if self._query:
            self.matches = [*self.matches[: bisect_left(self.matches, start, key=_block)], *self._found(start)]
        return start

    def message_of(self, block: int) -> int:
        """The message that a block belongs to (their number for what belongs to none)."""
        return self._messages[block]

    def step_of(self, block: int) -> int | None:
        """The message that a block shows: of a result the one with the result; None for what belongs to none."""
        kind, number = self.blocks[block].key
        step = self._messages[block]
        if kind == "result":
            if self._answers is None:
                called = ((message.tool_call, index) for index, message in enumerate(self.transcript.messages))
                self._answers = {call: index for call, index in called if call is not None}
            step = self._answers.get(number, step)
        return step if kind not in _NO_STEPS and step < len(self.transcript.messages) else None

    def first_of_step(self, block: int) -> bool:
        """Does the message of a block begin with it?"""
        return block == 0 or self.step_of(block - 1) != self.step_of(block)

    def show_sight(self, answer: int) -> bool:
        """Dim the messages that the model did not see when it gave this answer, or the first one behind this message.
        Whether that changes anything."""
        if self._sight is None:
            self._sight = Sight(self.transcript)
        number = self._sight.request_at(answer)
        if number == self._seen_at:
            return False
        before, self._seen_at = self._out_of_sight, number
        self._out_of_sight = self._sight.out_of_sight(number)
        return self._out_of_sight != before

    def is_out_of_sight(self, block: int) -> bool:
        """Whether the model did not see this block."""
        return bool(self._out_of_sight) and self.step_of(block) in self._out_of_sight

    def block_of(self, message: int) -> int | None:
        """The first block of a message or of what comes after it; None when there is nothing."""
        block = bisect_left(self._messages, message)
        return block if block < len(self.blocks) else None

    # Lines

    def line(self, row: int) -> Line:
        """Row `row`: sign, role, text, time. () behind the end."""
        line = self._line(row)
        if self._out_of_sight and line and self.is_out_of_sight(self.block_at(row)):
            return tuple([(text, "dim") for text, _ in line])
        return line

    def _line(self, row: int) -> Line:
        spot = self.spot(row)
        if spot is None:
            return ()
        block = self.blocks[spot.block]
        if spot.row is None:
            words = f"{block.label} {block.sign}".strip()
            return self._with_aside(((" ", ""), (words or "result", block.label_style)), block.aside)
        sign = spot.row.gutter or (" ", "")
        if not spot.first or self._heads:
            return (sign, (" " * self._indent, ""), *spot.row.cells)
        if block.sign:
            label = f"{left(block.label, 6)}{left(block.sign, LABEL - 6)}"
        else:
            label = left(block.label, LABEL)
        return self._with_aside((sign, (label, block.label_style), *spot.row.cells), block.aside)

    @property
    def margin(self) -> int:
        """Cells before the text of a row."""
        return SIGN + self._indent

    # Marks and found words

    def set_marks(self, marks: Sequence[Mark]) -> None:
        """Mark other evidence."""
        if tuple(marks) == self._marks:
            return
        self._marks = tuple(marks)
        touched = {place.block for place in self.places}
        self.places = self._resolved()
        if self.current is not None and self.current.mark is not None:
            self.current = None
        self._forget(touched | {place.block for place in self.places})

    def search(self, text: str) -> int:
        """Find `text` everywhere, in whatever case; how often it is there. "" forgets the search."""
        *_, number = self.searching(text, math.inf)
        return number

    def searching(self, text: str, seconds: float = SLICE_SECONDS) -> Iterator[int]:
        """`search` in slices of about `seconds`: yields after each how many are found so far. Stop iterating when
        another search has started, or the transcript has changed."""
        until = time.perf_counter() + seconds
        # Blocks are laid out with their matches in colour: those of the last search lose it, and each new one gets it.
        touched = {place.block for place in self.matches}
        if self.current is not None and self.current.mark is None:
            self.current = None
        self._query = text
        matches = self.matches = []
        self._forget(touched)
        for index in range(len(self.blocks) if text else 0):
            count = len(matches)
            for part in occurrences(self._searched(index, text), text):
                matches.extend(Position(index, start, end) for start, end in part[: MOST_MATCHES - len(matches)])
                if time.perf_counter() >= until:
                    if len(matches) > count:
                        self._forget({index})
                    yield len(matches)
                    until = time.perf_counter() + seconds
            if len(matches) > count:
                self._forget({index})
            if len(matches) >= MOST_MATCHES:
                break
        yield len(matches)

    def show_place(self, place: Position | None) -> int:
        """Make `place` the current one; unfold what hides it; the row where it is (-1 for None)."""
        self._forget({p.block for p in (self.current, place) if p is not None})
        self.current = place
        return -1 if place is None else self.row_at(place.block, place.start)

    def next_place(self, places: Sequence[Position], row: int, direction: int) -> Position | None:
        """The place after (1) or before (-1) the current one, or first after `row` when there is none; goes round."""
        if not places:
            return None
        here = number_of(places, self.current)
        if here >= 0:
            return places[(here + direction) % len(places)]
        block = self.block_at(row)
        if direction > 0:
            return places[bisect_left(places, block, key=_block) % len(places)]
        return places[bisect_right(places, block, key=_block) - 1]

    def ranges_in(self, block: int, start: int, end: int) -> Sequence[Range]:
        """A block's own colours, marks, found words."""
        ranges: list[Range] = []
        if self.blocks[block].make is not None:
            body = self.body(block)
            styles = json_styles(body.text, start, end) if self.raw else body.styles
            low = bisect_left(styles, start, key=lambda style: style.end)
            high = bisect_right(styles, end, key=lambda style: style.start)
            ranges = styles[low:high]
            for fold in body.folds:
                if fold.start < end and fold.end > start and not fold.styled:
                    ranges += json_styles(body.text, max(start, fold.start), min(end, fold.end))
        for places in (self.places, self.matches):
            for place in places[bisect_left(places, block, key=_block) :]:
                if place.block != block or place.start > end:
                    break
                if place.end >= start:
                    ranges.append(self._range(place))
        return ranges

    # Inside

    def _columns(self, width: int) -> tuple[int, bool]:
        heads = width < _NARROW
        self._indent = 2 if heads else LABEL
        times = TIMES if width >= _ROOMY else 0
        return max(width - SIGN - self._indent - times, 4), heads

    def _make(self, start: int, message: int) -> None:
        """(Re)make the blocks from number `start` on, which are those of messages `message`.."""
        self._answers = None
        numbered = list(raw_blocks(self.transcript) if self.raw else blocks_of(self.transcript, message))
        self._messages[start:] = [index for index, _ in numbered]
        self._replace(start, [block for _, block in numbered])

    def _range(self, place: Position) -> Range:
        mark = place.mark
        emphasis = " reverse" if place is self.current else ""
        if mark is None:
            return Range(place.start, place.end, "bold underline accent" + emphasis, weight=8)
        whole = mark.span.kind != "message"
        return Range(
            place.start,
            place.end,
            STYLES[mark.kind] + emphasis,
            weight=1 + mark.weight,
            signs=mark.kind != "hit" and not whole,
            note=f"  {SIGNS[mark.kind]}{TIE}{one_line(mark.note, _LONGEST_NOTE)}" if mark.note and whole else "",
            gutter=(SIGNS[mark.kind], SIGN_STYLES[mark.kind]),
        )

    def _found(self, first: int) -> list[Position]:
        positions: list[Position] = []
        if not self._query:
            return positions
        for index in range(first, len(self.blocks)):
            for part in occurrences(self._searched(index, self._query), self._query):
                positions.extend(Position(index, start, end) for start, end in part[: MOST_MATCHES - len(positions)])
            if len(positions) >= MOST_MATCHES:
                break
        return positions

    def _searched(self, index: int, words: str) -> str:
        """The text of a block to search in; "" where it can't hold the words: a result that was not shown yet is not
        formatted for nothing."""
        # An escape may stand for any character: only without one can the raw text tell that the words are not there.
        raw = self.blocks[index].raw
        if raw and index not in self._bodies and "\\" not in raw and not any(occurrences(raw, words)):
            return ""
        return self.text(index)

    def _resolved(self) -> list[Position]:
        if self.raw:
            return []
        return sorted(self._resolve(self._marks), key=_order)

    def _resolve(self, marks: Iterable[Mark]) -> Iterable[Position]:
        messages = self.transcript.messages
        for mark in marks:
            span = mark.span
            if span.kind == "message":
                block = self._index.get(("message", span.index))
                call = messages[span.index].tool_call if 0 <= span.index < len(messages) else None
                if block is None and call is not None:
                    block = self._index.get(("result", call))
                if block is not None:
                    text, raw = self.text(block), self.blocks[block].raw
                    start = min(max(span.start, 0), len(raw or text))
                    end = min(max(span.end, start), len(raw or text))
                    if raw and raw != text:
                        start, end = moved(raw, text, start, end)
                    yield Position(block, start, end, mark)
            elif span.kind in ("tool", "arguments"):
                block = self._index.get(("call", span.index))
                if block is not None:
                    yield Position(block, *self._argument(block, span.path if span.kind == "arguments" else ""), mark)

    def _argument(self, block: int, path: str) -> tuple[int, int]:
        """Where an argument is: itself, else the nearest one around it, else the tool's name."""
        places = self.body(block).places
        while path:
            if path in places:
                return places[path]
            path = path.rpartition(".")[0]
        return 0, len(self.text(block).partition("\n")[0])

    def _hidden_marks(self, block: int, offset: int) -> int:
        return sum(1 for place in self.places if place.block == block and place.start >= offset)

    def _is_marked(self, block: int, start: int, end: int) -> bool:
        places = (*self.places, *((self.current,) if self.current is not None else ()))
        return any(place.block == block and place.start < end and place.end > start for place in places)

    def _with_aside(self, cells: tuple[Cell, ...], aside: Cell) -> Line:
        room = self._width - width_of(cells) - width_of((aside,))
        if not aside[0] or room < 1:
            return cells
        return (*cells, (" " * room, ""), aside)


def number_of(places: Sequence[Position], place: Position | None) -> int:
    """Where `place` stands among places in reading order; -1 when it does not."""
    if place is None:
        return -1
    at = bisect_left(places, (place.block, place.start, place.end), key=_order)
    while at < len(places) and _order(places[at]) == _order(place):
        # Several marks may cover the same text.
        if places[at] == place:
            return at
        at += 1
    return -1


def _order(place: Position) -> tuple[int, int, int]:
    return place.block, place.start, place.end


def _block(place: Position) -> int:
    return place.block


def _common(old: Transcript, new: Transcript) -> int:
    """The first message that is not the same in both, or whose tool calls are not."""
    first = common_start(old.messages, new.messages)
    # A call's block shows its result too, and that may come later: go back to the message that made the call.
    changed = {
        number
        for number, call in enumerate(old.tool_calls)
        if number >= len(new.tool_calls) or (call is not new.tool_calls[number] and call != new.tool_calls[number])
    }
    for message in (*old.messages[first:], *new.messages[first:]):
        if message.tool_call is not None:
            changed.add(message.tool_call)
    if not changed:
        return first
    return next((i for i, m in enumerate(new.messages[:first]) if not changed.isdisjoint(m.tool_calls)), first)
