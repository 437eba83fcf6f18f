"""A process that outlives ours for a moment: when ours is killed, it ends the programs that ours had started.

It is started as a script, so it imports nothing but the standard library. Its standard input is a pipe that only our
process writes to: lines that say what is there (`+`) or gone (`-`): `group PID`, `tree PID`, `start MARK` or
`folder PATH`. At the pipe's end our process is gone, however that happened. Then each group is ended whole. A tree,
which shares the group of a terminal, is a program with all that it started; so is what has a mark in its environment.
A folder is removed.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

GRACE_S = 1.0
"""How long programs that are told to end may take; then they are killed."""
_PROC = Path("/proc")
_PS = ("/bin/ps", "-A", "-o", "pid=,ppid=,stat=,lstart=")
_PS_S = 5.0


def main() -> None:
    """Read until our process is gone; then end what is left of it."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        # What ends us may be sent to it as well, as when a machine shuts down; it has work to do then.
        signal.signal(number, signal.SIG_IGN)
    pending: dict[str, None] = {}
    # The pipe ends with our process, also when it is killed: the kernel closes it.
    for line in sys.stdin.buffer:
        text = os.fsdecode(line.rstrip(b"\n"))
        if text.startswith("+"):
            pending[text[1:]] = None
        else:
            pending.pop(text[1:], None)
    groups, trees, folders, marks = set[int](), set[int](), list[str](), list[bytes]()
    for what in pending:
        kind, _, name = what.partition(" ")
        if kind == "folder":
            folders.append(name)
        elif kind == "start":
            marks.append(b"AGENTEVAL_STARTED_AS=" + os.fsencode(name))
        # 0 and 1 would mean our own group, and all processes.
        elif name.isdecimal() and int(name) > 1:
            (groups if kind == "group" else trees).add(int(name))
    end(groups, trees | having(marks))
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)


def end(groups: set[int], trees: set[int]) -> None:
    """Ask process groups, and programs with all that they started, to end; then kill them."""
    single = trees | below(trees)
    send(groups, single, signal.SIGTERM)
    stop = time.monotonic() + GRACE_S
    while time.monotonic() < stop and send(groups, living(single), 0):
        time.sleep(0.02)
    # Numbers of those that have ended may belong to others by now; what the first signal made them start is looked for
    # again.
    single = living(single)
    send(groups, single | below(single), signal.SIGKILL)


def send(groups: set[int], single: set[int], number: int) -> bool:
    """Send a signal (0: none) to groups and processes; whether there is any."""
    there = False
    for kill, pids in ((os.killpg, groups), (os.kill, single)):
        for pid in pids:
            try:
                kill(pid, number)
                there = True
            except OSError:
                continue
    return there


def below(roots: set[int], processes: dict[int, Listed] | None = None) -> set[int]:
    """All that these processes started, and what those started, among the `listed` ones."""
    processes = listed() if processes is None else processes
    pids: set[int] = set()
    new = set(roots)
    while new:
        new = {pid for pid, process in processes.items() if process.parent in new} - pids
        pids |= new
    return pids


def having(marks: list[bytes], first: int = 0) -> set[int]:
    """The processes with one of these in their environment; only where the system shows that in /proc. `first`: only
    those that were started after this one."""
    pids = set()
    if first and not first <= newest():
        first = 0  # the system began with small numbers again
    for entry in Path("/proc").iterdir() if marks and Path("/proc/self/environ").exists() else ():
        if entry.name.isdecimal() and int(entry.name) >= first:
            try:
                if not set(marks).isdisjoint((entry / "environ").read_bytes().split(b"\0")):
                    pids.add(int(entry.name))
            except OSError:
                continue
    return pids


def newest() -> int:
    """The number that the system gave last; 0 where it does not say that."""
    try:
        return int(Path("/proc/loadavg").read_bytes().split()[-1])
    except (OSError, ValueError, IndexError):
        return 0


def living(pids: set[int]) -> set[int]:
    """Those of these processes that have not ended."""
    return pids & listed().keys() if pids else pids


class Listed(NamedTuple):
    """A living process: the number of its parent, and when it started. The system gives the number of an ended process
    to a new one."""

    parent: int
    started: str


def listed() -> dict[int, Listed]:
    """The living processes, by their numbers; {} where the system has no list."""
    return from_proc() if (_PROC / "self/stat").exists() else from_ps()


def from_proc() -> dict[int, Listed]:
    """As Linux lists them."""
    processes = {}
    for entry in _PROC.iterdir():
        if entry.name.isdecimal():
            with suppress(OSError, ValueError, IndexError):  # it has just ended
                # The name in parentheses may have any characters.
                state, parent, *rest = (entry / "stat").read_bytes().rpartition(b")")[2].split()
                if state not in (b"Z", b"X"):
                    # The 22nd field of the line: when it started, in ticks since the machine did.
                    processes[int(entry.name)] = Listed(int(parent), rest[17].decode())
    return processes


def from_ps() -> dict[int, Listed]:
    """As other systems list them."""
    processes = dict[int, Listed]()
    try:
        done = subprocess.run(_PS, capture_output=True, stdin=subprocess.DEVNULL, timeout=_PS_S, check=True)  # noqa: S603 - the system's own program
    except (OSError, subprocess.SubprocessError):
        return processes
    for line in done.stdout.decode("utf-8", "replace").splitlines():
        with suppress(ValueError):
            pid, parent, state, *started = line.split()
            if not state.startswith("Z"):
                processes[int(pid)] = Listed(int(parent), " ".join(started))
    return processes


if __name__ == "__main__":
    main()
