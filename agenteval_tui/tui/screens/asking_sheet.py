"""A sheet that asks the agent about a stored run: what it may cost, how far it is, and what it found."""

from __future__ import annotations

import asyncio

from agenteval_tui.tui.reading_time import READ_FIRST, ReadingTime
from agenteval_tui.tui.screens.asking_controller import AskingController
from agenteval_tui.tui.terminal.sheet import Sheet, T
from agenteval_tui.tui.workers import PaintedWork, start_worker

_GROUP = "asking"


class AskingSheet(Sheet[T]):
    """Closing the sheet stops asking; what was answered is kept."""

    controller: AskingController

    def __init__(self, controller: AskingController) -> None:
        super().__init__()
        self.controller = controller
        self._reading = ReadingTime(self)

    def on_mount(self) -> None:
        self._work = PaintedWork(self, self._paint, group=_GROUP)
        start_worker(self, self._read, group=_GROUP, awaited=True)

    async def _read(self) -> None:
        await asyncio.to_thread(self.controller.read)
        self._paint()
        self._reading.begin()

    def action_begin(self) -> None:
        """Ask the agent. What may cost something is asked when there was time to read its price."""
        controller = self.controller
        if not controller.can_ask:
            return
        if controller.may_cost and not self._reading.is_over:
            self.agenteval.say(READ_FIRST)
            return
        controller.begin()
        self._work.begin(controller.run)

    def action_stop(self) -> None:
        """Ask nothing more."""
        self.controller.stop()
        self._paint()

    def on_unmount(self) -> None:
        """Stop asking when the sheet closes, for whatever reason."""
        self.controller.stop()

    def _paint(self) -> None:
        """Show what the controller knows."""
        raise NotImplementedError
