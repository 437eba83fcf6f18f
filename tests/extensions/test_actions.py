"""Actions that extensions offer on screens: where they are listed, and what a broken one does to the others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from shop import app_on, copy_samples, settle

from agenteval_tui.core import entry_points
from agenteval_tui.tui import actions
from agenteval_tui.tui.action import Action, extension_method
from agenteval_tui.tui.screens.base_screen import FrameScreen

HERE = "test_extension_actions"
OFFERED = (
    Action("suites.shout", extension_method(f"{HERE}:shout"), "", "shout", "Shout", "suites", after="suites.run"),
    Action("suites.whisper", extension_method(f"{HERE}:none"), "", "whisper", "Whisper", "suites", after="no.such"),
)


@pytest.fixture
def offered(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, str]:
    """The entry points of actions: those of a module that offers two, which a test may add to."""
    (tmp_path / f"{HERE}.py").write_text("def shout(screen):\n    screen.agenteval.say('shouted')\n")
    monkeypatch.syspath_prepend(tmp_path)
    points = {"a": f"{__name__}:OFFERED"}
    monkeypatch.setitem(entry_points._own(), entry_points.ACTIONS, points)
    return points


def test_they_follow_the_action_that_they_name_or_come_last(offered: dict[str, str]) -> None:
    ids = [action.id for action in actions.with_extensions()]
    assert ids[ids.index("suites.run") + 1] == "suites.shout"
    assert ids[-1] == "suites.whisper"


def test_those_that_can_not_be_loaded_are_left_out_and_the_doctor_says_it(offered: dict[str, str], cli: Any) -> None:
    offered["gone"] = "agenteval_tui.extensions.gone.actions:ACTIONS"
    assert "suites.shout" in [action.id for action in actions.with_extensions()]
    ran = cli("doctor", "--json")
    assert ran.code == 3
    assert [check["name"] for check in ran.json("doctor")["checks"] if check["state"] == "error"] == ["gone"]


async def test_one_is_called_with_its_screen_and_one_that_is_broken_is_said(
    offered: dict[str, str], tmp_path: Path
) -> None:
    app = app_on(copy_samples(tmp_path), tmp_path / "history.db")
    async with app.run_test(size=(100, 30)) as pilot:
        await settle(pilot)
        screen = app.screen
        assert isinstance(screen, FrameScreen)
        for action in OFFERED:
            await screen.do(action.method)
        notices = [notice.text for notice in app.notices.all()]
        assert "shouted" in notices
        assert any("AttributeError" in notice for notice in notices)
