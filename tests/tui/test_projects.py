"""Lists of runs show the open project, or all of them: one key, said in the title, kept for the next start."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from failing import make
from shop import settle, text_of

from agenteval_tui.cli.app_start import AppStart
from agenteval_tui.history.store import Store
from agenteval_tui.tui.app import AgentevalApp
from agenteval_tui.tui.screens.base_screen import FrameScreen
from agenteval_tui.tui.screens.inspect.screen import InspectScreen
from tests.sweeps import share


@pytest.fixture
def db(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Runs of `one`, which is open, and newer ones of `two`; nothing of `three`."""
    monkeypatch.delenv("AGENTEVAL_SCOPE", raising=False)
    for name in ("one", "two", "three"):
        (tmp_path / name / ".git").mkdir(parents=True)
        (tmp_path / name / "shop.suite.yaml").write_text("name: Shop\ntests: []\n")
    path = tmp_path / "all.db"
    with Store.open(path) as store:
        for execution, name in (("ONE1", "one"), ("ONE2", "one"), ("TWO1", "two"), ("TWO2", "two"), ("TWO3", "two")):
            key = str(tmp_path / name / "shop.suite.yaml")
            make(store, execution, suite_key=key, smoke=["text", ""], refund=["tool"], mood=["person"])
    monkeypatch.chdir(tmp_path / "one")
    return path


SCREENS = {  # what is to be read here, and in all projects
    "5": ("history", "2 executions", "5 executions"),
    "6": ("compare", "ONE2", "TWO3"),
    "7": ("trends", "8 runs", "20 runs"),
    "9": ("causes", "2 failures = 2 causes", "4 failures = 2 causes"),
    "0": ("review", "1 of 2", "1 of 5"),
}


async def _shown(pilot: Any, words: str) -> str:
    for _ in range(40):
        await settle(pilot)
        if words in (found := text_of(pilot.app)):
            return found
    return text_of(pilot.app)


async def test_a_key_shows_all_projects_on_every_screen_that_lists_runs(db: Path) -> None:
    app = AgentevalApp(AppStart(db=db))
    async with app.run_test(size=(140, 45)) as pilot:
        await settle(pilot)
        for key, (name, here, everywhere) in share(SCREENS.items()):
            await pilot.press(key)
            first = await _shown(pilot, here)
            assert isinstance(app.screen, FrameScreen)
            assert name == app.screen.SCOPE
            assert " here ▾" in first, name
            assert here in first, first
            assert everywhere not in first
            await pilot.press("H")
            second = await _shown(pilot, everywhere)
            assert "all projects" in second, name
            assert everywhere in second, second
            await pilot.press("H")
            third = await _shown(pilot, here)
            assert " here ▾" in third, name
            assert here in third, third


def _shows_all(screen: str) -> bool:
    """Whether the strip says so; at 80 columns, in short."""
    return screen.splitlines()[0].rstrip().endswith((" all", " all projects ▾"))


async def test_what_was_chosen_is_kept_for_the_next_start_and_holds_on_every_screen(db: Path) -> None:
    app = AgentevalApp(AppStart(db=db))
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("5")
        await settle(pilot)
        await pilot.press("H")
        await pilot.press("9")
        assert _shows_all(await _shown(pilot, "execution TWO3"))
        await pilot.press("q")
    again = AgentevalApp(AppStart(db=db))
    async with again.run_test(size=(80, 24)) as pilot:
        await pilot.press("5")
        shown = await _shown(pilot, "5 executions")
        assert _shows_all(shown)
        assert [line.split("TWO")[1].split()[1] for line in shown.splitlines() if " TWO" in line] == ["two"] * 3
        await pilot.press("H")
        assert "  one" not in await _shown(pilot, "2 executions"), "of one project the place is not said"


async def test_where_nothing_is_of_this_project_the_key_is_named(db: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(db.parent / "three")
    app = AgentevalApp(AppStart(db=db))
    async with app.run_test(size=(80, 24)) as pilot:
        for key, name in {"5": "history", "6": "compare", "7": "trends", "9": "causes"}.items():
            await pilot.press(key)
            await settle(pilot)
            assert isinstance(app.screen, FrameScreen)
            assert name == app.screen.SCOPE
            shown = await _shown(pilot, "Press H to show all projects")
            assert "Other projects have 5 executions. Press H to show all projects" in shown, shown


def _inspected(app: AgentevalApp) -> str:
    """The run that Inspect shows; "" for none."""
    screen = app.screen
    assert isinstance(screen, InspectScreen)
    return screen.shown_run


@pytest.mark.parametrize(("run", "shown"), [("ONE1-000", True), ("TWO3-000", False)])
async def test_inspect_goes_on_with_a_run_of_the_open_project_only(db: Path, run: str, shown: bool) -> None:
    app = AgentevalApp(AppStart(db=db, screen="inspect", target=run))
    async with app.run_test(size=(140, 45)) as pilot:
        await settle(pilot)
        assert _inspected(app) == run, "an id that is named opens, wherever it is from"
        await pilot.press("q")
    again = AgentevalApp(AppStart(db=db))
    async with again.run_test(size=(140, 45)) as pilot:
        await pilot.press("4")
        await settle(pilot)
        assert _inspected(again) == (run if shown else "ONE2-000"), "the newest failure of the open project"
