"""Sharing from the app: the palette's action writes a page, and over an existing file only when asked twice."""

from __future__ import annotations

from pathlib import Path

import pytest
from sampled import fresh, samples
from shop import app_on, settle, until
from textual.widgets import Input

from agenteval_tui.extensions.share.embedded_runs import BEGIN
from agenteval_tui.extensions.share.sheet import ShareScreen, share_chosen
from agenteval_tui.tui.screens.history.screen import HistoryScreen

__all__ = ["fresh", "samples"]  # fixtures
pytestmark = pytest.mark.xdist_group("sheets")


async def test_an_execution_is_written_as_a_page_that_asks_before_it_overwrites(
    fresh: tuple[Path, Path], tmp_path: Path
) -> None:
    app, file = app_on(*fresh), tmp_path / "shared.html"
    file.write_text("something else")
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        app.push_screen(ShareScreen(app.session.store.executions()[0]))
        await settle(pilot)
        app.screen.query_one("#field-path", Input).value = str(file)
        await settle(pilot)
        await pilot.press("enter")
        await settle(pilot)
        assert file.read_text() == "something else"
        await pilot.press("enter")
        await until(pilot, lambda: BEGIN in file.read_text())
        await until(pilot, lambda: any(f"written to {file}" in one.text for one in app.notices.all()))


async def test_where_nothing_is_chosen_it_says_so(tmp_path: Path) -> None:
    app = app_on(tmp_path, tmp_path / "empty.db")
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        app.go("history")
        await settle(pilot)
        assert isinstance(app.screen, HistoryScreen)
        share_chosen(app.screen)
        assert [one.text for one in app.notices.all()] == ["There is nothing to choose yet."]
