"""The sheet that blames a step: it stops however it goes, begins when its price could be read, leads to the step."""

from __future__ import annotations

import re
import threading
from pathlib import Path
from typing import Any

import pytest
from sampled import fresh, go_to, samples
from shop import app_on, copy_samples, press_at_once, run_samples, settle, text_of, until

from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.extensions.blame import controller as blame_controller
from agenteval_tui.extensions.blame.controller import BlameController
from agenteval_tui.extensions.blame.sheet import BlameScreen
from agenteval_tui.history.store import Store
from agenteval_tui.runs.fork.oracle import Oracle
from agenteval_tui.tui import reading_time
from agenteval_tui.tui.screens.inspect.screen import InspectScreen
from agenteval_tui.tui.widgets.transcript_view import TranscriptView

__all__ = ["fresh", "samples"]  # fixtures
pytestmark = pytest.mark.xdist_group("sheets")


@pytest.fixture
def failed(tmp_path: Path) -> tuple[Path, Path, str]:
    """The suites, a history, and a run in it that failed."""
    suites, db = copy_samples(tmp_path), tmp_path / "history.db"
    run_samples(suites, db, tests=("order-status",))
    with Store.open(db) as store:
        run = next(row.id for row in store.runs_of_execution(store.execution("last").id) if row.status == "failed")
    return suites, db, run


def test_a_sheet_that_met_a_bug_asks_no_more(failed: tuple[Path, Path, str], monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*arguments: Any, **named: Any) -> Any:
        raise RuntimeError("a bug")

    _, db, run = failed
    monkeypatch.setattr(blame_controller, "with_sampling", broken)
    with Store.open(db) as store:
        controller = BlameController(store, run)
        controller.read()
        controller.begin()
        with pytest.raises(RuntimeError):
            controller.run()
        assert not controller.running


async def test_a_sheet_that_another_screen_takes_away_stops_asking(
    failed: tuple[Path, Path, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    suites, db, run = failed
    begun, go_on = threading.Event(), threading.Event()

    def held(*arguments: Any, **named: Any) -> Any:
        begun.set()
        assert go_on.wait(100)
        raise AgentevalError("stopped")

    def held_sampling(work: Any) -> Any:
        work.close()
        return held()

    monkeypatch.setattr(blame_controller, "run_to_end", held_sampling)
    app = app_on(suites, db)
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        app.go("history")
        await settle(pilot)
        sheet = BlameScreen(app.session.store, run, "order-status")
        app.push_screen(sheet)
        await until(pilot, lambda: sheet.controller.stage == "ready")
        sheet.action_begin()
        await until(pilot, begun.is_set)
        # As what a notification is about, or an answer that comes late, goes to its screen.
        app.go("suites")
        await until(pilot, lambda: not sheet.is_attached)
        assert sheet.controller.stage == "stopping"
        go_on.set()
        await settle(pilot)


async def test_sampling_that_may_cost_something_begins_when_its_price_could_be_read(
    fresh: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    app = app_on(*fresh)
    asked = list[bool]()
    monkeypatch.setattr(BlameController, "may_cost", True)
    monkeypatch.setattr(BlameController, "run", lambda self: asked.append(True))
    monkeypatch.setattr(reading_time, "READ_S", 600.0)
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        await pilot.press("4")
        await settle(pilot)
        press_at_once(pilot, "alt+w", "r")
        await settle(pilot)
        assert not asked
        monkeypatch.setattr(reading_time, "READ_S", 0.0)
        await pilot.press("r")
        await until(pilot, lambda: asked == [True])
        await settle(pilot)


async def test_the_step_where_the_run_was_lost_is_found_and_sampled(fresh: tuple[Path, Path]) -> None:
    app = app_on(*fresh)
    async with app.run_test(size=(150, 45)) as pilot:
        await settle(pilot)
        await go_to(pilot, "order-status")
        await pilot.press("enter")
        await settle(pilot)
        await pilot.press("alt+w")
        await until(pilot, lambda: "At most " in text_of(app) and "continuations" in text_of(app))
        shown = text_of(app)
        assert "Which step?         not known from the recording" in shown
        assert "which the user said in step 1" in shown
        assert "◇ ▅ step 2" in shown
        await pilot.press("k")
        await until(pilot, lambda: "no evidence against this step" in text_of(app))
        await pilot.press("r")
        await until(pilot, lambda: "sampling: no step is decisive" in text_of(app))
        assert "step 2 of 4" not in text_of(app)
        assert re.search(r"step 2, get_order.* 0 of \d+ passed", text_of(app))
        await pilot.press("j", "enter")
        await until(pilot, lambda: isinstance(app.screen, InspectScreen))
        await settle(pilot)
        assert app.screen.query_one("#transcript", TranscriptView).cursor_key == ("call", 0)


async def test_enter_leads_to_the_step_from_its_evidence_too(fresh: tuple[Path, Path]) -> None:
    app = app_on(*fresh)
    async with app.run_test(size=(140, 45)) as pilot:
        await settle(pilot)
        await pilot.press("4")
        await settle(pilot)
        await pilot.press("alt+w")
        await until(pilot, lambda: "Which step?" in text_of(app))
        await pilot.press("tab", "enter")
        await until(pilot, lambda: isinstance(app.screen, InspectScreen))


async def test_a_tool_that_is_gone_is_said(failed: tuple[Path, Path, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Oracle, "gone_tools", lambda self, conversation: (("get_order",), ("fly", "walk")))
    suites, db, run = failed
    app = app_on(suites, db)
    async with app.run_test(size=(120, 45)) as pilot:
        await settle(pilot)
        app.push_screen(BlameScreen(app.session.store, run, "order-status"))
        said = "note: the agent called get_order in this run, but has fly and walk now"
        await until(pilot, lambda: said in " ".join(text_of(app).replace("│", " ").split()))
