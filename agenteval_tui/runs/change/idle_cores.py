"""How long the machine's cores have been idle."""

from __future__ import annotations

import os
from pathlib import Path

_STAT = Path("/proc/stat")
_IDLE = slice(4, 6)  # of the first line, which is that of all cores: idle, and idle while a disk is waited for


def idle_s() -> float | None:
    """The seconds that all cores together have been idle since the start of the machine; None: not known."""
    try:
        with _STAT.open("rb") as stat:
            ticks = sum(map(int, stat.readline().split()[_IDLE]))
        return ticks / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError):
        return None
