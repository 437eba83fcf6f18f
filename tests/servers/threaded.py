"""A scripted server for tests that have no event loop of their own: it runs in a thread."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from scripted import Handler, ScriptedServer


@contextmanager
def serving(handler: Handler) -> Iterator[ScriptedServer]:
    """`with serving(handler) as server`: as `ScriptedServer`."""
    server = ScriptedServer(handler)
    ready, stop = threading.Event(), asyncio.Event()
    loop = asyncio.new_event_loop()

    async def main() -> None:
        async with server:
            ready.set()
            await stop.wait()

    thread = threading.Thread(target=lambda: loop.run_until_complete(main()), daemon=True)
    thread.start()
    assert ready.wait(100)
    try:
        yield server
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(100)
        loop.close()
