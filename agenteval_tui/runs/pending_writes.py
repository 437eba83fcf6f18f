"""Ended runs on their way to the store: watchers are told of an end when it is on the disk, and not before."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

from agenteval_tui.core.quick_dataclass import dataclass
from agenteval_tui.runs.grading_pool import GradedRun

if TYPE_CHECKING:
    from agenteval_tui.history.records import RunEnded
    from agenteval_tui.history.store import Store

UNSTORED = 512
"""Ended runs that may wait for the store; then no new ones are begun."""


@dataclass(frozen=True, slots=True)
class PendingWrite:
    """An ended run that is being stored."""

    run: str
    judged: GradedRun
    duration_ms: float


class PendingWrites:
    """Hands ends to the store. `stored` is called in the loop's thread with each that is on the disk, `failed` with
    the reason for each that could not be written, `drained` after some came through."""

    def __init__(
        self,
        store: Store,
        stored: Callable[[PendingWrite], None],
        failed: Callable[[str], None],
        drained: Callable[[], None],
    ) -> None:
        self._store = store
        self._stored = stored
        self._failed = failed
        self._drained = drained
        self._written: deque[tuple[PendingWrite, Future[Any]]] = deque()
        self._drain_asked = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self.room = asyncio.Event()
        """Set while runs may be begun: the store keeps up."""
        self.room.set()
        self.waiting = 0
        """Ends that are not on the disk yet."""

    def add(self, ended: RunEnded, judged: GradedRun) -> None:
        """One more. Must be called in the event loop's thread."""
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
        self.waiting += 1
        if self.waiting >= UNSTORED:
            self.room.clear()
        # The end must not hold the future, which holds it: all results would stay until Python looks for cycles.
        end = PendingWrite(ended.run_id, judged, ended.duration_ms or 0.0)
        self._store.run_ended(ended).add_done_callback(lambda future: self._note(end, future))

    def _note(self, end: PendingWrite, future: Future[Any]) -> None:
        # In the store's thread. One wake-up for all that a commit brought, not one each.
        self._written.append((end, future))
        if not self._drain_asked and self._loop is not None:
            self._drain_asked = True
            self._loop.call_soon_threadsafe(self._drain)

    def _drain(self) -> None:
        self._drain_asked = False
        while self._written:
            end, future = self._written.popleft()
            self.waiting -= 1
            error = future.exception()
            if error is not None:
                self._failed(str(error))
            else:
                self._stored(end)
        if self.waiting < UNSTORED // 2:
            self.room.set()
        self._drained()
