"""Quotes inside a string that lack their backslash: `"say "hi" now"`."""

from __future__ import annotations

import re
from collections.abc import Sequence

from agenteval_tui.text.problems import Fix, TextEdit
from agenteval_tui.text.quick_dataclass import dataclass
from agenteval_tui.uxon.diagnostics import ESCAPE_THE_QUOTES
from agenteval_tui.uxon.strings import read_string
from agenteval_tui.uxon.tokens import Token

_FARTHEST = 2000  # characters of a line that are looked at
_LINE = re.compile(r"[^\n\r]*")
_QUOTE = re.compile(r'\\.|"')
_CAN_FOLLOW = re.compile(r"[ \t]*(?:[,}\]\n\r]|\Z)")


@dataclass(frozen=True, slots=True)
class Unescaped:
    """A string that goes on behind what looked like its end: value, end, index of the token behind it, and the fix."""

    value: str
    end: int
    next_index: int
    fix: Fix


def unescaped(text: str, tokens: Sequence[Token], index: int) -> Unescaped | None:
    """Whether the string before the token at `index` goes on there. Only a word right behind a quote says so."""
    before, token = tokens[index - 1], tokens[index]
    if before.kind not in ("string", "key") or before.end != token.start or text[before.start] != '"':
        return None
    if token.kind in ("brace", "bracket", "comma", "colon") or text[token.start] in "\"'":
        return None
    line_end = _LINE.match(text, token.start, min(len(text), token.start + _FARTHEST))
    limit = line_end.end() if line_end else token.end
    quotes = [m.start() for m in _QUOTE.finditer(text, before.start + 1, limit) if m.group() == '"']
    end = next((at + 1 for at in quotes if at >= token.start and _CAN_FOLLOW.match(text, at + 1)), None)
    if end is None:
        return None
    next_index = index
    while next_index < len(tokens) and tokens[next_index].start < end:
        next_index += 1
    if tokens[next_index - 1].end != end:
        return None
    fix = Fix(ESCAPE_THE_QUOTES, tuple(TextEdit(at, at, "\\") for at in quotes if at < end - 1))
    value, _ = read_string(text, before.start, end)
    return Unescaped(value, end, next_index, fix)
