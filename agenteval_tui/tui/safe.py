"""The last defence: nothing that a terminal would act on leaves the app, whatever a widget forgot.

Widgets show foreign text through `text.display` already; Textual itself passes escape sequences on as they are.
"""

from __future__ import annotations

import re
from typing import Any, Literal, cast

from rich.cells import cell_len
from rich.segment import Segment
from textual.app import App
from textual.color import Color
from textual.filter import LineFilter

from agenteval_tui.text.display import displayable, stand_in

LONGEST_NOTE = 600  # characters of a notification
MOST_ROWS = 8  # and its lines
READING = 20  # characters a second: a long sentence stays longer

_MOVES = re.compile("[\n\t]")


class DisplaySafe(LineFilter):
    """Deletes or replaces, in what is about to be written, every character that is more than a glyph.

    The number of cells stays as it was measured: what takes no cell is deleted, the rest gets a stand-in.
    """

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        """The segments, harmless."""
        return [
            segment if segment.control or _is_harmless(segment.text) else Segment(harmless(segment.text), segment.style)
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


def harmless(text: str) -> str:
    """`text` (a piece of one line) without anything that a terminal acts on, in as many cells as it had."""
    # Marks that are too many on one letter are dropped by `displayable`; they take no cell.
    kept: list[str] = []
    for char in text:
        shown = "" if char in "\n\t" else stand_in(char)
        if shown == char:
            kept.append(char)
        elif (width := cell_len(char)) > 0:
            kept.append((shown or "·").ljust(width)[:width])
    return displayable("".join(kept))


def say(app: App[Any], message: str, *, title: str = "", severity: str = "information") -> None:
    """A notification. The message may hold foreign text: it is made displayable, and markup in it is text."""
    text = displayable(message)
    if len(text) > LONGEST_NOTE:
        text = text[: LONGEST_NOTE - 1] + "…"
    rows = text.split("\n")
    if len(rows) > MOST_ROWS:
        text = "\n".join(rows[: MOST_ROWS - 1]) + "\n…"
    level = cast(Literal["information", "warning", "error"], severity)
    app.notify(text, title=displayable(title), severity=level, timeout=max(5.0, len(text) / READING), markup=False)
