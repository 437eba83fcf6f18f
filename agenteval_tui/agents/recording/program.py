"""A program that is started behind the proxy, in the terminal of who started it."""

from __future__ import annotations

import asyncio
import signal
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from agenteval_tui.agents.permission import Permission
from agenteval_tui.agents.process.child_process import find_program
from agenteval_tui.agents.process.node_report import NodePrograms
from agenteval_tui.agents.process.orphans import ends_with_us, is_over, marked
from agenteval_tui.agents.process.process_tree import Process, descendants, living
from agenteval_tui.agents.recording.providers import environment
from agenteval_tui.agents.recording.proxy import Proxy
from agenteval_tui.agents.recording.session import Session
from agenteval_tui.core.errors import AgentevalError

_END_S = 3.0  # how long a program that is told to end may take
_LOOK_S = 0.02


async def run_program(
    argv: Sequence[str],
    session: Session,
    *,
    upstreams: Mapping[str, str],
    cwd: Path,
    env: Mapping[str, str],
    permission: Permission,
    port: int = 0,
    reads: bool = True,
    input_data: bytes | None = None,
    stdout: int | None = None,
) -> int:
    """Start a program that asks model servers through the proxy, and wait for its end; gives its exit code, minus the
    signal's number where a signal ended it.

    It has this process' terminal, for reading only where it `reads`; where `input_data` is given, it reads that. Its
    output goes to the file descriptor `stdout` where one is given. Ctrl+C is the program's. Raises `AgentevalError`
    where it can't be started, `InfrastructureError` where the port can't be had.
    """
    # Before the proxy listens: what may not be started needs none.
    permission.require_start(argv)
    program = find_program(argv[0], cwd, env)
    proxy = Proxy(upstreams)
    await proxy.start(port)
    node = NodePrograms(cwd)
    try:
        with node.of_run() as report, _InterruptsIgnored():
            variables, mark = marked(
                {**env, **environment(proxy.open(session), upstreams, env), **node.variables(report)}
            )
            try:
                stdin = PIPE if input_data is not None else None if reads else DEVNULL
                process = await asyncio.create_subprocess_exec(
                    program, *argv[1:], cwd=cwd, env=variables, stdin=stdin, stdout=stdout
                )
            except (OSError, ValueError) as error:
                is_over("start", mark)
                raise AgentevalError(
                    f"{argv[0]} can't be started: {getattr(error, 'strerror', None) or error}",
                    fix="run it by hand; a script needs a line like #!/bin/sh, or an interpreter before its name",
                ) from None
            # From now on the reaper knows it by its number; its mark was for the time until then.
            ends_with_us("tree", process.pid)
            is_over("start", mark)
            try:
                if input_data is not None and process.stdin is not None:
                    process.stdin.write(input_data)
                    process.stdin.close()
                return await process.wait()
            finally:
                try:
                    await _ended(process)
                finally:
                    is_over("tree", process.pid)
                    session.asked_past = report.of("past")
    finally:
        await proxy.close()


async def _ended(process: asyncio.subprocess.Process) -> None:
    """End a program that has not ended, with all processes that it started: a shell does not end what it runs. They
    have the process group of this terminal, so they are not ended as a group."""
    if process.returncode is not None:
        return
    # Before the first signal: what a program started has no known ancestor once that has ended.
    started = await asyncio.to_thread(descendants, (process.pid,))
    with suppress(ProcessLookupError):
        process.terminate()
    for child in started:
        child.send(signal.SIGTERM)
    try:
        async with asyncio.timeout(_END_S):
            await process.wait()
            while started := await asyncio.to_thread(_left, started):  # noqa: ASYNC110 - the system tells nobody
                await asyncio.sleep(_LOOK_S)
    except TimeoutError:
        started = await asyncio.to_thread(_left, started)
        with suppress(ProcessLookupError):
            process.kill()
        for child in started:
            child.send(signal.SIGKILL)


def _left(started: Iterable[Process]) -> set[Process]:
    """Those of these processes that live, and what they have started since."""
    alive = living(started)
    return alive | descendants(process.pid for process in alive)


class _InterruptsIgnored:
    """Ctrl+C goes to the program as well, which may use it for something; it ends or it does not."""

    def __enter__(self) -> None:
        self._before = None
        with suppress(ValueError):  # not in the main thread
            self._before = signal.signal(signal.SIGINT, lambda *_: None)

    def __exit__(self, *_: object) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)
