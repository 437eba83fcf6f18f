"""A real pseudo-terminal for tests: starts a program in it, types, and keeps what it wrote, byte by byte."""

from __future__ import annotations

import codecs
import fcntl
import os
import pty
import select
import signal
import struct
import termios
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType

import pyte

ROOT = Path(__file__).resolve().parents[2]


class Terminal:
    """A program in a pseudo-terminal of `columns` x `rows`. Use as a context manager: it ends the program."""

    def __init__(
        self, argv: list[str], *, columns: int = 120, rows: int = 40, env: Mapping[str, str] | None = None
    ) -> None:
        self.screen = pyte.Screen(columns, rows)
        self._stream = pyte.Stream(self.screen)
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self.written = bytearray()
        size = struct.pack("HHHH", rows, columns, 0, 0)
        # COLUMNS and LINES (test runners set them) would be believed before the terminal's own size.
        inherited = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
        environment = {
            **inherited,
            "TERM": "xterm-256color",
            "COLORTERM": "truecolor",
            "TEXTUAL_ANIMATIONS": "none",
            "LANG": "C.UTF-8",
            "PYTHONPATH": str(ROOT),
            **(env or {}),
        }
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            try:
                fcntl.ioctl(0, termios.TIOCSWINSZ, size)
                os.execvpe(argv[0], argv, environment)
            finally:
                os._exit(127)

    def __enter__(self) -> Terminal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            os.kill(self.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        os.close(self.fd)
        os.waitpid(self.pid, 0)

    def read(self, wait: float = 0.05) -> bytes:
        """What arrives until nothing came for `wait` seconds."""
        got = bytearray()
        while select.select([self.fd], [], [], wait)[0]:
            try:
                data = os.read(self.fd, 1 << 16)
            except OSError:
                break
            if not data:
                break
            got += data
            # Textual asks whether the terminal can show frames at once: say yes, as modern ones do.
            if b"\x1b[?2026$p" in data:
                self.send("\x1b[?2026;2$y")
        self.written += got
        self._stream.feed(self._decoder.decode(bytes(got)))
        return bytes(got)

    def send(self, keys: str) -> None:
        """Type."""
        os.write(self.fd, keys.encode())

    def wait_for(self, condition: str | Callable[[Terminal], bool], timeout: float = 60.0) -> None:
        """Read until the screen shows the text (or the condition holds); fails after `timeout` seconds."""
        test = (lambda t: condition in t.text) if isinstance(condition, str) else condition
        end = time.monotonic() + timeout
        while not test(self):
            assert time.monotonic() < end, f"never came: {condition!r}; the screen:\n{self.text}"
            self.read(0.02)

    def settle(self, quiet: float = 0.4) -> None:
        """Read until nothing was written for `quiet` seconds."""
        while self.read(quiet):
            pass

    def bytes_for(self, keys: str, quiet: float = 0.25) -> int:
        """How many bytes the program writes in answer to `keys`: until nothing came for `quiet` seconds."""
        self.send(keys)
        select.select([self.fd], [], [], 5.0)
        total = 0
        while more := len(self.read(quiet)):
            total += more
        return total

    def wait_for_end(self, timeout: float = 60.0) -> None:
        """Read until the program has ended by itself; fails after `timeout` seconds."""
        end = time.monotonic() + timeout
        while os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
            assert time.monotonic() < end, f"it did not end; the screen:\n{self.text}"
            self.read(0.02)
        self.read(0.02)

    @property
    def text(self) -> str:
        """The screen's text."""
        return "\n".join(self.screen.display)
