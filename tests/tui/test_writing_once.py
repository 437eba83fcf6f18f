"""What is asked for twice in one moment is written once, and what it takes to undo it is not lost."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sampled import fresh, go_to, samples
from shop import app_on, copy_samples, settle, until
from textual.pilot import Pilot
from textual.screen import Screen
from textual.widgets import Input

from agenteval_tui.runs.plan.options import PlanOptions
from agenteval_tui.suites.dataset_edit import add_row
from agenteval_tui.suites.load import load_suite
from agenteval_tui.tui.screens.editor.screen import EditorScreen
from agenteval_tui.tui.screens.inspect.screen import InspectScreen
from agenteval_tui.tui.screens.new_test import NewSuiteScreen, NewTestScreen
from agenteval_tui.tui.screens.suites import file_changes
from agenteval_tui.tui.screens.suites.screen import SuitesScreen
from agenteval_tui.tui.widgets.form import Form

__all__ = ["fresh", "samples"]  # fixtures

pytestmark = pytest.mark.xdist_group("sheets")


@pytest.fixture
def mine(fresh: tuple[Path, Path], tmp_path: Path) -> tuple[Path, Path]:
    """Suites that may be written to, and a history."""
    return copy_samples(tmp_path / "mine"), fresh[1]


def fill(sheet: Screen[Any], **values: str) -> None:
    for name, value in values.items():
        sheet.query_one(f"#field-{name}", Input).value = value


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*.suite.yaml"))


class Held:
    """What is called waits until `go`; `begun` are the calls."""

    def __init__(self, work: Callable[..., Any]) -> None:
        self._work = work
        self.go = threading.Event()
        self.begun: list[object] = []

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        self.begun.append(arguments)
        assert self.go.wait(100)
        return self._work(*arguments, **options)


async def again(pilot: Pilot[int], held: Held, do: Callable[[], object]) -> None:
    """Do something, and twice more while it is written."""
    do()
    await until(pilot, lambda: bool(held.begun))
    for _ in range(2):
        do()
        await pilot.pause()
    held.go.set()
    await settle(pilot)


async def test_enter_twice_writes_one_test(mine: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    suites, db = mine
    app = app_on(suites, db)
    held = Held(app.session.workspace.new_test)
    monkeypatch.setattr(app.session.workspace, "new_test", held)
    path = sorted(suites.glob("*.suite.yaml"))[0]
    before = load_suite(path)
    assert before.suite is not None
    async with app.run_test(size=(100, 30)) as pilot:
        await settle(pilot)
        sheet = NewTestScreen(before)
        made: list[object] = []
        app.push_screen(sheet, made.append)
        await settle(pilot)
        fill(sheet, name="Asked twice", prompt="Who asked?")
        await settle(pilot)
        form = sheet.query_one(Form)
        await again(pilot, held, lambda: form.post_message(Form.Submitted(form, "prompt")))
        assert len(made) == 1
    after = load_suite(path)
    assert after.suite is not None
    assert len(after.suite.tests) == len(before.suite.tests) + 1


async def test_enter_twice_writes_one_suite(mine: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    suites, db = mine
    app = app_on(suites, db)
    held = Held(app.session.workspace.new_suite)
    monkeypatch.setattr(app.session.workspace, "new_suite", held)
    before = names(suites)
    async with app.run_test(size=(100, 30)) as pilot:
        await settle(pilot)
        sheet = NewSuiteScreen()
        made: list[object] = []
        app.push_screen(sheet, made.append)
        await settle(pilot)
        fill(sheet, name="Asked twice", test="One", prompt="Who asked?")
        await settle(pilot)
        form = sheet.query_one(Form)
        await again(pilot, held, lambda: form.post_message(Form.Submitted(form, "prompt")))
        assert len(made) == 1
        assert len(names(suites)) == len(before) + 1


async def test_a_run_that_is_being_started_is_not_started_again(
    mine: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    suites, db = mine
    app = app_on(suites, db)
    held = Held(app.session.workspace.start)
    monkeypatch.setattr(app.session.workspace, "start", held)
    shown: list[object] = []
    monkeypatch.setattr(app.navigation, "watch_live", lambda live, expected=None: shown.append(live))
    async with app.run_test(size=(100, 30)) as pilot:
        await settle(pilot)
        path = sorted(suites.glob("*.suite.yaml"))[0]
        await again(pilot, held, lambda: app.start_run([path], PlanOptions(tests=("no such test",))))
        assert len(held.begun) == 1
        assert any("already starting" in one.text for one in app.notices.all())


async def test_a_test_that_is_copied_twice_in_a_moment_is_copied_once_and_that_can_be_undone(
    mine: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    suites, db = mine
    app = app_on(suites, db)
    held = Held(file_changes.bytes_of)
    monkeypatch.setattr(file_changes, "bytes_of", held)
    taking_back = Held(app.session.workspace.undo)
    monkeypatch.setattr(app.session.workspace, "undo", taking_back)
    before = {path: path.read_bytes() for path in suites.glob("*.suite.yaml")}
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        screen = app.screen
        assert isinstance(screen, SuitesScreen)
        loaded = load_suite(sorted(before)[0])
        assert loaded.suite is not None
        await go_to(pilot, loaded.suite.tests[0].id)
        await again(pilot, held, screen.action_duplicate)
        after = load_suite(loaded.path)
        assert after.suite is not None
        assert len(after.suite.tests) == len(loaded.suite.tests) + 1
        assert app.screen is screen  # nobody is asked about a file that the app has written itself
        await again(pilot, taking_back, screen.action_undo)
    assert {path: path.read_bytes() for path in suites.glob("*.suite.yaml")} == before


async def test_a_text_that_is_cut_is_quoted_once(mine: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    suites, db = mine
    app = app_on(suites, db)
    loaded = load_suite(sorted(suites.glob("*.suite.yaml"))[0])
    assert loaded.suite is not None
    held = Held(lambda *_: loaded)
    monkeypatch.setattr(app.session.workspace, "quote_cut_text", held)
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        app.edit_test(loaded.key, loaded.suite.tests[0].id)
        await until(pilot, lambda: isinstance(app.screen, EditorScreen) and app.screen.controller.doc is not None)
        screen = app.screen
        assert isinstance(screen, EditorScreen)
        monkeypatch.setattr(screen.controller, "is_cut", lambda place: True)
        monkeypatch.setattr(screen.controller, "cut_start", lambda place: 0)
        await again(pilot, held, screen.action_apply_fix)
        assert len(held.begun) == 1


async def test_a_row_that_was_added_is_taken_back_once(
    mine: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    suites, db = mine
    app = app_on(suites, db)
    held = Held(lambda *_: None)
    monkeypatch.setattr("agenteval_tui.tui.screens.inspect.screen.undo_add_row", held)
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        app.go("inspect")
        await settle(pilot)
        screen = app.screen
        assert isinstance(screen, InspectScreen)
        screen._added_row = add_row(tmp_path / "rows.jsonl", {"question": "Who?"}, {})
        await again(pilot, held, screen.action_take_back_row)
        assert len(held.begun) == 1
        assert any("Row 1 removed" in one.text for one in app.notices.all())
