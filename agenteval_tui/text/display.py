"""The one door through which foreign text reaches a screen or a terminal.

Whatever an agent, a file or a server sent is data. What could move a cursor, write a clipboard, turn a line
around or hide itself is replaced by something visible. Nothing else in the program may print foreign text.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache

_INVISIBLE = "·"  # stands for a zero-width or formatting character
_BIDI = "↔"  # stands for a character that turns the direction of text
_BROKEN = "\ufffd"  # stands for what is no character at all

_BIDI_CONTROLS = {0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A)}
_DROPPED = {0xFE0E, 0xFE0F}  # variation selectors: terminals disagree about their width
_MAX_MARKS = 2  # combining marks kept on one character

# Everything that could need attention: controls, formats, surrogates, non-characters, marks, odd separators.
_SUSPECTS = (
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u0300-\u036f\u0483-\u0489\u0591-\u05bd\u0600-\u0605\u0610-\u061c\u064b-\u065f"
    "\u06d6-\u06ed\u070f\u0890\u0891\u08d3-\u0902\u0e31-\u0e4e\u115f\u1160\u17b4\u17b5\u180b-\u180f\u1ab0-\u1aff\u1dc0-\u1dff\u200b-\u200f"
    "\u2028-\u202f\u205f-\u2064\u2066-\u206f\u20d0-\u20ff\u3164\ud800-\udfff\ufdd0-\ufdef\ufe00-\ufe0f\ufe20-\ufe2f"
    "\ufeff\uffa0\ufff0-\uffff\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d165-\U0001d1ad\U000e0000-\U0010ffff]"
)


@cache
def _suspect() -> re.Pattern[str]:
    # Compiled when it is needed: it takes as long as the rest of this module, and plain text never asks for it.
    return re.compile(_SUSPECTS)


def stand_in(char: str) -> str:
    """What `char` looks like on a screen: itself, or a visible stand-in of one cell, or nothing."""
    code = ord(char)
    if code in (0x0A, 0x09):
        return char
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "␡"
    if code < 0x7F:
        return char
    if code < 0xA0:
        return _BROKEN
    if code in _BIDI_CONTROLS:
        return _BIDI
    if code in _DROPPED:
        return ""
    if code in (0x2028, 0x2029):
        return "⏎"
    if code in (0x115F, 0x1160, 0x3164, 0xFFA0) or 0xE0000 <= code <= 0xE0FFF or 0xFE00 <= code <= 0xFE0F:
        return _INVISIBLE
    category = unicodedata.category(char)
    if category == "Cf":
        return _INVISIBLE
    if category in ("Cs", "Cc") or code >= 0xF0000 or code & 0xFFFE == 0xFFFE or 0xFDD0 <= code <= 0xFDEF:
        return _BROKEN
    return char


def displayable(text: str) -> str:
    """`text` as it may be shown: controls as pictures, direction and zero-width characters visible.

    Newlines and tabs stay; carriage returns before a newline go. The result never holds a character that a
    terminal acts on, except newline and tab. The length may differ: `displayable_map` tells which character is which.
    """
    if "\r" in text:
        text = text.replace("\r\n", "\n")
    if text.isascii() and text.isprintable():
        return text
    if _suspect().search(text) is None:
        return text
    out: list[str] = []
    marks = 0
    for char in text:
        if unicodedata.combining(char) or unicodedata.category(char) == "Me":
            marks += 1
            out.append(char if marks <= _MAX_MARKS else "")
        else:
            marks = 0
            out.append(stand_in(char))
    return "".join(out)


def displayable_map(text: str) -> tuple[str, list[int] | None]:
    """`displayable(text)` and, for each offset 0..len(text), the offset in the result; None when they are equal."""
    shown = displayable(text)
    if shown == text:
        return shown, None
    offsets: list[int] = []
    position = 0
    marks = 0
    for index, char in enumerate(text):
        offsets.append(position)
        if char == "\r" and text[index + 1 : index + 2] == "\n":
            continue
        if unicodedata.combining(char) or unicodedata.category(char) == "Me":
            marks += 1
            position += marks <= _MAX_MARKS
        else:
            marks = 0
            position += len(stand_in(char))
    offsets.append(position)
    return shown, offsets


def one_line(text: str, width: int | None = None) -> str:
    """`text` displayable, on one line: runs of white space become one space; cut to `width` characters with `…`."""
    if width is not None and len(text) > 4 * width + 64:
        text = text[: 4 * width + 64] + "…"
    line = " ".join(displayable(text).split())
    if width is not None and len(line) > width:
        line = line[: max(width - 1, 0)] + "…"
    return line
