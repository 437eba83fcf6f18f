"""What the app does while the person does nothing: it imports screens, and collects garbage.

The Editor and Inspect bring 140 modules, which take a third of the time until they are there. The first screen does not
wait for them: they come in a thread when it shows what it read and no key was pressed for a moment.

Python collects garbage when so many objects were made, which is while somebody types; one collection of what the first
screens brought takes 60 to 100 ms. So what is there after the imports is left out from then on, and what came since is
collected in each pause, before it is much.
"""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Callable

from agenteval_tui.tui.screen_registry import read_screen

AHEAD = ("inspect", "editor")
"""The screens that nearly everybody opens. The others bring little beyond them."""
QUIET_S = 0.4
"""So long nothing was pressed, and is nothing read."""
THRESHOLDS = (5_000, 20, 80)
"""Many small collections while somebody types: one of 20,000 new objects holds a key up for 5 to 9 ms, one of 5,000 for
2. What reads suites and executes them has the ones of `__main__`."""
REST_S = 10.0
"""So long nothing was pressed: a collection of all garbage, of 100 ms, disturbs nobody."""
MANY_PAUSES = 5
"""So many collections of what is new, and then one of all."""


class IdleWork:
    """Imports screens and collects garbage while nothing happens. The app says when something does (`touch`)."""

    def __init__(self, is_reading: Callable[[], bool]) -> None:
        """`is_reading`: does a screen wait for something?"""
        self._is_reading = is_reading
        self._touched = time.monotonic()
        self._again = asyncio.Event()

    def touch(self) -> None:
        """A key was pressed, or the mouse was used."""
        self._touched = time.monotonic()
        self._again.set()

    async def run(self) -> None:
        """Import them, one after the other, each when all is quiet; from then on collect garbage."""
        for name in AHEAD:
            await self._quiet()
            await asyncio.to_thread(read_screen, name)
        await self._quiet()
        gc.freeze()
        gc.set_threshold(*THRESHOLDS)
        await self._pressed(None)
        while True:
            await self._quiet()
            gc.collect(1)
            resting = gc.get_count()[2] >= MANY_PAUSES
            if not await self._pressed(REST_S if resting else None):
                gc.collect()
                await self._pressed(None)

    async def _pressed(self, within_s: float | None) -> bool:
        """Wait for the next key; False: none came for so many seconds."""
        self._again.clear()
        try:
            await asyncio.wait_for(self._again.wait(), within_s)
        except TimeoutError:
            return False
        return True

    async def _quiet(self) -> None:
        while self._is_reading() or time.monotonic() - self._touched < QUIET_S:
            if self._is_reading():
                self._touched = time.monotonic()
            await asyncio.sleep(QUIET_S / 4)
