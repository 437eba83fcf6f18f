"""How the app writes to the terminal: only cells that look different from what is there (see `screen_buffer.py`), and
only as fast as the terminal takes them. On a slow line pictures in between are left out; no key waits for them.

With a Textual that has other private parts (`textual_support.py`), Textual paints by itself.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from time import monotonic
from typing import Any

from rich.console import Console
from textual import events
from textual.app import App

from agenteval_tui.tui.terminal.output_flow import Arrival, modified_f3
from agenteval_tui.tui.terminal.screen_buffer import Mirror, Piece
from agenteval_tui.tui.terminal.textual_support import has
from agenteval_tui.tui.workers import call_after

try:
    from textual._ansi_sequences import ANSI_SEQUENCES_KEYS
    from textual._compositor import ChopsUpdate, CompositorUpdate, LayoutUpdate
    from textual.drivers._writer_thread import WriterThread
except ImportError:  # another Textual than `IS_KNOWN` asks for
    ANSI_SEQUENCES_KEYS, CompositorUpdate = {}, object  # type: ignore[assignment, misc]

IS_KNOWN = all(
    has(part, names)
    for part, names in {
        "textual.app:App._display": "screen renderable",
        "textual.app:App.__init__": "_driver _previous_cursor_position _batch_count",
        "textual.message_pump:MessagePump.__init__": "_running _closed",
        "textual.drivers._writer_thread:WriterThread.__init__": "_queue",
        "textual._compositor:LayoutUpdate.__init__": "strips region",
        "textual._compositor:ChopsUpdate.__init__": "chops spans chop_ends",
    }.items()
)
"""Otherwise Textual paints, in its own way, and the terminal is asked nothing."""

WHOLE = os.environ.get("AGENTEVAL_REPAINT") == "whole"  # as the toolkit does it: for a terminal that forgets cells
_ERASING = ("alacritty", "foot", "ghostty", "konsole", "rxvt-unicode", "st-", "tmux", "vte", "wezterm", "xterm-")
ERASES = "TMUX" in os.environ or os.environ.get("TERM", "").startswith(_ERASING)
"""Whether erased cells take the background that is set: those that call themselves so do. GNU screen's do not."""
MOST_WAITING = 6  # pieces of writing that wait for the terminal; a picture is three
PATIENCE_S = 0.03  # until it is tried again to write a picture that waits


class Ready(CompositorUpdate):
    """An update whose text is made already."""

    def __init__(self, text: str) -> None:
        self._text = text

    def render_segments(self, console: Console) -> str:
        """The text."""
        return self._text


class MinimalRedraw:
    """Knows what the terminal of an app shows, and how soon it shows what is sent."""

    def __init__(self, app: App[Any]) -> None:
        self._app = app
        self._mirror: Mirror | None = None  # None until everything was painted
        self._catching_up = False
        self.arrival = Arrival()

    def forget_terminal(self) -> None:
        """Something else may have written to the terminal: paint everything anew."""
        self._mirror = None
        self._app.call_later(self._paint_all)

    def _paint_all(self) -> None:
        if self._mirror is None and self._app.screen_stack:
            self._app.screen.refresh()

    def resized(self) -> None:
        """Another size, or the terminal was somebody else's for a while: nothing of it is known."""
        self.arrival.forget()
        self.forget_terminal()

    def key_of(self, event: events.CursorPosition) -> events.Key | None:
        """Takes the terminal's answer; returns the key that it was instead, if there was no question and there is
        one."""
        return None if self._answered(event.y + 1, event.x + 1) else _key_like(event)

    def reduced(self, renderable: Any) -> Any:
        """What to display in place of what Textual wants to: None for nothing at all, or nothing yet."""
        if not (isinstance(renderable, LayoutUpdate | ChopsUpdate) and self._writes()):
            return renderable
        # Nothing is lost: the mirror still knows what the terminal shows, and the newest picture is made later.
        if self._is_behind():
            self._catch_up_later()
            return None
        text = self._difference(renderable)
        if text is None:
            return renderable
        # An update without a difference may still have to move the cursor, as a person types into a field.
        there = self._app.screen.outer_size.clamp_offset(self._app.cursor_position)
        if not text and there == self._app._previous_cursor_position:
            return None
        return Ready(self._asking(text))

    def _is_behind(self) -> bool:
        """Has the terminal still to take what was written before?"""
        thread = getattr(self._app._driver, "_writer_thread", None)
        # The terminal itself does not read; the question below finds a slow network behind a terminal that does.
        if isinstance(thread, WriterThread) and thread._queue.qsize() > MOST_WAITING:
            return True
        return self.arrival.is_behind(monotonic())

    def _asking(self, text: str) -> str:
        """A picture that is sent now, with the question behind it where that is due."""
        return text + self.arrival.sending(len(text), *self._app.size, monotonic())

    def _answered(self, row: int, column: int) -> bool:
        """The terminal says where its cursor is: it shows what was sent when it was asked. False: there was no
        question."""
        if not self.arrival.answered(row, column, monotonic()):
            return False
        if self._app._driver is not None and (question := self.arrival.asks_again(*self._app.size, monotonic())):
            # The question has put the cursor elsewhere.
            x, y = self._app._previous_cursor_position
            self._app._driver.write(f"{question}\x1b[{y + 1};{x + 1}H")
        if self._catching_up and not self._is_behind():
            self._show_newest()
        return True

    @property
    def awaits_terminal(self) -> bool:
        """Is an answer on its way, that is not too late already? It would be typed to whoever has the terminal next."""
        return self.arrival.is_awaited(monotonic())

    def _catch_up_later(self) -> None:
        if not self._catching_up:
            self._catching_up = True
            call_after(self._app, PATIENCE_S, self._catch_up)

    def _catch_up(self) -> None:
        self._catching_up = False
        if self._is_behind():
            self._catch_up_later()
        else:
            self._show_newest()

    def _show_newest(self) -> None:
        if self._app.screen_stack:
            self._app.screen.refresh()  # all of it: what differs from the mirror by now is sent

    def _writes(self) -> bool:
        """Is what is displayed now really written, and can it be a difference?"""
        driver = self._app._driver
        if WHOLE or driver is None or driver.is_inline or self._app.is_headless:
            return False
        # Within a batch Textual holds the picture back, and a closed app has given the terminal back.
        return self._app._running and not self._app._closed and not self._app._batch_count

    def _difference(self, update: LayoutUpdate | ChopsUpdate) -> str | None:
        """What to write instead of the update; None: the update itself."""
        if isinstance(update, LayoutUpdate):
            x, y, width, height = update.region
            # An update of a part, as of an inline app: what the rest shows is not known.
            if x or y or (width, height) != self._app.screen.size:
                self._mirror = None
                return None
            if self._mirror is None or (self._mirror.width, self._mirror.height) != (width, height):
                self._mirror = Mirror(width, height, erases=ERASES)
            return self._mirror.paint(_rows(update), self._app.console)
        if self._mirror is None:
            return None
        # The size has just changed, and the picture is of the size before.
        if len(update.chops) != self._mirror.height:
            self.forget_terminal()
            return None
        return self._mirror.paint(_spans(update), self._app.console)


def _key_like(event: events.CursorPosition) -> events.Key | None:
    """The key that the toolkit took for a place of the cursor, if there is one of that shape."""
    number = modified_f3(event.y + 1, event.x + 1)
    if number is None:
        return None
    keys = ANSI_SEQUENCES_KEYS.get(f"\x1b[1;{number}R")
    if isinstance(keys, tuple):
        return events.Key(keys[0].value, None)
    held = [name for bit, name in enumerate(("shift", "alt", "ctrl", "super")) if (number - 1) >> bit & 1]
    return events.Key("+".join([*sorted(held), "f3"]), None)


def _rows(update: LayoutUpdate) -> Iterator[tuple[int, list[Piece]]]:
    for y, strips in enumerate(update.strips):
        pieces: list[Piece] = []
        x = 0
        for strip in strips:
            pieces.append((x, strip, strip.cell_length))
            x += strip.cell_length
        yield y, pieces


def _spans(update: ChopsUpdate) -> Iterator[tuple[int, list[Piece]]]:
    for y, first, last in update.spans:
        yield (
            y,
            [
                (x, strip, min(end, last) - x)
                for end, (x, strip) in zip(update.chop_ends[y], update.chops[y].items(), strict=False)
                if strip is not None and x < last and end > first
            ],
        )
