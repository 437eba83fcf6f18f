"""Work beside a screen is begun in one way: nothing is forgotten, nothing breaks in silence."""

from __future__ import annotations

import ast
import asyncio
import gc
import warnings
from pathlib import Path

import pytest
from sampled import fresh, samples
from shop import app_on, settle
from textual.app import App
from textual.screen import Screen

import agenteval_tui.tui
from agenteval_tui.tui import workers
from agenteval_tui.tui.workers import start_worker, until_painted

__all__ = ["fresh", "samples"]  # fixtures

pytestmark = pytest.mark.xdist_group("sheets")


@pytest.mark.parametrize("ends", ["a newer one", "its node", "the group"])
async def test_work_that_is_cancelled_before_it_began_is_not_forgotten(fresh: tuple[Path, Path], ends: str) -> None:
    """A coroutine that nobody awaited is complained about when it is thrown away: on the terminal, under the app."""
    app = app_on(*fresh)
    done: list[int] = []
    gc.freeze()  # only what is made from here on is looked through below, and not what all tests before this one left

    async def work(number: int) -> None:
        done.append(number)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        async with app.run_test(size=(80, 24)) as pilot:
            await settle(pilot)
            for number in range(3):
                start_worker(app.screen, lambda number=number: work(number), group="mine")  # type: ignore[misc]
            if ends == "its node":
                app.workers.cancel_node(app.screen)
            elif ends == "the group":
                app.workers.cancel_group(app.screen, "mine")
            await settle(pilot)
        gc.collect()
    assert done == ([2] if ends == "a newer one" else [])


@pytest.mark.parametrize("of", ["the app", "a screen"])
async def test_work_that_breaks_is_said(fresh: tuple[Path, Path], of: str) -> None:
    app = app_on(*fresh)

    async def work() -> None:
        await asyncio.sleep(0)
        raise LookupError("on the way")

    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        start_worker(app if of == "the app" else app.screen, work, group="mine")
        await settle(pilot)
        assert "LookupError: on the way" in app.notices.all()[0].text
        assert app._exception is None


def test_all_work_is_begun_in_this_way() -> None:
    """Work in a thread is a function anyway."""
    folder = Path(agenteval_tui.tui.__file__).parent
    found = []
    for path in sorted(folder.rglob("*.py")):
        source = path.read_text(encoding="utf-8")
        # A module in whose text neither stands need not be parsed.
        for node in ast.walk(ast.parse(source)) if "run_worker" in source or "_new_worker" in source else ():
            if isinstance(node, ast.Attribute) and node.attr in ("run_worker", "_new_worker"):
                found.append(path.stem)
    assert found == ["screen", "panes", "workers"]


async def test_a_screen_under_a_sheet_is_not_waited_for_until_the_sheet_closes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its messages wait behind the one that opened the sheet, and what it asked for comes all the same."""
    monkeypatch.setattr(workers, "_LONGEST_FRAME_S", 0.05)
    app: App[None] = App()
    async with app.run_test() as pilot:
        below, closed = app.screen, asyncio.Event()
        app.push_screen(Screen())
        await pilot.pause()
        below.call_later(closed.wait)
        waits = asyncio.create_task(until_painted(below))
        done, _ = await asyncio.wait([waits], timeout=250)
        closed.set()
        assert done
