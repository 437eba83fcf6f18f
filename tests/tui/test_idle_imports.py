"""Screens are imported ahead when nothing happens."""

from __future__ import annotations

import asyncio
import gc

import pytest

from agenteval_tui.tui import idle_imports
from agenteval_tui.tui.idle_imports import AHEAD, IdleImports
from agenteval_tui.tui.screen_registry import FACTORIES


async def test_screens_are_imported_when_nothing_is_pressed_and_nothing_is_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert set(AHEAD) <= FACTORIES.keys()
    read: list[str] = []
    frozen: list[int] = []
    busy = [True]
    monkeypatch.setattr(idle_imports, "QUIET_S", 0.04)
    monkeypatch.setattr(idle_imports, "read_screen", read.append)
    monkeypatch.setattr(gc, "freeze", lambda: frozen.append(len(read)))
    ahead = IdleImports(lambda: busy[0])
    work = asyncio.create_task(ahead.run())
    await asyncio.sleep(0.06)
    assert not read  # something is read
    busy[0] = False
    ahead.touch()
    await asyncio.sleep(0)
    assert not read  # a key was pressed
    await asyncio.wait_for(work, 30)
    assert read == list(AHEAD)
    assert frozen == [len(AHEAD)]
