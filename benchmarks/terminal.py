"""The bytes that the app sends to the terminal for a key and while idle, and its memory, with 100,000 stored runs.

Real pseudo-terminals of 120x40 and 200x60. A figure of bytes is the median over single keys; each key waits until the
answer to the last key is complete.
"""

from __future__ import annotations

import os
import pty
import select
import signal
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from fcntl import ioctl
from pathlib import Path
from termios import TIOCSWINSZ
from types import TracebackType

import pyte
from pyte import Screen

from benchmarks.history import filled
from benchmarks.table import Row

QUIET_S = 0.25
IDLE_S = 5.0
REPEAT_S = 0.033
HELD = 60  # keys
SAMPLES = Path(__file__).parents[1] / "sample_suites" / "recorded"
MOVE, EDIT, MEMORY = 500, 1_000, 120  # bytes, bytes, MB


class Terminal:
    """A program in a pseudo-terminal, with its output. Use it as a context manager, which ends the program."""

    def __init__(self, command: list[str], environment: Mapping[str, str], columns: int = 120, rows: int = 40) -> None:
        self._master, slave = pty.openpty()
        ioctl(slave, TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.process = subprocess.Popen(
            command, stdin=slave, stdout=slave, stderr=slave, env=environment, start_new_session=True
        )
        os.close(slave)
        self.screen = pyte.Screen(columns, rows)
        self._stream = pyte.ByteStream(self.screen)
        self._unseen: list[bytes] = []

    def __enter__(self) -> Terminal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        os.close(self._master)

    def read(self, quiet: float) -> tuple[bytes, float]:
        """The output until there was none for `quiet` seconds, and the time of its last byte."""
        got, last = b"", time.perf_counter()
        while select.select([self._master], [], [], quiet)[0]:
            try:
                piece = os.read(self._master, 65536)
            except OSError:
                break
            got += piece
            self._unseen.append(piece)
            last = time.perf_counter()
            if b"\x1b[?2026$p" in piece:
                os.write(self._master, b"\x1b[?2026;2$y")
        return got, last

    def until(self, seen: str) -> None:
        """Read until the screen shows this text, and the output pauses."""
        end = time.monotonic() + 60
        while seen not in self.text:
            if time.monotonic() > end:
                raise TimeoutError(f"the app never showed {seen!r}:\n{self.text}")
            self.read(0.02)
        self.read(QUIET_S * 2)

    def opened(self, key: str, seen: str, quiet: float) -> tuple[float, float]:
        """The milliseconds from a key until the screen shows this text, and until the last byte of the answer. The
        answer ends if there is no output for `quiet` seconds."""
        _ = self.text
        shown = last = 0.0
        began = time.perf_counter()
        os.write(self._master, key.encode())
        while not shown:
            pieces: list[tuple[float, bytes]] = []
            while select.select([self._master], [], [], quiet)[0]:
                pieces.append((time.perf_counter(), os.read(self._master, 65536)))
            for at, piece in pieces:
                self._unseen.append(piece)
                last = (at - began) * 1e3
                if not shown and seen in self.text:
                    shown = last
            if not shown and time.perf_counter() - began > 60:
                raise TimeoutError(f"the app never showed {seen!r}:\n{self.text}")
        return shown, last

    @property
    def text(self) -> str:
        """The present text of the screen."""
        # Not while something is timed: making a screen from the output takes longer than writing it.
        for piece in self._unseen:
            self._stream.feed(piece)
        self._unseen.clear()
        return "\n".join(self.screen.display)

    def press(self, keys: str, seen: str = "") -> None:
        """Type, and wait for the answer."""
        os.write(self._master, keys.encode())
        if seen:
            self.until(seen)
        else:
            self.read(QUIET_S * 2)

    def answers(self, keys: list[str], quiet: float = QUIET_S) -> list[tuple[int, float, float]]:
        """For each key, the bytes of its answer, and the milliseconds until the first and the last byte. An answer ends
        if there is no output for `quiet` seconds."""
        found = []
        for key in keys:
            began = time.perf_counter()
            os.write(self._master, key.encode())
            select.select([self._master], [], [], 5.0)
            first = time.perf_counter()
            got, last = self.read(quiet)
            found.append((len(got), (first - began) * 1e3, max(last - began, 0.0) * 1e3))
        return found

    def pressed(self, key: str, seconds: float, seen: Callable[[Screen], object]) -> float | None:
        """The milliseconds from a key until what is `seen` on the screen is another than before, with output that comes
        meanwhile for other reasons; None: it was not for so many seconds."""
        _ = self.text
        before, pieces = seen(self.screen), list[tuple[float, bytes]]()
        began = time.perf_counter()
        os.write(self._master, key.encode())
        while (left := began + seconds - time.perf_counter()) > 0:
            if select.select([self._master], [], [], left)[0]:
                pieces.append((time.perf_counter(), os.read(self._master, 65536)))
        shown = None
        for at, piece in pieces:
            self._stream.feed(piece)
            if shown is None and seen(self.screen) != before:
                shown = (at - began) * 1e3
        return shown

    def cost(self, keys: list[str], quiet: float = QUIET_S) -> tuple[list[int], list[float]]:
        """For each key, the bytes and the milliseconds until the last byte of its answer, as in `answers`."""
        found = self.answers(keys, quiet)
        return [size for size, _, _ in found], [last for _, _, last in found]

    def held(self, keys: list[str]) -> float:
        """The bytes for each key while keys come as fast as a keyboard repeats them. The first key and the output after
        the last key don't count, because they are like single keys."""
        total = 0
        os.write(self._master, b"j")
        self.read(REPEAT_S)
        for key in keys:
            os.write(self._master, key.encode())
            end = time.perf_counter() + REPEAT_S
            while (left := end - time.perf_counter()) > 0:
                if select.select([self._master], [], [], left)[0]:
                    piece = os.read(self._master, 65536)
                    self._unseen.append(piece)
                    total += len(piece)
        self.read(QUIET_S * 2)
        return total / len(keys)


def environment_in(folder: str) -> dict[str, str]:
    """The environment for a program in a true-colour terminal, with all its folders in `folder`."""
    return {
        **{one: value for one, value in os.environ.items() if one not in ("COLUMNS", "LINES", "NO_COLOR")},
        "TERM": "xterm-256color",
        "COLORTERM": "truecolor",
        **{f"AGENTEVAL_{one}_DIR": folder for one in ("DATA", "CONFIG", "RUNTIME")},
    }


def memory_mb(pid: int) -> float:
    """The peak memory of a process."""
    status = Path(f"/proc/{pid}/status").read_text("utf-8")
    return next(int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith("VmHWM"))


def _bytes(what: str, sizes: list[int], due: int) -> Row:
    middle = statistics.median(sizes)
    return Row(what, f"{middle:,.0f} bytes (most {max(sizes):,})", f"< {due:,}", middle < due)


def _held(what: str, app: Terminal, keys: int) -> Row:
    held = app.held((["j", "k"] * keys)[:keys])
    return Row(what, f"{held:,.0f} bytes", f"< {MOVE:,}", held < MOVE)


def beside(screen: str, app: Terminal, times: int) -> list[Row]:
    """A list beside a pane that follows the cursor: the bytes with a held key, and with single keys."""
    first = _held(f"cursor move, {screen}, a key held", app, HELD)
    sizes = app.cost((["j", "k"] * times)[:times])[0]
    return [
        first,
        Row("  one move, with the pane beside it", f"{statistics.median(sizes):,.0f} bytes", "", None),
    ]


def run(quick: bool = False) -> list[Row]:
    """All figures, of one app on one history."""
    number, times = (2_000, 4) if quick else (100_000, 15)
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        db = folder / "history.db"
        filled(db, number).close()
        environment = environment_in(name)
        program = [sys.executable, "-m", "agenteval_tui", "--db", str(db)]
        verb = [sys.executable, "-m", "agenteval_tui", "run", "--db", str(db), str(SAMPLES)]
        subprocess.run(verb, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
        with Terminal([*program, str(SAMPLES)], environment) as app:
            app.until("customers-austria")
            app.press("l")
            down = ["j"] * times
            rows += beside("Suites", app, times)
            app.press("5", "history")
            rows += beside("History: executions", app, times)
            app.press("\t", "run")
            sizes, took = app.cost(down)
            rows.append(_bytes(f"cursor move, History: {number:,} runs", sizes, MOVE))
            rows.append(Row("  the same, until it is painted", f"{statistics.median(took):.1f} ms", "", None))
            took = app.cost(["G", "g"] * (times // 2))[1]
            rows.append(Row("  to the last row, and back", f"{statistics.median(took):.1f} ms", "", None))
            app.press("8", "agents")
            rows += beside("Agents", app, times)
            app.press("2", "cancel-delivered")
            rows += beside("Editor: tests", app, times)
            app.press("1", "suites")
            app.press("gj\r", "transcript")
            rows.append(_bytes("cursor move, Inspect: transcript", app.cost((["j", "k"] * times)[:times])[0], MOVE))
            app.press("e")
            app.press("\x1b[B\x1b[B")
            rows.append(_bytes("key in the config editor, 120x40", app.cost(list("abcdefghijklmno")[:times])[0], EDIT))
            app.read(6.0)  # until the last notification is gone
            sent = len(app.read(IDLE_S)[0])
            rows.append(Row("5 s without a key", f"{sent} bytes", "0", sent == 0))
            used = memory_mb(app.process.pid)
        with Terminal([*program, str(SAMPLES)], environment, 200, 60) as app:
            app.until("agents")
            app.press("1", "customers-austria")
            rows.append(_held("cursor move, Suites, a key held, 200x60", app, HELD))
            app.press("5", "started")
            app.read(1.0)
            app.press("\t", "why, or")
            app.read(2.0)
            rows.append(_bytes(f"cursor move, History: {number:,} runs, 200x60", app.cost(down)[0], MOVE))
        what = f"memory of the app after all this, {number:,} runs stored"
        rows.append(Row(what, f"{used:.0f} MB", f"< {MEMORY} MB", used < MEMORY))
    return rows
