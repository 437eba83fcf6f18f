"""A few lines beside the cursor, above everything else: completions, or what is known of a word."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from textual.geometry import Offset, Size

from agenteval_tui.tui.presenters.status_style import UNICODE
from agenteval_tui.tui.styled_text import Line, width_of
from agenteval_tui.tui.widgets.line_block import LineBlock

ROOM = 60
"""Cells that a popup needs to be worth reading."""
BAR = "▌" if UNICODE else "|"


class Popup(LineBlock):
    """Shows lines under a place of the screen, or above it where there is no room below. Takes no focus."""

    DEFAULT_CSS = Path(__file__).with_suffix(".tcss").read_text(encoding="utf-8")

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.display = False

    def open_at(self, place: Offset, make: Callable[[int], Sequence[Line]]) -> None:
        """Show what `make(room)` gives, its first column at `place` (of the screen), the line there left free.

        It stays right of the place where it can be read there, so that it covers what is being worked on the least.
        """
        screen = self.screen.size
        made = make(max(screen.width - place.x, min(ROOM, screen.width)) - 1)
        lines: list[Line] = [((BAR, "accent"), *line) for line in made]
        if not lines:
            self.close()
            return
        width, height = max(map(width_of, lines)), len(lines)
        x = max(0, min(place.x, screen.width - width))
        y = place.y + 1 if place.y + 1 + height <= screen.height else max(0, place.y - height)
        self.styles.width, self.styles.height = width, height
        self.absolute_offset = Offset(x, y)
        self.show(lambda _: lines)
        self.display = True

    def close(self) -> None:
        """Show nothing."""
        self.display = False

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return max(super().get_content_height(container, viewport, width), 1)
