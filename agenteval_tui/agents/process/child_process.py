"""A child process that is ended whole: it leads a process group of its own, and its output is read within bounds. If
this process is killed, the group ends, too (`orphans`). A stream of bytes that it writes is cut into lines."""

from __future__ import annotations

import asyncio
import errno
import os
import shutil
import signal
import socket
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import cast

from agenteval_tui.agents.permission import Permission
from agenteval_tui.agents.process.node_packages import install_command, program_of_package
from agenteval_tui.agents.process.orphans import end_marked, ends_with_us, is_over, marked
from agenteval_tui.core.errors import AgentevalError

GRACE_S = 0.5
"""How long a program that is told to end may take; then it is killed."""
EXIT_S = 1.0
"""How long a process that ends by itself may take: its exit handlers may send to a server what it did."""
DRAIN_S = 1.0
"""How long output is waited for that a process outside of the group holds back after the program's end."""
STDERR_KEPT = 64 * 1024
_HIGH_WATER = 1_000_000  # bytes that wait to be read; beyond it the program has to wait


class Tail:
    """The end of what a process writes, at least the last 64 KB."""

    def __init__(self) -> None:
        self.size = 0
        """How many bytes were written, with those that are no longer kept."""
        self._kept = bytearray()

    def add(self, data: bytes) -> None:
        """It wrote more."""
        self.size += len(data)
        self._kept += data
        # Not with each piece: that would move 64 KB for a line.
        if len(self._kept) > 2 * STDERR_KEPT:
            del self._kept[:-STDERR_KEPT]

    def text(self, start: int = 0) -> str:
        """What came after the first `start` bytes, of that the last 64 KB."""
        new = min(self.size - start, STDERR_KEPT)
        return bytes(self._kept[len(self._kept) - new :]).decode("utf-8", "replace")


class _Output:
    """A pipe's bytes on their way to who reads them."""

    def __init__(self) -> None:
        self.transport: asyncio.ReadTransport | None = None
        self.waiting = bytearray()
        self.ended = False
        self.paused = False
        self._news = asyncio.Event()

    def feed(self, data: bytes) -> None:
        self.waiting += data
        self._news.set()
        if len(self.waiting) > _HIGH_WATER and not self.paused and self.transport is not None:
            # Without this, a program that writes faster than its output is read would fill our memory. Now its pipe
            # fills, and it waits.
            self.transport.pause_reading()
            self.paused = True

    def end(self) -> None:
        self.ended = True
        self._news.set()

    async def read(self) -> bytes:
        while not self.waiting and not self.ended:
            self._news.clear()
            await self._news.wait()
        data = bytes(self.waiting)
        self.waiting.clear()
        if self.paused and self.transport is not None and not self.ended:
            self.paused = False
            self.transport.resume_reading()
        return data


class _Pipes(asyncio.SubprocessProtocol):
    def __init__(self) -> None:
        self.out = _Output()
        self.err = Tail()
        self.exited = asyncio.Event()
        self.err_ended = asyncio.Event()
        self.ending = False
        self.pid = 0
        self._transport: asyncio.SubprocessTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.SubprocessTransport, transport)
        self.pid = self._transport.get_pid()
        ends_with_us("group", self.pid)
        self.out.transport = cast(asyncio.ReadTransport | None, self._transport.get_pipe_transport(1))
        self.out.ended = self.out.transport is None
        if self._transport.get_pipe_transport(2) is None:
            self.err_ended.set()

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        if fd == 1:
            self.out.feed(data)
            return
        self.err.add(data)

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        if fd == 1:
            self.out.end()
        if fd == 2:
            self.err_ended.set()

    def process_exited(self) -> None:
        self.exited.set()
        if not self.ending:
            # What it started and left behind would hold its pipes open.
            kill_group(self.pid, signal.SIGKILL)
            is_over("group", self.pid)
        # The pipes of a process that has ended may still hold what nobody has read: they get time to end by themselves.
        asyncio.get_running_loop().call_later(DRAIN_S, self._give_up)

    def _give_up(self) -> None:
        """A process that left the group may hold the pipes open for ever: what it would say is not waited for."""
        if self._transport is None or (self.out.ended and self.err_ended.is_set()):
            return
        # What was read from the pipe must reach the caller first: a slow caller would lose the end of the output.
        if self.out.waiting:
            asyncio.get_running_loop().call_later(DRAIN_S, self._give_up)
            return
        self.out.end()
        self.err_ended.set()
        self._transport.close()


class Program:
    """A running program, to be used as `async with await start(...) as program`: leaving it ends the program with all
    that it started, also what left its group (where the system shows the environment of processes)."""

    def __init__(self, transport: asyncio.SubprocessTransport, pipes: _Pipes, mark: str) -> None:
        self._transport = transport
        self._pipes = pipes
        self._mark = mark

    @property
    def pid(self) -> int:
        """The process, and its group."""
        return self._pipes.pid

    @property
    def returncode(self) -> int | None:
        """Its exit code, minus the signal's number when a signal ended it; None while it runs."""
        return self._transport.get_returncode()

    @property
    def stderr(self) -> str:
        """The last 64 KB of what it wrote to standard error."""
        return self._pipes.err.text()

    @property
    def written(self) -> Tail:
        """What it wrote to standard error."""
        return self._pipes.err

    def write(self, data: bytes) -> None:
        """Send `data` to its standard input, in the background; nothing happens when it does not want it."""
        stdin = self._stdin()
        if stdin is not None:
            stdin.write(data)

    def close_stdin(self) -> None:
        """End of its input, once what was written is through."""
        stdin = self._stdin()
        if stdin is not None and stdin.can_write_eof():
            stdin.write_eof()

    async def read(self) -> bytes:
        """What it wrote to standard output since the last time; waits for something, b"" at the end."""
        return await self._pipes.out.read()

    def interrupt(self, number: signal.Signals = signal.SIGTERM, *, alone: bool = False) -> None:
        """Send a signal to it and its group, or to it `alone`; as a rule to end it."""
        if self.returncode is not None:
            return
        if alone:
            # It may have ended, and the loop does not know it yet.
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)
        else:
            kill_group(self.pid, number)

    async def exited(self, within_s: float | None = None) -> bool:
        """Wait until it ended by itself and all its words were read, at most `within_s`; whether it ended."""
        with suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                await self._pipes.exited.wait()
                await self._pipes.err_ended.wait()
        return self._pipes.exited.is_set()

    async def end(self, grace_s: float = GRACE_S) -> None:
        """End it and everything that it started: ask first, then kill. When this is cancelled, it kills at once."""
        self._pipes.ending = True
        try:
            if self.returncode is None and kill_group(self.pid, signal.SIGTERM):
                loop = asyncio.get_running_loop()
                # Signal 0 asks whether the group is still there. Most programs end at once, so the first looks come
                # early.
                stop, pause = loop.time() + grace_s, 0.002
                while kill_group(self.pid, 0) and loop.time() < stop:
                    await asyncio.sleep(pause)
                    pause = min(0.05, pause * 2)
        finally:
            # Also where the program has ended: what it started may have ignored the first signal.
            kill_group(self.pid, signal.SIGKILL)
            is_over("group", self.pid)
            try:
                # One that can't be killed (a disk or a driver holds it) is not waited for.
                await asyncio.wait_for(asyncio.shield(self._pipes.exited.wait()), DRAIN_S)
            except TimeoutError:
                pass
            finally:
                self._transport.close()
                if self._mark:
                    # This reads the environment of all processes, so it runs in a thread; a cancelled caller must not
                    # leave it half done.
                    mark, self._mark = self._mark, ""
                    await asyncio.shield(asyncio.to_thread(end_marked, mark, self.pid))

    async def __aenter__(self) -> Program:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.end()

    def _stdin(self) -> asyncio.WriteTransport | None:
        stdin = self._transport.get_pipe_transport(0)
        return None if stdin is None or stdin.is_closing() else cast(asyncio.WriteTransport, stdin)


def kill_group(pid: int, number: int) -> bool:
    """Send a signal (0: none) to the group that `pid` leads; whether there is such a group."""
    if pid <= 1:
        return False  # 0 would be our own group
    try:
        os.killpg(pid, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def find_program(word: str, cwd: Path, env: Mapping[str, str]) -> str:
    """The program that a command's first word means: a path relative to `cwd`, or the name of a program of a package
    that is installed for Node, or of one in PATH.

    Raises `AgentevalError` when there is none, or it may not be executed.
    """
    if not cwd.is_dir():
        raise AgentevalError(f"the folder {cwd} does not exist", fix="check `cwd`")
    if os.sep not in word:
        program = program_of_package(word, cwd) or shutil.which(word, path=env.get("PATH", os.defpath))
        if program is None:
            near = "install it, or give its path"
            if (cwd / word).exists():
                near = f"write ./{word} for the one beside the suite"
            elif command := install_command(cwd):
                near = f"{command}, if a package of the project has it; else {near}"
            raise AgentevalError(f"there is no program {word!r} in PATH", fix=near)
        return str(cwd / program)
    path = cwd / Path(word).expanduser()
    if path.is_dir():
        raise AgentevalError(f"{word} is a folder, not a program", fix="name the program in it")
    if not path.exists():
        raise AgentevalError(f"there is no program {word}", fix=f"it is looked for in {cwd}")
    if not os.access(path, os.X_OK):
        raise AgentevalError(f"{word} is not executable", fix=f"chmod +x {word}, or name what runs it first")
    return str(path)


async def start(
    argv: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str],
    permission: Permission,
    stdin: socket.socket | None = None,
    merged: bool = False,
) -> Program:
    """Start a program. Raises `AgentevalError` in words when it can't be started, or `permission` (from the trust
    check) does not cover it.

    With `stdin`, that is its standard input, and what it writes to standard output is lost. `merged`: its standard
    error comes with its standard output.
    """
    permission.require_start(argv)
    # Looked up here and not by the system, which would look in our own PATH and from our own folder.
    program = find_program(argv[0], cwd, env)
    loop = asyncio.get_running_loop()
    # The mark is on record before the program starts: if we are killed before we know its number, it is found by the
    # mark.
    env, mark = marked(env)
    starting = asyncio.ensure_future(
        loop.subprocess_exec(
            _Pipes,
            *(program, *argv[1:]),
            cwd=cwd,
            env=env,
            stdin=asyncio.subprocess.PIPE if stdin is None else stdin.fileno(),
            stdout=asyncio.subprocess.PIPE if stdin is None else asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.STDOUT if merged else asyncio.subprocess.PIPE,
            start_new_session=True,
        )
    )
    try:
        # A start that is cancelled halfway could leave a program that nobody knows: it goes on, and the program is
        # ended below.
        transport, pipes = await asyncio.shield(starting)
    except asyncio.CancelledError:
        # Whoever cancelled this may end the event loop next, and only the loop can end the program.
        await asyncio.shield(asyncio.ensure_future(_end_unwanted(starting, mark)))
        raise
    except OSError as error:
        is_over("start", mark)
        raise AgentevalError(f"{argv[0]} can't be started: {_why(error, program)}", fix=_fix(error, argv[0])) from None
    except ValueError as error:  # a NUL in an argument
        is_over("start", mark)
        raise AgentevalError(f"{argv[0]} can't be started: {error}") from None
    return Program(transport, pipes, mark)


async def _end_unwanted(starting: asyncio.Future[tuple[asyncio.SubprocessTransport, _Pipes]], mark: str) -> None:
    """End a program that is no longer needed, with everything it may have started."""
    await asyncio.wait({starting})
    if starting.exception() is None:
        await Program(*starting.result(), mark).end(grace_s=0)
    else:
        is_over("start", mark)


def _why(error: OSError, program: str) -> str:
    if error.errno == errno.ENOEXEC:
        return "it is not a program, and has no #! line"
    if error.errno == errno.ENOENT:
        return f"its first line names an interpreter that does not exist{_first_line(program)}"
    return error.strerror or str(error)


def _first_line(program: str) -> str:
    try:
        with Path(program).open("rb") as stream:
            line = stream.readline(200).decode("utf-8", "replace").strip()
    except OSError:
        return ""
    return f" ({line})" if line.startswith("#!") else ""


def _fix(error: OSError, program: str) -> str:
    if error.errno == errno.ENOENT:
        return f"correct that line, or name the interpreter first: [sh, {program}]"
    if error.errno == errno.ENOEXEC:
        return f"begin it with a line like #!/bin/sh, or name its interpreter first: [sh, {program}]"
    if error.errno == errno.EMFILE:
        return "lower `concurrency`, or raise the limit of open files (ulimit -n)"
    if error.errno == errno.E2BIG:
        return "let the program read its task: `input: text` or `input: json`, without `{{prompt}}` in `command`"
    return ""


WORKDIR, SUITE_DIR = "AGENTEVAL_WORKDIR", "AGENTEVAL_SUITE_DIR"
"""Variables of its environment: the folder of the run, and that of the suite."""


def found_in(folder: Path, cwd: Path, argv: list[str]) -> list[str]:
    """The words of a command that runs in `cwd`: those that name a file of the suite's `folder` name it there, unless
    `cwd` has such a file itself."""
    if cwd == folder:
        return argv
    return [_found(word, number, folder, cwd) for number, word in enumerate(argv)]


def _found(word: str, number: int, folder: Path, cwd: Path) -> str:
    if not word or word.startswith(("-", "/", "~")) or len(word) > 1_000 or "\0" in word:
        return word
    if not number and "/" not in word:
        return program_of_package(word, folder) or word
    return str(folder / word) if (folder / word).is_file() and not (cwd / word).exists() else word


class LineSplitter:
    """Cuts a stream of bytes into lines; what a line lacks is kept until it comes."""

    def __init__(self) -> None:
        self._rest = bytearray()
        self._looked = 0

    def feed(self, data: bytes) -> list[bytes]:
        """The lines that are complete now, without their ends."""
        self._rest += data
        # What was searched before is not searched again: else a line of many megabytes would take time that grows with
        # its square.
        last = self._rest.rfind(b"\n", self._looked)
        if last < 0:
            self._looked = len(self._rest)
            return []
        whole = bytes(self._rest[:last])
        del self._rest[: last + 1]
        self._looked = len(self._rest)
        return whole.split(b"\n")

    @property
    def rest(self) -> bytes:
        """What came after the last line's end."""
        return bytes(self._rest)
