"""Screens are imported when they are first shown, or before that when the person does nothing.

The Editor and Inspect bring 140 modules, which take a third of the time until they are there. The first screen does not
wait for them: they come in a thread when it shows what it read and no key was pressed for a moment.
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


class IdleImports:
    """Imports screens while nothing happens. The app says when something does (`touch`)."""

    def __init__(self, is_reading: Callable[[], bool]) -> None:
        """`is_reading`: does a screen wait for something?"""
        self._is_reading = is_reading
        self._touched = time.monotonic()

    def touch(self) -> None:
        """A key was pressed, or the mouse was used."""
        self._touched = time.monotonic()

    async def run(self) -> None:
        """Import them, one after the other, each when all is quiet."""
        for name in AHEAD:
            await self._quiet()
            await asyncio.to_thread(read_screen, name)
        await self._quiet()
        # What is there now stays. A collection of garbage that goes through all of it holds keys up for 100 ms.
        gc.freeze()

    async def _quiet(self) -> None:
        while self._is_reading() or time.monotonic() - self._touched < QUIET_S:
            if self._is_reading():
                self.touch()
            await asyncio.sleep(QUIET_S / 4)
