"""An execution in another process, watched: its events become a view, what a person does becomes commands."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.runs.client import Attachment, attach
from agenteval_tui.runs.events import Command, Event, Planned, Snapshot, Throttled
from agenteval_tui.runs.live_registry import Live
from agenteval_tui.runs.live_view import ExecutionView

ALL = "*"
"""What `changed` is called with when anything may be different."""
SLICE_S = 0.008
"""How long events may be processed one after another; then the keyboard gets a turn."""


class Watching:
    """`run` attaches and takes in events until the execution ends; `changed` is called for each: with the id
    of the run, "" for figures of the whole, or `ALL`.

    `lost`: its process disappeared without an end. `view.planned` is None until the first event.
    """

    def __init__(self, live: Live, changed: Callable[[str], None]) -> None:
        self.live = live
        self.view = ExecutionView()
        self.lost = False
        self._waits_until: dict[str, float] = {}  # agent: seconds, monotonic
        self._changed = changed
        self._attachment: Attachment | None = None

    @property
    def attached(self) -> bool:
        """Do events come?"""
        return self._attachment is not None

    @property
    def over(self) -> bool:
        """Will nothing change any more?"""
        return self.lost or self.view.ended is not None

    async def run(self) -> None:
        """Watch until the end. Raises `AgentevalError` when the execution was over before anybody came."""
        attachment = self._attachment = await attach(self.live)
        until = time.monotonic() + SLICE_S
        try:
            async for event in attachment:
                self._take(event)
                # What was received already comes without waiting: a flood of it would hold the keyboard.
                if time.monotonic() > until:
                    await asyncio.sleep(0)
                    until = time.monotonic() + SLICE_S
        except AgentevalError:
            self.lost = self.view.ended is None
            raise
        finally:
            self._attachment = None
            await attachment.close()
        self.lost = self.view.ended is None
        self.view.lose()
        self._changed("")

    def _take(self, event: Event) -> None:
        changed = self.view.apply(event)
        if isinstance(event, Throttled):
            self._waits_until[event.agent] = time.monotonic() + event.wait_s
        elif isinstance(event, Snapshot):
            now = time.monotonic()
            self._waits_until = {throttled.agent: now + throttled.wait_s for throttled in event.throttled}
        self._changed(ALL if isinstance(event, Planned | Snapshot) else changed)

    def slowed(self) -> list[tuple[Throttled, float]]:
        """Who is slowed down, and how many seconds each still waits."""
        if self.over:
            return []
        now = time.monotonic()
        until = self._waits_until
        return [
            (throttled, max(until.get(throttled.agent, now) - now, 0.0)) for throttled in self.view.throttled.values()
        ]

    async def send(self, verb: str, *, run: str = "", number: int = 0) -> None:
        """Tell the execution to do something; nothing when it is not attached to."""
        if self._attachment is not None:
            await self._attachment.send(Command(verb, run=run, number=number))
