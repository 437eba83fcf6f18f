"""What an edit of a config changes, before it is made: the old text above the new one, no more of it than decides."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from agenteval_tui.core.errors import TextEdit
from agenteval_tui.tui.presenters.config_lines import common_end, common_start
from agenteval_tui.tui.presenters.wrapped_lines import shown_line
from agenteval_tui.tui.styled_text import Cell, Line, wrap
from agenteval_tui.uxon.tokens import Token, tokenize

LONGEST_LIST = 240
"""Characters of a list that is shown whole where one of its items changes."""
_OPENS, _CLOSES = ("{", "["), ("}", "]")


def preview_lines(text: str, edits: Sequence[TextEdit], width: int) -> list[Line]:
    """`- ` and the old text, `+ ` and the new one below it, for each place that the edits change; nothing is cut."""
    lines: list[Line] = []
    for old, new in changed_pieces(text, edits):
        start = common_start(old, new)
        end = common_end(old, new, start)
        lines += _lines_of("-", old, start, len(old) - end, "removed", width)
        lines += _lines_of("+", new, start, len(new) - end, "added", width)
    return lines


def changed_pieces(text: str, edits: Sequence[TextEdit]) -> list[tuple[str, str]]:
    """Old and new text of each place: a value with its name, an item with its list. Edits of a line are one place."""
    tokens = tokenize(text)
    found: list[tuple[str, str]] = []
    for some in _together(text, sorted(edits, key=lambda edit: edit.start)):
        start, end = _around(text, tokens, some[0].start, max(edit.end for edit in some))
        found.append((_inner(text[start:end]), _inner(_edited(text, start, end, some))))
    return found


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
    if opened is not None and text[opened.start] == "[":
        closed = _closing(text, tokens, opened)
        if closed is not None and closed.end - opened.start <= LONGEST_LIST and closed.end >= end:
            start, end = opened.start, closed.end
    before = [token for token in tokens if token.end <= start and token.kind != "comment"][-2:]
    if len(before) == 2 and before[1].kind == "colon":
        start = before[0].start
    return start, end


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
    return " ".join(text.strip(" \t\r\n,").split("\n"))


def _lines_of(sign: str, text: str, start: int, end: int, style: str, width: int) -> list[Line]:
    """A text behind a sign, on as many lines as it needs; its characters `start`..`end` stand out."""
    if not text:
        return []
    shown, offsets = shown_line(text)
    if offsets is not None:
        start, end = offsets[start], offsets[end]
    lines: list[Line] = []
    for first, last in wrap(shown, max(width - 3, 8)):
        marked, stop = min(max(start, first), last), min(max(end, first), last)
        cells: list[Cell] = [(f" {sign} " if not lines else "   ", f"bold {style}"), (shown[first:marked], style)]
        cells += [(shown[marked:stop], f"bold underline {style}"), (shown[stop:last], style)]
        lines.append(tuple(cell for cell in cells if cell[0]))
    return lines
