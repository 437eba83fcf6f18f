"""Is the process that works on an execution still alive? Told from its number and the moment it started."""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path


def owner_name(pid: int | None = None) -> str:
    """A name of process `pid` (default: this one) that no other process will ever have: host/boot/pid/start."""
    number = os.getpid() if pid is None else pid
    return f"{_host()}/{_boot()}/{number}/{_start_of(number)}"


def is_alive(owner: str) -> bool:
    """Whether the process of that name is alive. A process on another machine can't be asked: counts as alive."""
    try:
        host, boot, number, start = owner.rsplit("/", 3)
        pid = int(number)
    except ValueError:
        return False
    if host != _host():
        return True
    if boot != _boot() or pid <= 0:
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        # It is there, and belongs to another user.
        pass
    # A number is given again to new processes: the moment of the start tells them apart (where /proc has it).
    return start == _start_of(pid)


@lru_cache(maxsize=1)
def _host() -> str:
    return os.uname().nodename


@lru_cache(maxsize=1)
def _boot() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return ""


def _start_of(pid: int) -> str:
    """Clock ticks from boot to the start of `pid`; "" where there is no /proc or no such process; a zombie is dead."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return ""
    # The name in parentheses may itself hold spaces and parentheses: count fields behind the last one.
    fields = stat.rpartition(b")")[2].split()
    if len(fields) < 20 or fields[0] in (b"Z", b"X"):
        return "dead"
    return fields[19].decode("ascii")
