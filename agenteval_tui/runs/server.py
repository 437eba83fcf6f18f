"""The socket of an execution: watchers come and go, each gets a snapshot and then what happens."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable
from pathlib import Path

from agenteval_tui.runs.events import Command, Event, decode_command, encode
from agenteval_tui.runs.outbox import Outbox
from agenteval_tui.runs.view import ExecutionView

GATHER_S = 0.02
"""Events of so long a time are sent together."""
LONGEST_COMMAND = 65_536
CLOSE_S = 10.0
"""How long a watcher may take to read the end."""
LINGER_S = 2.0
"""How long the connection stays for a watcher to whom all was sent, and who may still speak before it reads that."""
FIRST_WATCHER_S = 3.0
"""How long an execution that has ended waits for the watcher that started it."""


class EventServer:
    """Serves the events given to `tell` on a unix socket, as JSON lines; commands that come back go to `command`."""

    def __init__(self, command: Callable[[Command], None]) -> None:
        self.view = ExecutionView()
        self._command = command
        self._watchers: set[_Watcher] = set()
        self._server: asyncio.Server | None = None
        self._begun = asyncio.Event()
        self._seen_one = asyncio.Event()

    async def listen(self, path: Path) -> None:
        """Make the socket; only this user can connect. Raises OSError."""
        # The folder is closed to others already; the mask leaves no moment in which the socket is open.
        mask = os.umask(0o177)
        try:
            self._server = await asyncio.start_unix_server(self._serve, path, limit=LONGEST_COMMAND)
        finally:
            os.umask(mask)

    def tell(self, event: Event) -> None:
        """One event of the engine."""
        self.view.apply(event)
        self._begun.set()
        for watcher in self._watchers:
            watcher.add(event)

    async def close(self, *, expected: bool = True) -> None:
        """Let the watchers read the end, then close. One that is `expected` and on its way still comes in."""
        if self._server is None:
            return
        if expected:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._seen_one.wait(), FIRST_WATCHER_S)
        self._server.close()
        watchers = [watcher.end() for watcher in self._watchers]
        if watchers:
            await asyncio.wait(watchers, timeout=CLOSE_S)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        watcher = _Watcher(writer, Outbox(self.view.snapshot))
        self._watchers.add(watcher)
        self._seen_one.set()
        try:
            await self._begun.wait()
            commands = asyncio.create_task(self._read(reader, watcher))
            await watcher.send_all()
            # All of it: what still waits here when the process ends is lost.
            writer.transport.set_write_buffer_limits(0)
            await writer.drain()
            # Its end is told first, and the connection closed when the watcher has read that far and closes its side:
            # one that sends a command to a closed socket would lose what it has not read yet.
            writer.write_eof()
            await asyncio.wait({commands}, timeout=LINGER_S)
            commands.cancel()
        except (OSError, asyncio.CancelledError):
            pass  # the watcher is gone, or the process is
        finally:
            self._watchers.discard(watcher)
            writer.close()

    async def _read(self, reader: asyncio.StreamReader, watcher: _Watcher) -> None:
        with contextlib.suppress(OSError, ValueError):  # ValueError: a line that is too long
            while line := await reader.readline():
                try:
                    command = decode_command(line)
                except ValueError:
                    continue
                if command.verb == "watch":
                    watcher.watch(command.run, self.view)
                else:
                    self._command(command)
        watcher.gone()


class _Watcher:
    """One connection: what waits for it, and the task that sends it."""

    def __init__(self, writer: asyncio.StreamWriter, outbox: Outbox) -> None:
        self._writer = writer
        self._outbox = outbox
        self._news = asyncio.Event()
        self._ending = False
        self._task = asyncio.current_task()
        self._news.set()  # the snapshot

    def add(self, event: Event) -> None:
        self._outbox.add(event)
        self._news.set()

    def watch(self, run: str, view: ExecutionView) -> None:
        self._outbox.watch(run, view.shown(run))
        self._news.set()

    def gone(self) -> None:
        """Nobody reads any more."""
        self._writer.transport.abort()
        self._ending = True
        self._news.set()

    def end(self) -> asyncio.Task[None]:
        """Send what waits, and no more."""
        self._ending = True
        self._news.set()
        assert self._task is not None
        return self._task

    async def send_all(self) -> None:
        """Send what comes until the end. Raises OSError when the watcher goes away."""
        while not (self._ending and not self._outbox):
            await self._news.wait()
            if not self._ending:
                await asyncio.sleep(GATHER_S)
            self._news.clear()
            lines = [encode(event) for event in self._outbox.take()] if self._outbox else []
            if lines:
                self._writer.write(("\n".join(lines) + "\n").encode("ascii"))
                await self._writer.drain()
