"""The Run screen while its runs change."""

from __future__ import annotations

from pathlib import Path

import pytest
from sampled import fresh, samples
from shop import app_on, settle, text_of
from test_run_controller import started

from agenteval_tui.runs import events
from agenteval_tui.tui.screens.run.screen import RunScreen


@pytest.mark.parametrize("goes_on", ["ends", "another is chosen"])
async def test_that_a_run_has_not_ended_is_said_only_until_it_has(fresh: tuple[Path, Path], goes_on: str) -> None:
    app = app_on(*fresh)
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await pilot.press("3")
        await settle(pilot)
        screen = app.screen
        assert isinstance(screen, RunScreen)
        view = started("passed")  # a2 is at work
        screen.show_view(view)
        await settle(pilot)
        screen.controller.follow = False
        screen._choose("a2")
        await settle(pilot)
        await pilot.press("enter")
        await settle(pilot)
        assert "This run has not ended yet" in text_of(app)
        if goes_on == "ends":
            view.apply(events.Graded(0, "a2", "failed", None, (), 5.0))
            screen._changed("a2")
        else:
            screen.controller.follow = False
            screen._choose("a1")
            screen._draw_run()
        await settle(pilot)
        screen._repaint()
        await settle(pilot)
        assert "This run has not ended yet" not in text_of(app)
        assert not app.notifier.is_standing


__all__ = ["fresh", "samples"]  # fixtures
