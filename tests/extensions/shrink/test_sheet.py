"""The sheet that shrinks a run: it stops however it goes, begins when its price could be read, and writes once."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest
from sampled import fresh, go_to, samples
from shop import app_on, copy_samples, press_at_once, run_samples, settle, text_of, until
from test_writing_once import Held, again

from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.extensions.shrink import controller as shrink_controller
from agenteval_tui.extensions.shrink.controller import ShrinkController
from agenteval_tui.extensions.shrink.sheet import ShrinkScreen
from agenteval_tui.history.store import Store
from agenteval_tui.runs.fork.oracle import Oracle
from agenteval_tui.suites.load import load_suite
from agenteval_tui.tui import reading_time

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


class StoppedAtOnce(ShrinkController):
    """A person stops it while it is being begun."""

    def _new_oracle(self, *asked: Any) -> Oracle:
        made = super()._new_oracle(*asked)
        self.stop()
        return made


def test_what_is_stopped_before_it_asks_asks_nothing(failed: tuple[Path, Path, str]) -> None:
    _, db, run = failed
    with Store.open(db) as store:
        controller = StoppedAtOnce(store, run)
        controller.read()
        assert controller.stage == "ready"
        controller.begin()
        controller.run()
        assert controller.shrunk is not None
        assert controller.shrunk.ending == "stopped"
        assert store.forks_of(run) == []


def test_a_sheet_that_met_a_bug_asks_no_more(failed: tuple[Path, Path, str], monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*arguments: Any, **named: Any) -> Any:
        raise RuntimeError("a bug")

    _, db, run = failed
    monkeypatch.setattr(shrink_controller, "shrink", broken)
    with Store.open(db) as store:
        controller = ShrinkController(store, run)
        controller.read()
        controller.begin()
        with pytest.raises(RuntimeError):
            controller.run()
        assert not controller.running


def test_what_kept_a_case_from_being_saved_is_not_told_behind_the_case(failed: tuple[Path, Path, str]) -> None:
    suites, db, run = failed
    path = suites / "support.suite.yaml"
    text = path.read_text("utf-8")
    with Store.open(db) as store:
        controller = ShrinkController(store, run)
        controller.read()
        controller.begin()
        controller.run()
        path.unlink()
        assert controller.save() is None
        assert controller.error is not None
        path.write_text(text, "utf-8")
        assert controller.save() == path
        assert (controller.error, controller.saved) == (None, "saved as test order-status-small of support.suite.yaml")


async def test_a_sheet_that_another_screen_takes_away_stops_asking(
    failed: tuple[Path, Path, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    suites, db, run = failed
    begun, go_on = threading.Event(), threading.Event()

    def held(*arguments: Any, **named: Any) -> Any:
        begun.set()
        assert go_on.wait(100)
        raise AgentevalError("stopped")

    monkeypatch.setattr(shrink_controller, "shrink", held)
    app = app_on(suites, db)
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        app.go("history")
        await settle(pilot)
        sheet = ShrinkScreen(app.session.store, run, "order-status")
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


async def test_the_small_case_is_saved_once(failed: tuple[Path, Path, str], monkeypatch: pytest.MonkeyPatch) -> None:
    suites, db, run = failed
    held = Held(shrink_controller.save_small_case)
    monkeypatch.setattr(shrink_controller, "save_small_case", held)
    app = app_on(suites, db)
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        sheet = ShrinkScreen(app.session.store, run, "order-status")
        app.push_screen(sheet)
        await until(pilot, lambda: "about 24 to 180 continuations" in text_of(app))
        await pilot.press("enter")
        await until(pilot, lambda: "are enough" in text_of(app))
        # What pressing it again may cost is said as well.
        await until(pilot, lambda: "Starting again takes about 24 to 180 continuations" in text_of(app))
        await again(pilot, held, sheet.action_save)
        await until(pilot, lambda: "saved as test order-status-small" in text_of(app))
        path = suites / "support.suite.yaml"
        assert app.session.is_own(path)
    loaded = await asyncio.to_thread(load_suite, path)
    assert loaded.suite is not None
    assert [one.id for one in loaded.suite.tests if "small" in one.id] == ["order-status-small"]


async def test_shrinking_that_may_cost_something_begins_when_its_price_could_be_read(
    fresh: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    app = app_on(*fresh)
    asked = list[bool]()
    monkeypatch.setattr(ShrinkController, "may_cost", True)
    monkeypatch.setattr(ShrinkController, "run", lambda self: asked.append(True))
    monkeypatch.setattr(reading_time, "READ_S", 600.0)
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        await pilot.press("4")
        await settle(pilot)
        press_at_once(pilot, "alt+k", "enter")
        await settle(pilot)
        assert not asked
        monkeypatch.setattr(reading_time, "READ_S", 0.0)
        await pilot.press("enter")
        await until(pilot, lambda: asked == [True])
        await settle(pilot)


async def test_a_tool_that_is_gone_is_said(failed: tuple[Path, Path, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Oracle, "gone_tools", lambda self, conversation: (("get_order",), ("fly", "walk")))
    suites, db, run = failed
    app = app_on(suites, db)
    async with app.run_test(size=(120, 45)) as pilot:
        await settle(pilot)
        app.push_screen(ShrinkScreen(app.session.store, run, "order-status"))
        said = "note: the agent called get_order in this run, but has fly and walk now"
        await until(pilot, lambda: said in " ".join(text_of(app).replace("│", " ").split()))


async def test_it_opens_from_inspect_and_keeps_calls_where_it_is_asked_to(fresh: tuple[Path, Path]) -> None:
    app = app_on(*fresh)
    async with app.run_test(size=(150, 45)) as pilot:
        await settle(pilot)
        await go_to(pilot, "order-status")
        await pilot.press("enter")
        await settle(pilot)
        await pilot.press("alt+k")
        await until(pilot, lambda: "about 24 to 180 continuations" in text_of(app))
        await pilot.press("c")
        await until(pilot, lambda: "Tool calls stay" in text_of(app))
        await pilot.press("c", "enter")
        await until(pilot, lambda: "are enough" in text_of(app) and "No single part can be removed" in text_of(app))
        await pilot.press("m")
        await until(pilot, lambda: "saved as test order-status-small" in text_of(app))
