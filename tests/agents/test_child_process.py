"""Child processes: what must never happen to ours, and what is left of one that nobody wants any more."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import time
import uuid
from pathlib import Path

import pytest
from programs import lives, until

from agenteval_tui.agents.permission import permission_for
from agenteval_tui.agents.process.child_process import kill_group, start
from agenteval_tui.agents.process.errors import is_only_noted, with_last_words
from agenteval_tui.agents.process.python_host import HostError, PythonHost

ALLOWED = permission_for((), everything=True)


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="looks for processes in /proc")
async def test_a_start_that_is_cancelled_leaves_nothing(tmp_path: Path) -> None:
    marks = []
    for rounds in range(12):
        mark = uuid.uuid4().hex
        command = ["sh", "-c", f": {mark}; sleep 600 & sleep 600"]
        task = asyncio.create_task(start(command, cwd=tmp_path, env={**os.environ, "MARK": mark}, permission=ALLOWED))
        for _ in range(rounds):
            await asyncio.sleep(0)
        if task.cancel():
            with pytest.raises(asyncio.CancelledError):
                await task
        else:
            await (await task).end()
        marks.append(mark.encode())

    def left() -> bool:
        for place in Path("/proc").glob("[0-9]*"):
            try:
                words = (place / "environ").read_bytes()
            except OSError:
                continue
            if any(mark in words for mark in marks) and lives(int(place.name)):
                return True
        return False

    assert not left()


@pytest.mark.parametrize("pid", [-1, 0, 1])
def test_our_own_group_is_never_meant(pid: int) -> None:
    assert not kill_group(pid, signal.SIGTERM)


async def test_end_is_final_even_when_it_is_cancelled(tmp_path: Path) -> None:
    stubborn = "trap '' TERM; echo ready; while :; do sleep 600; done"
    program = await start(
        ["sh", "-c", stubborn], cwd=tmp_path, env=os.environ, permission=permission_for((), everything=True)
    )
    assert await program.read() == b"ready\n"
    ending = asyncio.create_task(program.end(grace_s=60))
    await asyncio.sleep(0)
    ending.cancel()
    await asyncio.wait([ending])
    await until(lambda: not lives(program.pid), "the end")


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="counts open files in /proc")
async def test_files_that_wait_for_a_process_are_closed_when_it_ends(tmp_path: Path) -> None:
    program = await start(["sleep", "600"], cwd=tmp_path, env=os.environ, permission=ALLOWED)
    before = set(os.listdir("/proc/self/fd"))
    own, its = socket.socketpair()
    host = PythonHost(own, program)
    host.tell_readers({"package": ("x" * 4_000_000, "FRAMEWORK")})  # nobody reads it: what follows has to wait
    forks = [host.new_fork() for _ in range(3)]
    calls = [asyncio.create_task(fork.call("find", "agent:answer")) for fork in forks]
    await asyncio.sleep(0)
    # A last word: the end of the socket is seen by whoever sends before it is by whoever reads.
    its.sendall(b"{}\n")
    its.close()
    for call in calls:
        with pytest.raises(HostError):
            await call
    await asyncio.gather(*(fork.end() for fork in forks))
    await host.end()
    assert set(os.listdir("/proc/self/fd")) <= before


def test_a_secret_that_begins_another_one_leaves_no_rest_of_it() -> None:
    env = {"SHOP_KEY": "abcdefgh", "SHOP_TOKEN": "abcdefgh-12345678"}
    assert with_last_words("it failed", "with abcdefgh-12345678, not abcdefgh", env) == "it failed: with ***, not ***"


def test_a_long_line_is_looked_through_once() -> None:
    # Else this takes as long as the square of it, which is days.
    assert not is_only_noted("x" * 5_000_000)
    assert is_only_noted("agent.py:3: DeprecationWarning: old\n  code()\n")


async def test_a_process_that_has_just_ended_can_be_asked_where_it_is(tmp_path: Path) -> None:
    program = await start(["sleep", "600"], cwd=tmp_path, env=os.environ, permission=ALLOWED)
    os.kill(program.pid, signal.SIGKILL)
    # Without the event loop, which would note its end; on some versions of Python a thread takes its exit code.
    for _ in range(200):
        try:
            os.kill(program.pid, 0)
        except ProcessLookupError:
            break
        time.sleep(0.01)
    assert program.returncode is None
    program.interrupt(signal.SIGQUIT, alone=True)
    assert await program.exited()
