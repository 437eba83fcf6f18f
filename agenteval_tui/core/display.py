"""The one door through which foreign text reaches a screen or a terminal.

Whatever an agent, a file or a server sent is data. What could move a cursor, write a clipboard, turn a line
around or hide itself is replaced by something visible. Nothing else in the program may print foreign text. A command
that a person is to copy into a shell is quoted here for the same reason: each foreign word stays one word.
"""

from __future__ import annotations

import os
import re
import shlex
import unicodedata
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from pathlib import Path

from agenteval_tui.core.unicode_classes import (
    HIDDEN,
    HIDDEN_ASTRAL,
    HIDDEN_BEYOND,
    JOINS_LAST,
    JOINS_NEXT,
    MARKS,
    MARKS_ASTRAL,
    PICTOGRAPH,
    VIRAMA,
)

_INVISIBLE = "·"  # stands for a zero-width or formatting character
_BIDI = "↔"  # stands for a character that turns the direction of text
_BROKEN = "\ufffd"  # stands for what is not a character at all

_BIDI_CONTROLS = {0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A)}
_DROPPED = {0xFE0E, 0xFE0F}  # variation selectors: terminals disagree about their width
ZERO_WIDTH_NON_JOINER, ZERO_WIDTH_JOINER = "\u200c", "\u200d"
_MOST_PICTOGRAPHS = 4  # joined to one: as many as the longest sequences of Unicode's emoji have
_CONTEXT = 16  # characters that decide about a joiner: such a sequence with its tones, or a letter with its marks
_CUTS = 4  # of texts that look alike: what is cut at their first difference may look like another one
_SEQUENCES = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")  # of ECMA-48, for terminals
_MAX_MARKS = 4  # kept on one character: some scripts write a vowel sign, a tone and a point on one letter
_MAX_STACKED = 2  # and of those that pile up above or below it


@cache
def _suspect() -> re.Pattern[str]:
    """Finds everything that could need attention: what is hidden, and marks; beyond the first plane also letters of
    rare scripts, since many ranges there make every other character slow. Compiled when it is needed: plain text never
    asks."""
    return re.compile(f"[{HIDDEN}{MARKS}{HIDDEN_BEYOND}\U00010000-\U0001f1ff]")


@cache
def _hidden() -> re.Pattern[str]:
    return re.compile(f"[{HIDDEN}{HIDDEN_ASTRAL}{HIDDEN_BEYOND}]")


@cache
def _marks() -> re.Pattern[str]:
    return re.compile(f"[{MARKS}{MARKS_ASTRAL}]")


@cache
def _joining() -> dict[str, re.Pattern[str]]:
    """What each joiner may follow. The group is a virama, after which nothing else is asked."""
    pictograph = f"[{PICTOGRAPH}][\U0001f3fb-\U0001f3ff]?"
    chain = f"(?:{pictograph}{ZERO_WIDTH_JOINER}){{,{_MOST_PICTOGRAPHS}}}{pictograph}"
    return {
        ZERO_WIDTH_NON_JOINER: re.compile(f"([{VIRAMA}])$|[{JOINS_NEXT}][{MARKS}{MARKS_ASTRAL}]*$"),
        ZERO_WIDTH_JOINER: re.compile(f"([{VIRAMA}])$|{chain}$"),
    }


@cache
def _joined() -> dict[str, re.Pattern[str]]:
    """What comes next, behind marks, and behind what isn't shown."""
    dropped = "".join(map(chr, sorted(_DROPPED)))
    marks = f"(?![{HIDDEN}{HIDDEN_ASTRAL}])[{MARKS}{MARKS_ASTRAL}]"
    return {
        ZERO_WIDTH_NON_JOINER: re.compile(f"(?:[{dropped}]|{marks})*[{JOINS_LAST}]"),
        ZERO_WIDTH_JOINER: re.compile(f"[{dropped}]*[{PICTOGRAPH}]"),
    }


def is_joiner(text: str, place: int, before: str) -> bool:
    """Whether the character at `place` is a joiner that changes how its neighbours look. `before`: what is shown before
    it, of which the last characters are enough.

    By RFC 5892 (A.1 and A.2) those are both joiners after a virama (Hindi), and the zero-width non-joiner between two
    letters that would be joined (Persian); by Unicode's annex 29 (GB11) also the zero-width joiner between two
    pictographs (a family). Elsewhere a joiner is a way to hide something.
    """
    char = text[place]
    if char not in (ZERO_WIDTH_NON_JOINER, ZERO_WIDTH_JOINER):
        return False
    follows = _joining()[char].search(before[-_CONTEXT:])
    if follows is None or follows[1]:
        return follows is not None
    # A chain without an end would take no more room than its first pictograph.
    return follows.group().count(ZERO_WIDTH_JOINER) < _MOST_PICTOGRAPHS - 1 and (
        _joined()[char].match(text, place + 1) is not None
    )


@lru_cache(maxsize=4096)
def is_mark(char: str) -> bool:
    """Whether it is shown on the letter before it, in no cell of its own."""
    return _marks().match(char) is not None and _hidden().match(char) is None


@lru_cache(maxsize=4096)
def stand_in(char: str) -> str:
    """What `char` looks like on a screen: itself, or a visible stand-in of one cell, or nothing.

    Decided by Unicode property: controls, formats, surrogates, unassigned code points, non-characters, the planes of
    private use, what is ignorable by default (joiners, fillers, tags, variation selectors) and spaces of odd widths.
    """
    code = ord(char)
    if code in (0x0A, 0x09) or _hidden().match(char) is None:
        return char
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "␡"
    if code < 0xA0:
        return _BROKEN
    if code in _BIDI_CONTROLS:
        return _BIDI
    if code in _DROPPED:
        return ""
    category = unicodedata.category(char)
    if category == "Zs":
        return " "
    if category in ("Zl", "Zp"):
        return "⏎"
    if code & 0xFFFE == 0xFFFE or 0xFDD0 <= code <= 0xFDEF:
        return _BROKEN
    # Unassigned, and yet to be ignored when it is assigned.
    ignorable = code == 0x2065 or 0xFFF0 <= code <= 0xFFF8 or 0xE0000 <= code <= 0xE0FFF
    return _BROKEN if category in ("Cs", "Cc", "Cn", "Co") and not ignorable else _INVISIBLE


def displayable(text: str) -> str:
    """`text` as it may be shown: controls as pictures, direction and zero-width characters visible.

    Newlines and tabs stay; carriage returns before a newline go. A character keeps at most a few marks, and marks that
    follow nothing are put on a dot. The result never holds a character that a terminal acts on, except newline and tab,
    and none of zero width but marks. The length may differ: `displayable_map` tells which character is which.
    """
    if "\r" in text:
        text = text.replace("\r\n", "\n")
    if text.isascii() and text.isprintable():
        return text
    if _suspect().search(text) is None:
        return text
    return "".join([piece for _, piece in _pieces(text)])


def displayable_map(text: str) -> tuple[str, list[int] | None]:
    """`displayable(text)` and, for each offset 0..len(text), the offset in the result; None when they are equal."""
    displayed = displayable(text)
    if displayed == text:
        return displayed, None
    offsets: list[int] = []
    position = 0
    for original, piece in _pieces(text):
        offsets.extend(range(position, position + len(original)) if original == piece else [position] * len(original))
        position += len(piece)
    offsets.append(position)
    return displayed, offsets


def _pieces(text: str) -> Iterator[tuple[str, str]]:
    """The text in pieces, each with what is shown for it: runs that stay as they are, and single characters."""
    marks = stacked = 0
    before = ""  # the end of what is shown
    last = 0
    for match in _suspect().finditer(text):
        place, char = match.start(), match.group()
        if place > last:
            yield text[last:place], text[last:place]
            before, marks, stacked = before + text[max(last, place - _CONTEXT) : place], 0, 0
        last = place + 1
        if char == "\r" and text[last : last + 1] == "\n":
            visible = ""
        elif is_joiner(text, place, before):
            visible = char  # marks behind it are on the letter before it
        elif not is_mark(char):
            visible = stand_in(char)
            if visible:  # what is left out parts no marks
                marks = stacked = 0
        else:
            marks += 1
            stacked += unicodedata.combining(char) != 0 or unicodedata.category(char) == "Me"
            keep = marks <= _MAX_MARKS and stacked <= _MAX_STACKED
            # Alone, or at the start of a line, it would change its neighbour on the screen.
            alone = marks == 1 and (not before or before[-1].isspace())
            visible = "" if not keep else f"{_INVISIBLE}{char}" if alone else char
        yield char, visible
        before = (before + visible)[-_CONTEXT:]
    if last < len(text):
        yield text[last:], text[last:]


def printed_lines(text: str) -> list[str]:
    """The lines of what a program printed, without what colours them or moves the cursor of a terminal."""
    return _SEQUENCES.sub("", text).splitlines()


def one_line(text: str, width: int | None = None) -> str:
    """`text` displayable, on one line: runs of white space become one space; cut to `width` characters with `…`."""
    if width is not None and len(text) > 4 * width + 64:
        text = text[: 4 * width + 64] + "…"
    line = " ".join(displayable(text).split())
    if width is not None and len(line) > width:
        line = line[: max(width - 1, 0)].rstrip(ZERO_WIDTH_NON_JOINER + ZERO_WIDTH_JOINER) + "…"
    return line


def told_apart(texts: Sequence[str], width: int) -> list[str]:
    """Each text as `one_line`, cut to `width` characters. Of those that would look the same, but are not, the middle is
    cut out up to where they differ."""
    whole = [one_line(text) for text in texts]
    lines = [one_line(text, width) for text in texts]
    lead = width // 3
    for _ in range(_CUTS):
        alike: dict[str, list[int]] = {}
        for place, line in enumerate(lines):
            alike.setdefault(line, []).append(place)
        for places in alike.values():
            lowest, highest = (end(whole[place] for place in places) for end in (min, max))
            if lowest == highest:
                continue
            start = next((at for at, char in enumerate(lowest) if char != highest[at]), len(lowest))
            start = max(start - lead // 2, lead)
            for place in places:
                begin = max(lead, min(start, len(whole[place]) - (width - lead - 1)))
                lines[place] = one_line(f"{whole[place][:lead].rstrip()}…{whole[place][begin:].lstrip()}", width)
    return lines


def both_ends(text: str, width: int) -> str:
    """As `one_line`, but a long text loses its middle: the end of an error says where it was raised."""
    line = one_line(text)
    if len(line) <= width:
        return line
    end = width // 3
    return f"{line[: width - end - 1].rstrip()}…{line[-end:].lstrip()}"


def end_of_path(path: Path, width: int) -> str:
    """The path on one line; of a long one the last folders, which say where it is: `…/shop/suites`."""
    whole = one_line(str(path))
    if len(whole) <= width:
        return whole
    end = whole[len(whole) - width + 1 :]
    folder = end.find(os.sep)
    return f"…{end[folder:] if folder >= 0 else end}"


def command_line(*words: str) -> str:
    """The words as a shell reads them, quoted where that is needed; on one line, with nothing that a terminal obeys."""
    return " ".join(shlex.quote(one_line(word)) for word in words)
