"""A plot drawn with characters: marks by column, lines between them in Braille dots, ranges, a grid, a cursor.

Series differ by the glyph of their marks, not by colour alone. Without UTF-8 everything has an ASCII stand-in.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from math import ceil

from msgspec import Struct

from agenteval_tui.tui.presenters.status_style import UNICODE
from agenteval_tui.tui.styled_text import Cell, Line, left, right

MARKS = "●◆■▲○◇□△" if UNICODE else "*ox+#%@&"
STYLES = ("bold accent", "role-tool", "json-number", "json-key", "review", "json-string", "", "dim")
AXIS, GRID, RANGE, CURSOR, LIMIT, POINTER, BREAK = (
    ("┤", "·", "░", "┊", "╌", "▲", "╎") if UNICODE else ("|", ".", ":", "!", "=", "^", "/")
)
_CORNER, _FLOOR = ("└", "─") if UNICODE else ("+", "-")
_LABEL = 8  # cells of the numbers at the left
_BELOW = 2  # lines below the drawing: the axis of time and its labels
_DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))  # of a Braille cell, by row and column

# What may cover what: a higher one stays.
_GRID, _CURSOR, _LIMIT, _RANGE, _LINE, _MARK = range(6)


class Curve(Struct, frozen=True):
    """The values of one series, one a bin; None: nothing was measured. `ranges`: from and to, drawn behind it.

    Either may be shorter than there are bins: of the others nothing is known (yet).
    """

    mark: str
    style: str
    values: tuple[float | None, ...]
    ranges: tuple[tuple[float, float] | None, ...] = ()
    breaks: frozenset[int] = frozenset()
    """Bins that are not to be compared with those before them: no line leads there, and an upright one says so."""


class Plot(Struct, frozen=True):
    """What is drawn. `labels`: what a bin is called, the shortest way first; a longer one is drawn where neighbours
    would be called the same, and there is room. `say` writes a value at the axis. `cursor` is a bin, or -1.

    `limit`: a value at which a line is drawn, with its words.
    """

    curves: tuple[Curve, ...]
    labels: tuple[tuple[str, ...], ...]
    low: float
    high: float
    say: Callable[[float], str]
    cursor: int = -1
    limit: float | None = None
    limit_words: str = ""


def height_within(room: int) -> int:
    """The lines that a drawing takes of `room`: a multiple of four rows and one, so that its grid is even, the axis
    and the labels."""
    return max((room - _BELOW - 1) // 4, 1) * 4 + 1 + _BELOW


def fitting(bins: int, width: int, cursor: int) -> tuple[int, int]:
    """The first bin that is drawn, and how many are: where there is no room for all, those around the cursor, and
    else the newest."""
    room = max(width - _LABEL, 4)
    if bins <= room:
        return 0, bins
    first = bins - room
    if 0 <= cursor < first:
        first = max(min(cursor - room // 4, first), 0)
    return first, room


def bin_at(x: int, bins: int, width: int, cursor: int) -> int | None:
    """The bin at a column of the drawing; None: there is none."""
    first, visible = fitting(bins, width, cursor)
    if not _LABEL <= x < width or not visible:
        return None
    return first + min((x - _LABEL) * visible // max(width - _LABEL, 4), visible - 1)


class _Axis(Struct, frozen=True):
    """The axis of time: which bins are drawn, and where. All of its `room` is used."""

    first: int
    shown: int
    room: int

    def column(self, place: int) -> int:
        """The column of a bin's mark; `place` counts from the first bin that is drawn."""
        return int((place + 0.5) * self.room / max(self.shown, 1))

    @property
    def step(self) -> float:
        """Columns between two marks."""
        return self.room / max(self.shown, 1)

    def has(self, at: int) -> bool:
        """Is this bin drawn?"""
        return 0 <= at - self.first < self.shown


class _Canvas:
    """Cells by row and column; what is heavier covers what is lighter."""

    def __init__(self, width: int, height: int) -> None:
        self.width, self.height = width, height
        self.cells: dict[tuple[int, int], tuple[int, str, str]] = {}
        self.dots: dict[tuple[int, int], int] = {}

    def put(self, row: int, column: int, weight: int, text: str, style: str) -> None:
        if 0 <= row < self.height and 0 <= column < self.width:
            before = self.cells.get((row, column))
            # Of two that are as heavy the later one stays: curves are drawn from the last to the first.
            if before is None or before[0] <= weight:
                self.cells[row, column] = (weight, text, style)

    def dot(self, x: int, y: int, style: str) -> None:
        """A Braille dot: `x` counts half cells, `y` quarters of a row."""
        place = (y // 4, x // 2)
        if not UNICODE:
            self.put(*place, _LINE, ".", style)
            return
        before = self.cells.get(place)
        if before is not None and before[0] > _LINE:
            return
        self.dots[place] = self.dots.get(place, 0) | _DOTS[y % 4][x % 2]
        self.put(*place, _LINE, chr(0x2800 + self.dots[place]), style)

    def line(self, row: int) -> Line:
        cells: list[Cell] = []
        text, now = "", ""
        for column in range(self.width):
            _, char, style = self.cells.get((row, column), (0, " ", ""))
            if style != now and text:
                cells.append((text, now))
                text = ""
            now = style
            text += char
        return (*cells, (text, now))


def draw(plot: Plot, width: int, height: int) -> list[Line]:
    """The plot in `width` cells: the drawing, the axis of time, and its labels, in as many of `height` lines as make an
    even grid (`height_within`)."""
    rows = height_within(height) - _BELOW
    first, visible = fitting(len(plot.labels), width, plot.cursor)
    room = max(width - _LABEL, 4)
    axis = _Axis(first, visible, room)
    canvas = _Canvas(room, rows)
    span = plot.high - plot.low or 1.0

    def row_of(value: float) -> int:
        share = min(max((value - plot.low) / span, 0.0), 1.0)
        return round((1 - share) * (rows - 1))

    ticks = _ticks(plot, rows)
    for row in ticks:
        for column in range(0, room, 2):
            canvas.put(row, column, _GRID, GRID, "rule")
    if axis.has(plot.cursor):
        for row in range(rows):
            canvas.put(row, axis.column(plot.cursor - first), _CURSOR, CURSOR, "dim")
    if plot.limit is not None:
        row = row_of(plot.limit)
        for column in range(room):
            canvas.put(row, column, _LIMIT, LIMIT, "failed")
        # Behind the newest mark where there is room: no mark is to lie on the words.
        words = plot.limit_words[:room]
        start = room - len(words) if axis.column(visible - 1) + len(words) < room else 0
        for column, char in enumerate(words, start):
            canvas.put(row, column, _LINE, char, "failed")
    for place in sorted({break_place for curve in plot.curves for break_place in curve.breaks}):
        if axis.has(place):
            for row in range(rows):
                column = round((axis.column(place - first) + axis.column(place - first - 1)) / 2)
                canvas.put(row, max(column, 0), _LIMIT, BREAK, "review")
    # The first curve lies on top.
    for curve in reversed(plot.curves):
        _draw_range(canvas, curve, axis, row_of)
        _draw_curve(canvas, curve, axis, row_of)
    lines: list[Line] = []
    for row in range(rows):
        label = ticks.get(row, "")
        lines.append(((right(label, _LABEL - 1), "dim"), (AXIS if label else " ", "rule"), *canvas.line(row)))
    lines.append(_floor(plot, axis))
    lines.append(_labels(plot, axis))
    return lines


def _draw_range(canvas: _Canvas, curve: Curve, axis: _Axis, row_of: Callable[[float], int]) -> None:
    """The ranges as a band that leads from mark to mark; alone where there is no neighbour."""
    before: tuple[int, float, float] | None = None
    for place in range(axis.shown):
        at_bin = axis.first + place
        between = curve.ranges[at_bin] if at_bin < len(curve.ranges) else None
        if between is None or at_bin in curve.breaks:
            before = None
        if between is None:
            continue
        low, high = between
        column = axis.column(place)
        around = 0 if axis.step < 4 else 1
        spans = [(at, low, high) for at in range(column - around, column + around + 1)]
        if before is not None:
            start, low_was, high_was = before
            for at in range(start + 1, column):
                part = (at - start) / (column - start)
                spans.append((at, low_was + (low - low_was) * part, high_was + (high - high_was) * part))
        for at, least, most in spans:
            for row in range(row_of(most), row_of(least) + 1):
                canvas.put(row, at, _RANGE, RANGE, "rule")
        before = (column, low, high)


def _draw_curve(canvas: _Canvas, curve: Curve, axis: _Axis, row_of: Callable[[float], int]) -> None:
    before: tuple[int, int] | None = None
    for place in range(axis.shown):
        at_bin = axis.first + place
        value = curve.values[at_bin] if at_bin < len(curve.values) else None
        if at_bin in curve.breaks:
            before = None
        if value is None:
            continue
        row, column = row_of(value), axis.column(place)
        # A line leads from the middle of a mark's cell to the middle of the next: in quarters of a row.
        at = (column * 2, row * 4 + 1)
        if before is not None:
            _line_between(canvas, before, at, curve.style)
        before = at
        canvas.put(row, column, _MARK, curve.mark, curve.style)


def _line_between(canvas: _Canvas, start: tuple[int, int], end: tuple[int, int], style: str) -> None:
    across = end[0] - start[0]
    before = start[1]
    for x in range(2, across):
        y = round(start[1] + (end[1] - start[1]) * x / across)
        # A steep line has several dots in a column: it has no holes.
        for each in range(min(before + 1, y), max(before - 1, y) + 1):
            canvas.dot(start[0] + x, max(each, 0), style.replace("bold ", ""))
        before = y


def _ticks(plot: Plot, rows: int) -> dict[int, str]:
    """Which rows have a number at the axis, without repeating one."""
    parts = 4 if rows >= 9 else 2
    ticks: dict[int, str] = {}
    for part in range(parts + 1):
        label = plot.say(plot.low + (plot.high - plot.low) * part / parts)
        if label not in ticks.values():
            ticks[(parts - part) * (rows - 1) // parts] = label
    return ticks


def _floor(plot: Plot, axis: _Axis) -> Line:
    if not axis.has(plot.cursor):
        return ((" " * (_LABEL - 1) + _CORNER + _FLOOR * axis.room, "rule"),)
    column = axis.column(plot.cursor - axis.first)
    return (
        (" " * (_LABEL - 1) + _CORNER + _FLOOR * column, "rule"),
        (POINTER, "bold accent"),
        (_FLOOR * (axis.room - column - 1), "rule"),
    )


def _labels(plot: Plot, axis: _Axis) -> Line:
    """A label below each mark; where there is no room for all, every second, third and so on."""
    drawn = plot.labels[axis.first : axis.first + axis.shown]
    texts = _of_length(drawn, axis.step)
    longest = max(map(len, texts), default=0)
    every = max(ceil((longest + 2) / axis.step), 1)
    words, before = "", ""
    start_at = 0
    # A label that would begin left of the axis is pushed away from its mark, and takes the room of the next.
    while every > 1 and axis.column(start_at) < longest // 2:
        start_at += 1
    for place in range(start_at, axis.shown, every):
        label = texts[place]
        if label == before and every > 1:
            continue  # pieces of the same day: said once
        before = label
        start = min(max(axis.column(place) - len(label) // 2, 0), axis.room - len(label))
        if start < len(words) + (1 if words else 0):
            continue
        words = left(words, start) + label
    more = f"‹{axis.first}" if axis.first and UNICODE else f"<{axis.first}" if axis.first else ""
    return ((right(f"{more} " if more else "", _LABEL), "dim"), (words, "dim"))


def _of_length(labels: Sequence[tuple[str, ...]], step: float) -> list[str]:
    """The labels at the shortest length at which neighbours differ, if there is room for it; else the shortest."""
    lengths = min(map(len, labels), default=0)
    for length in range(lengths):
        texts = [label[length] for label in labels]
        if max(map(len, texts)) + 2 > step:
            break
        if all(text != other for text, other in pairwise(texts)):
            return texts
    return [label[0] for label in labels]
