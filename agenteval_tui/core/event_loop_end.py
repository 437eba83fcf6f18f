"""The end of an event loop: nothing that still runs in it is left pending."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

log = logging.getLogger(__name__)

STRAGGLERS_S = 1.0
"""How long a task may take to end once it is cancelled."""


async def end_tasks(loop: asyncio.AbstractEventLoop) -> None:
    """Cancel all tasks of `loop`, which runs this, and await their ends, at most for `STRAGGLERS_S` seconds. Includes
    the tasks that begin meanwhile: those that others start at their end, and those that close generators.

    A task that ignores this is left alone. The loop no longer reports such tasks: nothing can be done about them.
    """
    before = loop.time() + STRAGGLERS_S
    ended: set[asyncio.Task[Any]] = set()
    while True:
        await asyncio.sleep(0)  # a generator that was dropped begins to close
        pending = asyncio.all_tasks(loop) - {asyncio.current_task()}
        if not pending:
            break
        # Each once: cancelled again, it could not end what it does at its end.
        for task in pending - ended:
            task.cancel()
        ended |= pending
        if loop.time() >= before:
            break
        await asyncio.wait(pending, timeout=before - loop.time(), return_when=asyncio.FIRST_COMPLETED)
    await loop.shutdown_asyncgens()
    loop.set_exception_handler(_after_the_end)


def _after_the_end(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    log.debug("after the end of an event loop: %s", context.get("message"))
