"""Processes that serve many requests, one after the other. Decides which request gets a process, and when to start
another process."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable

from msgspec import Struct

from agenteval_tui.agents.process.python_host import PythonHost

BUSY_S = 0.02
"""How long a request waits for a busy process. A quick function returns within that time, and another interpreter would
only take processor time from it."""
STARTING_S = 0.25
"""How long a request waits while a process starts. If imports take seconds, several processes import at once."""


class _Waiter(Struct, eq=False):
    """A request that waits for a process, `since` a time of the loop. It gets a process, or None to start one."""

    since: float
    given: asyncio.Future[PythonHost | None]

    def give(self, host: PythonHost | None) -> bool:
        """Give it a process, or None. Returns whether the request was still waiting."""
        if self.given.done():
            return False
        self.given.set_result(host)
        return True


class ReusedHosts:
    """The processes that can serve the same requests.

    The first request starts a process. Later requests wait in line. If the first in line has waited long enough, the
    number of processes doubles: while the machine is busy for a moment, one process becomes two, however many requests
    wait. There are never more processes than concurrent requests.
    """

    def __init__(self, start: Callable[[], Awaitable[PythonHost]]) -> None:
        self._start = start
        self._free: list[PythonHost] = []
        self._waiting: deque[_Waiter] = deque()
        self._number = 0  # of processes, those among them that are being started
        self._ready: set[PythonHost] = set()  # those that have imported their function
        self._changed = 0.0  # when the last one was started, or became ready
        self._alarm: asyncio.TimerHandle | None = None  # for the first in line

    async def take(self) -> PythonHost:
        """A process that does nothing else. Raises `AgentevalError` when none can be started."""
        # One that is free may have ended meanwhile, as when the user's code called `os._exit` in a thread.
        while (host := await self._free_one()) is not None:
            if host.alive:
                return host
            await self.end(host)
        try:
            return await self._start()
        except BaseException:
            self._gone()
            raise

    def ready(self, host: PythonHost) -> None:
        """The process has imported its function. From now on, requests wait no longer than a call takes."""
        if host not in self._ready:
            self._ready.add(host)
            self._changed = asyncio.get_running_loop().time()
            self._set_alarm()

    def give_back(self, host: PythonHost) -> None:
        """The process has served a request and can serve the next one."""
        while self._waiting:
            if self._waiting.popleft().give(host):
                return
        self._free.append(host)

    async def end(self, host: PythonHost, politely: bool = False) -> None:
        """End one that was taken."""
        self._ready.discard(host)
        self._gone()
        await host.end(politely=politely)

    async def close(self) -> None:
        """End those that are free."""
        free, self._free = self._free, []
        await asyncio.gather(*(self.end(host, politely=True) for host in free))

    async def _free_one(self) -> PythonHost | None:
        """One that is free, or will be in a moment; None: another is to be started (and is counted already)."""
        if self._free:
            return self._free.pop()
        if not self._number:
            self._number += 1
            return None
        loop = asyncio.get_running_loop()
        waiter = _Waiter(loop.time(), loop.create_future())
        self._waiting.append(waiter)
        # The alarm is for the first in line; a later one must not put it off.
        if self._alarm is None:
            self._set_alarm()
        try:
            return await waiter.given
        except asyncio.CancelledError:
            if waiter in self._waiting:
                self._waiting.remove(waiter)
            elif not waiter.given.cancelled():  # it was given something in the same moment
                if (host := waiter.given.result()) is not None:
                    self.give_back(host)
                else:
                    self._gone()
            raise

    def _set_alarm(self) -> None:
        """Look again when the first in line has waited long enough."""
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        if self._waiting:
            first = self._waiting[0]
            patience_s = BUSY_S if self._number == len(self._ready) else STARTING_S
            # A process that has just become ready gets its time before another one is started.
            due = max(first.since, self._changed) + patience_s
            self._alarm = asyncio.get_running_loop().call_at(due, self._look, first)

    def _look(self, first: _Waiter) -> None:
        self._alarm = None
        if self._waiting and self._waiting[0] is first:
            # The number doubles: one more at a time would take too long for many runs, all at once would be too many
            # for quick ones.
            for _ in range(self._number):
                self._let_start()
        self._set_alarm()

    def _let_start(self) -> None:
        """Let the first request in line start a process."""
        while self._waiting:
            if self._waiting.popleft().give(None):
                self._number += 1
                self._changed = asyncio.get_running_loop().time()
                return

    def _gone(self) -> None:
        self._number -= 1
        if not self._number:
            self._let_start()  # no process is left that could become free
