"""An app as far as its terminal goes: what Textual's app does with it, replaced where the modules here do it better.

What is replaced, and what becomes of it with a Textual that has no such methods: `minimal_redraw.py` and
`crash_report.py`.
"""

from __future__ import annotations

import sys
from typing import Any

from rich.console import RenderableType
from textual import events
from textual.app import App
from textual.driver import Driver
from textual.drivers.linux_driver import LinuxDriver
from textual.screen import Screen

from agenteval_tui.core.standard_streams import has_hung_up
from agenteval_tui.tui.terminal import crash_report, minimal_redraw
from agenteval_tui.tui.terminal.crash_report import CrashReport
from agenteval_tui.tui.terminal.minimal_redraw import MinimalRedraw


class TerminalDriver(LinuxDriver):
    """Textual's driver, which writes nothing to a terminal that has gone.

    Textual's writing thread ends with the first error, and what is written after that fills its queue of 30. The app
    would then wait for room in it for ever.
    """

    def write(self, data: str) -> None:
        """Write `data`, while there is a terminal."""
        if not has_hung_up(sys.__stdin__):
            super().write(data)


class TerminalApp(App[int]):
    """An app that sends the terminal only what differs from what it shows, and that ends in one line when it breaks."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.minimal_redraw = MinimalRedraw(self)
        self.crash_report = CrashReport(self)

    def get_driver_class(self) -> type[Driver]:
        """Our driver in place of Textual's own; any other (a browser's, one that the environment names) as it is."""
        driver = super().get_driver_class()
        return TerminalDriver if driver is LinuxDriver else driver

    @property
    def awaits_terminal(self) -> bool:
        """Is an answer on its way, that is not too late already? It would be typed to whoever has the terminal next."""
        return self.minimal_redraw.awaits_terminal

    @property
    def is_slow_line(self) -> bool:
        """Does what is sent take long to arrive?"""
        return self.minimal_redraw.arrival.is_slow

    def keep_clipboard(self, text: str, sequence: str = "") -> None:
        """What is pasted in our own fields is `text` from now on; `sequence` gives it to the terminal."""
        self._clipboard = text
        if sequence and self._driver is not None:
            self._driver.write(sequence)

    def send_notification(self, sequence: str) -> None:
        """Have the terminal notify the person: `sequence` is one that `core.terminal_sequences` made. In a browser
        there is no terminal."""
        if sequence and self._driver is not None and not self.is_web and not self.is_headless:
            self._driver.write(sequence)
            self._driver.flush()

    def action_redraw(self) -> None:
        """Paint the screen anew, whatever the terminal shows."""
        self.minimal_redraw.forget_terminal()

    async def on_event(self, event: events.Event) -> None:
        """Answers of the terminal, and its size, go to who knows what it shows."""
        if isinstance(event, events.CursorPosition):
            key = self.minimal_redraw.key_of(event)
            if key is not None:
                await self.on_event(key)
            return
        if isinstance(event, events.Resize):
            self.minimal_redraw.resized()
        await super().on_event(event)

    if minimal_redraw.IS_KNOWN:

        def _display(self, screen: Screen[Any], renderable: Any) -> None:
            reduced = self.minimal_redraw.reduced(renderable)
            # None means that nothing is to be written; Textual's own None has a meaning of its own.
            if reduced is not None or renderable is None:
                super()._display(screen, reduced)

    if crash_report.IS_REPLACEABLE:

        def _handle_exception(self, error: Exception) -> None:
            self.crash_report.take(error)

        def panic(self, *renderables: RenderableType) -> None:
            """End at once. What it was goes to the log."""
            self.crash_report.take_panic(*renderables)

        def _print_error_renderables(self) -> None:
            self.crash_report.write_line()
            super()._print_error_renderables()
