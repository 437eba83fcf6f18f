"""The first level of the tree of Python processes (`agents/process/python_tree.py`), forked off one that has imported.

A Python that starts for an agent imports the standard library's parts that all agents need, and often a framework: a
tenth of a second of a processor, or one and a half. Here a process that has imported them forks. What it has of a
project, an environment, effects and signals it makes itself, as ever. Where the start is the subject, a test starts it
as the program does (`started_anew`).
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
import socket
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import prestarted

from agenteval_tui.agents.permission import Permission
from agenteval_tui.agents.process import child_process, python_host
from agenteval_tui.agents.process.child_process import Program, _Pipes, find_program
from agenteval_tui.agents.process.orphans import marked

COMMAND = [prestarted.PYTHON, "-P", prestarted.AGENTS_PYTHON]
FRAMEWORK = re.compile(rf"^\s*(?:from|import) ({'|'.join(prestarted.FRAMEWORKS)})\b", re.M)


class _Transport:
    """As far as `Program` uses it, asyncio's transport of a process."""

    def __init__(self, process: prestarted.Prestarted, errors: int, pipes: _Pipes) -> None:
        self._process, self._errors, self._pipes = process, errors, pipes
        self._loop = asyncio.get_running_loop()
        os.set_blocking(errors, False)
        pipes.connection_made(cast(asyncio.BaseTransport, self))
        self._status = process.fileno()
        self._loop.add_reader(errors, self._read)
        self._loop.add_reader(self._status, self._exited)

    def get_pid(self) -> int:
        return self._process.pid

    def get_returncode(self) -> int | None:
        return self._process.returncode

    def get_pipe_transport(self, number: int) -> object:
        return self if number == 2 else None

    def close(self) -> None:
        if self._errors >= 0:
            self._end_errors()
        if self._process.returncode is None:
            self._loop.remove_reader(self._status)
            with suppress(ProcessLookupError):
                os.kill(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def _read(self) -> None:
        try:
            data = os.read(self._errors, 256 * 1024)
        except BlockingIOError:
            return
        if data:
            self._pipes.pipe_data_received(2, data)
        else:
            self._end_errors()
            self._pipes.pipe_connection_lost(2, None)

    def _end_errors(self) -> None:
        self._loop.remove_reader(self._errors)
        os.close(self._errors)
        self._errors = -1

    def _exited(self) -> None:
        self._loop.remove_reader(self._status)
        self._process.wait()
        self._pipes.process_exited()


def framework_of(folder: Path) -> str:
    """The framework that the modules of a project import; "" if it is none, or several, or a module of its own."""
    texts = [file.read_text("utf-8", "replace") for file in folder.glob("*.py")]
    named = {name for text in texts for name in FRAMEWORK.findall(text)}
    if "agents" in named:
        named.discard("openai")  # which it imports
    if len(named) != 1:
        return ""
    (name,) = named
    return "" if (folder / name).exists() or (folder / f"{name}.py").exists() else name


async def start(
    argv: Sequence[str], *, cwd: Path, env: Mapping[str, str], permission: Permission,
    stdin: socket.socket | None = None, merged: bool = False,
) -> Program:  # fmt: skip
    """As `child_process.start`: a process that is forked off, if that is possible."""
    if stdin is not None and list(argv[:3]) == COMMAND:
        permission.require_start(argv)
        find_program(argv[0], cwd, env)
        with_mark, mark = marked(env)
        forked = await asyncio.to_thread(_fork, argv[1:], with_mark, cwd, stdin)
        if forked is not None:
            pipes = _Pipes()
            transport: Any = _Transport(*forked, pipes)
            return Program(transport, pipes, mark)
    return await child_process.start(argv, cwd=cwd, env=env, permission=permission, stdin=stdin, merged=merged)


def take() -> None:
    """Let this process, which is to be the program, start them so."""
    python_host.start = start


def _fork(
    words: Sequence[str], env: Mapping[str, str], cwd: Path, stdin: socket.socket
) -> tuple[prestarted.Prestarted, int] | None:
    *places, last = words[2:]
    framework = framework_of(cwd) if last == "--" and all(Path(place).is_relative_to(cwd) for place in places) else ""
    nothing = os.open(os.devnull, os.O_RDWR)
    reading, writing = os.pipe()
    try:
        process = prestarted.start(
            words, env, [stdin.fileno(), nothing, writing], terminal=False, session=True, folder=cwd,
            of=f"python {framework}".strip(),
        )  # fmt: skip
    finally:
        os.close(nothing)
        os.close(writing)
    if process is None:
        os.close(reading)
        return None
    return process, reading
