"""A screen, sheet or form that goes while it comes breaks nothing, and neither does who finds it half made."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from sampled import fresh, samples
from shop import app_on, settle
from textual.screen import ModalScreen, Screen
from textual.widget import Widget

from agenteval_tui.tui.actions import in_scope
from agenteval_tui.tui.app import AgentevalApp
from agenteval_tui.tui.screen_registry import FACTORIES
from agenteval_tui.tui.screens.base_screen import FrameScreen
from agenteval_tui.tui.screens.confirm_dialog import ConfirmScreen
from agenteval_tui.tui.screens.editor.controller import EditorController
from agenteval_tui.tui.screens.editor.panes import CriteriaPane, PreviewPane, TestFormPane, TestListPane
from agenteval_tui.tui.screens.inspect.controller import InspectController
from agenteval_tui.tui.screens.inspect.panes import ConfigPane, EvidencePane, TranscriptPane
from agenteval_tui.tui.screens.new_test import NewSuiteScreen, TagsScreen
from agenteval_tui.tui.screens.notification_log import NotificationLogScreen
from agenteval_tui.tui.screens.quarantine import QuarantineScreen
from agenteval_tui.tui.screens.select_dialog import SelectScreen
from agenteval_tui.tui.screens.suites.screen import SuitesScreen
from agenteval_tui.tui.widgets.form import Field, Form
from agenteval_tui.tui.widgets.sheet_frame import SheetFrame
from tests.sweeps import share

__all__ = ["fresh", "samples"]  # fixtures

pytestmark = pytest.mark.xdist_group("sheets")

TURNS = (0, 1, 2, 3, 4, 5, 6, 8, 11, 15, 20)  # of the loop


async def turns(count: int) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


def broken(app: AgentevalApp) -> list[str]:
    """Everything that the app said of its own bugs."""
    return [one.text for one in app.notices.all() if "bug" in one.text] + (
        [repr(app._exception)] * bool(app._exception)
    )


SHEETS: dict[str, Callable[[], Screen[Any]]] = {
    "a quarantine": lambda: QuarantineScreen("suite", "test", criteria=["one"]),
    "a list": lambda: SelectScreen("which", [("a", "a", "")], "a"),
    "a new suite": NewSuiteScreen,
    "tags": lambda: TagsScreen(2, ["smoke"]),
    "notices": lambda: NotificationLogScreen(()),
    "a question": lambda: ConfirmScreen("Really?", lambda _: [(("a", ""),)], [("y", "yes", "do it")]),
}


async def test_a_sheet_that_goes_while_it_comes_breaks_nothing(fresh: tuple[Path, Path]) -> None:
    app = app_on(*fresh)
    async with app.run_test(size=(100, 30)) as pilot:
        await settle(pilot)
        for name, count in share(product(SHEETS, TURNS), lambda case: case[0]):
            sheet = SHEETS[name]()
            app.push_screen(sheet)
            await turns(count)
            sheet.dismiss(None)
            await pilot.pause()
            assert not isinstance(app.screen, ModalScreen), (name, count)
            assert broken(app) == [], (name, count)


@pytest.mark.sweep
@pytest.mark.parametrize("name", FACTORIES)
async def test_an_app_may_end_while_a_screen_comes(fresh: tuple[Path, Path], name: str) -> None:
    """As when the terminal is closed, or the program is told to end."""
    for count in (0, 3, 6):
        app = app_on(*fresh)
        async with app.run_test(size=(100, 30)) as pilot:
            await pilot.pause()
            app.go(name)
            await turns(count)
            app.exit(0)
        assert app.return_code == 0, count
        assert broken(app) == [], count


@pytest.mark.sweep
@pytest.mark.parametrize("name", ["a quarantine", "a new suite", "a list"])
async def test_an_app_may_end_while_a_sheet_comes(fresh: tuple[Path, Path], name: str) -> None:
    for count in (0, 2, 5, 9):
        app = app_on(*fresh)
        async with app.run_test(size=(100, 30)) as pilot:
            await pilot.pause()
            app.push_screen(SHEETS[name]())
            await turns(count)
            app.exit(0)
            app.exit(0)  # told so twice
        assert broken(app) == [], count


async def test_what_others_tell_a_screen_before_it_is_made_breaks_nothing(fresh: tuple[Path, Path]) -> None:
    app = app_on(*fresh)
    told: tuple[Callable[[FrameScreen], object], ...] = (
        lambda screen: app.navigation.retitle(),
        lambda screen: app.navigation.tell_new_runs(),
        lambda screen: app.keep_places(),
        lambda screen: screen.follow_now(),
        lambda screen: screen.ask(lambda: 1, lambda _: screen.query_one("#title"), group="mine"),
    )
    async with app.run_test(size=(100, 30)) as pilot:
        await settle(pilot)
        for name in share(sorted(set(FACTORIES) - {"suites"})):
            app.go(name)
            screen = app.screen
            assert isinstance(screen, FrameScreen)
            assert not screen.is_mounted, name
            for tell in told:
                tell(screen)
            await settle(pilot)
            assert screen.is_mounted, name
            assert broken(app) == [], name


async def test_places_may_be_kept_before_the_first_screen_is_made(
    fresh: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The monkey, seed 1: the app was left while its first screen came."""
    app = app_on(*fresh)
    compose = SuitesScreen.compose
    kept: list[bool] = []

    def keeping(self: SuitesScreen) -> Iterator[Widget]:
        app.keep_places()
        kept.append(True)
        yield from compose(self)

    monkeypatch.setattr(SuitesScreen, "compose", keeping)
    async with app.run_test(size=(100, 30)) as pilot:
        await settle(pilot)
        assert kept
        assert broken(app) == []


async def test_a_key_of_a_screen_that_is_not_made_yet_does_nothing(fresh: tuple[Path, Path]) -> None:
    """The monkey, seed 1: a key pressed on the screen before reached the app when another one was shown."""
    app = app_on(*fresh)
    async with app.run_test(size=(100, 30)) as pilot:
        await settle(pilot)
        for name in share(sorted(set(FACTORIES) - {"suites"})):
            app.go(name)
            screen = app.screen
            assert not screen.is_mounted, name
            for one in in_scope(name):
                if not one.method.startswith("app."):
                    assert not await app.run_action(one.method, screen), one.id
            await app.action_back()
            await settle(pilot)
            assert broken(app) == [], name
            assert isinstance(app.screen, SuitesScreen), name


async def test_a_sheet_that_is_not_made_yet_can_only_be_closed(fresh: tuple[Path, Path]) -> None:
    app = app_on(*fresh)
    async with app.run_test(size=(100, 30)) as pilot:
        await settle(pilot)
        app.push_screen(SHEETS["a list"]())
        assert not await app.run_action("step(1)", app.screen)
        assert await app.run_action("dismiss(None)", app.screen)
        await settle(pilot)
        assert broken(app) == []
        assert isinstance(app.screen, SuitesScreen)


async def test_what_a_screen_asked_for_waits_until_it_is_made(fresh: tuple[Path, Path]) -> None:
    app = app_on(*fresh)
    got: list[object] = []
    async with app.run_test(size=(100, 30)) as pilot:
        await settle(pilot)
        app.go("history")
        screen = app.screen
        assert isinstance(screen, FrameScreen)
        screen.ask(lambda: 1, lambda _: got.append(screen.is_mounted), group="mine")
        await settle(pilot)
        assert got == [True]


async def test_a_form_that_is_taken_away_while_it_comes_shows_no_notes(fresh: tuple[Path, Path]) -> None:
    """The monkey, seed 4 at 80x24: the form was told that it was there when its fields had gone already."""
    app = app_on(*fresh)
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        for count in share(TURNS[:6]):
            form = Form([Field("name", "Name", hint="what it is called"), Field("two", "Two", choices=(("a", "a"),))])
            app.screen.mount(form)
            await turns(count)
            form.remove()
            await settle(pilot)
            assert broken(app) == [], count
            assert not form.is_attached, count


async def test_a_pane_that_is_taken_away_while_it_comes_breaks_nothing(fresh: tuple[Path, Path]) -> None:
    app = app_on(*fresh)
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        for count in share(TURNS):
            inspect = InspectController(app.say)
            panes: list[Widget] = [
                kind(EditorController()) for kind in (TestListPane, TestFormPane, CriteriaPane, PreviewPane)
            ]
            panes += [TranscriptPane(), EvidencePane(inspect), ConfigPane(inspect)]
            panes.append(SheetFrame("A sheet", (("esc", "close"),)))
            for pane in panes:
                app.screen.mount(pane)
                await turns(count)
                pane.remove()
                await settle(pilot)
                assert broken(app) == [], (pane, count)
                assert not pane.is_attached, (pane, count)


def parts(kinds: Iterable[type[Widget]]) -> list[str]:
    """Those of our own widgets that have parts, and what they are made of looks at none of them too late."""
    return sorted(
        kind.__name__
        for kind in kinds
        if "compose" in vars(kind) and not issubclass(kind, Screen) and kind.__module__.startswith("agenteval_tui.")
    )


def test_every_widget_with_parts_is_known_here() -> None:
    """A new one has to be taken away while it comes in a test above."""
    from walked import every_screen

    every_screen()  # imports them
    pending, found = [Widget], set()
    while pending:
        kinds = pending.pop().__subclasses__()
        pending += kinds
        found |= set(kinds)
    assert parts(found) == ["Form", "SheetFrame", "TitledPane"]
