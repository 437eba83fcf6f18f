"""Runs of others that end while a screen is shown: it reads the history again, and a person stays where they were."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from failing import make
from sampled import fresh, samples
from shop import app_on, settle, text_of

from agenteval_tui.history.store import Store
from agenteval_tui.tui.widgets.virtual_list import VirtualList

__all__ = ["fresh", "samples"]  # fixtures

WHERE = {
    "suites": ["1", "down", "down", "right", "down"],
    "suites, filtered": ["1", "slash", "o", "r", "d", "enter", "down"],
    "inspect": ["9", "enter", "full_stop", "full_stop", "tab", "down", "down"],
    "history": ["5", "enter", "down", "down"],
    "history, marked": ["5", "enter", "down", "space", "down"],
    "compare": ["6", "down"],
    "trends": ["7", "left", "down"],
    "agents": ["8", "down"],
    "causes": ["9", "down", "down", "n"],
    "causes, filtered": ["9", "slash", "t", "enter", "n"],
    "review": ["0", "F", "right_square_bracket", "right_square_bracket", "tab", "down"],
}
NOW = re.compile(r"\d+ s( ago)?")


def shown(app: object) -> str:
    return NOW.sub("", text_of(app))  # type: ignore[arg-type]


@pytest.mark.sweep
@pytest.mark.parametrize("where", WHERE)
async def test_nobody_is_moved_when_the_history_is_read_again(fresh: tuple[Path, Path], where: str) -> None:
    app = app_on(*fresh)
    async with app.run_test(size=(140, 45)) as pilot:
        await settle(pilot)
        for key in WHERE[where]:
            await pilot.press(key)
            await settle(pilot)
        before = shown(app)
        app.navigation.tell_new_runs()
        await settle(pilot)
        assert shown(app) == before


@pytest.mark.sweep
@pytest.mark.parametrize("where", [name for name in WHERE if name not in ("compare", "trends", "agents", "inspect")])
async def test_the_row_stays_chosen_when_others_come(fresh: tuple[Path, Path], where: str) -> None:
    app = app_on(*fresh)
    async with app.run_test(size=(140, 45)) as pilot:
        await settle(pilot)
        for key in WHERE[where]:
            await pilot.press(key)
            await settle(pilot)
        lists = list(app.screen.query(VirtualList))
        before = [view.cursor_key for view in lists]
        with Store.open(fresh[1]) as store:
            make(store, "E9", smoke=["text", "text", ""], refund=["text", "down", "down"], mood=["person"])
        app.navigation.tell_new_runs()
        await settle(pilot)
        assert [view.cursor_key for view in lists] == before
