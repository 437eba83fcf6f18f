"""How long a process may take until it is ready: imports may work long, and not wait long."""

from __future__ import annotations

import asyncio
import signal
import time
from pathlib import Path

from agenteval_tui.agents.process.child_process import GRACE_S
from agenteval_tui.agents.process.process_tree import work_of
from agenteval_tui.agents.process.python_host import HostProcess, RaisedError
from agenteval_tui.agents.process.traceback_text import frames_in_dump
from agenteval_tui.transcripts.traceback import RaisedException, Traceback, raised_words

START_S = 120.0
"""Imports, and what an agent is made with, may take this long."""
STILL_S = 20.0
"""They may do nothing for this long: nothing of the process, or of what it started, has used the processor."""
_LOOK_S = 1.0
_LEAST_S = 0.02  # of the processor: threads that look after something now and then do not count as work
_DUMP_S = 0.2


class StartWatch:
    """Ends a process that doesn't get ready. First it is asked where it is, which Python answers with an exception;
    code of C that doesn't let Python answer is asked with SIGQUIT, at which `faulthandler` writes where it is."""

    def __init__(self, program: HostProcess) -> None:
        self._program = program
        self._began = time.monotonic()
        self._task: asyncio.Task[None] | None = None
        loop = asyncio.get_running_loop()
        # A process that is ready soon, as nearly all are, costs no task and no look at the list of processes.
        self._timer = loop.call_later(min(_LOOK_S, START_S, STILL_S), self._begin)
        self.expired_s: float | None = None
        """After how many seconds without being ready, or without any work, it was ended; None: it was not."""
        self.had_to_kill = False
        """Whether it did not answer when it was interrupted: code of C held it."""

    def close(self) -> None:
        """It is ready, or has ended."""
        self._timer.cancel()
        if self._task is not None:
            self._task.cancel()

    def _begin(self) -> None:
        self._task = asyncio.create_task(self._watch())

    async def _watch(self) -> None:
        self.expired_s = await self._too_long()
        self._program.interrupt()
        await asyncio.sleep(GRACE_S)
        self.had_to_kill = True
        self._program.interrupt(signal.SIGQUIT)
        await asyncio.sleep(_DUMP_S)
        self._program.interrupt(signal.SIGKILL)

    async def _too_long(self) -> float:
        before, since = await asyncio.to_thread(work_of, self._program.pid), time.monotonic()
        while True:
            now = time.monotonic()
            if now - self._began >= START_S:
                return START_S
            work = await asyncio.to_thread(work_of, self._program.pid)
            # Without figures of the system, only the whole time counts.
            if work is None or before is None or work - before >= _LEAST_S:
                before, since = work, now
            elif now - since >= STILL_S:
                return STILL_S
            await asyncio.sleep(min(_LOOK_S, START_S, STILL_S))


def held_error(kind: str, message: str, stderr: str, folder: Path) -> RaisedError:
    """The error of a process that had to be killed. Where it was, it wrote before."""
    message += ", and could not be interrupted"
    traceback = Traceback((RaisedException(kind, message, frames_in_dump(stderr, folder, fatal=False)),))
    return RaisedError(raised_words(traceback), kinds=(kind,), reduced=f"{kind}: {message}", traceback=traceback)
