"""String literals of the config language: what they mean, and where each of their characters is in the text."""

from __future__ import annotations

import json
import re

from agenteval_tui.core.errors import Fix, TextEdit
from agenteval_tui.uxon.diagnostics import CLOSE_THE_QUOTE, MOST_DIAGNOSTICS, Diagnostic, replace_fix

_ESCAPES = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_PIECE = re.compile(
    r"""\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\.|[\x00-\x1f]""", re.DOTALL
)
_CLOSING = {'"': '"', "'": "'", "`": "`", "“": "“”‟", "”": "“”‟", "„": "“”‟", "‟": "“”‟"}
_SPECIAL = {"\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def quote(value: str) -> str:
    """`value` as a JSON string; characters outside ASCII stay as they are."""
    return json.dumps(value, ensure_ascii=False)


def body_range(text: str, start: int, end: int) -> tuple[int, int, bool]:
    """Where the inside of the string token `start`..`end` is, and whether its quote is closed."""
    closing = _CLOSING[text[start]]
    closed = end - start >= 2 and text[end - 1] in closing
    if closed and text[start] in "\"'" and end - start > 2:
        body = text[start + 1 : end - 1]
        closed = (len(body) - len(body.rstrip("\\"))) % 2 == 0  # else the last quote is an escaped one
    return start + 1, end - 1 if closed else end, closed


def read_string(text: str, start: int, end: int) -> tuple[str, list[Diagnostic]]:
    """The value of the string token `start`..`end`, and what is wrong with it.

    An escape that JSON does not know keeps its backslash in the value: in these texts it is nearly always a regular
    expression whose backslash should have been doubled.
    """
    body_start, body_end, closed = body_range(text, start, end)
    if text[start] == "`" or text[start] in "“”„‟":
        value = text[body_start:body_end]
        return value, [_other_quotes(text, start, end, value)]
    value, pieces = _decode(text, body_start, body_end)
    if not closed:
        right = "\\" + text[start] if _trailing_backslash(text, end) else text[start]
        fix = replace_fix(CLOSE_THE_QUOTE, end, end, right)
        message = f"This string is never closed: put {text[start]} at its end."
        return value, [Diagnostic("error", "syntax", message, start, end, fix), *_bad_pieces(pieces)]
    if text[start] == "'":
        return value, [_other_quotes(text, start, end, value)]
    line_ends = [piece for piece in pieces if piece[2] in "\r\n"]
    if not line_ends:
        return value, _bad_pieces(pieces)
    fix = Fix("write \\n for the line ends", tuple(TextEdit(at, to, _SPECIAL[end]) for at, to, end in line_ends))
    message = "A string has to be on one line: write \\n for each line end in it."
    others = [piece for piece in pieces if piece not in line_ends]
    return value, [Diagnostic("error", "syntax", message, start, end, fix), *_bad_pieces(others)]


def _trailing_backslash(text: str, end: int) -> bool:
    head = text[max(0, end - 1000) : end]
    return (len(head) - len(head.rstrip("\\"))) % 2 == 1


def _other_quotes(text: str, start: int, end: int, value: str) -> Diagnostic:
    right = quote(value)
    quoted = right if len(right) <= 40 else '"..."'
    message = f"Strings need double quotes: write {quoted}."
    return Diagnostic("error", "syntax", message, start, end, replace_fix("use double quotes", start, end, right))


def _decode(text: str, start: int, end: int) -> tuple[str, list[tuple[int, int, str]]]:
    """The value, and the pieces (start, end, source) that JSON would refuse."""
    out: list[str] = []
    bad: list[tuple[int, int, str]] = []
    position = start
    for match in _PIECE.finditer(text, start, end):
        out.append(text[position : match.start()])
        position = match.end()
        source = match.group()
        decoded = _decode_piece(source)
        if decoded is None:
            bad.append((match.start(), position, source))
            decoded = source if source != "\\'" else "'"
        out.append(decoded)
    out.append(text[position:end])
    return "".join(out), bad


def _decode_piece(source: str) -> str | None:
    if source[0] != "\\":
        return None
    if len(source) == 2:
        return _ESCAPES.get(source[1])
    if len(source) == 6:
        return chr(int(source[2:], 16))
    high, low = int(source[2:6], 16), int(source[8:], 16)
    return chr(0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00))


def _bad_pieces(pieces: list[tuple[int, int, str]]) -> list[Diagnostic]:
    return [_bad_piece(start, end, source) for start, end, source in pieces[:MOST_DIAGNOSTICS]]


def _bad_piece(start: int, end: int, source: str) -> Diagnostic:
    fix: Fix
    if source[0] != "\\":
        right = _SPECIAL.get(source, f"\\u{ord(source):04x}")
        message = f"This string contains a control character: write {right}."
        return Diagnostic(
            "warning", "control-character", message, start, end, replace_fix("escape it", start, end, right)
        )
    if source == "\\'":
        fix = replace_fix("remove the backslash", start, end, "'")
        return Diagnostic("error", "syntax", "' needs no backslash: write '.", start, end, fix)
    fix = replace_fix("double the backslash", start, start + 1, "\\\\")
    if source == "\\u":
        message = "\\u needs four hexadecimal digits, as in \\u00e4; for a backslash write \\\\."
        return Diagnostic("error", "syntax", message, start, end, fix)
    message = f"{source} is not a JSON escape: for a backslash write \\\\, so {source} becomes \\{source}."
    return Diagnostic("error", "syntax", message, start, end, fix)


def source_offset(text: str, start: int, end: int, index: int) -> int:
    """Where character `index` of the value of the string token `start`..`end` is in `text`. An index after the value
    gives the place of the closing quote.
    """
    body_start, body_end, _ = body_range(text, start, end)
    position, remaining = body_start, index
    for match in _PIECE.finditer(text, body_start, body_end):
        plain = match.start() - position
        if remaining < plain:
            return position + remaining
        remaining -= plain
        source = match.group()
        decoded = _decode_piece(source)
        length = len(decoded) if decoded is not None else (1 if source == "\\'" else len(source))
        if remaining < length:
            return match.start() + (remaining if decoded is None else 0)
        remaining -= length
        position = match.end()
    return min(position + remaining, body_end)
