"""The app's work while the person does nothing: it imports and mounts screens, and collects garbage.

The Editor and Inspect need 140 modules, and importing them takes a third of the time until these screens appear;
Compare needs a dozen more, a tenth of its time. The first screen does not wait for that: a thread imports them when the
screen has its data and the person pauses. Then those with the most parts are mounted unseen: they appear in half
of the time.

Python collects garbage after a number of new objects, and so while somebody types; one collection of the objects of the
first screens takes 60 to 100 ms. Therefore later collections leave out the objects from the imports, and the app
collects newer objects in each pause, while they are few.
"""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Awaitable, Callable

from agenteval_tui.tui.screen_registry import read_screen

AHEAD = ("inspect", "editor", "compare")
"""The screens that nearly everybody opens. The other screens need few further modules."""
MOUNTED_AHEAD = ("inspect", "editor")
"""The screens with the most widgets. To mount them takes half of the time until they appear."""
QUIET_S = 0.4
"""The length of a pause: seconds without a key, and without a screen that reads."""
THRESHOLDS = (5_000, 20, 80)
"""Many small collections while somebody types: a collection of 20,000 new objects delays a key by 5 to 9 ms, and one of
5,000 objects by 2 ms. Processes that read suites and execute them use the thresholds of `__main__`."""
REST_S = 10.0
"""After this many seconds without a key, a full collection of 100 ms disturbs no one."""
MANY_PAUSES = 5
"""The number of small collections before a full one."""


class IdleWork:
    """Imports screens and collects garbage while nothing happens. The app says when something does (`touch`)."""

    def __init__(self, is_reading: Callable[[], bool], mount: Callable[[str], Awaitable[None]]) -> None:
        """`is_reading`: whether a screen waits for its data. `mount`: mount a screen that was not shown yet."""
        self._is_reading = is_reading
        self._mount = mount
        self._touched = time.monotonic()
        self._again = asyncio.Event()

    def touch(self) -> None:
        """A key was pressed, or the mouse was used."""
        self._touched = time.monotonic()
        self._again.set()

    async def run(self) -> None:
        """Import the screens one after the other, each in a pause; then collect garbage in pauses."""
        for name in AHEAD:
            await self._quiet()
            await asyncio.to_thread(read_screen, name)
        await self._quiet()
        for name in MOUNTED_AHEAD:
            await self._mount(name)
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
        """Wait for the next key. False if there was none within this many seconds."""
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
