"""Evidence as marks on a transcript: which piece, held or broken or nearly, and why in a few words."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import Literal

from msgspec import Struct

from agenteval_tui.core.display import displayable_map
from agenteval_tui.core.numbers import count
from agenteval_tui.grading.results import CriterionResult, Span
from agenteval_tui.tui.presenters import status_style
from agenteval_tui.tui.presenters.status_style import CARET, UNICODE, glyph
from agenteval_tui.tui.styled_text import Cell, Line, fit, fold, width_of, wrap

MarkKind = Literal["hit", "miss", "near"]

# Colour never says it alone: a sign in the margin, and underline (or, without colours, brackets) in the text.
SIGNS: dict[MarkKind, str] = {"hit": glyph("passed"), "miss": glyph("failed"), "near": "≈" if UNICODE else "~"}
STYLES: dict[MarkKind, str] = {
    "hit": "on-evidence-hit underline",
    "miss": "on-evidence-miss bold",
    "near": "on-near-miss bold",
}
SIGN_STYLES: dict[MarkKind, str] = {"hit": "passed", "miss": "failed", "near": "error"}
_WEIGHT: dict[MarkKind, int] = {"hit": 0, "near": 1, "miss": 2}


class Mark(Struct, frozen=True):
    """A piece of the transcript that matters. `note` is a few words shown beside an argument or a tool."""

    span: Span
    kind: MarkKind
    note: str = ""

    @property
    def weight(self) -> int:
        """Which of two marks on the same text is seen: the heavier one."""
        return _WEIGHT[self.kind]


def marks_of(results: Iterable[CriterionResult]) -> tuple[Mark, ...]:
    """The marks of all evidence: `hit` where a condition held, `miss` where it was broken, `near` for closest misses.

    Each piece is marked once a kind. Spans in an extracted value have no place in the transcript and are left out.
    """
    marks: dict[tuple[Span, MarkKind], Mark] = {}
    for result in results:
        for metric in result.metrics:
            for evidence in metric.evidence:
                kind: MarkKind = "miss" if evidence.passed is False else "hit"
                # What held needs no words beside the transcript, and the place says which call it is.
                note = evidence.condition.rpartition(".")[2] if kind == "miss" else ""
                for span in evidence.spans:
                    if span.kind != "value":
                        marks.setdefault((span, kind), Mark(span, kind, note))
                for span in evidence.near:
                    if span.kind != "value":
                        marks.setdefault((span, "near"), Mark(span, "near", note))
    return tuple(marks.values())


VALUE_LINES = 40  # of an expected or an actual value

Piece = tuple[int, int, MarkKind]


def marked_text(text: str, marks: Sequence[Piece], width: int, most: int = VALUE_LINES) -> list[Line]:
    """Foreign text, wrapped, with pieces marked: hits underlined, misses and near misses coloured; without colours
    these are in brackets. A caret is where something is missing.

    `marks` are (start, end, kind) in characters of `text`; where they overlap the first one wins. Of a long text
    `most` lines are shown: its start, or what is around the first mark that is not in it.
    """
    width = max(width, 1)
    begin, end = _window(text, marks, width, most)
    displayed, places = displayable_map(text[begin:end])
    displayed = displayed.replace("\t", " ")
    pieces = _apart(_shift([(s - begin, e - begin, kind) for s, e, kind in marks if e >= begin and s <= end], places))
    # Signs take cells too.
    spans = wrap(displayed, max(width - 2, 1) if any(_has_signs(*piece) for piece in pieces) else width)
    first = _first_shown(spans, pieces, most)
    lines: list[Line] = []
    above = text.count("\n", 0, begin) + first
    if begin or first:
        lines.append((("… " + (count(above, "line") if above else count(begin, "character")) + " above", "dim"),))
    next_piece = 0
    for start, stop in spans[first : first + most]:
        while next_piece < len(pieces) and pieces[next_piece][1] < start:
            next_piece += 1
        line = _marked(displayed, start, stop, pieces[next_piece:])
        # Several marks in a line have more signs than there was room left for.
        lines += [line] if width_of(line) <= width else fold(line, width)
    below = max(len(spans) - first - most, 0) + text.count("\n", end)
    if below or end < len(text):
        lines.append(
            ((f"… {count(below, 'more line') if below else count(len(text) - end, 'more character')}", "dim"),)
        )
    return [fit(line, width) for line in lines]


def _window(text: str, marks: Sequence[Piece], width: int, most: int) -> tuple[int, int]:
    """The part of a long text that is laid out: enough for `most` lines, with the mark that matters most in it."""
    size = 2 * most * width
    if len(text) <= size:
        return 0, len(text)
    matters = [start for start, _, kind in marks if kind != "hit"] or [start for start, _, _ in marks]
    first = min(max(min(matters, default=0), 0), len(text))
    if first < size // 2:
        return 0, size
    begin = first - size // 8
    line = text.find("\n", begin, first)
    begin = begin if line < 0 else line + 1
    return begin, min(begin + size, len(text))


def _first_shown(spans: Sequence[tuple[int, int]], pieces: Sequence[Piece], most: int) -> int:
    matters = [piece for piece in pieces if piece[2] != "hit"] or pieces
    if not matters:
        return 0
    row = max(bisect_right(spans, (matters[0][0], len(spans) and spans[-1][1])) - 1, 0)
    return 0 if row < most else min(row - most // 4, len(spans) - most)


def _apart(marks: Iterable[Piece]) -> list[Piece]:
    pieces: list[Piece] = []
    at = 0
    for start, end, kind in sorted(marks):
        start = max(start, at)
        if end >= start:
            pieces.append((start, end, kind))
            at = max(end, at)
    return pieces


def _marked(displayed: str, first: int, last: int, pieces: Iterable[Piece]) -> Line:
    cells: list[Cell] = []
    at = first
    for start, end, kind in pieces:
        if start > last:
            break
        if end < first or (end == first and start < first):
            continue
        begin, finish = max(start, first), min(end, last)
        cells.append((displayed[at:begin], ""))
        inner = displayed[begin:finish]
        signs = ""
        if _has_signs(start, end, kind):
            signs = CARET if start == end else "[]"
        opening = signs[:1] if start >= first else ""
        closing = signs[1:] if end <= last else ""
        cells.append((opening + inner + closing, STYLES[kind]))
        at = finish
    cells.append((displayed[at:last], ""))
    return tuple(cell for cell in cells if cell[0])


def _has_signs(start: int, end: int, kind: MarkKind) -> bool:
    """Whether a mark has signs of its own: a caret for what is missing, brackets where there are no colours."""
    return kind != "hit" and (start == end or not status_style.COLOURS)


def _shift(marks: Sequence[Piece], places: list[int] | None) -> list[Piece]:
    if places is None:
        return list(marks)
    last = len(places) - 1
    return [(places[min(a, last)], places[min(b, last)], style) for a, b, style in marks]
