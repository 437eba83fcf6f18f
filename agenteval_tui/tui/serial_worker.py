"""Work in threads, of which only one runs: a workbench is no place for two."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")


class OneAtATime:
    """Does what it is called with in a thread, never beside what it did before: who is cancelled while waiting leaves a
    thread that goes on, and whoever comes next waits for that."""

    def __init__(self) -> None:
        self._busy: asyncio.Future[Any] | None = None

    async def __call__(self, work: Callable[[], T]) -> T:
        """What `work` gives, or raises."""
        while self._busy is not None and not self._busy.done():
            await asyncio.wait([self._busy])
        future = self._busy = asyncio.ensure_future(asyncio.to_thread(work))
        future.add_done_callback(lambda done: done.cancelled() or done.exception())
        return await asyncio.shield(future)
