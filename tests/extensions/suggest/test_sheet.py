"""The sheet of suggested criteria."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest
from sampled import fresh, go_to, samples
from shop import app_on, settle, text_of, until

from agenteval_tui.extensions.suggest.sheet import SuggestScreen
from agenteval_tui.tui.styled_text import plain
from agenteval_tui.tui.widgets.lines_view import LinesView
from agenteval_tui.tui.widgets.virtual_list import VirtualList
from agenteval_tui.tui.workers import is_busy

__all__ = ["fresh", "samples"]  # fixtures
pytestmark = pytest.mark.xdist_group("sheets")


async def test_the_config_is_that_of_the_chosen_criterion(fresh: tuple[Path, Path]) -> None:
    app = app_on(*fresh)
    async with app.run_test(size=(140, 45)) as pilot:
        await settle(pilot)
        await pilot.press("4")
        await settle(pilot)
        await pilot.press("alt+s")
        await until(pilot, lambda: isinstance(app.screen, SuggestScreen) and "good or bad?" in text_of(app))
        screen = cast("SuggestScreen", app.screen)
        await pilot.press("y")
        await until(pilot, lambda: "agrees" in text_of(app))
        rows = screen.query_one("#suggestions", VirtualList)
        await pilot.press("j")
        await until(pilot, lambda: rows.cursor == 1)
        chosen = rows.cursor_key

        def shown() -> str:
            lines = screen.query_one("#config", LinesView)._lines
            return " ".join(" ".join(map(plain, lines)).split())

        def config_of(row: int) -> str:
            assert screen.controller is not None
            return " ".join(screen.controller.suggestions[row].config.split())

        assert config_of(0) not in shown()
        # Read again with the same labels: the same row has the cursor, and nobody is told of another one.
        screen._show()
        await settle(pilot)
        assert rows.cursor_key == chosen
        assert config_of(1) in shown()
        assert config_of(0) not in shown()
        await pilot.press("n")
        await until(pilot, lambda: "1 good, 1 bad" in text_of(app) and not is_busy(screen, "suggest"))
        await settle(pilot)
        assert config_of(rows.cursor) in shown()


async def test_a_criterion_that_agrees_with_labels_is_added_to_the_test(fresh: tuple[Path, Path]) -> None:
    app = app_on(*fresh)
    async with app.run_test(size=(150, 45)) as pilot:
        await settle(pilot)
        await go_to(pilot, "order-status")
        await pilot.press("enter")
        await settle(pilot)
        await pilot.press("alt+s")
        await until(pilot, lambda: "good or bad?" in text_of(app) and "not labelled yet" in text_of(app))
        await pilot.press("y")
        await until(pilot, lambda: "enter add to the test" in text_of(app))
        assert "calls get_order" in text_of(app)
        await pilot.press("enter")
        await until(pilot, lambda: type(app.screen).__name__ == "EditorScreen")
        await settle(pilot)
        assert "Calls get_order" in text_of(app)
        assert "1 not saved" in text_of(app)
