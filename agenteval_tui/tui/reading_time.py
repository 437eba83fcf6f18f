"""Whether there was time to read something before a key about it came."""

from __future__ import annotations

import time
from math import inf

from textual.widget import Widget

READ_FIRST = "Read the price first, then press the key again."
READ_S = 0.4
"""A key that comes sooner was meant for what was shown before."""


class ReadingTime:
    """Of one thing that a widget shows. It counts from `begin`, which is called when the widget has what it is to
    show."""

    def __init__(self, widget: Widget) -> None:
        self._widget = widget
        self._shown_at = inf

    def begin(self) -> None:
        """It counts from when it is painted."""
        self._shown_at = inf
        self._widget.call_after_refresh(self._is_shown)

    def _is_shown(self) -> None:
        self._shown_at = time.monotonic()

    @property
    def is_over(self) -> bool:
        """Whether there was time to read it."""
        return time.monotonic() - self._shown_at >= READ_S
