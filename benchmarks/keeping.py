"""Work with a large history: the History screen, and checking, pruning (half of it) and copying the file.

python -m benchmarks --only keeping [--quick]
"""

from __future__ import annotations

import asyncio
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from agenteval_tui.history.backup import copy_history
from agenteval_tui.history.maintenance import check, vacuum
from agenteval_tui.history.pruning import Pruning, prunable, prune
from agenteval_tui.history.store import Store
from benchmarks.history import filled
from benchmarks.table import Row

STEP_S = 0.0005  # the resolution of a moment
QUIET_S = 0.15  # without painting: the screen has its final state


def run(quick: bool = False) -> list[Row]:
    """All figures, with a separate history."""
    number = 5_000 if quick else 100_000
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ.update(AGENTEVAL_DATA_DIR=name, AGENTEVAL_CONFIG_DIR=name, AGENTEVAL_RUNTIME_DIR=name)
        path = folder / "history.db"
        filled(path, number).close()
        rows = asyncio.run(_on_the_screen(folder, path, number, 3 if quick else 15))
        rows += _looking_after(path, number)
    return rows


async def _on_the_screen(folder: Path, path: Path, number: int, times: int) -> list[Row]:
    """In the real app, without a terminal: the time from the key until the rows are painted."""
    from textual.widgets import Input

    from agenteval_tui.cli.app_start import AppStart
    from agenteval_tui.tui.app import AgentevalApp
    from agenteval_tui.tui.presenters.history_rows import PAGE
    from agenteval_tui.tui.screens.history.screen import HistoryScreen
    from agenteval_tui.tui.widgets.virtual_list import VirtualList

    painted = [0.0]

    app = AgentevalApp(AppStart(paths=(folder,), db=path))
    display = app._display

    def noted(screen: Any, renderable: Any) -> None:
        display(screen, renderable)
        painted[0] = time.perf_counter()

    app._display = noted  # type: ignore[method-assign]
    rows: list[Row] = []
    async with app.run_test(size=(140, 45)) as pilot:
        await pilot.pause()
        app.go("history")
        await _until(lambda: isinstance(app.screen, HistoryScreen) and app.screen.controller.rows is not None)
        screen = app.screen
        assert isinstance(screen, HistoryScreen)
        view = screen.query_one("#list", VirtualList)

        def complete() -> bool:
            """Whether every visible row is read."""
            source, top = screen.controller.rows, view.scroll_offset.y
            seen = range(top, min(top + view.size.height, view.count))
            return source is not None and view.source is source and all(source.has(one // PAGE) for one in seen)

        async def took(act: Callable[[], Callable[[], bool]]) -> float:
            began = time.perf_counter()
            done = act()
            await _until(lambda: done() and complete())
            there = time.perf_counter()
            # The last painting counts. It has happened if nothing was painted for a while.
            await _until(lambda: time.perf_counter() - max(painted[0], there) > QUIET_S)
            return (max(painted[0], there) - began) * 1e3

        def first() -> Callable[[], bool]:
            before = screen.controller.rows
            screen.controller.runs_of_all = True
            screen.reload()
            return lambda: screen.controller.rows is not before

        def next_page() -> Callable[[], bool]:
            view.action_page_down()
            return lambda: True

        places = iter(range(number // 3, number, number // 40))

        def anywhere() -> Callable[[], bool]:
            view.scroll_to(y=next(places), animate=False, force=True)
            return lambda: True

        words = iter(
            ["#W12", "order number ", "ab", "number 7", "outcome:failed", "agent:demo way", "test:test-3"] * times
        )

        def search() -> Callable[[], bool]:
            before = screen.controller.rows
            screen.query_one("#search", Input).value = next(words)
            return lambda: screen.controller.rows is not before

        for what, due, act in (
            ("first page of all runs", 40.0, first),
            ("next page", 16.0, next_page),
            ("a page anywhere", 0.0, anywhere),
            ("search or filter while typing", 60.0, search),
        ):
            figures = [await took(act) for _ in range(times)]
            middle = statistics.median(figures)
            said = f"{middle:.1f} ms (worst {max(figures):.1f})"
            reached = middle < due if due else None
            rows.append(Row(f"History screen, {number:,} runs: {what}", said, f"< {due:g} ms" if due else "", reached))
    return rows


async def _until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        if time.monotonic() > deadline:
            raise SystemExit("the screen never came to it")
        await asyncio.sleep(STEP_S)


def _looking_after(path: Path, number: int) -> list[Row]:
    rows = []
    for what, work in (
        ("check of the whole file", lambda: check(path)),
        ("copy of the history", lambda: copy_history(path, path.with_name("copy.db"), force=True)),
    ):
        began = time.perf_counter()
        work()
        took = time.perf_counter() - began
        rows.append(Row(f"{what}, {number:,} runs", f"{took:.1f} s", "", None))
    with Store.open(path) as store:
        half = Pruning(keep=number // 1000)  # 500 tests with 200 runs each
        began = time.perf_counter()
        found = prunable(store, half)
        looked = time.perf_counter() - began
        longest, last = 0.0, time.perf_counter()

        def told(at: int, of: int) -> bool:
            nonlocal longest, last
            now = time.perf_counter()
            longest, last = max(longest, now - last), now
            return False

        began = last = time.perf_counter()
        done = prune(store, found, told)
        took = time.perf_counter() - began
        said = f"{took:.1f} s ({done.runs / took:,.0f} runs a second; others wait {longest * 1e3:.0f} ms at most)"
        rows.append(Row(f"pruning: dry run, {number:,} runs", f"{looked:.2f} s", "", None))
        rows.append(Row(f"pruning {done.runs:,} of {number:,} runs", said, "", None))
        began = time.perf_counter()
        freed = vacuum(store)
        took = time.perf_counter() - began
        said = f"{took:.1f} s ({freed.before / 1e6:,.0f} → {freed.after / 1e6:,.0f} MB)"
        rows.append(Row("freeing the space (vacuum)", said, "", None))
    return rows
