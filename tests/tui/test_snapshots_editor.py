"""What the Editor and its sheets look like, at 80x24 and 140x45: pictures that were looked at."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from shop import settle, until
from test_snapshots import NOON, SIZES, cursor_to, look
from test_snapshots import recorded as recorded
from test_snapshots import still as still
from textual.pilot import Pilot
from textual.widgets import TextArea

from agenteval_tui.tui.drafts import Kept
from agenteval_tui.tui.screens.editor import EditorScreen
from agenteval_tui.tui.screens.editor_questions import draft_question
from agenteval_tui.tui.widgets.config_editor import ConfigEditor

pytestmark = pytest.mark.xdist_group("snapshots")


@pytest.fixture(autouse=True)
def noon_in_the_editor(monkeypatch: pytest.MonkeyPatch) -> None:
    """The time of day at which a run is so and so old."""
    monkeypatch.setattr("agenteval_tui.tui.screens.editor_live.now_ms", lambda: NOON + 120_000)


async def opened(pilot: Pilot[int]) -> EditorScreen:
    """The Editor on the test that fails most."""
    cursor_to(pilot, "customers-austria")
    await settle(pilot)
    await pilot.press("E")
    await until(pilot, lambda: isinstance(pilot.app.screen, EditorScreen) and pilot.app.screen._doc is not None)
    await settle(pilot)
    screen = pilot.app.screen
    assert isinstance(screen, EditorScreen)
    return screen


def break_it(screen: EditorScreen) -> None:
    """Something wrong in a field, in YAML, and in the config."""
    screen.query_one("#field-agent").choose("nobody", tell=True)  # type: ignore[attr-defined]
    screen.query_one("#field-variables", TextArea).text = "country: Austria\nmore: [1"
    editor = screen.query_one("#config", ConfigEditor)
    editor.replace_all(editor.text.replace("contains_all", "contains_al"))


@SIZES
def test_editor(snap_compare: Any, recorded: tuple[Path, Path], size: tuple[int, int]) -> None:
    async def before(pilot: Pilot[int]) -> None:
        await opened(pilot)

    look(snap_compare, recorded, size, before)


@SIZES
def test_editor_with_problems(snap_compare: Any, recorded: tuple[Path, Path], size: tuple[int, int]) -> None:
    async def before(pilot: Pilot[int]) -> None:
        break_it(await opened(pilot))

    look(snap_compare, recorded, size, before)


@pytest.mark.parametrize("pane", ["tests", "criteria"])
def test_editor_panes_at_80x24(snap_compare: Any, recorded: tuple[Path, Path], pane: str) -> None:
    async def before(pilot: Pilot[int]) -> None:
        screen = await opened(pilot)
        screen._focus_pane(pane)

    look(snap_compare, recorded, (80, 24), before)


def test_editor_new_criterion(snap_compare: Any, recorded: tuple[Path, Path]) -> None:
    async def before(pilot: Pilot[int]) -> None:
        screen = await opened(pilot)
        screen._focus_pane("criteria")
        await settle(pilot)
        await pilot.press("a")

    look(snap_compare, recorded, (80, 24), before)


def test_editor_draft(snap_compare: Any, recorded: tuple[Path, Path]) -> None:
    async def before(pilot: Pilot[int]) -> None:
        screen = await opened(pilot)
        doc = screen._doc
        assert doc is not None
        doc.form.values.update(name="Another name", repeat="7")
        doc.form.criteria[0].values["weight"] = "3"
        data = doc.as_data()
        doc.form = doc.base.copy()
        kept = Kept("test", doc.loaded.key, doc.test_id, "", NOON, data)
        screen.app.push_screen(draft_question(doc, kept))

    look(snap_compare, recorded, (80, 24), before)


@SIZES
@pytest.mark.parametrize("pane", ["criteria", "live"])
def test_editor_beside_a_run(snap_compare: Any, recorded: tuple[Path, Path], size: tuple[int, int], pane: str) -> None:
    async def before(pilot: Pilot[int]) -> None:
        screen = await opened(pilot)
        editor = screen.query_one("#config", ConfigEditor)
        editor.replace_all(editor.text.replace('"contains_all": [', '"contains_all": ["€", '))
        screen._focus_pane(pane)

    look(snap_compare, recorded, size, before)


@SIZES
def test_suites_worst_first_and_a_wrong_filter(
    snap_compare: Any, recorded: tuple[Path, Path], size: tuple[int, int]
) -> None:
    async def before(pilot: Pilot[int]) -> None:
        await pilot.press("s", "j", "m", "j", "j", "M", "slash", *"tga:x flaky:no")

    look(snap_compare, recorded, size, before)


def test_suites_new_test(snap_compare: Any, recorded: tuple[Path, Path]) -> None:
    async def before(pilot: Pilot[int]) -> None:
        cursor_to(pilot, "customers-austria")
        await pilot.press("n", *"A new one", "enter", "enter")

    look(snap_compare, recorded, (80, 24), before)


def test_suites_marked_and_delete(snap_compare: Any, recorded: tuple[Path, Path]) -> None:
    async def before(pilot: Pilot[int]) -> None:
        cursor_to(pilot, "customers-austria")
        await pilot.press("m", "m", "x")

    look(snap_compare, recorded, (140, 45), before)


def test_suites_marked(snap_compare: Any, recorded: tuple[Path, Path]) -> None:
    async def before(pilot: Pilot[int]) -> None:
        cursor_to(pilot, "customers-austria")
        await pilot.press("m", "m")

    look(snap_compare, recorded, (80, 24), before)
