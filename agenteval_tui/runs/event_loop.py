"""An event loop for one execution, which ends even when an agent does not."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from agenteval_tui.core.event_loop_end import end_tasks

T = TypeVar("T")


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
            loop.run_until_complete(end_tasks(loop))
        finally:
            asyncio.set_event_loop(None)
            loop.close()


def run_in_thread(make: Callable[[], Coroutine[Any, Any, T]], stop: Callable[[], None] | None = None) -> T:
    """What a coroutine gives, run to its end in a loop and a thread of its own: the caller's thread may have a loop
    that runs, as a notebook's does.

    On Ctrl+C `stop` is called in that loop (None: the coroutine is cancelled), and its end is awaited first.
    """
    outcome: list[T] = []
    errors: list[BaseException] = []
    running: list[tuple[asyncio.AbstractEventLoop, asyncio.Task[Any] | None]] = []

    async def main() -> T:
        running.append((asyncio.get_running_loop(), asyncio.current_task()))
        return await make()

    def work() -> None:
        try:
            outcome.append(run_to_end(main()))
        except BaseException as error:  # raised in the caller's thread
            errors.append(error)

    thread = threading.Thread(target=work, name="agenteval", daemon=True)
    thread.start()
    try:
        thread.join()
    except KeyboardInterrupt:
        for loop, task in running:
            loop.call_soon_threadsafe(stop or (task.cancel if task is not None else loop.stop))
        thread.join()
        raise
    if errors:
        raise errors[0]
    return outcome[0]
