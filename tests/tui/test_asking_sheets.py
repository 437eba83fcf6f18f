"""The sheets that ask a run's agent: what was asked for is stopped however the sheet goes, and is written once."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from shop import app_on, copy_samples, run_samples, settle, text_of, until
from test_writing_once import Held

from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.history.store import Store
from agenteval_tui.tui.screens.inspect.screen import InspectScreen
from agenteval_tui.tui.screens.new_test import MakeTestScreen

pytestmark = pytest.mark.xdist_group("sheets")


@pytest.fixture
def failed(tmp_path: Path) -> tuple[Path, Path, str]:
    """The suites, a history, and a run in it that failed."""
    suites, db = copy_samples(tmp_path), tmp_path / "history.db"
    run_samples(suites, db, tests=("order-status",))
    with Store.open(db) as store:
        run = next(row.id for row in store.runs_of_execution(store.execution("last").id) if row.status == "failed")
    return suites, db, run


async def test_a_step_that_is_not_found_yet_is_not_said_to_be_none(
    failed: tuple[Path, Path, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise AgentevalError("it can't be known")

    suites, db, run = failed
    module = "agenteval_tui.tui.screens.inspect.controller.known_blame"
    held = Held(broken)
    monkeypatch.setattr(module, held)
    monkeypatch.setattr("agenteval_tui.tui.screens.inspect.screen.LOOKING_SECONDS", 0.0)
    app = app_on(suites, db)
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        app.inspect(run)
        await until(pilot, lambda: bool(held.begun))
        screen = app.screen
        assert isinstance(screen, InspectScreen)
        screen.action_decisive()
        await until(pilot, lambda: bool(app.notices.all()))
        assert "Still looking for the step" in app.notices.all()[0].text
        held.go.set()
        await settle(pilot)
        screen.action_decisive()
        assert app.notices.all()[0].text == "it can't be known"


async def test_suites_that_are_being_read_are_not_said_to_be_none(
    failed: tuple[Path, Path, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    suites, db, run = failed
    app = app_on(suites, db)
    runs = await asyncio.to_thread(app.session.workspace.good_run, run)
    held = Held(app.session.workspace.suites)
    monkeypatch.setattr(app.session.workspace, "suites", held)
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        app.push_screen(MakeTestScreen(runs, "run"))
        await until(pilot, lambda: bool(held.begun))
        await pilot.press("enter")
        await until(pilot, lambda: "the suites are still loading" in text_of(app))
        held.go.set()
        await settle(pilot)
