"""Processes that serve many requests, one after the other: who gets one, and when another is worth its start."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable

from agenteval_tui.agents.process.python_host import PythonHost

BUSY_S = 0.02
"""How long a request waits for a busy one: a quick function is done by then, and another interpreter would only take
processor time from it."""
STARTING_S = 0.25
"""How long it waits for the first one to be ready. Imports that take seconds run in several at once."""


class ReusedHosts:
    """The processes that can serve the same requests.

    The first request starts one. Others wait for it for a moment, in their order, and start one of their own where none
    is free by then: there are never more processes than requests at once.
    """

    def __init__(self, start: Callable[[], Awaitable[PythonHost]]) -> None:
        self._start = start
        self._free: list[PythonHost] = []
        self._waiting: deque[asyncio.Future[PythonHost | None]] = deque()
        self._number = 0  # of processes, those among them that are being started
        self._seen_ready = False

    async def take(self) -> PythonHost:
        """A process that does nothing else. Raises `AgentevalError` when none can be started."""
        while (host := await self._free_one()) is not None:
            if host.alive:
                return host
            await self.end(host)
        try:
            return await self._start()
        except BaseException:
            self._gone()
            raise

    def ready(self) -> None:
        """A child has imported its function. Whoever waited for that waits no longer than for a call."""
        if not self._seen_ready:
            self._seen_ready = True
            for one in self._waiting:
                asyncio.get_running_loop().call_later(BUSY_S, _answer, one, None)

    def give_back(self, host: PythonHost) -> None:
        """It has served a request and can serve another."""
        while self._waiting:
            if _answer(self._waiting.popleft(), host):
                return
        self._free.append(host)

    async def end(self, host: PythonHost, politely: bool = False) -> None:
        """End one that was taken."""
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
        waiter: asyncio.Future[PythonHost | None] = asyncio.get_running_loop().create_future()
        self._waiting.append(waiter)
        wait_s = BUSY_S if self._seen_ready else STARTING_S
        alarm = asyncio.get_running_loop().call_later(wait_s, _answer, waiter, None)
        try:
            host = await waiter
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled() and (given := waiter.result()) is not None:
                self.give_back(given)  # it came in the same moment
            raise
        finally:
            alarm.cancel()
            if waiter in self._waiting:
                self._waiting.remove(waiter)
        if host is None:
            self._number += 1
        return host

    def _gone(self) -> None:
        self._number -= 1
        # Nobody is left who could become free: whoever is first in line starts one.
        while not self._number and self._waiting:
            if _answer(self._waiting.popleft(), None):
                return


def _answer(waiter: asyncio.Future[PythonHost | None], host: PythonHost | None) -> bool:
    """Whether it waited still."""
    if waiter.done():
        return False
    waiter.set_result(host)
    return True
