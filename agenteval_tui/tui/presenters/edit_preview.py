"""What an edit of a config changes, before it is made: the old text above the new one, no more of it than decides; and
what two edits changed in the same place."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from agenteval_tui.core.common_prefix import common_end, common_start
from agenteval_tui.core.errors import TextEdit
from agenteval_tui.tui.presenters.wrapped_lines import shown_line
from agenteval_tui.tui.styled_text import Cell, Line, wrap
from agenteval_tui.uxon.merge import BothChanged
from agenteval_tui.uxon.tokens import Token, tokenize

LONGEST_LIST = 240
"""Characters of a list that is shown whole where one of its items changes."""
LONGEST_ROWS = 5
"""Rows of a text that is shown whole."""
_BREAK = re.compile(r"[ \t]*\n[ \t]*")
_OPENS, _CLOSES = ("{", "["), ("}", "]")


def preview_lines(text: str, edits: Sequence[TextEdit], width: int) -> list[Line]:
    """`- ` and the old text, `+ ` and the new one below it, for each place that the edits change; of a long text the
    part that differs."""
    lines: list[Line] = []
    for old, new in changed_pieces(text, edits):
        start = common_start(old, new)
        end = common_end(old, new, start)
        if max(len(old), len(new)) > LONGEST_ROWS * width:
            old, new, start, end = _in_part(old, new, start, end, 2 * width)
        lines += _lines_of("-", old, start, len(old) - end, "removed", width)
        lines += _lines_of("+", new, start, len(new) - end, "added", width)
    return lines


def changed_pieces(text: str, edits: Sequence[TextEdit]) -> list[tuple[str, str]]:
    """Old and new text of each place: a value with its name, an item with its list. Edits of a line are one place."""
    tokens = tokenize(text)
    ordered = sorted(edits, key=lambda edit: edit.start)
    pieces: list[tuple[str, str]] = []
    for some in _together(text, ordered):
        start, end = _around(text, tokens, some[0].start, max(edit.end for edit in some))
        pieces.append((_inner(text[start:end]), _inner(_edited(text, start, end, some))))
    if any(not _is_closed(piece) for pair in pieces for piece in pair) or any(
        _entries(old) > 1 and new for old, new in pieces
    ):
        # Pieces of a value that becomes another one say nothing: the value is the place.
        start, end = _value_around(text, tokens, ordered[0].start, max(edit.end for edit in ordered))
        return [(_inner(text[start:end]), _inner(_edited(text, start, end, ordered)))]
    return pieces


def _is_closed(piece: str) -> bool:
    """Whether each bracket of a piece has its other one."""
    depth = 0
    for token in tokenize(piece):
        sign = piece[token.start : token.end]
        depth += (sign in _OPENS) - (sign in _CLOSES)
        if depth < 0:
            return False
    return not depth


def _entries(piece: str) -> int:
    """How many names with values a piece has that are not in brackets of it."""
    depth = entries = 0
    for token in tokenize(piece):
        sign = piece[token.start : token.end]
        depth += (sign in _OPENS) - (sign in _CLOSES)
        entries += token.kind == "colon" and not depth
    return entries


def _value_around(text: str, tokens: Sequence[Token], start: int, end: int) -> tuple[int, int]:
    """The smallest list or object that has `start`..`end`, with its name; all of the text where none has."""
    at = start
    while (opened := _opening(text, tokens, at)) is not None:
        closed = _closing(text, tokens, opened)
        if closed is not None and closed.end >= end:
            return _with_name(tokens, opened.start), closed.end
        at = opened.start
    return 0, len(text)


def _with_name(tokens: Sequence[Token], start: int) -> int:
    """Where the name of the value begins that begins at `start`; `start` where it has none."""
    before = [token for token in tokens if token.end <= start and token.kind != "comment"][-2:]
    return before[0].start if len(before) == 2 and before[1].kind == "colon" else start


def _in_part(old: str, new: str, start: int, end: int, room: int) -> tuple[str, str, int, int]:
    """Of both texts, whose first `start` and last `end` characters are equal, the part that differs, with `room`
    characters of what is beside it and of itself."""
    before = old[max(start - room // 2, 0) : start]
    before = "…" * (len(before) < start) + before
    after = old[len(old) - end :][: room // 2]
    after += "…" * (len(after) < end)
    parts = []
    for text in (old, new):
        part = text[start : len(text) - end]
        if len(part) > 2 * room:
            part = f"{part[:room]} … {part[-room // 2 :]}"
        parts.append(before + part + after)
    return parts[0], parts[1], len(before), len(after)


def _together(text: str, edits: Sequence[TextEdit]) -> list[list[TextEdit]]:
    """The edits, those of one line together."""
    groups = [[edit] for edit in edits[:1]]
    for before, edit in pairwise(edits):
        if "\n" in text[before.end : edit.start]:
            groups.append([edit])
        else:
            groups[-1].append(edit)
    return groups


def _edited(text: str, start: int, end: int, edits: Sequence[TextEdit]) -> str:
    pieces, at = [], start
    for edit in edits:
        pieces += [text[at : edit.start], edit.text]
        at = edit.end
    return "".join([*pieces, text[at:end]])


def _around(text: str, tokens: Sequence[Token], start: int, end: int) -> tuple[int, int]:
    """The range with whole tokens, with the list that it is in (a short one), and with the name of its value."""
    for token in tokens:
        if token.start < start < token.end:
            start = token.start
        if token.start < end < token.end:
            end = token.end
    opened = _opening(text, tokens, start)
    # An item of a list says little without the others.
    if opened is not None and text[opened.start] == "[":
        closed = _closing(text, tokens, opened)
        if closed is not None and closed.end - opened.start <= LONGEST_LIST and closed.end >= end:
            start, end = opened.start, closed.end
    return _with_name(tokens, start), end


def _opening(text: str, tokens: Sequence[Token], start: int) -> Token | None:
    """The bracket that `start` is in."""
    depth = 0
    for token in reversed([token for token in tokens if token.end <= start]):
        sign = text[token.start : token.end]
        if sign in _CLOSES:
            depth += 1
        elif sign in _OPENS:
            if not depth:
                return token
            depth -= 1
    return None


def _closing(text: str, tokens: Sequence[Token], opened: Token) -> Token | None:
    """The bracket that closes this one."""
    depth = 0
    for token in tokens:
        if token.start < opened.start:
            continue
        sign = text[token.start : token.end]
        depth += (sign in _OPENS) - (sign in _CLOSES)
        if not depth:
            return token
    return None


def _inner(text: str) -> str:
    """The text on one line, without the commas and the space that part it from what is beside it."""
    return _BREAK.sub(" ", text.strip(" \t\r\n,"))


def _lines_of(sign: str, text: str, start: int, end: int, style: str, width: int) -> list[Line]:
    """A text behind a sign, on as many lines as it needs; its characters `start`..`end` stand out."""
    if not text:
        return []
    displayed, offsets = shown_line(text)
    # Places are in the stored text: a character that is written out takes more on the screen.
    if offsets is not None:
        start, end = offsets[start], offsets[end]
    lines: list[Line] = []
    for first, last in wrap(displayed, max(width - 3, 8)):
        marked, stop = min(max(start, first), last), min(max(end, first), last)
        cells: list[Cell] = [(f" {sign} " if not lines else "   ", f"bold {style}"), (displayed[first:marked], style)]
        cells += [(displayed[marked:stop], f"bold underline {style}"), (displayed[stop:last], style)]
        lines.append(tuple(cell for cell in cells if cell[0]))
    return lines


def values_of_both(criterion: str, both: Sequence[BothChanged]) -> list[tuple[str, str, str]]:
    """(what it is, mine, the file's) of each value of a criterion's config that both sides changed."""
    return [
        (
            f"{criterion}: {'.'.join(map(str, changed.path)) or 'config'}",
            _words(changed.mine),
            _words(changed.theirs),
        )
        for changed in both
    ]


def _words(value: Any) -> str:
    """A value as it is shown; "" for one that was taken out."""
    return value if isinstance(value, str) else "" if value is None else json.dumps(value, ensure_ascii=False)
