"""The processes that a process started, and those that they started, as the system lists them now."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

_PROC = Path("/proc")
_PS = ("/bin/ps", "-A", "-o", "pid=,ppid=,stat=,lstart=")
_PS_S = 5.0
_CAUGHT = re.compile(r"^SigCgt:\t([0-9a-f]+)$", re.MULTILINE)
_PSS = re.compile(r"^Pss:\s+(\d+) kB", re.MULTILINE)


class Process(Struct, frozen=True):
    """A process: its number, and when it started. The system gives the number of an ended process to a new one."""

    pid: int
    started: str

    def send(self, number: signal.Signals) -> None:
        """Send it a signal, if it lives."""
        with suppress(OSError):
            os.kill(self.pid, number)


def descendants(roots: Iterable[int]) -> set[Process]:
    """The living processes that these processes (their numbers) started, and all that those started. A process whose
    parent has ended has no known ancestor, and is not found. Without a list of processes, there are none."""
    children: defaultdict[int, list[Process]] = defaultdict(list)
    for parent, process in _listed():
        children[parent].append(process)
    processes: set[Process] = set()
    waiting = list(roots)
    while waiting:
        new = set(children.pop(waiting.pop(), ())) - processes
        processes |= new
        waiting += [process.pid for process in new]
    return processes


class Footprint(Struct, frozen=True):
    """What a process started: the number of living processes, how many of those are levels that runs are forked from
    (`python_tree`), and their memory in MB. What they share counts once. None: the system doesn't say it."""

    processes: int
    levels: int
    mb: float | None


def footprint(pid: int) -> Footprint:
    """What a process, and all that it started, takes now."""
    parents = {process.pid: parent for parent, process in _listed()}
    pids = [descendant.pid for descendant in descendants([pid])]
    names = {number: _read(number, "comm").strip() for number in (pid, *pids)}
    levels = sum(
        names[pid].startswith("agenteval-") and names[pid] != names.get(parents.get(pid, 0), "") for pid in pids
    )
    sizes = [match.group(1) for pid in pids if (match := _PSS.search(_read(pid, "smaps_rollup")))]
    return Footprint(len(pids), levels, sum(map(int, sizes)) / 1024 if sizes or not pids else None)


def work_of(pid: int) -> float | None:
    """The seconds that a process, and all that it started, have used the processor; None: the system doesn't say it.
    It reads what the system says of all processes: in an event loop, call it in a thread."""
    own = _processor_s(pid)
    if own is None:
        return None
    return own + sum(filter(None, (_processor_s(process.pid) for process in descendants([pid]))))


def python_that_catches(pid: int, number: signal.Signals) -> int | None:
    """The first Python of a process and all that it started that does something else than to end at a signal; None:
    there is none, or the system doesn't say it. It reads what the system says of all processes, as `work_of` does."""
    for each in sorted({pid, *(process.pid for process in descendants([pid]))}):
        caught = _CAUGHT.search(_read(each, "status"))
        if caught is not None and int(caught[1], 16) >> (number - 1) & 1 and _executable(each).startswith("python"):
            return each
    return None


def _executable(pid: int) -> str:
    try:
        return (_PROC / str(pid) / "exe").readlink().name
    except OSError:
        return ""


def _processor_s(pid: int) -> float | None:
    # Of the fields behind the name, the 12th to 15th: its own, and that of those of its children that have ended.
    fields = _read(pid, "stat").rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK") if len(fields) > 15 else None


def _read(pid: int, name: str) -> str:
    try:
        return (_PROC / str(pid) / name).read_text("utf-8", "replace")
    except OSError:
        return ""


def living(processes: Iterable[Process]) -> set[Process]:
    """Those of these processes that have not ended."""
    return set(processes) & {process for _, process in _listed()}


def _listed() -> Iterator[tuple[int, Process]]:
    """All living processes, each with its parent."""
    return from_proc() if (_PROC / "self/stat").exists() else from_ps()


def from_proc() -> Iterator[tuple[int, Process]]:
    """As Linux lists them: (parent, process)."""
    for entry in _PROC.iterdir():
        if entry.name.isdecimal():
            with suppress(OSError, ValueError, IndexError):  # it has just ended
                # The name in parentheses may have any characters.
                state, parent, *rest = (entry / "stat").read_bytes().rpartition(b")")[2].split()
                if state not in (b"Z", b"X"):
                    # The 22nd field of the line: when it started, in ticks since the machine did.
                    yield int(parent), Process(int(entry.name), rest[17].decode())


def from_ps() -> Iterator[tuple[int, Process]]:
    """As other systems list them: (parent, process)."""
    try:
        done = subprocess.run(_PS, capture_output=True, stdin=subprocess.DEVNULL, timeout=_PS_S, check=True)  # noqa: S603 - the system's own program
    except (OSError, subprocess.SubprocessError):
        return
    for line in done.stdout.decode("utf-8", "replace").splitlines():
        with suppress(ValueError):
            pid, parent, state, *started = line.split()
            if not state.startswith("Z"):
                yield int(parent), Process(int(pid), " ".join(started))
