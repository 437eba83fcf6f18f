"""The longest time in which the app can take no key while 2,000 recorded runs are checked on the Watch screen.

    python -m benchmarks --only watching_keys [--quick]

The real app at 120x40 without a terminal; the runs are made by a process of its own, as always. After each save of the
agent's file, the cursor moves over the runs as they come, and a task asks for its turn every millisecond. The figures
are processor time, so other work of the machine doesn't count.
"""

from __future__ import annotations

import asyncio
import gc
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from textual.pilot import Pilot

from agenteval_tui.cli.start import AppStart
from agenteval_tui.runs.change.model import CodeChange
from agenteval_tui.suites.projects import SCOPE
from agenteval_tui.tui.app import AgentevalApp
from agenteval_tui.tui.screens.watch import WatchScreen
from benchmarks.blocking import DUE_MS, KEY_S, turns
from benchmarks.table import Row
from benchmarks.terminal import environment_in
from benchmarks.watching import FUNCTION, MANY_TESTS, RUNS, made

_WAIT_S = 300.0


def run(quick: bool = False) -> list[Row]:
    """The longest time without reading a key, after saves that change no verdict and all of them."""
    gc.set_threshold(20_000, 50, 20)  # as the program does
    tests = 5 if quick else MANY_TESTS
    with tempfile.TemporaryDirectory() as folder:
        named = '{kind: python, callable: "agent.py:agent"}'
        file = made(Path(folder) / "project", "agent.py", FUNCTION.text, named, tests=tests, repeat=RUNS)
        suite, db = file.with_name("saved.suite.yaml"), Path(folder, "history.db")
        environment = {**environment_in(folder), SCOPE: "all", "AGENTEVAL_TRUST": "1"}
        command = [sys.executable, "-m", "agenteval_tui", "run", "--db", str(db), "--trust", str(suite)]
        subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=True)
        os.environ.update(environment)
        return asyncio.run(_measured(suite, db, file, tests * RUNS))


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
        for what, saved in (
            ("no verdict changes", f"{text}# saved\n"),
            ("all verdicts change", text.replace("way", "road")),
            ("all are as before", text),
        ):
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
