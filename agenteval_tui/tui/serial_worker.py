"""Work in threads, one at a time: a workbench can't be used by two."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")


class SerialWorker:
    """Runs a function in a thread, never at the same time as the one before: a caller that is cancelled while waiting
    leaves a thread that continues, and the next caller waits for it."""

    def __init__(self) -> None:
        self._busy: asyncio.Future[Any] | None = None

    async def __call__(self, work: Callable[[], T]) -> T:
        """What `work` gives, or raises."""
        while self._busy is not None and not self._busy.done():
            await asyncio.wait([self._busy])
        future = self._busy = asyncio.ensure_future(asyncio.to_thread(work))
        future.add_done_callback(lambda done: done.cancelled() or done.exception())
        return await asyncio.shield(future)
