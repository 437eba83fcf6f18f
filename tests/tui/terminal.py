"""A real pseudo-terminal for tests: starts a program in it, types, and keeps what it wrote, byte by byte."""

from __future__ import annotations

import codecs
import fcntl
import os
import pty
import re
import select
import signal
import struct
import sys
import termios
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType

import pyte
from prestarted import Prestarted, start
from pyte.charsets import LAT1_MAP
from pyte.modes import IRM
from pyte.screens import Char
from wcwidth import wcwidth

ROOT = Path(__file__).resolve().parents[2]
# Colours are most of what a program writes, and nobody asks for those of the screen here.
COLOURS = re.compile(r"\x1b\[[0-9;:]*m")
# The cursor is put somewhere, and then asked for.
ASKED = re.compile(rb"\x1b\[(\d+);(\d+)H\x1b\[6n")
# What may be the beginning of a colour, whose end is still to come.
BEGUN = re.compile(r"\x1b(?:\[[0-9;:]*)?\Z")

LATE_S = 0.5
"""What a program wrote last may be on its way still when it has ended, where the machine is busy. The terminal's end
comes behind it, unless another process keeps that open."""


class Cells(dict[str, Char | None]):
    """The cell for each character that fills exactly one; None for the others."""

    def __missing__(self, char: str) -> Char | None:
        self[char] = Char(char) if wcwidth(char) == 1 else None
        return self[char]


class Screen(pyte.Screen):
    """pyte's screen without colours, with a quick way for what is drawn most: plain text that fits into its line."""

    cells = Cells()

    def draw(self, data: str) -> None:
        """Put text at the cursor."""
        x = self.cursor.x
        cells = [self.cells[char] for char in data]
        plain = self.charset == 0 and self.g0_charset == LAT1_MAP and IRM not in self.mode
        if not plain or None in cells or x + len(cells) > self.columns:
            super().draw(data)
            return
        self.buffer[self.cursor.y].update(zip(range(x, x + len(cells)), cells, strict=True))
        self.cursor.x = x + len(cells)
        self.dirty.add(self.cursor.y)


class Terminal:
    """A program in a pseudo-terminal of `columns` x `rows`. Use as a context manager: it ends the program."""

    def __init__(
        self,
        argv: list[str],
        *,
        columns: int = 120,
        rows: int = 40,
        env: Mapping[str, str] | None = None,
        prestarted: bool = True,
    ) -> None:
        """`prestarted`: a Python that has imported the program already may run it (see servers/prestarted.py)."""
        self.screen = Screen(columns, rows)
        self._stream = pyte.Stream(self.screen)
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._begun = ""
        self._asking = b""
        self.says_where = True  # the cursor is, when it is asked
        self.asked_for = (0, 0)  # where it was when it was asked last
        self.written = bytearray()
        self.closed = False  # by the program, and all that it wrote is here
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
        self._prestarted: Prestarted | None = None
        if prestarted and argv[0] == sys.executable:
            self.fd, end = os.openpty()
            fcntl.ioctl(end, termios.TIOCSWINSZ, size)
            self._prestarted = start(argv[1:], environment, [end] * 3, terminal=True)
            os.close(end)
            if self._prestarted is not None:
                self.pid = self._prestarted.pid
                return
            os.close(self.fd)
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            try:
                signal.signal(signal.SIGHUP, signal.SIG_DFL)  # as in a shell, also where tests run under nohup
                fcntl.ioctl(0, termios.TIOCSWINSZ, size)
                os.execvpe(argv[0], argv, environment)
            finally:
                os._exit(127)

    def __enter__(self) -> Terminal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.exit_code() is None:
            os.kill(self.pid, signal.SIGKILL)
        if self.fd >= 0:
            self.hang_up()
        if self._prestarted is not None:
            self._prestarted.wait()
        else:
            os.waitpid(self.pid, 0)

    def hang_up(self) -> None:
        """Take the terminal away. The kernel sends SIGHUP to the programs whose controlling terminal it is."""
        os.close(self.fd)
        self.fd, self.closed = -1, True

    def read(self, wait: float = 0.05) -> bytes:
        """What arrives until nothing came for `wait` seconds."""
        if self.closed:
            time.sleep(wait)  # whoever waits for the program's end does not keep it from that
        got = bytearray()
        while not self.closed and select.select([self.fd], [], [], wait)[0]:
            try:
                data = os.read(self.fd, 1 << 16)
            except OSError:
                data = b""
            if not data:
                self.closed = True
                break
            got += data
            # Textual asks whether the terminal can show frames at once: say yes, as modern ones do.
            if b"\x1b[?2026$p" in data:
                self.send("\x1b[?2026;2$y")
            # Our program asks behind a picture where the cursor is, to know that the picture is there.
            behind = self._asking + data
            for asked in ASKED.finditer(behind):
                if asked.end() > len(self._asking):
                    self.asked_for = (int(asked[1]), int(asked[2]))
                    if self.says_where:
                        self.say_where()
            self._asking = behind[-24:]
        self.written += got
        text = COLOURS.sub("", self._begun + self._decoder.decode(bytes(got)))
        begun = BEGUN.search(text)
        self._begun = begun[0] if begun else ""
        self._stream.feed(text[: len(text) - len(self._begun)])
        return bytes(got)

    def say_where(self) -> None:
        """Answer the last question: the cursor was put there just before it."""
        row, column = self.asked_for
        self.send(f"\x1b[{row};{column}R")

    def send(self, keys: str) -> None:
        """Type."""
        os.write(self.fd, keys.encode())

    def wait_for(self, condition: str | Callable[[Terminal], bool], timeout: float = 250.0, *, what: str = "") -> None:
        """Read until the screen shows the text (or the condition holds); fails after `timeout` seconds.

        And at once when the program has ended meanwhile. `what` is what the failure says that was waited for.
        """
        test = (lambda t: condition in t.text) if isinstance(condition, str) else condition
        end = time.monotonic() + timeout
        while not test(self):
            ended = self.exit_code() is not None and not self.read(LATE_S)
            assert not ended or test(self), (
                f"it ended, and this never came: {what or condition!r}; the screen:\n{self.text}"
            )
            assert time.monotonic() < end, f"never came: {what or condition!r}; the screen:\n{self.text}"
            # To look at a whole screen takes as long as to draw it: for a text only when there is something new.
            while (
                not self.read(0.02)
                and isinstance(condition, str)
                and time.monotonic() < end
                and self.exit_code() is None
            ):
                pass

    def exit_code(self) -> int | None:
        """What the program ended with (after a signal: its number, negative). None while it runs."""
        if self._prestarted is not None:
            return self._prestarted.poll()
        ended = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        if ended is None:
            return None
        return ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status

    def press(self, *keys: str) -> None:
        """Type keys one by one: the next when the program has done what it does about the one before."""
        for key in keys:
            end = time.monotonic() + 250
            before, _ = self._worked(main=True)
            self.send(key)
            while before and self._worked(main=True) == (before, False):
                assert time.monotonic() < end, f"nobody reads {key!r}; the screen:\n{self.text}"
                self.read(0.002)
            # An escape alone is a key only when nothing follows it, which the toolkit looks at ten times a second.
            self.settle(0.25 if not before else 0.15 if key == "\x1b" else 0.03)

    def settle(self, quiet: float = 0.4) -> None:
        """Read until nothing was written for `quiet` seconds in which the program had nothing to do.

        That it wrote nothing is not enough on a busy machine: it may not have had its turn.
        """
        while True:
            before, _ = self._worked()
            written = self.read(quiet)
            after, wants = self._worked()
            # Some threads look every now and then whether there is something to do.
            if not written and not wants and after - before < (0.001 + 0.02 * quiet) * 1e9:
                return

    def _worked(self, main: bool = False) -> tuple[int, bool]:
        """For how many nanoseconds the program's threads (or its main one) ran; whether one of them would like to."""
        spent, wants = 0, False
        tasks = f"/proc/{self.pid}/task"
        try:
            names = [str(self.pid)] if main else os.listdir(tasks)
        except OSError:
            names = []  # it has ended, or this is no Linux
        for name in names:
            try:
                with open(f"{tasks}/{name}/schedstat", "rb", buffering=0) as schedstat:
                    spent += int(schedstat.read().split()[0])
                with open(f"{tasks}/{name}/stat", "rb", buffering=0) as stat:
                    wants |= stat.read().rpartition(b")")[2].split()[0] in b"RD"
            except (OSError, IndexError):
                pass  # it has just ended, or this is no Linux
        return spent, wants

    def bytes_for(self, key: str) -> int:
        """How many bytes the program writes in answer to `key`."""
        before = len(self.written)
        self.press(key)
        return len(self.written) - before

    def wait_for_end(self, timeout: float = 250.0) -> None:
        """Read until the program has ended by itself, and what it wrote is here; fails after `timeout` seconds."""
        end = time.monotonic() + timeout
        while self.exit_code() is None:
            assert time.monotonic() < end, f"it did not end; the screen:\n{self.text}"
            self.read(0.02)
        while not self.closed and self.read(LATE_S):
            pass

    @property
    def text(self) -> str:
        """The screen's text."""
        return "\n".join(self.screen.display)
