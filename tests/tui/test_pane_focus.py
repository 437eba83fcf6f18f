"""The focused pane: its title is tinted, and `z` gives it the room of all panes."""

from __future__ import annotations

from pathlib import Path

import pytest
from shop import app_on, copy_samples, run_samples, settle, text_of, until
from textual import events
from textual.color import Color

from agenteval_tui.history.store import Store
from agenteval_tui.runs.events import Planned, RunRef, RunStarted
from agenteval_tui.runs.live_view import ExecutionView
from agenteval_tui.tui.app import AgentevalApp
from agenteval_tui.tui.presenters.tabs import pane_title
from agenteval_tui.tui.screens.editor.screen import EditorScreen
from agenteval_tui.tui.screens.inspect.screen import InspectScreen
from agenteval_tui.tui.screens.run.screen import RunScreen
from agenteval_tui.tui.style_tokens import palette_of
from agenteval_tui.tui.styled_text import plain, width_of
from agenteval_tui.tui.widgets.config_editor import ConfigEditor
from agenteval_tui.tui.widgets.titled_pane import PaneTitle
from tests.sweeps import share

pytestmark = pytest.mark.xdist_group("screens")
INSPECT = {"transcript-pane", "looked-pane", "config-pane"}


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, str]:
    """The sample suites, a history with a failed test, and one of its runs."""
    folder = tmp_path_factory.mktemp("panes")
    suites = copy_samples(folder)
    run_samples(suites, folder / "history.db", tests=("order-status",))
    with Store.open(folder / "history.db") as store:
        run = store.runs_of_test(str(suites / "support.suite.yaml"), "order-status", 1)[0].id
    return suites, folder / "history.db", run


def seen(app: AgentevalApp) -> dict[str, int]:
    """The panes that are on the screen, and how wide each is."""
    panes = app.screen.query(".pane")
    return {pane.id or "": pane.size.width for pane in panes if pane.is_on_screen and pane.size.width}


def tinted(app: AgentevalApp) -> list[str]:
    return [title.id or "" for title in app.screen.query(PaneTitle) if title.active]


async def test_the_zoom_goes_with_the_focus_and_leaves_no_trace(ran: tuple[Path, Path, str]) -> None:
    suites, db, run = ran
    app = app_on(suites, db)
    async with app.run_test(size=(140, 45)) as pilot:
        await settle(pilot)
        app.inspect(run)
        await until(pilot, lambda: isinstance(app.screen, InspectScreen) and app.screen.shown_run == run)
        await settle(pilot)
        before = seen(app)
        assert set(before) == INSPECT
        assert tinted(app) == ["transcript-title"]
        await pilot.press("z")
        await settle(pilot)
        assert seen(app) == {"transcript-pane": 140}
        await pilot.press("tab")
        await settle(pilot)
        assert seen(app) == {"looked-pane": 140}
        assert tinted(app) == ["looked-title"]
        await pilot.press("escape")
        await settle(pilot)
        assert seen(app) == before, "esc gives the room back, and goes nowhere"
        await pilot.press("e")
        await settle(pilot)
        editor = app.screen.query_one(ConfigEditor)
        text = editor.text
        app.post_message(events.Key("alt+z", "z"))  # as the toolkit reads it from a terminal; a pilot says no letter
        await settle(pilot)
        assert seen(app) == {"config-pane": 140}
        assert editor.text == text
        await pilot.press("z")
        assert editor.text != text, "where one types, z is a letter"
        await pilot.press("f6")
        app.post_message(events.Key("alt+z", "z"))
        await settle(pilot)
        assert set(seen(app)) == INSPECT
        await pilot.press("escape")
        await settle(pilot)
        assert seen(app) == before


async def test_the_editor_zooms_one_of_four_panes(ran: tuple[Path, Path, str]) -> None:
    suites, db, _run = ran
    app = app_on(suites, db)
    async with app.run_test(size=(200, 60)) as pilot:
        await settle(pilot)
        await pilot.press("2")
        await until(pilot, lambda: isinstance(app.screen, EditorScreen))
        await settle(pilot)
        before = seen(app)
        assert len(before) == 4
        await pilot.press("z")
        await settle(pilot)
        assert seen(app) == {"tests-pane": 200}
        await pilot.press("z")
        await settle(pilot)
        assert seen(app) == before


async def test_titles_are_tinted_in_every_theme(ran: tuple[Path, Path, str]) -> None:
    suites, db, _run = ran
    app = app_on(suites, db)
    async with app.run_test(size=(140, 45)) as pilot:
        await settle(pilot)
        for name, theme in share(app.available_themes.items(), lambda case: case[1].ansi):
            app.theme = name
            style = palette_of(app).style("bold on-focus")
            if theme.ansi:
                assert style.reverse, name
            else:
                assert style.bgcolor is not None, name
                tint = Color.from_rich_color(style.bgcolor)
                text = Color.parse(app.theme_variables["foreground"])
                if not text.ansi:
                    assert tint.get_contrast_text(1.0).brightness == pytest.approx(
                        app.screen.styles.background.get_contrast_text(1.0).brightness
                    ), f"{name}: text that is read on the background is read on the tint"


def test_a_title_is_as_wide_as_its_pane_and_keeps_how_much() -> None:
    for active in (False, True):
        for width in (8, 20, 40, 41):
            (line,) = pane_title("transcript", "4 messages", width, active)
            assert width_of(line) <= width
        assert (
            plain(pane_title("transcript", "4 messages", 40, active)[0]).rstrip()
            == f" transcript {'─' * 16} 4 messages"
        )
        assert plain(pane_title("証拠", "2 of 2", 30, active)[0]).rstrip() == f" 証拠 {'─' * 16} 2 of 2"
        assert (
            plain(pane_title("evidence", (("● ", "accent"), ("edited", "")), 30, active)[0])
            .rstrip()
            .endswith("● edited")
        )


async def test_with_few_cells_every_pane_has_a_name_and_what_to_do_is_said_whole(ran: tuple[Path, Path, str]) -> None:
    suites, db, run = ran
    app = app_on(suites, db.with_name("nothing_ran.db"))
    async with app.run_test(size=(40, 12)) as pilot:
        await settle(pilot)
        app.go("inspect")
        await until(pilot, lambda: isinstance(app.screen, InspectScreen))
        await settle(pilot)
        said = " ".join(text_of(app).split())
        assert "No run is open. Press 1 to go to the suites, r to run a test" in said
        # No key leads into its empty editor, where the next one would be typed.
        assert text_of(app).splitlines()[-1].split() == ["1", "suites", "5", "history", "?", "help"]
        for key in ("e", "tab", "tab"):
            await pilot.press(key)
            await settle(pilot)
            assert not app.screen.query_one(ConfigEditor).has_focus
        app.go("history")
        await until(pilot, lambda: "Nothing has run yet." in text_of(app))
        last = text_of(app).splitlines()[-1]
        assert "1 suites  i import…" in last
        assert "enter open" not in last, "there is nothing to open"
        assert "press 5 to go to the history and open a run there." in said, said
    app = app_on(suites, db)
    async with app.run_test(size=(40, 12)) as pilot:
        await settle(pilot)
        app.inspect(run)
        await until(pilot, lambda: isinstance(app.screen, InspectScreen) and app.screen.shown_run == run)
        await settle(pilot)
        shown = text_of(app)
        assert "[evidence]" in shown
        assert all(name in shown.split("\n")[2] for name in ("tran…", "conf…", " diff ", "dive…"))
        assert "score 0." in shown.split("\n")[1]


@pytest.mark.sweep
@pytest.mark.parametrize("size", [(140, 45), (80, 24)])
async def test_the_panes_of_run_are_zoomed_beside_and_above_each_other(
    ran: tuple[Path, Path, str], size: tuple[int, int]
) -> None:
    suites, db, _run = ran
    app = app_on(suites, db)
    async with app.run_test(size=size) as pilot:
        await settle(pilot)
        app.go("run")
        await until(pilot, lambda: isinstance(app.screen, RunScreen))
        await settle(pilot)
        view = ExecutionView()
        ref = RunRef("RUN", "order-status", "Order", "", 0, 1, "shop")
        for event in (Planned(1, "E", "shop", (ref,), 1, 0), RunStarted(2, "RUN", 1, 0)):
            view.apply(event)
        assert isinstance(app.screen, RunScreen)
        app.screen.show_view(view)
        await settle(pilot)
        before = seen(app)
        assert set(before) == {"left", "right"}
        await pilot.press("z")
        await settle(pilot)
        assert seen(app) == {"left": size[0]}
        await pilot.press("tab")
        await settle(pilot)
        assert seen(app) == {"right": size[0]}
        assert tinted(app) == ["heading"]
        await pilot.press("z")
        await settle(pilot)
        # Where there is little room the transcript that has the focus is shown alone, zoomed or not.
        assert seen(app) == (before if size[0] >= 120 else {"right": size[0]})
