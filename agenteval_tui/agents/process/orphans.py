"""What shall not outlive this process: programs that it started, and folders with secrets.

Who leaves normally ends and removes them itself. This is for a process that is killed (`kill -9`, or no memory): then
`orphan_reaper` does it, a separate process that starts with the first program.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import uuid
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Literal

from agenteval_tui.agents.process.orphan_reaper import end, having

_REAPER = Path(__file__).with_name("orphan_reaper.py")
Kind = Literal["group", "tree", "folder", "start"]
VARIABLE = "AGENTEVAL_STARTED_AS"
"""In a program's environment: by its value the reaper finds it, where we were killed before we knew its number."""


class _Reaper:
    def __init__(self) -> None:
        self._changing = threading.RLock()
        self._left: dict[str, None] = {}
        self._process: subprocess.Popen[bytes] | None = None
        self._owner = 0

    def add(self, what: str) -> None:
        with self._changing:
            # First what is left, then the line: a reaper that is started here gets all of it.
            self._left[what] = None
            if not self._tell(f"+{what}\n"):
                self._start()

    def remove(self, what: str) -> None:
        with self._changing:
            if what in self._left:
                del self._left[what]
                self._tell(f"-{what}\n")

    def _tell(self, line: str) -> bool:
        # A fork has the pipe of its parent's reaper: what it said there would be its parent's.
        if self._process is None or self._process.stdin is None or self._owner != os.getpid():
            return False
        try:
            os.write(self._process.stdin.fileno(), os.fsencode(line))
        except OSError:
            return False  # it was killed
        return True

    def _start(self) -> None:
        if self._process is not None and self._process.stdin is not None:
            with suppress(OSError):
                # The end of the pipe ends the reaper before, if it still runs, and `poll` takes its exit code.
                self._process.stdin.close()
            self._process.poll()
        if self._owner != os.getpid():
            self._left = dict([list(self._left.items())[-1]])  # a fork: what was there is its parent's
        self._owner = os.getpid()
        try:
            # In a session of its own: neither Ctrl+C nor the end of a terminal or a group ends it before us.
            self._process = subprocess.Popen(  # noqa: S603 - our own program
                [sys.executable, "-I", "-S", str(_REAPER)],
                # Its input is the only thing that it shares with us; an output that it kept open would hold up whoever
                # reads ours.
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd="/",
                bufsize=0,
                start_new_session=True,
            )
        except OSError:
            self._process = None  # too many processes: what was started runs all the same
            return
        for what in self._left:
            self._tell(f"+{what}\n")


_reaper = _Reaper()


def ends_with_us(kind: Kind, what: int | str | Path) -> None:
    """If this process is killed, a program is ended: its `group`, or a `tree`: it with all that it started; or a
    `folder` is removed. Say `is_over` when there is nothing to end any more."""
    _reaper.add(f"{kind} {what}")


def marked(env: Mapping[str, str]) -> tuple[dict[str, str], str]:
    """The environment of a program that is about to be started, and the mark in it. Once `ends_with_us` was said of the
    program, or it could not be started, the "start" of this mark `is_over`."""
    mark = uuid.uuid4().hex
    _reaper.add(f"start {mark}")
    return {**env, VARIABLE: mark}, mark


def end_marked(mark: str, first: int = 0) -> None:
    """End all programs with this mark in their environment that still run; then its "start" is over. `first`: the
    first one to start. Reads /proc."""
    leftover = having([os.fsencode(f"{VARIABLE}={mark}")], first)
    if leftover:
        end(set(), leftover)
    is_over("start", mark)


def is_over(kind: Kind, what: int | str | Path) -> None:
    """It has ended, or was removed."""
    _reaper.remove(f"{kind} {what}")
