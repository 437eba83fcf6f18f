"""From raw text with styles and marks to lines: displayable, tabs expanded, signs put in, folded pieces replaced by
their summaries, wrapped to a width."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from agenteval_tui.core.display import displayable_map
from agenteval_tui.tui.presenters import status_style
from agenteval_tui.tui.presenters.status_style import CARET
from agenteval_tui.tui.styled_text import Cell, Line, wrap

TAB = 4
TIE = "\u00a0"  # a space in a note at which no line ends; shown as any other


class Range(Struct, frozen=True):
    """Characters `start`..`end` of a raw text look like `style`.

    `signs` puts a caret where they are empty, else brackets around them if there are no colours; `note` puts words
    behind them. The heavier of two ranges on the same text wins. `gutter` is a sign for the margin with its style.
    """

    start: int
    end: int
    style: str
    weight: int = 0
    signs: bool = False
    note: str = ""
    gutter: tuple[str, str] | None = None


class Fold(Struct, frozen=True):
    """Characters `start`..`end` of a text, which `summary` replaces while they are folded. Not `styled`: they are JSON
    whose colours are not computed yet."""

    start: int
    end: int
    summary: str
    styled: bool = True


class Row(Struct, frozen=True):
    """One line of a block. `start`..`end`: the raw characters it shows. `soft`: the next row continues its line.
    `fold`: this row replaces hidden ones.
    """

    cells: Line
    start: int
    end: int
    soft: bool
    gutter: tuple[str, str] | None = None
    fold: bool = False


def lay_out(
    text: str,
    start: int,
    end: int,
    width: int,
    *,
    base: str = "",
    ranges: Sequence[Range] = (),
    limit: int | None = None,
) -> list[Row]:
    """At most `limit` rows with the raw characters `start`..`end` of `text`, each `width` cells wide."""
    raw = text[start:end]
    displayed, offsets = _show(raw)
    inside = [r for r in ranges if _touches(r, start, end, len(text))]
    pieces: list[tuple[int, int, Range]] = []
    insertions: list[tuple[int, int, str, str]] = []
    for number, mark in enumerate(inside):
        first, last = max(mark.start - start, 0), min(mark.end - start, len(raw))
        if offsets is not None:
            first, last = offsets[first], offsets[last]
        if last >= first:
            pieces.append((first, last, mark))
            insertions.extend(_insertions(mark, first, last=last, start=start, end=end, number=number, text=displayed))
    displayed, pieces, extra = _insert(displayed, pieces, insertions)
    spans = wrap(displayed, width)
    for first, last, _ in extra:
        # After the wrapping, for which it was no space.
        if TIE in displayed[first:last]:
            displayed = displayed[:first] + displayed[first:last].replace(TIE, " ") + displayed[last:]
    plain = not pieces and not extra
    back = _way_back(offsets, len(raw))
    rows: list[Row] = []
    sweep = _Sweep(base, pieces, extra)
    for number, (first, last) in enumerate(spans):
        if limit is not None and number >= limit:
            break
        cells: Line = ((displayed[first:last], base),) if plain else sweep.cells(displayed, first, last)
        soft = number + 1 < len(spans) and "\n" not in displayed[last : spans[number + 1][0]]
        raw_first, raw_last = first, last
        if not plain and insertions:
            raw_first, raw_last = sweep.without_insertions(first), sweep.without_insertions(last)
        rows.append(
            Row(
                cells,
                start + back(raw_first),
                start + back(raw_last),
                soft,
                None if plain else sweep.gutter(first, last),
            )
        )
    return rows


def _touches(mark: Range, start: int, end: int, size: int) -> bool:
    """Is any of the range in the piece? What stands between two pieces belongs to the later one."""
    if mark.start == end and end < size:
        return False
    return mark.start <= end and (mark.end > start or mark.start >= start)


def _show(raw: str) -> tuple[str, list[int] | None]:
    """`raw` displayable with tabs as spaces, and where each of its characters went (None: nowhere else)."""
    text, offsets = displayable_map(raw)
    if "\t" not in text:
        return text, offsets
    moved: list[int] = []
    total = 0
    for char in text:
        moved.append(total)
        total += TAB if char == "\t" else 1
    moved.append(total)
    text = text.replace("\t", " " * TAB)
    return text, moved if offsets is None else [moved[offset] for offset in offsets]


def _insertions(
    mark: Range, first: int, last: int, start: int, end: int, number: int, text: str
) -> Iterable[tuple[int, int, str, str]]:
    """Brackets, caret and note of a range, as (place, order, text, style). What lies in another piece is left to it."""
    begins = mark.start >= start
    ends = mark.end <= end
    if mark.signs and first == last:
        if begins:
            yield first, number, CARET, mark.style
    elif mark.signs and not status_style.COLOURS:
        if begins:
            yield first, number + 1_000_000, "[", mark.style
        if ends:
            yield last, -number - 1, "]", mark.style
    if mark.note and ends:
        line_end = text.find("\n", last)
        yield (
            len(text) if line_end < 0 else line_end,
            number,
            mark.note,
            "dim" if mark.gutter is None else mark.gutter[1],
        )


def _insert(
    shown: str, pieces: list[tuple[int, int, Range]], insertions: list[tuple[int, int, str, str]]
) -> tuple[str, list[tuple[int, int, Range]], list[tuple[int, int, str]]]:
    """`shown` with the insertions in it, the pieces moved, and where the insertions stand with their styles."""
    if not insertions:
        return shown, pieces, []
    insertions.sort(key=lambda item: (item[0], item[1]))
    parts: list[str] = []
    places: list[int] = []
    sizes: list[int] = [0]
    extra: list[tuple[int, int, str]] = []
    before = total = 0
    for place, _, text, style in insertions:
        parts += (shown[before:place], text)
        before = place
        extra.append((place + total, place + total + len(text), style))
        total += len(text)
        places.append(place)
        sizes.append(total)
    parts.append(shown[before:])

    def moved(offset: int, *, begins: bool) -> int:
        # A piece that begins exactly at an insertion goes after it, one that ends there goes before it.
        index = bisect_right(places, offset) if begins else bisect_left(places, offset)
        return offset + sizes[index]

    changed = [(moved(first, begins=last > first), moved(last, begins=False), mark) for first, last, mark in pieces]
    return "".join(parts), changed, extra


def _way_back(offsets: list[int] | None, size: int) -> Callable[[int], int]:
    """From an offset in the shown text to the raw one."""
    if offsets is None:
        return lambda offset: min(offset, size)
    return lambda offset: min(bisect_left(offsets, offset), size)


class _Sweep:
    """Which style holds where, for pieces that may overlap."""

    def __init__(
        self, base: str, pieces: Sequence[tuple[int, int, Range]], extra: Sequence[tuple[int, int, str]]
    ) -> None:
        self._extra = list(extra)
        self._gutters = sorted(
            ((first, max(last, first + 1), mark.weight, mark.gutter) for first, last, mark in pieces if mark.gutter),
            key=lambda item: item[2],
        )
        edges = {0}
        layers = sorted(
            ((first, last, mark.weight, mark.style) for first, last, mark in pieces if last > first), key=lambda p: p[2]
        )
        # Heavier than any range: what is put in has its own look.
        layers += [(first, last, 9, style) for first, last, style in extra]
        for first, last, _, _ in layers:
            edges.update((first, last))
        self._edges = sorted(edges)
        # Paint the light layers first: words of heavier ones follow in the token, and the last colour named wins.
        tokens: list[list[str]] = [[base] if base else [] for _ in self._edges]
        for first, last, _, style in layers:
            for index in range(bisect_left(self._edges, first), bisect_left(self._edges, last)):
                tokens[index].append(style)
        self._tokens = [" ".join(words) for words in tokens]

    def cells(self, text: str, first: int, last: int) -> Line:
        """The text between `first` and `last` as cells."""
        cells: list[Cell] = []
        index = bisect_right(self._edges, first) - 1
        while first < last:
            end = self._edges[index + 1] if index + 1 < len(self._edges) else last
            end = min(end, last)
            if end > first:
                cells.append((text[first:end], self._tokens[index]))
            first = end
            index += 1
        return tuple(cells)

    def gutter(self, first: int, last: int) -> tuple[str, str] | None:
        """The sign of the heaviest range that touches the line."""
        gutter = None
        for begin, end, _, sign in self._gutters:
            # An empty row is touched, too.
            if begin < max(last, first + 1) and end > first:
                gutter = sign
        return gutter

    def without_insertions(self, offset: int) -> int:
        """The offset before anything was put in."""
        removed = 0
        for first, last, _ in self._extra:
            if last <= offset:
                removed += last - first
            elif first < offset:
                removed += offset - first
        return offset - removed


KEY = f"{TIE}{TIE}f"
"""Never alone on a row: the last word of the summary stands before it."""


class FoldedText:
    """`full` with `folds` (in order, apart) replaced by their summaries: `text`. Offsets are mapped both ways. `key`,
    after each summary, is the key that unfolds it."""

    def __init__(self, full: str, folds: Sequence[Fold], *, key: str = KEY) -> None:
        self.full = full
        parts: list[str] = []
        self._full: list[int] = [0]  # where pieces begin that both texts have, in the full text and in this one
        self._short: list[int] = [0]
        self._summaries: list[Range] = []
        before = size = 0
        for fold in folds:
            summary = fold.summary + key
            parts += (full[before : fold.start], summary)
            size += fold.start - before
            self._summaries.append(Range(size, size + len(fold.summary), "dim"))
            self._summaries.append(Range(size + len(fold.summary), size + len(summary), "bold accent"))
            size += len(summary)
            before = fold.end
            self._full.append(fold.end)
            self._short.append(size)
        self._starts = [fold.start for fold in folds]
        self.text = "".join([*parts, full[before:]])

    @property
    def gaps(self) -> list[tuple[int, int]]:
        """The pieces of the full text between what is folded."""
        return list(zip(self._full, [*self._starts, len(self.full)], strict=True))

    def forth(self, offset: int) -> int | None:
        """Where character `offset` of the full text is in this one; None in a folded piece."""
        piece = bisect_right(self._full, offset) - 1
        if piece < len(self._starts) and offset > self._starts[piece]:
            return None
        return self._short[piece] + offset - self._full[piece]

    def back(self, offset: int) -> int:
        """Which character of the full text is at `offset`; for a summary, the first that it replaces."""
        piece = bisect_right(self._short, offset) - 1
        full_offset = self._full[piece] + offset - self._short[piece]
        return min(full_offset, self._starts[piece]) if piece < len(self._starts) else full_offset

    def ranges(self, ranges: Iterable[Range]) -> list[Range]:
        """The ranges of the full text that are seen in this one, and those of the summaries."""
        moved = list(self._summaries)
        for styled_range in ranges:
            start, end = self.forth(styled_range.start), self.forth(styled_range.end)
            if start is not None and end is not None and (end > start or styled_range.start == styled_range.end):
                moved.append(replace(styled_range, start=start, end=end))
        return moved
