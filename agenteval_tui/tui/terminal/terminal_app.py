"""An app as far as its terminal goes: what Textual's app does with it, replaced where this program does it better.

It sends only what differs from what the terminal shows (`minimal_redraw.py`). And when something breaks that should
not, the traceback goes to a file, and one line to the terminal: Textual would print the traceback, with the values of
all variables, over the person's terminal, and end with 1, which says that a test failed. With a Textual that has none
of these methods any more (`textual_support.py`), it paints and ends in its own way.
"""

from __future__ import annotations

import contextlib
import io
import sys
from typing import Any

from rich.console import Console, RenderableType
from textual import events
from textual.app import App
from textual.driver import Driver
from textual.drivers.linux_driver import LinuxDriver
from textual.screen import Screen

from agenteval_tui.core import directories
from agenteval_tui.core.display import one_line
from agenteval_tui.core.errors import INFRASTRUCTURE, program_error
from agenteval_tui.core.private_files import log_error, log_text
from agenteval_tui.core.standard_streams import has_hung_up
from agenteval_tui.tui.terminal import minimal_redraw
from agenteval_tui.tui.terminal.minimal_redraw import MinimalRedraw
from agenteval_tui.tui.terminal.textual_support import has

IS_REPLACEABLE = (
    has("textual.app:App._handle_exception", "self error _exception _exception_event")
    and has("textual.app:App._print_error_renderables", "self")
    and has("textual.app:App.__init__", "_return_code")
    and has("textual.message_pump:MessagePump._close_messages_no_wait", "self")
)

LONGEST = 2_000
"""Characters of the line."""


class CrashReport:
    """How an app ends when it breaks: what it was goes to the log, and one line to the terminal."""

    def __init__(self, app: App[Any]) -> None:
        self._app = app
        self._line = ""

    def take(self, error: Exception) -> None:
        """An unhandled exception."""
        if self._app._exception is None:
            self._app._exception = error  # for whoever drives the app in a test
            self._app._exception_event.set()
        if isinstance(error.__cause__, Exception) and type(error).__module__.startswith("textual."):
            error = error.__cause__  # what a worker or a timer wraps it in says nothing
        path = log_error(error, "running the app", directories.data_dir())
        self._end_in(program_error(error, path))

    def take_panic(self, *renderables: RenderableType) -> None:
        """What Textual would show and end with."""
        console = Console(file=io.StringIO(), width=120, no_color=True)
        text = "".join(segment.text for renderable in renderables for segment in console.render(renderable))
        path = log_text(text, "running the app", directories.data_dir())
        self._end_in(program_error(None, path))

    def _end_in(self, sentence: str) -> None:
        self._app._return_code = INFRASTRUCTURE
        # The first error stays: those that follow come of it.
        self._line = self._line or one_line(f"agenteval: {sentence}", LONGEST)
        self._app._close_messages_no_wait()

    def write_line(self) -> None:
        """Write the line, when the terminal is as it was: one line, which Textual would fold."""
        if self._line and (stream := sys.__stderr__) is not None:
            # stderr may be closed: then there is nobody to tell.
            with contextlib.suppress(OSError, ValueError):
                stream.write(self._line + "\n")
                stream.flush()
        self._line = ""


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

    if IS_REPLACEABLE:

        def _handle_exception(self, error: Exception) -> None:
            self.crash_report.take(error)

        def panic(self, *renderables: RenderableType) -> None:
            """End at once. What it was goes to the log."""
            self.crash_report.take_panic(*renderables)

        def _print_error_renderables(self) -> None:
            self.crash_report.write_line()
            super()._print_error_renderables()
