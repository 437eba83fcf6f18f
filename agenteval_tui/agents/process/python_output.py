"""What the code of a run prints and logs, told as it comes. Runs in the child: only the standard library, of Python 3.8
or later.

Standard output and error are objects whose bytes go to whoever asks for them, or else to the descriptor, as those of
other programs and of C do. They are put in place before any module of the project is imported: a handler of `logging`
that keeps `sys.stderr` keeps one of these. Handlers stay as the project configured them: a record is seen where loggers
hand it to theirs, and what a handler prints of it is not told twice.
"""

from __future__ import annotations

import io
import os
import sys
import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agenteval_tui.agents.process.python_message import Tell

_MOST = 1_000_000  # bytes that are told; what comes then goes to the descriptor, where the end of it is kept
_LONGEST_RECORD = 8_000
_LONGEST_PIECE = 64_000  # bytes: of what is longer, the end is told
_HANDLERS = "callHandlers"

_tell: Tell | None = None
_written = 0
_pid = 0
_state = threading.local()


class _Raw(io.RawIOBase):
    def __init__(self, fd: int, source: str) -> None:
        self._fd, self._source = fd, source

    def fileno(self) -> int:
        return self._fd

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        data = bytes(data)
        if not _give(self._source, data):
            rest = data
            while rest:
                # A pipe may take a part of it.
                rest = rest[os.write(self._fd, rest) :]
        return len(data)


def replace_streams() -> None:
    """Put our standard output and error in the place of the interpreter's."""
    for fd, source in ((1, "stdout"), (2, "stderr")):
        raw: Any = _Raw(fd, source)
        stream = io.TextIOWrapper(
            io.BufferedWriter(raw), encoding="utf-8", errors="backslashreplace", line_buffering=True
        )
        setattr(sys, source, stream)
        # Libraries that restore streams take them from here.
        setattr(sys, "__" + source + "__", stream)


def begin(tell: Tell) -> None:
    """From now on, call `tell` with {"source", "text"} of all that is printed and logged. It returns False if nothing
    takes it."""
    global _tell, _written, _pid
    _written, _tell, _pid = 0, tell, os.getpid()
    logging: Any = sys.modules.get("logging")
    if hasattr(logging, "Logger"):  # a file of the project may have that name
        _watch(logging.Logger)


def end() -> None:
    """From now on, nothing takes what is printed."""
    global _tell
    flush()
    _tell = None


def flush() -> None:
    """Let go of what was printed without the end of its line."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except Exception:  # noqa: S110 - the agent closed or replaced it
            pass


def _teller() -> Tell | None:
    """What takes printed text now; None: nothing does. What a process prints that the agent forked goes to the
    descriptor."""
    if _tell is None or _written > _MOST or getattr(_state, "telling", False) or os.getpid() != _pid:
        return None
    return _tell


def _give(source: str, data: bytes) -> bool:
    """Whether somebody took it. What is printed while it is being told, by a handler of a signal, is not told."""
    global _written
    tell = _teller()
    if tell is None:
        return False
    text = data[-_LONGEST_PIECE:].decode("utf-8", "backslashreplace")
    record = getattr(_state, "record", "")
    if record and record in text:
        return True  # it is told as a record
    _written += len(data)
    # What telling itself prints would be told without end.
    _state.telling = True
    try:
        return tell({"source": source, "text": text}) is not False
    finally:
        _state.telling = False


def _watch(logger: Any) -> None:
    """See each record that a logger hands to its handlers, whether it has any or not."""
    original = getattr(logger, _HANDLERS)
    if getattr(original, "_agenteval", False):
        return

    def watched(self: Any, record: Any) -> object:
        global _written
        tell = _teller()
        if tell is None:
            return original(self, record)
        try:
            text = record.getMessage()
        except Exception:  # arguments that don't fit: logging says so on standard error
            return original(self, record)
        _written += len(text)
        _state.telling = True
        piece = {"source": "log", "text": text[:_LONGEST_RECORD], "level": record.levelname, "logger": record.name}
        try:
            # While its handlers print it, the same text is not told a second time.
            _state.record = "" if tell(piece) is False else text
        finally:
            _state.telling = False
        try:
            return original(self, record)
        finally:
            _state.record = ""

    watched._agenteval = True  # type: ignore[attr-defined]
    setattr(logger, _HANDLERS, watched)
