"""The longest time in which the app can take no key while somebody types in the config editor, with 200 stored runs.

    python -m benchmarks --only blocking [--quick]

The real app at 120x40 without a terminal. Keys come as fast as a quick person types, and a task asks for its turn every
millisecond. The figures are processor time, so other work of the machine doesn't count.
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

from textual import events
from textual.widgets import TextArea

from agenteval_tui.cli.app_start import AppStart
from agenteval_tui.core.garbage_collection import collect_less_often
from agenteval_tui.suites.projects import SCOPE
from agenteval_tui.tui.app import AgentevalApp
from benchmarks.keystrokes import suite_with
from benchmarks.table import Row
from benchmarks.terminal import environment_in

DUE_MS = 16
TICK_S, KEY_S, QUIET_S = 0.001, 0.06, 1.5
KINDS = (
    ("letters in a text", "a", "a"),
    ("deleting letters", "backspace", None),
    ("a bracket that breaks the config, and its repair", "delete,ctrl+z", None),
)  # fmt: skip


def run(quick: bool = False) -> list[Row]:
    """The longest times, and the usual ones."""
    collect_less_often()
    repeat, times = (20, 6) if quick else (200, 60)
    with tempfile.TemporaryDirectory() as folder:
        suite, db = Path(folder, "keystrokes.suite.yaml"), Path(folder, "history.db")
        suite.write_text(suite_with(repeat), encoding="utf-8")
        environment = {**environment_in(folder), SCOPE: "all"}
        command = [sys.executable, "-m", "agenteval_tui", "run", "--db", str(db), str(suite)]
        subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
        os.environ.update(environment)
        return asyncio.run(_measured(suite, db, repeat, times))


async def _measured(suite: Path, db: Path, repeat: int, times: int) -> list[Row]:
    app = AgentevalApp(AppStart(paths=(suite,), db=db))
    rows = []
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause(1.0)
        await pilot.pause(3.0)
        for key in ("g", "j", "enter", "e"):
            await pilot.press(key)
            await pilot.pause(1.0)
        editor = app.focused
        assert isinstance(editor, TextArea), editor
        await pilot.press("down", "down", "down", "end", "left", "left", "left", "left")
        await pilot.pause(QUIET_S)
        for what, keys, character in KINDS:
            before, held = editor.text, [0.0]
            watch = asyncio.create_task(turns(held))
            longest = []
            for _ in range(times // len(keys.split(","))):
                for key in keys.split(","):
                    held[0] = 0.0
                    app.post_message(events.Key(key, character))
                    await asyncio.sleep(KEY_S)
                    longest.append(held[0] * 1e3)
            held[0] = 0.0
            await asyncio.sleep(QUIET_S)  # the verdicts of all runs come after the typing
            longest.append(held[0] * 1e3)
            watch.cancel()
            if character and editor.text == before:
                raise SystemExit(f"nothing was typed: {editor.text}")
            worst = max(longest)
            said = f"{worst:.1f} ms (median {statistics.median(longest):.1f})"
            rows.append(Row(f"  {what}", said, f"< {DUE_MS} ms", worst < DUE_MS))
    head = f"longest time without reading a key in the config editor, {repeat} stored runs, 120x40"
    return [Row(head, f"{max(float(row.measured.split()[0]) for row in rows):.1f} ms", f"< {DUE_MS} ms",
                all(row.reached for row in rows)), *rows]  # fmt: skip


async def turns(held: list[float]) -> None:
    """Put into `held` the longest time between two turns, of the processor's time of this thread."""
    while True:
        began = time.thread_time()
        await asyncio.sleep(TICK_S)
        held[0] = max(held[0], time.thread_time() - began)
