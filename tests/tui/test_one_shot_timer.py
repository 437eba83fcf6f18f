"""A call after some seconds always comes."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from shop import until
from textual import _time
from textual.app import App, ComposeResult
from textual.widgets import Static

import agenteval_tui.tui
from agenteval_tui.tui.workers import call_after


class Small(App[None]):
    def compose(self) -> ComposeResult:
        yield Static("gone soon")


async def test_it_comes_where_the_process_got_no_time_while_it_was_set_up(monkeypatch: pytest.MonkeyPatch) -> None:
    app = Small()
    async with app.run_test() as pilot:
        late = itertools.count()
        monkeypatch.setattr(_time, "get_time", lambda: float(next(late)))  # a second between any two looks
        came: list[str] = []

        async def waited() -> None:
            came.append("a coroutine")

        call_after(app, 0.005, lambda: came.append("the app"))
        call_after(app.query_one(Static), 0.005, lambda: came.append("a widget"))
        call_after(app, 0.01, waited)
        await until(pilot, lambda: len(came) == 3)
        monkeypatch.undo()


async def test_it_does_not_come_to_what_has_gone() -> None:
    app = Small()
    async with app.run_test() as pilot:
        widget, came = app.query_one(Static), []
        call_after(widget, 0.005, lambda: came.append("the widget"))
        await widget.remove()
        call_after(app, 0.01, lambda: came.append("the app"))
        await until(pilot, lambda: bool(came))
        assert came == ["the app"]


def test_nothing_uses_the_timer_that_may_not_fire() -> None:
    folder = Path(agenteval_tui.tui.__file__).parent
    assert [path.name for path in folder.rglob("*.py") if ".set_timer(" in path.read_text("utf-8")] == []
