"""Inspect and the Editor are mounted in a pause, before anybody opens them: they appear sooner, and show the same."""

from __future__ import annotations

from pathlib import Path

import pytest
from shop import app_on, copy_samples, run_samples, settle, text_of, until
from textual.pilot import Pilot

from agenteval_tui.history.records import RunFilter
from agenteval_tui.tui.app import AgentevalApp
from agenteval_tui.tui.screens.base_screen import FrameScreen
from agenteval_tui.tui.screens.confirm_dialog import ConfirmScreen
from agenteval_tui.tui.screens.editor.screen import EditorScreen
from agenteval_tui.tui.screens.inspect.screen import InspectScreen
from agenteval_tui.tui.screens.suites.screen import SuitesScreen
from agenteval_tui.tui.terminal import mounting
from agenteval_tui.tui.terminal.mounting import is_there
from agenteval_tui.tui.widgets.config_editor import ConfigEditor


@pytest.fixture
def samples(tmp_path: Path) -> Path:
    return copy_samples(tmp_path)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The samples, and a history in which two of them ran: one fails."""
    folder = tmp_path_factory.mktemp("recorded")
    suites = copy_samples(folder)
    run_samples(suites, folder / "history.db", tests=("order-status", "cancel-it"))
    return suites, folder / "history.db"


async def ahead(pilot: Pilot[int], name: str = "editor") -> FrameScreen:
    app = pilot.app
    assert isinstance(app, AgentevalApp)
    await settle(pilot)
    await app.navigation.mount_ahead(name)
    await settle(pilot)
    screen = app.get_screen(name)
    assert isinstance(screen, FrameScreen)
    assert screen not in app.screen_stack
    assert isinstance(app.screen, SuitesScreen)
    return screen


async def shown(pilot: Pilot[int]) -> str:
    """What the Editor shows of the second test, which is chosen after it was mounted."""
    await pilot.press("down", "2")
    await until(pilot, lambda: isinstance(pilot.app.screen, EditorScreen))
    await settle(pilot)
    return text_of(pilot.app)


@pytest.mark.parametrize("size", [(80, 24), (140, 45), (200, 60)])
async def test_it_shows_the_same(samples: Path, size: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    texts = []
    for is_ahead in (False, True):
        monkeypatch.setenv("AGENTEVAL_DATA_DIR", f"{samples.parent}/data {is_ahead}")  # where each begins anew
        app = app_on(samples, samples.parent / "history.db")
        async with app.run_test(size=size) as pilot:
            await settle(pilot)
            if is_ahead:
                screen = await ahead(pilot)
                assert is_there(screen) == mounting.MOUNTS_UNSEEN
                assert isinstance(screen, EditorScreen)
                assert screen.controller.overview is None, "it reads nothing before it is shown"
            texts.append(await shown(pilot))
            assert app.focused is not None
            texts.append(str(app.focused.id))
    assert texts[:2] == texts[2:]


async def test_it_has_the_theme_and_the_size_of_when_it_is_opened(
    samples: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = app_on(samples, samples.parent / "history.db")
    async with app.run_test(size=(140, 45)) as pilot:
        screen = await ahead(pilot)
        app.theme = "paper"
        await pilot.resize_terminal(80, 24)
        await settle(pilot)
        narrow = await shown(pilot)
        assert app.current_theme.background is not None
        assert screen.styles.background.hex.lower() == app.current_theme.background.lower()
    monkeypatch.setenv("AGENTEVAL_DATA_DIR", f"{samples.parent}/other data")
    other = app_on(samples, samples.parent / "history.db")
    async with other.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        assert await shown(pilot) == narrow


async def test_a_draft_is_offered_when_it_is_opened_and_not_before(
    samples: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agenteval_tui.tui.draft_store.WRITE_AFTER_S", 0.01)
    app = app_on(samples, samples.parent / "history.db")
    async with app.run_test(size=(140, 45)) as pilot:
        await shown(pilot)
        app.screen.query_one(ConfigEditor).focus()
        await pilot.press("space")
        await settle(pilot)
        await pilot.press("escape", "1")
        await until(pilot, lambda: isinstance(app.screen, SuitesScreen))
    app = app_on(samples, samples.parent / "history.db")
    async with app.run_test(size=(140, 45)) as pilot:
        await ahead(pilot)
        assert isinstance(app.screen, SuitesScreen)
        await pilot.press("2")
        await until(pilot, lambda: isinstance(app.screen, ConfirmScreen))


@pytest.mark.parametrize("size", [(80, 24), (140, 45)])
async def test_inspect_shows_the_same(
    recorded: tuple[Path, Path], tmp_path: Path, size: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With its key: the newest failure; and a run that is asked for; both also at the next start."""
    texts: dict[bool, list[str]] = {}
    for is_ahead in (False, True):
        monkeypatch.setenv("AGENTEVAL_DATA_DIR", f"{tmp_path}/data {is_ahead}")
        said = texts[is_ahead] = []
        for wanted in ("", "", "passed", ""):
            app = app_on(*recorded)
            async with app.run_test(size=size) as pilot:
                await settle(pilot)
                if is_ahead:
                    screen = await ahead(pilot, "inspect")
                    assert isinstance(screen, InspectScreen)
                    assert screen.shown_run == ""
                if wanted:
                    rows = app.session.store.run_rows(app.session.store.run_ids(RunFilter(outcomes=(wanted,)))[:1])
                    app.inspect(rows[0].id)
                else:
                    await pilot.press("4")
                await until(pilot, lambda app=app: isinstance(app.screen, InspectScreen) and app.screen.shown_run != "")
                await settle(pilot)
                said += [text_of(app), str(app.focused and app.focused.id)]
                await pilot.press("1")
                await settle(pilot)
        assert said[0] != said[4], "another run is open"
    assert texts[True] == texts[False]


async def test_inspect_without_runs(samples: Path) -> None:
    app = app_on(samples, samples.parent / "history.db")
    async with app.run_test(size=(140, 45)) as pilot:
        await ahead(pilot, "inspect")
        await pilot.press("4")
        await settle(pilot)
        assert "No run is open." in text_of(app)


async def test_with_another_textual_it_is_mounted_when_it_is_opened(
    samples: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mounting, "MOUNTS_UNSEEN", False)
    app = app_on(samples, samples.parent / "history.db")
    async with app.run_test(size=(140, 45)) as pilot:
        screen = await ahead(pilot)
        assert not screen.is_mounted
        assert "config_uxon" in await shown(pilot)


async def test_an_app_that_ends_meanwhile(samples: Path) -> None:
    app = app_on(samples, samples.parent / "history.db")
    async with app.run_test(size=(140, 45)) as pilot:
        await settle(pilot)
        app.exit(0)
        await app.navigation.mount_ahead("editor")
    assert app.return_code == 0
