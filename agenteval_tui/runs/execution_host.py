"""An execution in this process that others can watch and steer: an engine, a socket, and a card that says where it is.

The execution's own process hosts it, and so does a command line that runs it itself: a list of what is running shows
all of it, however it was started.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress

from agenteval_tui.history.lock_wait import listen_for_waits
from agenteval_tui.history.store import Store
from agenteval_tui.runs.engine import Engine
from agenteval_tui.runs.events import Ended, Event
from agenteval_tui.runs.live_registry import Live
from agenteval_tui.runs.live_socket import LiveSocket
from agenteval_tui.runs.plan.model import Plan


class Host:
    """One execution, to be run once: `engine.command` steers it, also before `run`.

    `emit` gets every event first, in the event loop's thread. `detached`: the socket is the only way to watch it, so
    there must be one, and the end waits a moment for the watcher that started it. Otherwise the execution runs without
    one if none can be created, and `unwatchable` says why. `env`: as the engine takes it.
    """

    def __init__(
        self,
        plan: Plan,
        store: Store,
        emit: Callable[[Event], None] | None = None,
        *,
        detached: bool = False,
        notices: tuple[str, ...] = (),
        env: Mapping[str, str] | None = None,
    ) -> None:
        self.engine = Engine(plan, store, self._tell, env=env)
        self._emit = emit
        self._detached = detached
        self._notices = notices
        self._socket = LiveSocket(plan.execution_id, plan.title, self.engine.command, required=detached)
        self._planned = asyncio.Event()

    @property
    def live(self) -> Live | None:
        """Where it can be watched; None: nowhere (yet)."""
        return self._socket.live

    @property
    def unwatchable(self) -> str:
        """Why it can't be watched; "" where it can."""
        return self._socket.unwatchable

    async def run(self, on_live: Callable[[Live], None] | None = None) -> Ended:
        """Run it to its end; gives the last event. `on_live` is called once it can be watched.

        Raises `AgentevalError` when it can't begin.
        """
        self._socket.reserve()
        self.engine.prepare()
        loop = asyncio.get_running_loop()

        def awaited(message: str) -> None:  # in the thread that waits
            with suppress(RuntimeError):  # the loop has just ended
                loop.call_soon_threadsafe(self.engine.history_awaited, message)

        with listen_for_waits(awaited):
            return await self._run(on_live)

    async def _run(self, on_live: Callable[[Live], None] | None) -> Ended:
        running = asyncio.create_task(self.engine.run())
        first = asyncio.create_task(self._planned.wait())
        try:
            # The first event comes when the store has taken the execution in: then it is this process that has it,
            # and it can be watched. What happens before the socket is there is in the first watcher's snapshot.
            await asyncio.wait({running, first}, return_when=asyncio.FIRST_COMPLETED)
            live = await self._socket.open(self._notices) if self._planned.is_set() else None
            if live is not None and on_live is not None:
                on_live(live)
            ended = await running
            await self._socket.close(expected=self._detached)
            return ended
        finally:
            self._socket.remove()
            first.cancel()
            if not running.done():
                running.cancel()
                await asyncio.gather(running, return_exceptions=True)

    def _tell(self, event: Event) -> None:
        # Watchers on the socket get it, also if whoever hosts the execution fails to show it.
        try:
            if self._emit is not None:
                self._emit(event)
        finally:
            self._socket.tell(event)
            self._planned.set()
