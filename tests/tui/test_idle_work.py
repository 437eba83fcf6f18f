"""Screens are imported and mounted ahead, and garbage is collected, when nothing happens."""

from __future__ import annotations

import asyncio
import gc

import pytest

from agenteval_tui.tui import idle_work
from agenteval_tui.tui.idle_work import AHEAD, MOUNTED_AHEAD, IdleWork
from agenteval_tui.tui.screen_registry import FACTORIES


async def test_screens_are_imported_when_nothing_is_pressed_and_nothing_is_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert set(AHEAD) <= FACTORIES.keys()
    read: list[str] = []
    thresholds: list[tuple[int, ...]] = []
    frozen: asyncio.Queue[int] = asyncio.Queue()
    busy = [True]
    monkeypatch.setattr(idle_work, "QUIET_S", 0.04)
    monkeypatch.setattr(idle_work, "read_screen", read.append)
    monkeypatch.setattr(gc, "freeze", lambda: frozen.put_nowait(len(read)))
    monkeypatch.setattr(gc, "set_threshold", lambda *some: thresholds.append(some))

    async def mount(name: str) -> None:
        read.append(f"mount {name}")

    ahead = IdleWork(lambda: busy[0], mount)
    work = asyncio.create_task(ahead.run())
    await asyncio.sleep(0.06)
    assert not read  # something is read
    busy[0] = False
    ahead.touch()
    await asyncio.sleep(0)
    assert not read  # a key was pressed
    assert await asyncio.wait_for(frozen.get(), 30) == len(AHEAD) + len(MOUNTED_AHEAD)
    assert read == [*AHEAD, *(f"mount {name}" for name in MOUNTED_AHEAD)]
    assert thresholds == [idle_work.THRESHOLDS]
    work.cancel()


async def test_garbage_is_collected_in_each_pause_and_all_of_it_in_a_long_one(monkeypatch: pytest.MonkeyPatch) -> None:
    collected: asyncio.Queue[int] = asyncio.Queue()
    pauses = [0]

    def collect(generation: int = 2) -> int:
        pauses[0] = pauses[0] + 1 if generation < 2 else 0
        collected.put_nowait(generation)
        return 0

    async def next_one() -> int:
        return await asyncio.wait_for(collected.get(), 30)

    monkeypatch.setattr(idle_work, "QUIET_S", 0.02)
    monkeypatch.setattr(idle_work, "REST_S", 0.05)
    monkeypatch.setattr(idle_work, "MANY_PAUSES", 2)
    monkeypatch.setattr(idle_work, "read_screen", lambda name: None)
    monkeypatch.setattr(gc, "freeze", lambda: collected.put_nowait(-1))
    monkeypatch.setattr(gc, "set_threshold", lambda *some: None)
    monkeypatch.setattr(gc, "collect", collect)
    monkeypatch.setattr(gc, "get_count", lambda: (0, 0, pauses[0]))

    async def mount(name: str) -> None:
        return None

    idle = IdleWork(lambda: False, mount)
    work = asyncio.create_task(idle.run())
    assert await next_one() == -1
    idle.touch()
    assert await next_one() == 1
    idle.touch()
    assert await next_one() == 1
    assert await next_one() == 2  # nothing more was pressed
    assert collected.empty()
    idle.touch()
    assert await next_one() == 1
    work.cancel()
