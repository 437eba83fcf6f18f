"""What was said to the person, kept for a while, and the places that it was about."""

from __future__ import annotations

from collections import deque
from typing import Literal

from msgspec import Struct

from agenteval_tui.core.ids import now_ms

MOST = 100  # notices that are kept

Kind = Literal["suite", "test", "run", "execution", "file", "screen"]


class NotificationSource(Struct, frozen=True):
    """Something that the app can show: `ref` is its id, of a suite its key, and of a test `test` within that suite; of
    a file its path (it opens in the person's editor), of a screen its name."""

    kind: Kind
    ref: str
    test: str = ""


class Notice(Struct, frozen=True):
    """One thing that was said, when, and what it was about (None: nothing that can be gone to); `times`: how often."""

    text: str
    severity: str
    at_ms: int
    place: NotificationSource | None = None
    times: int = 1


class Notices:
    """The last notices, newest first."""

    def __init__(self) -> None:
        self._kept: deque[Notice] = deque(maxlen=MOST)

    def add(self, text: str, severity: str, place: NotificationSource | None) -> None:
        """Keep one. What was said right before, word for word, is kept once: the newer time counts."""
        times = 1
        if self._kept and (self._kept[0].text, self._kept[0].place) == (text, place):
            times += self._kept.popleft().times
        self._kept.appendleft(Notice(text, severity, now_ms(), place, times))

    def all(self) -> tuple[Notice, ...]:
        """What is kept, newest first."""
        return tuple(self._kept)

    def last_place(self) -> NotificationSource | None:
        """What the newest notice that is about something was about."""
        return next((notice.place for notice in self._kept if notice.place is not None), None)
