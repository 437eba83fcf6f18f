"""The processes that a process started, and those that they started, as the system lists them now."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from agenteval_tui.agents.process import orphan_reaper

_PROC = Path("/proc")
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
    processes = orphan_reaper.listed()
    return {Process(pid, processes[pid].started) for pid in orphan_reaper.below(set(roots), processes)}


class Footprint(Struct, frozen=True):
    """What a process started: the number of living processes, how many of those are levels that runs are forked from
    (`python_tree`), and their memory in MB. What they share counts once. None: the system doesn't say it."""

    processes: int
    levels: int
    mb: float | None


def footprint(pid: int) -> Footprint:
    """What a process, and all that it started, takes now."""
    processes = orphan_reaper.listed()
    pids = orphan_reaper.below({pid}, processes)
    # A level names itself, and what it forks has its name until that names itself: runs have the name of their level.
    names = {number: _read(number, "comm").strip() for number in (pid, *pids)}
    levels = sum(
        names[each].startswith("agenteval-") and names[each] != names.get(processes[each].parent, "") for each in pids
    )
    # Pss counts a page that n processes share as one nth for each: levels and their forks share nearly all.
    sizes = [match.group(1) for pid in pids if (match := _PSS.search(_read(pid, "smaps_rollup")))]
    return Footprint(len(pids), levels, sum(map(int, sizes)) / 1024 if sizes or not pids else None)


def work_of(pid: int) -> float | None:
    """The seconds that a process, and all that it started, have used the processor; None: the system doesn't say it.
    It reads what the system says of all processes: in an event loop, call it in a thread."""
    own = _processor_s(pid)
    # Looked at first: on a system that says nothing of it, all processes would be listed in vain.
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
    return set(processes) & {Process(pid, process.started) for pid, process in orphan_reaper.listed().items()}
