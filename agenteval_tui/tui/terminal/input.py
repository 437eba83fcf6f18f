"""How soon the toolkit's input thread notices that an escape was the key and no beginning of another one's sequence.

It looks ten times a second, however short `ESCDELAY` is. Here it looks again after that delay, while something has just
been typed. `tests/tui/test_private.py` fails when Textual changes what this stands on.
"""

from __future__ import annotations

import selectors
from time import monotonic
from types import SimpleNamespace
from typing import Any

from textual import constants
from textual.drivers import linux_driver

STANDS_ON: dict[str, str] = {"LinuxDriver.run_input_thread": "d796af6d69db"}
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


def look_promptly() -> None:
    """Let input threads that begin from now on wait with `Prompt`."""
    linux_driver.selectors = SimpleNamespace(SelectSelector=Prompt, EVENT_READ=selectors.EVENT_READ)  # type: ignore[attr-defined, assignment]
