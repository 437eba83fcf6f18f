"""A Python process that runs code of the user's: what is asked of it, what it answers, and its forks."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import sys
from collections import deque
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol

from msgspec import Struct, field

from agenteval_tui.agents.permission import Permission
from agenteval_tui.agents.process.child_process import DRAIN_S, EXIT_S, GRACE_S, LineSplitter, Tail, kill_group, start
from agenteval_tui.agents.process.framework_readers import reader_files
from agenteval_tui.agents.process.traceback_text import last_place
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.transcripts.traceback import Traceback, traceback_from

_CHILD = Path(__file__).with_name("python_child.py")
_LIMIT = 16_000_000
_CHUNK = 256 * 1024
_PLACE_S = 0.5
"""How long a process may take to say where its code is."""


class CallError(Exception):
    """What a process was asked for can't be had."""

    program: HostProcess | None = None
    """The process, if whoever catches this can't know it."""
    printed = ""
    """What the imports printed, if it ended there."""
    seen: Mapping[str, Any] = {}
    """What the process says beside it (`python_child`): the `files` that the run has read."""


class HostError(CallError):
    """The process gave no answer; the text says how it ended."""

    too_much = False
    """Whether it gave more than it may."""
    waited_s: float | None = None
    """How long it was waited for, if it was ended for that."""


class RaisedError(CallError):
    """The function raised; the text is the exception's type, message and place. `wrong`: the target is not a function
    or an agent, or its result can't be read; then the text is the whole message. `kinds`: the names of the
    exception's classes. `reduced`: the text without the values of variables. `clues`: what
    its environment may lack (`python_clues.clues_of`)."""

    def __init__(
        self,
        message: str,
        wrong: bool = False,
        kinds: Sequence[str] = (),
        reduced: str = "",
        traceback: Traceback | None = None,
        clues: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.wrong = wrong
        self.kinds = tuple(kinds)
        self.reduced = reduced or message
        self.traceback = traceback
        self.clues = clues or {}

    @classmethod
    def of(cls, answer: Mapping[str, Any]) -> RaisedError:
        """As the process says it."""
        kinds, clues = answer.get("kinds"), answer.get("clues")
        error = cls(
            str(answer["raised"]),
            bool(answer.get("wrong")),
            kinds if isinstance(kinds, list) else (),
            str(answer.get("reduced") or ""),
            traceback_from(answer.get("traceback")),
            clues if isinstance(clues, dict) else None,
        )
        error.seen = answer
        return error


class HostProcess(Protocol):
    """The process of a host, as `child_process.Program` is for one that was started."""

    @property
    def pid(self) -> int:
        """Its number, and that of its group; 0 if it is not known yet."""
        ...

    @property
    def returncode(self) -> int | None:
        """Its exit code, minus the signal's number if a signal ended it; None while it runs."""
        ...

    @property
    def stderr(self) -> str:
        """The last 64 KB of what it wrote to standard error and standard output."""
        ...

    @property
    def written(self) -> Tail:
        """What it wrote there, for who wants to know what is new."""
        ...

    def interrupt(self, number: signal.Signals = signal.SIGTERM, *, alone: bool = False) -> None:
        """Send a signal to it and its group, or to it `alone`; as a rule to end it: it says where it is."""
        ...

    async def exited(self, within_s: float | None = None) -> bool:
        """Wait until it ended by itself and all its words were read, at most `within_s`; whether it ended."""
        ...

    async def end(self, grace_s: float = GRACE_S) -> None:
        """End it and everything that it started in its group."""
        ...


class _Channel:
    """Lines to and from a process, over a socket."""

    def __init__(self, sock: socket.socket, line: Callable[[bytes], None], ended: Callable[[], None]) -> None:
        sock.setblocking(False)
        self._loop = asyncio.get_running_loop()
        self._socket = sock
        self._line = line
        self._ended = ended
        self._lines, self._held = LineSplitter(), 0
        self.flooded = False
        """Whether a line was longer than any may be."""
        self._waiting: deque[tuple[memoryview, tuple[int, ...]]] = deque()
        self._ends = False
        self._open = True
        self._loop.add_reader(sock.fileno(), self._read)

    def send(self, data: bytes, fds: tuple[int, ...] = ()) -> None:
        """Send it, now or as soon as there is room. The files are closed here once they are sent."""
        if not self._open or self._ends:
            _close(fds)
            return
        self._waiting.append((memoryview(data), fds))
        # Otherwise something is being sent already, and lines would get mixed up.
        if len(self._waiting) == 1:
            self._write()

    def end_input(self) -> None:
        """Nothing more comes after what was sent."""
        if self._open and not self._ends:
            self._ends = True
            if not self._waiting:
                self._shut()

    def close(self) -> None:
        """Give the socket back."""
        if self._open:
            self._open = False
            self._loop.remove_reader(self._socket.fileno())
            self._loop.remove_writer(self._socket.fileno())
            self._socket.close()
            self._drop()
            self._ended()

    def _drop(self) -> None:
        # Files that stayed open here would have somebody wait for ever at their other ends.
        for _, fds in self._waiting:
            _close(fds)
        self._waiting.clear()

    def _write(self) -> None:
        while self._waiting:
            data, fds = self._waiting[0]
            try:
                # Files go with the first byte of their line; what is left of the line is sent without them.
                sent = socket.send_fds(self._socket, [data], list(fds)) if fds else self._socket.send(data)
            except (BlockingIOError, InterruptedError):
                # A level that imports reads nothing for a while. The loop goes on meanwhile.
                self._loop.add_writer(self._socket.fileno(), self._write)
                return
            except OSError:
                self._drop()
                return  # its end is read, behind what it said last
            _close(fds)
            if sent < len(data):
                self._waiting[0] = (data[sent:], ())
            else:
                self._waiting.popleft()
        self._loop.remove_writer(self._socket.fileno())
        if self._ends:
            self._shut()

    def _shut(self) -> None:
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_WR)

    def _read(self) -> None:
        try:
            data = self._socket.recv(_CHUNK)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            data = b""
        lines = self._lines.feed(data) if data else ()
        # This bounds what a process can send without ending a line; whole lines are counted where they are awaited
        # (`_Asked.room`).
        self._held = 0 if lines else self._held + len(data)
        for line in lines:
            self._line(line)
        self.flooded = self._held > 4 * _LIMIT
        if not data or self.flooded:
            self.close()


def _close(fds: tuple[int, ...]) -> None:
    for fd in fds:
        with suppress(OSError):
            os.close(fd)


class _Asked(Struct):
    """A request that waits for answers. It keeps at most `room` bytes, however slowly the caller reads."""

    room: int
    answers: asyncio.Queue[Mapping[str, Any] | None] = field(default_factory=asyncio.Queue)
    largest: tuple[int, str] = 0, ""
    """Of its events: the bytes and the type."""

    def give(self, line: bytes, answer: Mapping[str, Any]) -> None:
        before = self.room
        if "output" not in answer:  # what is printed is bounded where it is told (`python_output`)
            self.room -= len(line)
        if "event" in answer:
            self.largest = max(self.largest, (len(line), str(answer["event"].get("type"))))
        if self.room >= 0:
            self.answers.put_nowait(answer)
        elif before >= 0:
            size, kind = self.largest
            self.answers.put_nowait({"too_much": f", {size / 1e6:.1f} MB of it in one `{kind}`" if kind else ""})


class PythonHost:
    """The process (`python_child` says what can be asked). Several may ask at once.

    Use as `async with await start_host(...) as host`; leaving it ends the process and all that it started. `release` is
    called once it was ended; `begin` starts it with its first request.
    """

    def __init__(
        self,
        sock: socket.socket,
        program: HostProcess,
        release: Callable[[], None] | None = None,
        begin: Callable[[Mapping[str, Any] | None], None] | None = None,
    ) -> None:
        self.program = program
        self._number = 0
        self._asked: dict[int, _Asked] = {}
        self._forks: dict[int, Fork] = {}
        self._dead = False
        self.spoke = False
        """Whether it ever said anything: what is no Python does not."""
        self.printed = ""
        """What the imports printed, which it continues."""
        self._placed: asyncio.Future[Mapping[str, Any]] = asyncio.get_running_loop().create_future()
        self.release = release
        self._begin = begin
        self._channel = _Channel(sock, self._take, self._ended)

    @property
    def alive(self) -> bool:
        """Whether it still answers."""
        return not self._dead

    async def events(
        self, do: str, target: str, *, limit: int = _LIMIT, **fields: Any
    ) -> AsyncGenerator[Mapping[str, Any], None]:
        """What the process says to a request: any number of {"event"}, at the end {"returned"}.

        Raises `RaisedError` when the function raised, `HostError` when the process ended, or said more than `limit`
        bytes.
        """
        self._number += 1
        number = self._number
        self._asked[number] = waiting = _Asked(limit)
        if self._dead:
            # `_ended` was called before, and is not called again.
            waiting.answers.put_nowait(None)
        request = {"id": number, "do": do, "target": target, **fields}
        if self._begin is not None:
            # A process that is to be forked is made by its first request, and gets it in the same line: one message
            # less for each run.
            begin, self._begin = self._begin, None
            begin(request)
        else:
            self._channel.send(_line(request))
        try:
            while True:
                answer = await waiting.answers.get()
                if answer is None:
                    # How it ended, and its last words, may arrive after the end of its socket.
                    await self.program.exited(GRACE_S)
                    raise HostError("ended without an answer")
                if "too_much" in answer:
                    error = HostError(f"gave more than {limit / 1e6:g} MB{answer['too_much']}")
                    error.too_much = True
                    raise error
                if "raised" in answer:
                    raise RaisedError.of(answer)
                yield answer
                if "returned" in answer:
                    return
        finally:
            # The caller went away, as at a time limit. Only tools run beside others in a process; anything else ends
            # with it.
            if self._asked.pop(number, None) is not None and do == "tool":
                self._channel.send(_line({"id": number, "do": "cancel"}))

    async def call(self, do: str, target: str, *, limit: int = _LIMIT, **fields: Any) -> object:
        """What a request returns. Raises like `events`."""
        async with aclosing(self.events(do, target, limit=limit, **fields)) as answers:
            async for answer in answers:
                if "returned" in answer:
                    return answer["returned"]
        return None

    def new_fork(self, release: Callable[[], None] | None = None, *, level: bool = False) -> PythonHost:
        """A process that continues from the state of this one, at its first request. A `level` outlives this process.
        Raises `AgentevalError` when there can be none."""
        try:
            own, its = socket.socketpair()
        except OSError as error:
            raise _no_more(error) from None
        try:
            read, write = os.pipe()
        except OSError as error:
            own.close()
            its.close()
            raise _no_more(error) from None
        self._number += 1
        number = self._number
        fork = self._forks[number] = Fork(self, number, read, level)
        fds = (its.detach(), write)

        def begin(first: Mapping[str, Any] | None) -> None:
            self._channel.send(_line({"id": number, "do": "fork", "first": first}), fds)

        if self._dead:
            _close(fds)
            fork.gone()
            return PythonHost(own, fork, release)
        return PythonHost(own, fork, release, begin)

    def signal(self, fork: int, number: int, *, alone: bool = False) -> None:
        """Send a signal to a fork and its group, or to the fork `alone`."""
        self._channel.send(_line({"do": "end", "fork": fork, "signal": int(number), "alone": alone}))

    async def place(self, folder: Path) -> tuple[Traceback | None, Mapping[str, Any]]:
        """Where the code is that it runs now, and what was seen of the run, if it can say that soon. `folder`: the
        suite's."""
        placed = self._placed = asyncio.get_running_loop().create_future()
        before = self.program.written.size
        self.program.interrupt(signal.SIGQUIT, alone=True)
        with suppress(TimeoutError):
            async with asyncio.timeout(_PLACE_S):
                answer = await placed
                return traceback_from(answer["place"]), answer
        # Code of C holds it; what `faulthandler` wrote is there.
        return last_place(self.program.written.text(before), folder), {}

    def tell_readers(self, files: Mapping[str, tuple[str, str]]) -> None:
        """Say which files read the objects of frameworks. Its forks know it, too."""
        self._channel.send(_line({"do": "readers", "files": files}))

    async def end(self, politely: bool = False) -> None:
        """End it with all that it started. `politely`: it has nothing to do, and may put things away first."""
        # It is forked all the same: files that are meant for it are closed as they are sent, and its end is told like
        # any other.
        if self._begin is not None:  # it was never used
            self._begin(None)
            self._begin = None
        try:
            if politely and (self.alive or self.program.returncode is None):
                self._channel.end_input()
                await self.program.exited(EXIT_S)
        finally:
            try:
                await self.program.end()
            finally:
                self._channel.close()
                release, self.release = self.release, None
                if release is not None:
                    release()

    async def __aenter__(self) -> PythonHost:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.end(politely=kind is None)

    def _take(self, line: bytes) -> None:
        # The user's code can write to any file of its process, also to this socket: a line that is no answer is left
        # out.
        with suppress(ValueError, KeyError, TypeError, AttributeError, RecursionError):
            answer = json.loads(line)
            number = answer["id"]
            self.spoke = True
            if "place" in answer:
                # Code of C may have held it for longer than somebody waited.
                if not self._placed.done():
                    self._placed.set_result(answer)
                return
            waiting = self._asked.get(number)
            if waiting is not None:
                waiting.give(line, answer)
            elif (fork := self._forks.get(number)) is not None:
                fork.take(answer)
                if fork.returncode is not None:
                    del self._forks[number]

    def _ended(self) -> None:
        self._dead = True
        # A process that was cut off because a line had no end gave too much. Of any other, None says that it has ended.
        for call in self._asked.values():
            call.answers.put_nowait({"too_much": ""} if self._channel.flooded else None)
        for fork in self._forks.values():
            fork.gone()
        self._forks.clear()


def _line(request: Mapping[str, Any]) -> bytes:
    return json.dumps(request, default=str).encode("ascii") + b"\n"


def _no_more(error: OSError) -> AgentevalError:
    return AgentevalError(
        f"another process can't be started: {error.strerror or error}",
        fix="lower `concurrency`, or raise the limit of open files (ulimit -n)",
    )


class Fork:
    """A process that another process forked, which tells of its end. See `HostProcess`."""

    def __init__(self, parent: PythonHost, number: int, errors: int, level: bool = False) -> None:
        self.pid = 0
        self.returncode: int | None = None
        self._parent = parent
        self._number = number
        self._level = level
        self._exited = asyncio.Event()
        self._silent = asyncio.Event()
        self.written = Tail()
        self._errors = errors
        os.set_blocking(errors, False)
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(errors, self._read)

    @property
    def stderr(self) -> str:
        """The last 64 KB of what it wrote to standard error and standard output."""
        return self.written.text()

    async def exited(self, within_s: float | None = None) -> bool:
        """Wait until it ended by itself and all its words were read, at most `within_s`; whether it ended."""
        if not (self._exited.is_set() and self._silent.is_set()):
            with suppress(TimeoutError):
                async with asyncio.timeout(within_s):
                    await self._exited.wait()
                    # A process that left the group may hold the pipe open for ever.
                    with suppress(TimeoutError):
                        async with asyncio.timeout(DRAIN_S):
                            await self._silent.wait()
        return self._exited.is_set()

    async def end(self, grace_s: float = GRACE_S) -> None:
        """End it and everything that it started in its group: ask first, then kill. When this is cancelled, it kills at
        once."""
        try:
            if not self._exited.is_set():
                self.interrupt()
                await self._has_exited(grace_s)
        finally:
            try:
                if not self._exited.is_set():
                    self.interrupt(signal.SIGKILL)
                    await asyncio.shield(self._has_exited(DRAIN_S))
                elif self._level and not self._parent.alive:
                    kill_group(self.pid, signal.SIGKILL)  # nobody tells of its end
            finally:
                self._close()

    def interrupt(self, number: signal.Signals = signal.SIGTERM, *, alone: bool = False) -> None:
        """Send a signal to it and its group, or to it `alone`; as a rule to end it: it says where it is."""
        # A number is sure to be the fork's only while its parent has not waited for it; so the parent sends the signal.
        if self._parent.alive:
            self._parent.signal(self._number, number, alone=alone)
        elif not alone:
            kill_group(self.pid, number)

    def take(self, answer: Mapping[str, Any]) -> None:
        """What its parent says of it."""
        if "forked" in answer:
            self.pid = int(answer["forked"])
        elif "exited" in answer:
            self.returncode = int(answer["exited"])
            self._exited.set()
        elif "raised" in answer:
            self.written.add(str(answer["raised"]).encode())
            self.returncode = 1
            self._exited.set()

    def gone(self) -> None:
        """Its parent is gone, and so is who would have told of its end."""
        if self.returncode is None:
            if not self._level:
                kill_group(self.pid, signal.SIGKILL)
            self.returncode = -signal.SIGKILL
            self._exited.set()

    async def _has_exited(self, within_s: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                await self._exited.wait()

    def _read(self) -> None:
        try:
            data = os.read(self._errors, _CHUNK)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            data = b""
        self.written.add(data)
        if not data:
            self._close()

    def _close(self) -> None:
        if not self._silent.is_set():
            self._silent.set()
            self._loop.remove_reader(self._errors)
            # After the loop has let go of it: its number may belong to another file at once.
            os.close(self._errors)


async def start_host(
    folder: Path,
    env: Mapping[str, str],
    *,
    permission: Permission,
    interpreter: str | None = None,
    path: Sequence[Path] = (),
    last: Sequence[Path] = (),
) -> PythonHost:
    """A process with `folder` as its working directory and first place for modules, then the places of `path`;
    those of `last` come after installed packages.

    `interpreter` is a program as in a command (this process' own Python if None). Raises `AgentevalError` when it
    can't be started.
    """
    argv = host_argv(interpreter, path, last)
    # In a thread, while the process starts: to look through all installed packages takes 30 ms.
    readers = asyncio.get_running_loop().run_in_executor(None, reader_files)
    own, its = socket.socketpair()
    try:
        program = await start(argv, cwd=folder, env=env, permission=permission, stdin=its)
    except BaseException:
        own.close()
        raise
    finally:
        # The process has its own copy. With this one open, the end of the process would not be seen on the other
        # socket.
        its.close()
    host = PythonHost(own, program)
    try:
        host.tell_readers(await readers)
    except BaseException:
        await host.end()
        raise
    return host


def host_argv(interpreter: str | None, path: Sequence[Path], last: Sequence[Path] = ()) -> list[str]:
    """The command of a process, as `Permission.require_start` knows it."""
    # Another interpreter may be older than 3.11, which has no -P: the child takes its own folder out of sys.path before
    # it imports anything, and puts the suite's in by itself.
    python = [interpreter] if interpreter else [sys.executable, "-P"]
    return [*python, str(_CHILD), *(str(place) for place in path), "--", *(str(path) for path in last)]
