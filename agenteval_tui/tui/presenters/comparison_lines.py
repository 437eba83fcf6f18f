"""Evidence as a comparison on the screen: expected above got, a caret under the first character that differs."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence

from agenteval_tui.core.display import displayable_map, one_line
from agenteval_tui.core.numbers import count
from agenteval_tui.tui.styled_text import Cell, Line, cell_len, fit, left, paragraph, wrap
from agenteval_tui.views.evidence_comparison import Comparison

LINE_END = "↵"  # in a text that has room in one line
EXPECTED, GOT, NEAREST, NOTHING = "expected", "got", "nearest", "nothing"
ROWS = 6
"""Rows of a text that are shown; of one that has more, those around the place that differs."""
_AROUND = 1  # rows on each side of the one that differs: both texts are in view together
_LABEL = 10
_GAP = 3
_LEAST = 16  # cells of text beside the names; with fewer, names and labels are above it


def comparison_lines(nested: Iterable[Comparison], width: int, indent: int = 0) -> list[Line]:
    """The comparisons, one below the other, in `width` cells, behind `indent` empty ones."""
    comparisons = list(nested)
    indent = min(indent, max(width - _LEAST, 0))
    room = width - indent
    widest = max((cell_len(comparison.name) for comparison in comparisons if not comparison.parts), default=0)
    names = min(widest + _GAP if widest else 0, room // 3)
    lines: list[Line] = []
    for comparison in comparisons:
        if comparison.parts:
            lines += _tree(comparison, room)
        elif names and (cell_len(comparison.name) > names - 1 or room - names - _LABEL < _LEAST):
            lines.append(fit(((one_line(comparison.name), "json-key"),), room))
            lines += [((" " * min(2, room), ""), *line) for line in _pair(comparison, max(room - 2, 1))]
        else:
            pair = _pair(comparison, room - names)
            heads = [left(one_line(comparison.name) if not number else "", names) for number in range(len(pair))]
            lines += [((head, "json-key"), *line) if names else line for head, line in zip(heads, pair, strict=True)]
    return [fit(((" " * indent, ""), *line), width) for line in lines]


def _tree(comparison: Comparison, width: int) -> list[Line]:
    alike: Line = ((f"{comparison.alike:,} alike", "dim"),) if comparison.alike else ()
    lines: list[Line] = []
    if comparison.name:
        lines.append(fit(((one_line(comparison.name), "json-key"), (" " * _GAP, ""), *alike), width))
    below = 2 if comparison.name else 0
    lines += comparison_lines(comparison.parts, width, below)
    if comparison.note:
        lines.append(fit(((" " * below + f"… {comparison.note}", "dim"),), width))
    if alike and not comparison.name:
        lines.append(fit((("… ", "dim"), *alike), width))
    return lines


def _pair(comparison: Comparison, width: int) -> list[Line]:
    beside = width - _LABEL >= _LEAST
    room = width - _LABEL if beside else width
    at, note = comparison.at, comparison.note
    parts: list[tuple[str, list[Line]]] = []
    if comparison.expected is not None:
        parts.append((EXPECTED, _rows(comparison.expected, at, room)))
    if comparison.got is None:
        parts.append((GOT, [((NOTHING, "dim"),)]))
    else:
        rows = _rows(comparison.got, at, room, note if at is not None else "")
        where: Cell = (f"   {comparison.where}", "dim")
        if comparison.where and rows and sum(cell_len(text) for text, _ in rows[0]) + cell_len(where[0]) <= room:
            rows[0] = (*rows[0], where)
        parts.append((NEAREST if comparison.where else GOT, rows))
    if note and (at is None or comparison.got is None):
        parts.append(("", paragraph(note, room, "failed")))
    lines: list[Line] = []
    for label, rows in parts:
        if not beside and label:
            lines.append(fit(((label, "dim"),), width))
        for number, row in enumerate(rows):
            lines.append(((left(label if not number else "", _LABEL), "dim"), *row) if beside else row)
    return lines


def _rows(text: str, at: int | None, width: int, note: str | None = None) -> list[Line]:
    """The text, wrapped; where it has more than `ROWS` rows, those around character `at`. `note` is put below that
    character, behind a caret; None: no caret."""
    displayed, places = displayable_map(text)
    displayed = displayed.replace("\t", " ")
    if "\n" in displayed and cell_len(displayed) <= width:
        displayed = displayed.replace("\n", LINE_END)  # a caret and its note would stand between the lines
    spans = wrap(displayed, max(width, 2))
    place = 0 if at is None else places[min(at, len(places) - 1)] if places is not None else min(at, len(displayed))
    row = max(bisect_right(spans, (place, len(displayed) + 1)) - 1, 0)
    most = ROWS if at is None else 2 * _AROUND + 1
    first = 0 if len(spans) <= ROWS else min(max(row - _AROUND, 0), len(spans) - most)
    last = len(spans) if len(spans) <= ROWS else first + most
    lines: list[Line] = [((f"… {count(first, 'line')} above", "dim"),)] if first else []
    for number, (start, end) in enumerate(spans[first:last], first):
        lines.append(((displayed[start:end], ""),))
        if note is not None and at is not None and number == row:
            lines += _caret(cell_len(displayed[start : min(place, end)]), note, width)
    below = len(spans) - last
    return [*lines, ((f"… {count(below, 'more line')}", "dim"),)] if below > 0 else lines


def _caret(column: int, note: str, width: int) -> Sequence[Line]:
    """`^ note` with the caret in `column`; the note stands left of it or below where there is no room at its right."""
    column = min(column, max(width - 1, 0))
    size = cell_len(note)
    if column + 2 + size <= width:
        return [((" " * column + "^" + (f" {note}" if note else ""), "failed"),)]
    if size + 1 <= column:
        return [((" " * (column - size - 1) + f"{note} ^", "failed"),)]
    return [((" " * column + "^", "failed"),), *paragraph(note, width, "failed")]
