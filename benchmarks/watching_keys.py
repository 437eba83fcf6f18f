"""How long a key takes, and the longest time in which the app can take none, while 2,000 recorded runs are checked on
the Watch screen.

    python -m benchmarks --only watching_keys [--quick]

The program at 120x40 in a pseudo-terminal: from a key that moves the cursor until another run is the chosen one on the
screen. Then the same app without a terminal, where a task asks for its turn every millisecond; these figures are
processor time, so other work of the machine doesn't count. The runs are made by a process of its own, as always. After
each save of the agent's file, the cursor moves over the runs as they come.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from pyte import Screen
from textual.pilot import Pilot

from agenteval_tui.cli.app_start import AppStart
from agenteval_tui.core.garbage_collection import collect_less_often
from agenteval_tui.runs.change.model import CodeChange
from agenteval_tui.suites.projects import SCOPE
from agenteval_tui.tui.app import AgentevalApp
from agenteval_tui.tui.screens.watch import WatchScreen
from agenteval_tui.tui.widgets.virtual_list import CURSOR
from benchmarks.blocking import DUE_MS, KEY_S, turns
from benchmarks.keystrokes import DOWN, UP
from benchmarks.table import Row
from benchmarks.terminal import QUIET_S, Terminal, environment_in
from benchmarks.watching import FUNCTION, MANY_TESTS, RUNS, made

_WAIT_S = 300.0


def run(quick: bool = False) -> list[Row]:
    """The longest time without reading a key, after saves that change no verdict and all of them."""
    collect_less_often()
    tests = 5 if quick else MANY_TESTS
    with tempfile.TemporaryDirectory() as folder:
        named = '{kind: python, callable: "agent.py:agent"}'
        file = made(Path(folder) / "project", "agent.py", FUNCTION.text, named, tests=tests, repeat=RUNS)
        suite, db = file.with_name("saved.suite.yaml"), Path(folder, "history.db")
        environment = {**environment_in(folder), SCOPE: "all", "AGENTEVAL_TRUST": "1"}
        command = [sys.executable, "-m", "agenteval_tui", "run", "--db", str(db), "--trust", str(suite)]
        subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=True)
        runs = tests * RUNS
        program = [sys.executable, "-m", "agenteval_tui", "--db", str(db), str(suite)]
        with Terminal(program, environment) as terminal:
            rows = _in_terminal(terminal, file, runs)
        os.environ.update(environment)
        return [*rows, *asyncio.run(_measured(suite, db, file, runs))]


def _saves(text: str) -> tuple[tuple[str, str], ...]:
    """What each save changes, and what it leaves in the agent's file."""
    return (
        ("no verdict changes", f"{text}# saved\n"),
        ("all verdicts change", text.replace("way", "road")),
        ("all are as before", text),
    )


def _in_terminal(terminal: Terminal, file: Path, runs: int) -> list[Row]:
    text = file.read_text("utf-8")
    terminal.until("Saved")
    terminal.press("g")
    terminal.press("W", f"{runs:,} unchanged")
    terminal.press("F")  # unchanged runs are listed, too
    rows, times = [], list[float]()
    for what, saved in _saves(text):
        file.write_text(saved, "utf-8")
        end = time.monotonic() + _WAIT_S
        own: list[float] = []
        begun = False
        while not begun or "running" in terminal.text:
            begun = begun or "running" in terminal.text
            if time.monotonic() > end:
                raise TimeoutError(f"the check never ended:\n{terminal.text}")
            took = terminal.pressed(UP if len(own) % 3 == 2 else DOWN, KEY_S, _chosen)
            own.append(KEY_S * 1e3 if took is None else took)
        terminal.read(QUIET_S)
        times += own
        measured = f"{statistics.median(own):.1f} ms (95 % under {_most_of(own):.1f}, {len(own)} keys)"
        rows.append(Row(f"  {what}", measured, f"< {DUE_MS} ms", statistics.median(own) < DUE_MS))
    head = f"key on Watch until the cursor is painted, {runs:,} recorded runs are checked, 120x40"
    middle = statistics.median(times)
    return [Row(head, f"{middle:.1f} ms (95 % under {_most_of(times):.1f})", f"< {DUE_MS} ms", middle < DUE_MS), *rows]


def _most_of(times: list[float]) -> float:
    return sorted(times)[int(len(times) * 0.95)]


def _chosen(screen: Screen) -> str:
    """The row that the cursor is on."""
    return next((line[:60] for line in screen.display if line.startswith(CURSOR)), "")


async def _measured(suite: Path, db: Path, file: Path, runs: int) -> list[Row]:
    text = file.read_text("utf-8")
    rows = []
    app = AgentevalApp(AppStart(paths=(suite,), db=db))
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause(2.0)
        await pilot.press("g", "W")  # of the whole suite
        screen = await _watch_screen(app)
        before = await _change_after(screen, None)
        await pilot.press("F")  # unchanged runs are listed, too
        for what, saved in _saves(text):
            file.write_text(saved, "utf-8")
            longest, keys, before = await _while_checked(pilot, screen, before)
            assert len(before.runs) == runs, before.error
            worst = max(longest)
            measured = f"{worst:.1f} ms (median {statistics.median(longest):.1f}, {keys} keys)"
            rows.append(Row(f"  {what}", measured, f"< {DUE_MS} ms", worst < DUE_MS))
    worst = max(float(row.measured.split()[0]) for row in rows)
    head = f"longest time without reading a key on Watch, {runs:,} recorded runs are checked, 120x40"
    return [Row(head, f"{worst:.1f} ms", f"< {DUE_MS} ms", worst < DUE_MS), *rows]


async def _watch_screen(app: AgentevalApp) -> WatchScreen:
    async with asyncio.timeout(_WAIT_S):
        while not isinstance(app.screen, WatchScreen):
            await asyncio.sleep(KEY_S)
        return app.screen


async def _change_after(screen: WatchScreen, before: CodeChange | None) -> CodeChange:
    """The next change that is shown."""
    async with asyncio.timeout(_WAIT_S):
        while (last := screen.controller.change) is before or last is None:
            await asyncio.sleep(KEY_S)
        return last


async def _while_checked(
    pilot: Pilot[int], screen: WatchScreen, before: CodeChange
) -> tuple[list[float], int, CodeChange]:
    """The longest time without a turn between each two keys, in milliseconds, until the next change is shown and for a
    second after it; the number of keys; the change."""
    held = [0.0]
    watch = asyncio.create_task(turns(held))
    ended = asyncio.create_task(_change_after(screen, before))
    longest = []
    until = time.monotonic() + _WAIT_S
    keys = 0
    while time.monotonic() < until:
        held[0] = 0.0
        pilot.app.simulate_key("down" if keys % 3 else "up")
        keys += 1
        await asyncio.sleep(KEY_S)
        longest.append(held[0] * 1e3)
        if ended.done():
            until = min(until, time.monotonic() + 1.0)
    watch.cancel()
    return longest, keys, await ended
