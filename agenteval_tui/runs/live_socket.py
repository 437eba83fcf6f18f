"""The socket on which others watch and steer what runs in this process, and the card that says where it is.

Watchers come and go. Each gets a snapshot, and then what happens.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path

from msgspec.structs import replace

from agenteval_tui.core.errors import AgentevalError, InfrastructureError
from agenteval_tui.core.ids import now_ms
from agenteval_tui.runs import live_registry
from agenteval_tui.runs.events import (
    Command,
    Event,
    Progress,
    ReasoningStreamed,
    RunShown,
    Snapshot,
    TextStreamed,
    ToolArguments,
    ToolFinished,
    ToolStarted,
    TurnStarted,
    decode_command,
    encode,
)
from agenteval_tui.runs.live_registry import Live
from agenteval_tui.runs.live_view import ExecutionView

GATHER_S = 0.02
"""Events of so long a time are sent together."""
LONGEST_COMMAND = 65_536
CLOSE_S = 10.0
"""How long a watcher may take to read the end."""
LINGER_S = 2.0
"""How long the connection stays for a watcher to whom all was sent, and who may still speak before it reads that."""
FIRST_WATCHER_S = 3.0
"""How long an execution that has ended waits for the watcher that started it."""
MOST_EVENTS = 4_000
MOST_CHARACTERS = 2_000_000
STREAMED = (TextStreamed, ReasoningStreamed, ToolStarted, ToolArguments, ToolFinished, TurnStarted)


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
            with suppress(TimeoutError):
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
            # A snapshot needs the first event.
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
        with suppress(OSError, ValueError):  # ValueError: a line that is too long
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
            # More comes at once, as a rule: fewer writes, and fewer wake-ups of the watcher.
            if not self._ending:
                await asyncio.sleep(GATHER_S)
            # Cleared before the events are taken: what comes while they are sent wakes the next round.
            self._news.clear()
            lines = [encode(event) for event in self._outbox.take()] if self._outbox else []
            if lines:
                self._writer.write(("\n".join(lines) + "\n").encode("ascii"))
                await self._writer.drain()


class Outbox:
    """Events for one watcher. While they wait, texts of a run are merged and only the newest figures are kept.

    Never more than a bounded amount waits: a watcher that falls too far behind gets a fresh snapshot in place of all
    that it missed.
    """

    def __init__(self, snapshot: Callable[[], Snapshot]) -> None:
        self._snapshot = snapshot
        self._events: list[Event | None] = []
        self._characters = 0
        self._open_texts: dict[str, int] = {}  # by run: where its newest text is that may still grow
        self._progress: int | None = None
        self._watched = ""
        self._behind = True  # a new watcher knows nothing

    def __bool__(self) -> bool:
        return self._behind or bool(self._events)

    def watch(self, run: str, run_shown: RunShown | None) -> None:
        """From now on only what streams of `run` ("" of all), beginning with its whole state."""
        self._watched = run
        if not run:
            self._behind = True  # it has missed what streamed of the others
            self._forget()
        elif run_shown is not None:
            self._open_texts.clear()  # what streams from now on comes behind the state, not before it
            self._append(run_shown)

    def add(self, event: Event) -> None:
        """One more event. What a snapshot will tell anyway is not kept."""
        if self._behind:
            return
        if isinstance(event, STREAMED):
            if self._watched and event.run != self._watched:
                return
            if isinstance(event, (TextStreamed, ReasoningStreamed)):
                self._add_text(event)
            else:
                # Text behind a tool call is another text.
                self._open_texts.pop(event.run, None)
                self._append(event)
        elif isinstance(event, Progress):
            # In its old place nothing stays: the others keep their numbers, which `_open_texts` has.
            if self._progress is not None:
                self._events[self._progress] = None
            self._progress = len(self._events)
            self._append(event)
        else:
            if self._open_texts:
                self._open_texts.pop(getattr(event, "run", ""), None)
            self._append(event)
        # A snapshot is bounded, however long the watcher did not read.
        if len(self._events) > MOST_EVENTS or self._characters > MOST_CHARACTERS:
            self._behind = True
            self._forget()

    def take(self) -> list[Event]:
        """Everything that waits, to be sent now."""
        if self._behind:
            self._behind = False
            self._forget()
            return [self._snapshot()]
        events = [event for event in self._events if event is not None]
        self._forget()
        return events

    def _add_text(self, event: TextStreamed | ReasoningStreamed) -> None:
        self._characters += len(event.text)
        place = self._open_texts.get(event.run)
        waiting = self._events[place] if place is not None else None
        if place is not None and isinstance(waiting, type(event)):
            self._events[place] = replace(waiting, text=waiting.text + event.text)
        else:
            self._open_texts[event.run] = len(self._events)
            self._append(event)

    def _append(self, event: Event) -> None:
        self._events.append(event)
        if isinstance(event, ToolArguments | TurnStarted):
            self._characters += len(event.text)
        elif isinstance(event, ToolFinished):
            self._characters += len(event.result)

    def _forget(self) -> None:
        self._events.clear()
        self._open_texts.clear()
        self._progress = None
        self._characters = 0


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
