"""Small programs for tests, and what is left of them."""

from __future__ import annotations

import asyncio
import os
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path


def script(folder: Path, body: str, name: str = "agent.py") -> list[str]:
    """The command that runs a Python program with this body."""
    (folder / name).write_text(textwrap.dedent(body), encoding="utf-8")
    return [sys.executable, name]


def executable(path: Path, body: str) -> Path:
    """A file that may be executed."""
    path.write_text(body, encoding="utf-8")
    path.chmod(0o755)
    return path


def lives(pid: int) -> bool:
    """Whether a process runs (one that ended and was not waited for does not)."""
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return not Path("/proc/self").exists()
    except ProcessLookupError:
        return False


async def until(condition: Callable[[], bool], what: str) -> None:
    """Wait for something that must come."""
    end = time.monotonic() + 250
    while not condition():
        assert time.monotonic() < end, f"{what} did not happen"
        await asyncio.sleep(0.01)
