"""Work with a workbench in threads, one piece at a time: it can't be used by two."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import Any, TypeVar

from agenteval_tui.analysis.workbench import Impact, Workbench
from agenteval_tui.grading.relax.suggest import Relaxation
from agenteval_tui.grading.spec import CriterionSpec

PRELOAD_SECONDS = 0.02  # of a slice: as long may a verdict wait that is typed for

T = TypeVar("T")


class WorkbenchWorker:
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

    async def impact(self, bench: Workbench, criterion: int, text: str | CriterionSpec) -> AsyncIterator[Impact]:
        """Count over all stored runs what saving `text` would change; after each slice the same `Impact`."""
        # In slices, each by itself: a verdict that is typed for meanwhile goes first.
        while not await self(partial(bench.preload, criterion, PRELOAD_SECONDS)):
            pass
        slices = bench.impact(criterion, text)
        while (impact := await self(lambda: next(slices, None))) is not None:
            yield impact

    async def smallest_edit(self, bench: Workbench, criterion: int, text: str) -> Relaxation | None:
        """The edit of the config `text` that differs least under which the bench's run passes; None: there is none."""
        suggestions = await self(lambda: next(bench.relaxations(criterion, text), ()))
        return suggestions[0].relaxation if suggestions else None
