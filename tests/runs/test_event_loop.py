"""The end of an execution's loop: whatever was left in it is closed, and nothing is said of pending tasks."""

from __future__ import annotations

import asyncio
import gc
import logging
from collections.abc import AsyncGenerator

import pytest

from agenteval_tui.core import event_loop_end
from agenteval_tui.runs.event_loop import run_to_end


@pytest.fixture(autouse=True)
def nothing_is_said(caplog: pytest.LogCaptureFixture) -> object:
    caplog.set_level(logging.WARNING)
    yield
    gc.collect()
    assert caplog.messages == []


def test_a_task_that_starts_another_at_its_end() -> None:
    ends: list[str] = []

    async def last() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ends.append("last")

    async def first() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            asyncio.get_running_loop().create_task(last())
            ends.append("first")

    async def main() -> str:
        asyncio.get_running_loop().create_task(first())
        await asyncio.sleep(0)
        return "done"

    assert run_to_end(main()) == "done"
    assert ends[0] == "first"


def test_a_generator_that_is_dropped_is_closed() -> None:
    ends: list[str] = []

    async def events() -> AsyncGenerator[int, None]:
        try:
            yield 1
            yield 2
        finally:
            await asyncio.sleep(0)
            ends.append("closed")

    async def holder() -> None:
        stream = events()
        await anext(stream)
        await asyncio.Event().wait()

    async def main() -> None:
        asyncio.get_running_loop().create_task(holder())
        await asyncio.sleep(0)
        async for _ in events():
            break

    run_to_end(main())
    assert len(ends) >= 1


def test_a_task_that_ignores_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_loop_end, "STRAGGLERS_S", 0.01)

    async def stubborn() -> None:
        while True:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                continue

    async def main() -> None:
        asyncio.get_running_loop().create_task(stubborn())
        await asyncio.sleep(0)

    run_to_end(main())
