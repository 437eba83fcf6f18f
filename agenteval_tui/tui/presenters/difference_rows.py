"""A pair of steps as rows: both texts side by side, or one above the other with - and + before what differs."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from agenteval_tui.analysis.text_diff import DiffSegment, compare_texts, in_order_of
from agenteval_tui.analysis.trajectory_alignment import Pair, Step
from agenteval_tui.core.display import one_line
from agenteval_tui.tui.presenters.arguments import Body, call_body
from agenteval_tui.tui.presenters.block_layout import Range, lay_out
from agenteval_tui.tui.presenters.status_style import UNICODE
from agenteval_tui.tui.presenters.tool_results import result_body
from agenteval_tui.tui.presenters.transcript_blocks import ANSWER, CALL
from agenteval_tui.tui.styled_text import Cell, Line, fit, left, pad
from agenteval_tui.views.difference import alike_text, ended_text, has_failed

LABEL = 11
SIGN = 2
RULE = " │ " if UNICODE else " | "
DOTS = "⋯" if UNICODE else "..."

_AROUND = 2  # unchanged rows shown before and after a difference
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
    return (width - len(RULE)) // 2


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
    before, after = (_AROUND if joined else 1 for joined in between)
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
                cells.append((RULE, "rule"))
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
