"""An execution in this process that others can watch and steer: an engine, a socket, and a card that says where it is.

The execution's own process hosts it, and so does a command line that runs it itself: a list of what is running shows
all of it, however it was started.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

from agenteval_tui.core.errors import AgentevalError, InfrastructureError
from agenteval_tui.core.ids import now_ms
from agenteval_tui.history.lock_wait import listen_for_waits
from agenteval_tui.history.store import Store
from agenteval_tui.runs import live_registry
from agenteval_tui.runs.engine import Engine
from agenteval_tui.runs.events import Ended, Event
from agenteval_tui.runs.live_registry import Live
from agenteval_tui.runs.plan.model import Plan
from agenteval_tui.runs.server import EventServer


class Host:
    """One execution, to be run once: `engine.command` steers it, also before `run`.

    `emit` gets every event first, in the event loop's thread. `detached`: the socket is the only way to watch it, so
    there must be one, and the end waits a moment for the watcher that started it. Otherwise the execution runs without
    one if none can be created, and `unwatchable` says why. `more` goes to the engine.
    """

    def __init__(
        self,
        plan: Plan,
        store: Store,
        emit: Callable[[Event], None] | None = None,
        *,
        detached: bool = False,
        notices: tuple[str, ...] = (),
        **more: Any,
    ) -> None:
        self.engine = Engine(plan, store, self._tell, **more)
        self.live: Live | None = None
        self.unwatchable = ""
        self._plan = plan
        self._emit = emit
        self._detached = detached
        self._notices = notices
        self._server = EventServer(self.engine.command)
        self._planned = asyncio.Event()

    async def run(self, on_live: Callable[[Live], None] | None = None) -> Ended:
        """Run it to its end; gives the last event. `on_live` is called once it can be watched.

        Raises `AgentevalError` when it can't begin.
        """
        path = self._place()
        self.engine.prepare()
        loop = asyncio.get_running_loop()

        def awaited(said: str) -> None:  # in the thread that waits
            with suppress(RuntimeError):  # the loop has just ended
                loop.call_soon_threadsafe(self.engine.history_awaited, said)

        with listen_for_waits(awaited):
            return await self._run(path, on_live)

    async def _run(self, path: Path | None, on_live: Callable[[Live], None] | None) -> Ended:
        running = asyncio.create_task(self.engine.run())
        first = asyncio.create_task(self._planned.wait())
        try:
            # The first event comes when the store has taken the execution in: then it is this process that has it,
            # and it can be watched. What happens before the socket is there is in the first watcher's snapshot.
            await asyncio.wait({running, first}, return_when=asyncio.FIRST_COMPLETED)
            with ExitStack() as shown:
                if path is not None and self._planned.is_set():
                    await self._show(shown, path, on_live)
                ended = await running
                await self._server.close(expected=self._detached)
                return ended
        finally:
            first.cancel()
            if not running.done():
                running.cancel()
                await asyncio.gather(running, return_exceptions=True)

    def _place(self) -> Path | None:
        try:
            return live_registry.socket_path(live_registry.live_dir(), self._plan.execution_id)
        except AgentevalError as error:
            if self._detached:
                raise
            self.unwatchable = str(error)
            return None

    async def _show(self, shown: ExitStack, path: Path, on_live: Callable[[Live], None] | None) -> None:
        plan = self._plan
        live = Live(plan.execution_id, os.getpid(), str(path), plan.title, now_ms(), self._notices)
        try:
            # An execution that is resumed has the id, and so the socket, of a process that died: it is replaced.
            await self._server.listen(path)
            shown.callback(path.unlink, missing_ok=True)
            live = shown.enter_context(live_registry.registration(live))
        except OSError as error:
            if self._detached:
                raise _no_socket(error) from error
            self.unwatchable = str(_no_socket(error))
            return
        self.live = live
        if on_live is not None:
            on_live(live)

    def _tell(self, event: Event) -> None:
        try:
            if self._emit is not None:
                self._emit(event)
        finally:
            self._server.tell(event)
            self._planned.set()


def _no_socket(error: OSError) -> AgentevalError:
    return InfrastructureError(
        f"the socket to watch this execution cannot be created: {error.strerror or error}",
        mend="set AGENTEVAL_RUNTIME_DIR to a folder that you may write",
    )
