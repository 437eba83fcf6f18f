"""From start to the first usable frame, in a real pseudo-terminal, against an empty Textual app.

The frame counts as usable when the last line (the keys) is on the screen.
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
from fcntl import ioctl
from pathlib import Path
from termios import TIOCSWINSZ

from benchmarks.runs import suite_text
from benchmarks.table import Row

EMPTY_APP = (
    "from textual.app import App\n"
    "from textual.widgets import Static\n"
    "class Empty(App):\n"
    "    def compose(self):\n"
    "        yield Static('usable')\n"
    "Empty().run()\n"
)


def until_seen(command: list[str], seen: bytes, environment: dict[str, str]) -> tuple[float, float]:
    """The seconds from the start of `command` until its terminal received `seen`: wall time and processor time."""
    master, slave = pty.openpty()
    ioctl(slave, TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
    began = time.perf_counter()
    process = subprocess.Popen(
        command, stdin=slave, stdout=slave, stderr=slave, env=environment, start_new_session=True
    )
    os.close(slave)
    got = b""
    try:
        while seen not in got:
            ready, _, _ = select.select([master], [], [], 60.0)
            if not ready:
                raise TimeoutError(f"{command} showed nothing of {seen!r}")
            piece = os.read(master, 65536)
            got += piece
            if b"\x1b[?2026$p" in piece:
                os.write(master, b"\x1b[?2026;2$y")
        took = time.perf_counter() - began
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        _, process.returncode, used = os.wait4(process.pid, 0)
        os.close(master)
    return took, used.ru_utime + used.ru_stime


def seconds(arguments: list[str], environment: dict[str, str]) -> float:
    """How long a verb takes, from the start of its process to its end."""
    began = time.perf_counter()
    command = [sys.executable, "-m", "agenteval_tui", *arguments]
    subprocess.run(command, capture_output=True, check=True, env=environment)
    return time.perf_counter() - began


def tree_of_big_suite(tests: int, rounds: int, environment: dict[str, str]) -> list[Row]:
    """From the start to the tree, in a folder with a suite of this number of tests."""
    with tempfile.TemporaryDirectory() as folder:
        text = suite_text(tests, False).replace("kind: echo", "kind: demo")
        Path(folder, "big.suite.yaml").write_text(text, encoding="utf-8")
        command = [sys.executable, "-m", "agenteval_tui", "--db", str(Path(folder, "history.db")), folder]
        clock, processor = zip(*(until_seen(command, b"test-0", environment) for _ in range(rounds)), strict=True)
    took = statistics.median(clock)
    what = f"app: start to the tree, a suite of {tests:,} tests"
    measured = f"{took:.2f} s ({statistics.median(processor):.2f} s of processor time)"
    return [Row(what, measured, "< 1.3 s", took < 1.3)]


def middle(measured: list[tuple[float, float]]) -> tuple[float, float]:
    """The medians in milliseconds, without the first round: wall time and processor time."""
    clock, processor = zip(*measured[1:], strict=True)
    return statistics.median(clock) * 1000, statistics.median(processor) * 1000


def over_empty(what: str, took: tuple[float, float], floor: tuple[float, float]) -> Row:
    """How long it took, compared with an empty app."""
    more = took[0] - floor[0]
    measured = f"{took[0]:.0f} ms (+{more:.0f}; processor time +{took[1] - floor[1]:.0f})"
    return Row(what, measured, "<= empty app + 200 ms", more <= 200)


def run(quick: bool = False) -> list[Row]:
    """The medians. The rounds take turns, so that a busy moment affects both."""
    rounds = 3 if quick else 11
    ours, in_folder, empty, version, validate = [], [], [], [], []
    samples = Path(__file__).parents[1] / "sample_suites"
    sample = next(iter(sorted(samples.rglob("*.suite.yaml"))))
    with tempfile.TemporaryDirectory() as folder:
        environment = {
            **os.environ,
            "TERM": "xterm-256color",
            "COLORTERM": "truecolor",
            "AGENTEVAL_DATA_DIR": folder,
            "AGENTEVAL_CONFIG_DIR": folder,
            "AGENTEVAL_RUNTIME_DIR": folder,
        }
        agenteval = [sys.executable, "-m", "agenteval_tui"]
        for _ in range(rounds + 1):  # the first round warms the caches and is left out
            ours.append(until_seen([*agenteval, "demo"], b"help", environment))
            in_folder.append(until_seen([*agenteval, str(samples)], b"help", environment))
            empty.append(until_seen([sys.executable, "-c", EMPTY_APP], b"usable", environment))
            version.append(seconds(["--version"], environment))
            validate.append(seconds(["validate", str(sample)], environment))
        big = tree_of_big_suite(1_000 if quick else 10_000, 1 if quick else 5, environment)
    quickest, valid = (statistics.median(one[1:]) for one in (version, validate))
    floor = middle(empty)
    return [
        over_empty("app: start to first usable frame", middle(ours), floor),
        over_empty("app: start to first usable frame, a folder of suites", middle(in_folder), floor),
        Row("  an empty Textual app, same machine", f"{floor[0]:.0f} ms ({floor[1]:.0f} of processor time)", "", None),
        *big,
        Row("agenteval --version", f"{quickest * 1000:.0f} ms", "< 50 ms", quickest < 0.05),
        Row("agenteval validate, a sample suite", f"{valid * 1000:.0f} ms", "< 250 ms", valid < 0.25),
    ]
