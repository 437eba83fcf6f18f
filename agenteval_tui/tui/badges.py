"""What waits for a person: open causes and runs to review, counted again when the history has changed."""

from __future__ import annotations

import time
from pathlib import Path

from msgspec import Struct

from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.tui.analysis_context import Session

CHEAP_S = 0.05  # a count that takes longer is made less often
PATIENCE = 20  # the wait until the next one, as a multiple of the time that it took


class Counts(Struct, frozen=True):
    """Open causes of the newest runs of each test, and runs that need a review: of the open project, or of all."""

    causes: int = 0
    reviews: int = 0


class Badges:
    """The counts as they were taken last."""

    def __init__(self, session: Session) -> None:
        self.counts = Counts()
        self._session = session
        self._seen: object = None
        self._not_before = 0.0

    def are_stale(self) -> bool:
        """May the counts be other ones now? Looks at two files and reads none."""
        return self._stamp() != self._seen and time.monotonic() >= self._not_before

    def count(self) -> None:
        """Count again; reads the history, so call it in a thread. What can't be read counts nothing."""
        # What is written from here on makes the counts stale again.
        self._seen = self._stamp()
        began = time.monotonic()
        try:
            self.counts = Counts(*self._session.workspace.count_waiting())
        except AgentevalError:
            self.counts = Counts()  # the screens say what is wrong with the history
        took = time.monotonic() - began
        self._not_before = time.monotonic() + took * PATIENCE if took > CHEAP_S else 0.0

    def _stamp(self) -> object:
        return (self._session.shows_all, history_stamp(self._session.db))


def history_stamp(db: Path) -> object:
    """Differs when a process wrote into the history. Looks at two files and reads none."""
    return (_changed(db), _changed(db.with_name(db.name + "-wal")))


def _changed(path: Path) -> tuple[int, int]:
    """The facts that differ when a file was replaced or changed; (0, 0) for none."""
    try:
        status = path.stat()
    except OSError:
        return 0, 0
    return status.st_mtime_ns, status.st_size
