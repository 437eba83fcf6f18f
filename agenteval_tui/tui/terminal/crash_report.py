"""What is left to do when something broke that should not: the traceback goes to a file, and one line to the terminal.

Textual would print the traceback, with the values of all variables, over the person's terminal, and end with 1, which
says that a test failed. That stays so only where Textual has none of these methods any more (`textual_support.py`).
"""

from __future__ import annotations

import contextlib
import io
import sys
from typing import Any

from rich.console import Console, RenderableType
from textual.app import App

from agenteval_tui.core import directories
from agenteval_tui.core.display import one_line
from agenteval_tui.core.errors import INFRASTRUCTURE, program_error
from agenteval_tui.core.private_files import log_error, log_text
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
            with contextlib.suppress(OSError, ValueError):
                stream.write(self._line + "\n")
                stream.flush()
        self._line = ""
