"""The last defence: nothing that a terminal would act on leaves the app, whatever a widget forgot.

Widgets show foreign text through `core.display` already; Textual itself passes escape sequences on as they are.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Literal, cast
from unicodedata import normalize

from rich.cells import cell_len, split_graphemes
from rich.segment import Segment
from rich.style import Style
from textual.color import Color
from textual.filter import LineFilter
from textual.notifications import Notification

from agenteval_tui.core.display import ZERO_WIDTH_JOINER, displayable, is_joiner, is_mark, stand_in

LONGEST_NOTE = 600  # characters of a notification
MOST_ROWS = 8  # and its lines
SHORTEST_S = 5.0  # that a notification stays
READING = 20  # characters a second: a long sentence stays longer

_MOVES = re.compile("[\n\t]")


class DisplaySafe(LineFilter):
    """Deletes or replaces, in what is about to be written, every character that is more than a glyph.

    The number of cells stays as it was measured: what takes no cell is deleted, the rest gets a stand-in.
    """

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        """The segments, harmless."""
        return [
            segment if segment.control or _is_harmless(segment.text) else Segment(sanitize(segment.text), segment.style)
            for segment in segments
        ]

    # One is as good as another: lines that were filtered stay cached.

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DisplaySafe) and other.enabled == self.enabled

    def __hash__(self) -> int:
        return hash((DisplaySafe, self.enabled))


def _is_harmless(text: str) -> bool:
    if text.isascii():
        return text.isprintable()
    return displayable(text) == text and not _MOVES.search(text)


_END = 16  # characters: a letter with more marks and joiners than are kept


def sanitize(text: str) -> str:
    """`text` (a piece of one line) without anything that a terminal acts on, in as many cells as it had."""
    # Marks that are too many on one letter are dropped by `displayable`; they take no cell. Those on no letter it would
    # put on a dot, which takes one.
    clean = ""
    follows = False  # a joiner: what follows one was measured with it, and takes no cell
    for place, char in enumerate(text):
        joined, follows = follows, char == ZERO_WIDTH_JOINER and not follows
        if joined:
            if clean[-1:] == ZERO_WIDTH_JOINER:
                clean = clean + char if displayable(clean + char) == clean + char else clean[:-1]
            continue
        if is_joiner(text, place, clean):
            clean += char
            continue
        visible = "" if char in "\n\t" else stand_in(char)
        if visible == char:
            if not is_mark(char) or (clean and not clean[-1].isspace() and _keeps(clean, char)):
                clean += char
        elif (width := cell_len(char)) > 0:
            clean += (visible or "·").ljust(width)[:width]
    return displayable(clean)


def _keeps(text: str, mark: str) -> bool:
    """Whether `displayable` keeps a mark behind this text. A joiner behind a dropped mark would be shown as a dot."""
    end = text[-_END:]
    return displayable(end + mark) != displayable(end)


def as_ascii(text: str) -> str:
    """`text` for a terminal that has only ASCII, in as many cells: look-alikes for what the screens draw, letters
    without their marks, `?` for the rest."""
    if text.isascii():
        return text
    spans, _ = split_graphemes(text)
    return "".join([_ascii_of(text[start], width) for start, _, width in spans])


@lru_cache(maxsize=2048)
def _ascii_of(char: str, width: int) -> str:
    if char.isascii():
        return char.ljust(width)[:width]
    alike = _ALIKE.get(char)
    if alike is None:
        base = normalize("NFKD", char)[:1]
        alike = base if base.isascii() and base.isprintable() else "?"
    return (alike * width)[:width]


_ALIKE = {
    alike: plain
    for plain, many in {
        ">": "▸▶›→▹⏵",
        "<": "‹←◂◀◃↵",
        "v": "▾▼↓▽",
        "^": "▴▲↑△⌂",
        "-": "─━╸╺–—╌╍┄┅╴╶‒",
        "|": "│┃▌▐▍▎▏┆┇╎║┊",
        "+": "┌┐└┘├┤┬┴┼╭╮╰╯✓✔",
        "x": "✗✘×",
        "*": "●•◐◑★◉◆",
        "o": "○◌◯ø◇",
        ".": "·…∙",
        "#": "█▇▆▓▉▊▋",
        "=": "▅▄═▒",
        "_": "▂▁▃▔░▀",
        "~": "≈",
        "'": "‘’′",
        '"': "“”„«»",
        "!": "⚠",
        "s": "ß",
        "E": "€",
        "a": "æ",
        "A": "Æ",
        "O": "Ø",
        "l": "ł",
        "L": "Ł",
        "d": "đ",
        "i": "ı",
    }.items()
    for alike in many
}


class AsciiOnly(LineFilter):
    """For terminals whose locale has no UTF-8: nothing but ASCII is written."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        """The segments in ASCII, each cell where it was."""
        return [
            segment if segment.control or segment.text.isascii() else Segment(as_ascii(segment.text), segment.style)
            for segment in segments
        ]


class Colourless(LineFilter):
    """For `NO_COLOR`, and terminals that have none: bold, underlined and turned round, and not one colour.

    What has a background of its own is turned round: it may be all that says where the cursor is. (The toolkit's own
    answer to `NO_COLOR` is greys, which are colours that are sent.)
    """

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        """The segments without their colours."""
        return [
            segment if segment.style is None else Segment(segment.text, _colourless(segment.style), segment.control)
            for segment in segments
        ]


@lru_cache(maxsize=1024)
def _colourless(style: Style) -> Style:
    ground = style.bgcolor
    return Style(
        bold=style.bold,
        dim=style.dim,
        italic=style.italic,
        underline=style.underline,
        strike=style.strike,
        reverse=style.reverse or (ground is not None and not ground.is_default),
        meta=style.meta,
    )


Severity = Literal["information", "warning", "error"]


def displayable_note(message: str, *, title: str = "", times: int = 1, severity: str = "information") -> Notification:
    """A notification. The message may hold foreign text: it is made displayable, and markup in it is text. `times`:
    how often it was said, where that is more than once."""
    text = displayable(message)
    if len(text) > LONGEST_NOTE:
        text = text[: LONGEST_NOTE - 1] + "…"
    rows = text.split("\n")
    if len(rows) > MOST_ROWS:
        text = "\n".join(rows[: MOST_ROWS - 1]) + "\n…"
    if times > 1:
        text = f"{text}  ×{times}"
    level = cast(Severity, severity)
    return Notification(text, displayable(title), level, timeout=max(SHORTEST_S, len(text) / READING))
