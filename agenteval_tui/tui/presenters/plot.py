"""A plot drawn with characters: marks by column, lines between them in Braille dots, ranges, a grid, a cursor.

Series differ by the glyph of their marks, not by colour alone. Without UTF-8 everything has an ASCII stand-in.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from agenteval_tui.tui.presenters.status_style import UNICODE
from agenteval_tui.tui.styled_text import Cell, Line, left, right

MARKS = "●◆■▲○◇□△" if UNICODE else "*ox+#%@&"
STYLES = ("bold accent", "role-tool", "json-number", "json-key", "review", "json-string", "", "dim")
AXIS, GRID, RANGE, CURSOR, LIMIT, POINTER, BREAK = (
    ("┤", "·", "│", "┊", "╌", "▲", "╎") if UNICODE else ("|", ".", ":", "!", "=", "^", "/")
)
_CORNER, _FLOOR = ("└", "─") if UNICODE else ("+", "-")
_LABEL = 8  # cells of the numbers at the left
_DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))  # of a Braille cell, by row and column

# What may stand on what: a higher one stays.
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
    """What is drawn. `labels` of the bins are short; `say` writes a value at the axis. `cursor` is a bin, or -1.

    `limit`: a value at which a line is drawn, with its words.
    """

    curves: tuple[Curve, ...]
    labels: tuple[str, ...]
    low: float
    high: float
    say: Callable[[float], str]
    cursor: int = -1
    limit: float | None = None
    limit_words: str = ""


def fitting(bins: int, width: int, cursor: int) -> tuple[int, int]:
    """The first bin that is drawn, and how many are: where there is no room for all, those around the cursor, and
    else the newest."""
    room = max(width - _LABEL - 1, 4)
    if bins <= room:
        return 0, bins
    first = bins - room
    if 0 <= cursor < first:
        first = max(min(cursor - room // 4, first), 0)
    return first, room


def bin_at(x: int, bins: int, width: int, cursor: int) -> int | None:
    """The bin at a column of the drawing; None: there is none."""
    first, shown = fitting(bins, width, cursor)
    step = _step(shown, width)
    place = (x - _LABEL - 1) // step if step else 0
    return first + place if x > _LABEL and 0 <= place < shown else None


def _step(shown: int, width: int) -> int:
    return max(min((width - _LABEL - 1) // max(shown, 1), 8), 1)


class _Canvas:
    """Cells by row and column; what is heavier covers what is lighter."""

    def __init__(self, width: int, height: int) -> None:
        self.width, self.height = width, height
        self.cells: dict[tuple[int, int], tuple[int, str, str]] = {}
        self.dots: dict[tuple[int, int], int] = {}

    def put(self, row: int, column: int, weight: int, text: str, style: str) -> None:
        if 0 <= row < self.height and 0 <= column < self.width:
            before = self.cells.get((row, column))
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
    """The plot in `width` cells and `height` lines: the drawing, the axis of time, and its labels."""
    rows = max(height - 2, 2)
    first, shown = fitting(len(plot.labels), width, plot.cursor)
    step = _step(shown, width)
    room = width - _LABEL - 1
    canvas = _Canvas(room, rows)
    span = plot.high - plot.low or 1.0

    def row_of(value: float) -> int:
        share = min(max((value - plot.low) / span, 0.0), 1.0)
        return round((1 - share) * (rows - 1))

    def fine_of(value: float) -> int:
        # In quarters of a row, so that a line meets the middle of the mark's cell.
        share = min(max((value - plot.low) / span, 0.0), 1.0)
        return round((1 - share) * (rows - 1) * 4) + 1

    ticks = _ticks(plot, rows)
    for row in ticks:
        for column in range(0, room, 2):
            canvas.put(row, column, _GRID, GRID, "rule")
    if 0 <= plot.cursor - first < shown:
        column = (plot.cursor - first) * step + (step - 1) // 2
        for row in range(rows):
            canvas.put(row, column, _CURSOR, CURSOR, "dim")
    if plot.limit is not None:
        row = row_of(plot.limit)
        for column in range(room):
            canvas.put(row, column, _LIMIT, LIMIT, "failed")
        # Behind the newest mark where there is room: no mark is to lie on the words.
        words = plot.limit_words[:room]
        start = room - len(words) if shown * step + len(words) <= room else 0
        for column, char in enumerate(words, start):
            canvas.put(row, column, _LINE, char, "failed")
    for place in sorted({one for curve in plot.curves for one in curve.breaks}):
        if 0 <= place - first < shown:
            for row in range(rows):
                canvas.put(row, (place - first) * step, _LIMIT, BREAK, "review")
    for curve in reversed(plot.curves):
        _draw_curve(canvas, curve, first, shown, step, row_of, fine_of)
    lines: list[Line] = []
    for row in range(rows):
        label = ticks.get(row, "")
        lines.append(((right(label, _LABEL - 1), "dim"), (AXIS if label else " ", "rule"), *canvas.line(row)))
    lines.append(_axis(plot, first, shown, step, room))
    lines.append(_labels(plot, first, shown, step, room))
    return lines


def _draw_curve(
    canvas: _Canvas,
    curve: Curve,
    first: int,
    shown: int,
    step: int,
    row_of: Callable[[float], int],
    fine_of: Callable[[float], int],
) -> None:
    middle = (step - 1) // 2
    before: tuple[int, int] | None = None
    for place in range(shown):
        at_bin = first + place
        value = curve.values[at_bin] if at_bin < len(curve.values) else None
        column = place * step + middle
        between = curve.ranges[at_bin] if at_bin < len(curve.ranges) else None
        if between is not None:
            for row in range(row_of(between[1]), row_of(between[0]) + 1):
                canvas.put(row, column, _RANGE, RANGE, "rule")
        if first + place in curve.breaks:
            before = None
        if value is None:
            continue
        at = (column * 2, fine_of(value))
        if before is not None and step > 1:
            _line_between(canvas, before, at, curve.style)
        before = at
        canvas.put(row_of(value), column, _MARK, curve.mark, curve.style)


def _line_between(canvas: _Canvas, start: tuple[int, int], end: tuple[int, int], style: str) -> None:
    across = end[0] - start[0]
    for x in range(2, across):
        y = round(start[1] + (end[1] - start[1]) * x / across)
        canvas.dot(start[0] + x, max(y, 0), style.replace("bold ", ""))


def _ticks(plot: Plot, rows: int) -> dict[int, str]:
    """Which rows have a number at the axis, without repeating one."""
    parts = 4 if rows >= 9 else 2
    ticks: dict[int, str] = {}
    for part in range(parts + 1):
        row = round((1 - part / parts) * (rows - 1))
        label = plot.say(plot.low + (plot.high - plot.low) * part / parts)
        if label not in ticks.values():
            ticks[row] = label
    return ticks


def _axis(plot: Plot, first: int, shown: int, step: int, room: int) -> Line:
    middle = (step - 1) // 2
    if not 0 <= plot.cursor - first < shown:
        return ((" " * (_LABEL - 1) + _CORNER + _FLOOR * room, "rule"),)
    column = (plot.cursor - first) * step + middle
    return (
        (" " * (_LABEL - 1) + _CORNER + _FLOOR * column, "rule"),
        (POINTER, "bold accent"),
        (_FLOOR * (room - column - 1), "rule"),
    )


def _labels(plot: Plot, first: int, shown: int, step: int, room: int) -> Line:
    """As many labels as there is room for, each below its bin, the same distance apart."""
    longest = max((len(one) for one in plot.labels), default=0)
    every = max(-(-(longest + 2) // step), 1)
    text, before = "", ""
    middle = (step - 1) // 2
    for place in range(0, shown, every):
        column = place * step + middle
        label = plot.labels[first + place]
        if label == before:
            continue  # executions of the same minute: said once
        before = label
        if column + len(label) > room:
            break
        text = left(text, column) + label
    more = f"‹{first}" if first and UNICODE else f"<{first}" if first else ""
    return ((right(f"{more} " if more else "", _LABEL), "dim"), (text, "dim"))
