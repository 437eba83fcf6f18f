"""How soon the toolkit's input thread notices that an escape was the key itself, not the start of another key's
sequence.

It looks ten times a second, however short `ESCDELAY` is. Here it looks again after that delay, while something has just
been typed. With a Textual whose input thread is not known (`textual_support.py`), it waits as Textual does.
"""

from __future__ import annotations

import selectors
from time import monotonic
from types import SimpleNamespace
from typing import Any

from textual import constants
from textual.drivers import linux_driver

from agenteval_tui.tui.terminal.textual_support import is_known

# What is relied on, with the first digits of the SHA-256 of its source.
STANDS_ON: dict[str, str] = {
    "textual.drivers.linux_driver:LinuxDriver.run_input_thread": "d796af6d69db",
    # It reads `constants.ESCAPE_DELAY` each time it waits.
    "textual._xterm_parser:XTermParser.parse": "a5834ad1def8",
}
IS_KNOWN = is_known(STANDS_ON)
TYPED_S = 0.2
"""So long after something was typed it looks often; an idle app stays idle."""


class Prompt(selectors.SelectSelector):
    """Waits no longer than an escape does, when something has just come."""

    def __init__(self) -> None:
        super().__init__()
        self._typed = -TYPED_S

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """As the selector's."""
        if timeout is not None and monotonic() - self._typed < TYPED_S:
            timeout = min(timeout, constants.ESCAPE_DELAY)
        found: list[Any] = super().select(timeout)
        if found:
            self._typed = monotonic()
        return found


def use_prompt_input() -> None:
    """Let input threads that begin from now on wait with `Prompt`."""
    if not IS_KNOWN:
        return
    linux_driver.selectors = SimpleNamespace(SelectSelector=Prompt, EVENT_READ=selectors.EVENT_READ)  # type: ignore[attr-defined, assignment]
