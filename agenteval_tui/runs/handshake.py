"""A new process reports its start to the process that started it, as one line of JSON on a pipe."""

from __future__ import annotations

import contextlib
import json
import os
import select
import time
from collections.abc import Iterator

from msgspec import convert, to_builtins

from agenteval_tui.core.errors import INFRASTRUCTURE, AgentevalError, InfrastructureError
from agenteval_tui.runs.live_registry import Live


class Handshake:
    """The pipe of a new process. Sends only the first report. Descriptor -1: no process reads it."""

    def __init__(self, descriptor: int = -1) -> None:
        self._descriptor = -1
        with contextlib.suppress(OSError):
            os.set_inheritable(descriptor, False)  # else the reader would also wait for our own processes
            self._descriptor = descriptor

    @property
    def expected(self) -> bool:
        """Whether another process started this one and is about to watch it."""
        return self._descriptor >= 0

    def runs(self, live: Live) -> None:
        """Report that the process runs and can be watched."""
        self._say({"live": to_builtins(live)})

    def failed(self, error: AgentevalError) -> None:
        """Report why the process can't start."""
        plain = {"what": error.what, "where": error.where, "fix": error.fix, "exit_code": error.exit_code}
        self._say({"error": plain})

    def _say(self, message: object) -> None:
        if self._descriptor < 0:
            return
        with contextlib.suppress(OSError):  # the process that started this one may have ended
            os.write(self._descriptor, json.dumps(message).encode() + b"\n")
        with contextlib.suppress(OSError):
            os.close(self._descriptor)
        self._descriptor = -1


@contextlib.contextmanager
def handshake(descriptor: int) -> Iterator[Handshake]:
    """The pipe to the process that started this one, if it reads at `descriptor`. Reports an `AgentevalError`."""
    handshake = Handshake(descriptor)
    try:
        yield handshake
    except AgentevalError as error:
        handshake.failed(error)
        raise


def read_line(descriptor: int, timeout_s: float) -> bytes:
    """The line that the process writes to its pipe; incomplete if the process ends or the time is over."""
    # By `select`, since the writer may neither write nor end: a read would wait for ever.
    until = time.monotonic() + timeout_s
    line = b""
    while not line.endswith(b"\n"):
        remaining = until - time.monotonic()
        if remaining <= 0 or not select.select([descriptor], [], [], remaining)[0]:
            break
        piece = os.read(descriptor, 65_536)
        if not piece:
            break
        line += piece
    return line


def parse_line(line: bytes) -> Live:
    """The execution that was started. Raises the `AgentevalError` that its process reports, or another error if
    the line is neither."""
    data = json.loads(line)
    if "live" in data:
        return convert(data["live"], Live)
    error = data["error"]
    kind = InfrastructureError if error["exit_code"] == INFRASTRUCTURE else AgentevalError
    raise kind(error["what"], where=error["where"], fix=error["fix"])
