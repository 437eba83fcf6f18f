"""The socket on which others watch and steer what runs in this process, and the card that says where it is."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from agenteval_tui.core.errors import AgentevalError, InfrastructureError
from agenteval_tui.core.ids import now_ms
from agenteval_tui.runs import live_registry
from agenteval_tui.runs.events import Command, Event
from agenteval_tui.runs.live_registry import Live
from agenteval_tui.runs.server import EventServer


class LiveSocket:
    """Of one execution. It hears every event through `tell`, from the first on; `open` makes the socket.

    `command` gets what watchers say. `required`: without a socket the execution must not run, so `reserve` and `open`
    raise; otherwise `unwatchable` says why there is none.
    """

    def __init__(
        self, execution: str, title: str, command: Callable[[Command], None], *, required: bool = False
    ) -> None:
        self.live: Live | None = None
        self.unwatchable = ""
        self._execution = execution
        self._title = title
        self._required = required
        self._server = EventServer(command)
        self._path: Path | None = None
        self._shown = ExitStack()

    def reserve(self) -> None:
        """Find the socket's place. Raises `AgentevalError` where there can't be one and one is required."""
        try:
            self._path = live_registry.socket_path(live_registry.live_dir(), self._execution)
        except AgentevalError as error:
            if self._required:
                raise
            self.unwatchable = str(error)

    async def open(self, notices: tuple[str, ...] = ()) -> Live | None:
        """From now on it can be watched; None: it can't. Raises `AgentevalError` where it must.

        An execution that is resumed has the id, and so the socket, of a process that died: it is replaced.
        """
        if self._path is None:
            return None
        path = self._path
        live = Live(self._execution, os.getpid(), str(path), self._title, now_ms(), notices)
        try:
            await self._server.listen(path)
            # Registered in this order, the card goes before the socket: who finds a card can connect.
            self._shown.callback(path.unlink, missing_ok=True)
            self.live = self._shown.enter_context(live_registry.registration(live))
        except OSError as error:
            if self._required:
                raise _no_socket(error) from error
            self.unwatchable = str(_no_socket(error))
        return self.live

    def tell(self, event: Event) -> None:
        """An event, for those who watch now and those who come later."""
        self._server.tell(event)

    async def close(self, *, expected: bool = False) -> None:
        """Let the watchers read the end. `expected`: one is on its way, and still comes in."""
        await self._server.close(expected=expected)

    def remove(self) -> None:
        """Take socket and card away."""
        self._shown.close()


def _no_socket(error: OSError) -> AgentevalError:
    return InfrastructureError(
        f"the socket to watch this execution cannot be created: {error.strerror or error}",
        fix="set AGENTEVAL_RUNTIME_DIR to a folder that you may write",
    )
