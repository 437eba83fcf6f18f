"""Ended runs on their way to the store."""

from __future__ import annotations

import asyncio
import gc
import weakref
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

from agenteval_tui.runs.completion import PendingWrite, PendingWrites
from agenteval_tui.runs.grading_pool import GradedRun


class Why(str):
    """A text that can be watched."""


async def test_an_end_that_was_told_leaves_nothing_behind() -> None:
    futures: list[Future[None]] = []
    told: list[str] = []

    def run_ended(ended: Any) -> Future[None]:
        futures.append(Future())
        return futures[-1]

    def stored(end: PendingWrite) -> None:
        told.append(end.run)

    store: Any = SimpleNamespace(run_ended=run_ended)
    drained = asyncio.Event()
    ends = PendingWrites(store, stored, told.append, drained.set)
    why = Why("because")
    watched = weakref.ref(why)
    gc.disable()  # what goes must go by itself: looking for cycles takes time from thousands of runs
    try:
        ended: Any = SimpleNamespace(run_id="r", duration_ms=1.0)
        ends.add(ended, GradedRun("failed", 0.0, (), 0, why))
        del why
        await asyncio.sleep(0)
        assert told == [], "nothing is told before it is on the disk"
        futures.pop().set_result(None)
        await asyncio.wait_for(drained.wait(), 250)
        await asyncio.sleep(0)
        assert (told, ends.waiting) == (["r"], 0)
        assert watched() is None
    finally:
        gc.enable()
