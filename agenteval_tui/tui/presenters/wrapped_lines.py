"""Where lines of text break on the screen: rows with a hanging indent, and from a character to its cell and back.

Columns count the characters of a line as it is stored, cells those of the terminal. A character may be shown as none
or as several; a break never parts what the terminal shows as one.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate

from rich.cells import split_graphemes

from agenteval_tui.core.common_prefix import common_end, common_start
from agenteval_tui.core.display import displayable_map
from agenteval_tui.tui.presenters.prefix_sums import Heights
from agenteval_tui.tui.styled_text import cell_len

TAB = 2
"""Cells of a tab."""
HANG = 2
"""So many cells further to the right than their line the rows begin that continue it."""
_JOINTS = ",{[(:;"  # a row without a space ends behind one of these, where it can


@lru_cache(maxsize=4096)
def shown_line(line: str) -> tuple[str, tuple[int, ...] | None]:
    """A text of one line as it is shown, and where each of its characters went; None: where it was."""
    displayed, offsets = displayable_map(line)
    displayed = displayed.replace("\n", "␊")
    if "\t" not in displayed:
        return displayed, None if offsets is None else tuple(offsets)
    moved = list(accumulate((TAB if char == "\t" else 1 for char in displayed), initial=0))
    displayed = displayed.replace("\t", " " * TAB)
    return displayed, tuple(moved if offsets is None else [moved[offset] for offset in offsets])


def shown_cells(text: str, column: int) -> int:
    """Cells left of character `column`."""
    displayed, offsets = shown_line(text)
    return cell_len(displayed[: column if offsets is None else offsets[min(column, len(text))]])


def column_at(text: str, cell: int) -> int:
    """The last character that begins at `cell` or left of it; `len(text)` behind the text."""
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        if shown_cells(text, middle) <= cell:
            low = middle
        else:
            high = middle - 1
    return low


class WrappedLines:
    """Lines in rows of at most `width` cells; 0: a row for each line. A space that a row ends with may take one more.

    A row ends behind a space, else behind a sign, else anywhere. The rows that continue a line are indented more than
    the line, as far as there is room.
    """

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._breaks: list[tuple[int, ...]] = []
        self._rows = Heights()
        self._width = 0

    @property
    def height(self) -> int:
        """The number of rows."""
        return self._rows.total

    def wrap(self, lines: Sequence[str], width: int) -> None:
        """Wrap all lines, unless they are wrapped so."""
        if width == self._width and lines == self._lines:
            return
        self._width = width
        self._lines = list(lines)
        self._breaks = [self._break(line) for line in self._lines]
        self._rows = Heights(len(row_breaks) + 1 for row_breaks in self._breaks)

    def edit(self, lines: Sequence[str]) -> None:
        """These are the lines now: wrap those that are others than before."""
        old, new = self._lines, list(lines)
        start = common_start(old, new)
        end = common_end(old, new, start)
        breaks = [self._break(line) for line in new[start : len(new) - end]]
        self._lines = new
        before = self._breaks[start : len(old) - end]
        self._breaks[start : len(old) - end] = breaks
        # Most keys change no height.
        if list(map(len, before)) != list(map(len, breaks)):
            self._rows.splice(start, len(old) - end, (len(row_breaks) + 1 for row_breaks in breaks))

    def breaks(self, line: int) -> tuple[int, ...]:
        """The columns at which the rows begin that continue the line."""
        return self._breaks[line]

    def row_of(self, line: int) -> int:
        """The row in which a line begins."""
        return self._rows.top(line)

    def at(self, row: int) -> tuple[int, int]:
        """The line that a row shows, and which of its rows that is (0: the first). Behind the end: of the last row."""
        return self._rows.at(min(max(row, 0), self._rows.total - 1))

    def part(self, line: int, part: int) -> tuple[int, int]:
        """The columns `start`..`end` that a line's row shows."""
        breaks = self._breaks[line]
        return breaks[part - 1] if part else 0, breaks[part] if part < len(breaks) else len(self._lines[line])

    def indent(self, line: int, part: int) -> int:
        """How many cells a row is indented that continues a line."""
        return _hang(self._lines[line], self._width) if part else 0

    def cell_of(self, line: int, column: int) -> tuple[int, int]:
        """The cell and the row of a character."""
        part = bisect_right(self._breaks[line], column)
        start, end = self.part(line, part)
        cells = shown_cells(self._lines[line][start:end], column - start)
        return self.indent(line, part) + cells, self.row_of(line) + part

    def column_of(self, line: int, part: int, cell: int) -> int:
        """The character of a line's row that is at a cell, else the nearest in that row."""
        start, end = self.part(line, part)
        column = start + column_at(self._lines[line][start:end], cell - self.indent(line, part))
        return column if part == len(self._breaks[line]) else min(column, end - 1)

    def place_at(self, cell: int, row: int) -> tuple[int, int]:
        """Line and column of the character at a cell of a row, else of the nearest one."""
        line, part = self.at(row)
        return line, self.column_of(line, part, cell)

    def _break(self, line: str) -> tuple[int, ...]:
        width = self._width
        # As nearly all lines are.
        if not width or (len(line) <= width and line.isascii() and line.isprintable()):
            return ()
        width = max(width, 2)  # a wide character must have a place
        displayed, offsets = shown_line(line)
        hang = _hang(line, width)
        if offsets is None and cell_len(displayed) == len(displayed):
            return _broken(displayed, None, width, hang)
        columns, cells, signs = _atoms(displayed, range(len(line) + 1) if offsets is None else offsets)
        return tuple(columns[at] for at in _broken(signs, cells, width, hang))


def _hang(line: str, width: int) -> int:
    """How far the rows are indented that continue a line."""
    head = line[: len(line) - len(line.lstrip(" \t"))]
    return min(len(head) + head.count("\t") * (TAB - 1) + HANG, width // 3)


def _atoms(displayed: str, offsets: Sequence[int]) -> tuple[list[int], list[int], str]:
    """What may not be parted, one after the other: the column where each begins (and the end), the cells left of each
    (and of the end), and a character for each."""
    column_of: dict[int, int] = {}
    for column, offset in enumerate(offsets):
        column_of.setdefault(offset, column)
    columns, cells, signs = [0], [0], []
    size, sign = 0, ""
    for start, end, cell_size in split_graphemes(displayed)[0]:
        sign = sign or displayed[start]
        size += cell_size
        if end in column_of:
            columns.append(column_of[end])
            cells.append(cells[-1] + size)
            signs.append(sign)
            size, sign = 0, ""
    return columns, cells, "".join(signs)


def _broken(text: str, cells: Sequence[int] | None, width: int, hang: int) -> tuple[int, ...]:
    """Where rows begin that continue the text. `cells`: those left of each character; None: each takes one."""
    breaks: list[int] = []
    lead = len(text) - len(text.lstrip(" "))
    start, room, size = 0, width, len(text)
    while True:
        end = start + room if cells is None else bisect_right(cells, cells[start] + room, start) - 1
        if end < size and text[end] == " " and (cells is None or cells[end + 1] - cells[start] <= room + 1):
            end += 1
        if end >= size:
            return tuple(breaks)
        # A sign that is wider than a row has one all the same.
        end = max(end, start + 1)
        head = max(start, lead)
        cut = text.rfind(" ", head, end) + 1
        # There is no word before the space: only the indent.
        if not text[head:cut].strip(" "):
            cut = max(text.rfind(sign, head, end) for sign in _JOINTS) + 1
        start = cut if cut > start else end
        breaks.append(start)
        room = width - hang
