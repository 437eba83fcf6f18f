"""What a task on a cluster has told so far, put into order."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any

from agenteval_tui.agents.interface import AgentEvent, Done, Failed
from agenteval_tui.runs.executors.wire import read_event


class Inbox:
    """The messages of one task. After one that is missing, or can't be read, the rest is left to the result.

    `ended`: all events were taken. `lost`: its worker is gone. `worker`: who began it, "" before that.
    """

    def __init__(self) -> None:
        self.count = 0
        """Events that came in order."""
        self.worker = ""
        self.lost = False
        self._waiting: list[AgentEvent] = []
        self._whole = False
        self._broken = False
        self._news = asyncio.Event()

    @property
    def whole(self) -> bool:
        """True when all events have come, whether they were taken or not."""
        return self._whole

    @property
    def closing(self) -> bool:
        """True when the agent's last event is to be taken."""
        return bool(self._waiting) and isinstance(self._waiting[-1], Done | Failed)

    @property
    def ended(self) -> bool:
        """True when nothing more is to come and nothing is missing."""
        return self._whole and not self._waiting

    def put(self, message: Mapping[str, Any]) -> None:
        """One message: where its events stand, the events, whether it is the last."""
        self.worker = self.worker or str(message.get("worker", ""))
        if self._broken or message.get("first") != self.count or message.get("worker") != self.worker:
            self._broken = True
            return
        try:
            events = [read_event(one) for one in json.loads(message["events"])]
        except (KeyError, TypeError, ValueError):
            self._broken = True
            return
        self.count += len(events)
        self._waiting += events
        self._whole = bool(message.get("end"))
        self.wake()

    def taken(self) -> list[AgentEvent]:
        """The events since the last time."""
        events, self._waiting = self._waiting, []
        return events

    def lose(self) -> None:
        """Its worker is gone: nothing more is to come, unless all has."""
        self.lost = not self._whole
        self.wake()

    def wake(self) -> None:
        """There is something to look at."""
        self._news.set()

    async def news(self) -> None:
        """Wait for something new."""
        await self._news.wait()
        self._news.clear()
