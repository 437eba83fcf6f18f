"""An event loop for one execution, which ends even when an agent does not."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

STRAGGLERS_S = 1.0


def run_to_end(main: Coroutine[Any, Any, T]) -> T:
    """Like `asyncio.run`, but a task that does not let itself be cancelled can't hold up the end.

    Signals are left to `main`.
    """
    loop = asyncio.new_event_loop()
    try:
        asyncio.set_event_loop(loop)
        return loop.run_until_complete(main)
    finally:
        try:
            loop.run_until_complete(_finish(loop))
        finally:
            asyncio.set_event_loop(None)
            loop.close()


async def _finish(loop: asyncio.AbstractEventLoop) -> None:
    left = asyncio.all_tasks(loop) - {asyncio.current_task()}
    for task in left:
        task.cancel()
    if left:
        await asyncio.wait(left, timeout=STRAGGLERS_S)
    await loop.shutdown_asyncgens()
