"""A sheet goes once, and takes nothing else away, whatever comes while it closes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from rich.style import Style
from sampled import fresh, samples
from shop import app_on, press_at_once, settle, text_of, until
from textual import events
from textual.app import App, ComposeResult
from textual.command import CommandList, CommandPalette
from textual.containers import Vertical
from textual.pilot import Pilot
from textual.screen import ModalScreen, Screen
from textual.widget import Widget
from textual.widgets import Input, Static
from textual.widgets.option_list import Option
from walked import every_screen

from agenteval_tui.tui import input_queue
from agenteval_tui.tui.app import AgentevalApp
from agenteval_tui.tui.input_queue import InputQueue
from agenteval_tui.tui.screens.confirm_dialog import ConfirmScreen
from agenteval_tui.tui.screens.help import HelpScreen
from agenteval_tui.tui.screens.plan import PlanScreen
from agenteval_tui.tui.screens.select_dialog import SelectScreen
from agenteval_tui.tui.screens.suites.screen import SuitesScreen
from agenteval_tui.tui.screens.theme import ThemeScreen
from agenteval_tui.tui.terminal.sheet import CommandSheet, Sheet
from agenteval_tui.tui.widgets.form import Form
from tests.sweeps import share

__all__ = ["fresh", "samples"]  # fixtures

pytestmark = pytest.mark.xdist_group("sheets")


def key(name: str) -> Callable[[AgentevalApp], None]:
    return lambda app: void(app.post_message(events.Key(name, name if len(name) == 1 else None)))


def void(_: object) -> None:
    return


def click(x: int, y: int) -> Callable[[AgentevalApp], None]:
    def both(app: AgentevalApp) -> None:
        for kind in (events.MouseDown, events.MouseUp):
            app.post_message(kind(None, x, y, 0, 0, 1, False, False, False, x, y))

    return both


BESIDE = click(1, 30)
LINE = click(40, 12)
ESCAPE, ENTER, UNDER = key("escape"), key("enter"), key("j")
STORMS: dict[str, Sequence[Callable[[AgentevalApp], None]]] = {
    "five clicks beside it": [BESIDE] * 5,
    "triple click in it": [LINE] * 3,
    "escape five times": [ESCAPE] * 5,
    "enter three times": [ENTER] * 3,
    "click and key": [BESIDE, ESCAPE, LINE, ENTER],
    "escape, click, click": [ESCAPE, LINE, BESIDE],
    "enter and escape": [ENTER, ESCAPE, ENTER, ESCAPE],
}


async def storm(pilot: Pilot[int], app: AgentevalApp, gestures: Sequence[Callable[[AgentevalApp], None]]) -> None:
    for gesture in gestures:
        gesture(app)
    await settle(pilot)
    assert app._exception is None
    assert app.screen_stack[0] is not app.screen
    assert isinstance(app.screen_stack[1], SuitesScreen) or not isinstance(app.screen, ModalScreen)


def every_kind(app: AgentevalApp) -> dict[str, Callable[[], Screen[Any]]]:
    """Some sheets of each making: with a list, with keys of their own, with a preview, Textual's own."""
    choices = [(f"one{number}", f"one {number}", "") for number in range(30)]
    return {
        "palette": CommandSheet,
        "list": lambda: SelectScreen("which", choices, "one1"),
        "question": lambda: ConfirmScreen("Really?", lambda _: [(("a", ""),)], [("y", "yes", "do it")]),
        "help": lambda: HelpScreen("suites", {}, ()),
        "themes": lambda: ThemeScreen(app.available_themes, app.theme),
    }


async def test_a_storm_of_events_takes_away_the_sheet_and_nothing_else(fresh: tuple[Path, Path]) -> None:
    app = app_on(*fresh)
    async with app.run_test(size=(120, 40), notifications=True) as pilot:
        await settle(pilot)
        kinds = every_kind(app)
        cases = product(kinds, STORMS, (False, True))
        for name, storms, waits in share(cases, lambda case: case[0]):
            app.go("suites")
            answers: list[object] = []
            app.push_screen(kinds[name](), answers.append)
            if waits:
                await settle(pilot)
                depth = len(app.screen_stack)
            else:
                depth = 3
            await storm(pilot, app, STORMS[storms])
            assert len(app.screen_stack) <= depth, (name, storms)
            assert len(app.screen_stack) >= 2, (name, storms)
            assert len(answers) <= 1, (name, storms)
            while isinstance(app.screen, ModalScreen):
                app.screen.dismiss(None)
                await settle(pilot)


async def test_the_palettes_command_runs_once(fresh: tuple[Path, Path]) -> None:
    app = app_on(*fresh)
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        await pilot.press("ctrl+p")
        await settle(pilot)
        assert isinstance(app.screen, CommandPalette)
        app.screen.query_one(Input).value = "keys of this screen"
        await settle(pilot)
        for gesture in (key("down"), ENTER, ENTER, ENTER):
            gesture(app)
        await settle(pilot)
        await settle(pilot)
        assert [type(one).__name__ for one in app.screen_stack[1:]] == ["SuitesScreen", "HelpScreen"]


async def test_a_click_beside_a_palette_of_which_the_terminal_shows_less_now_does_nothing(
    fresh: tuple[Path, Path],
) -> None:
    app = app_on(*fresh)
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await pilot.press("ctrl+p")
        await settle(pilot)
        app.screen.post_message(events.Click(app.screen, 300, 5, 0, 0, 1, False, False, False, 300, 5))
        await settle(pilot)
        assert isinstance(app.screen, CommandPalette)
        assert app._exception is None


async def test_page_keys_do_nothing_in_a_palette_that_has_no_room_for_its_list(fresh: tuple[Path, Path]) -> None:
    app = app_on(*fresh)
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await pilot.press("ctrl+p", "g", "o")
        await settle(pilot)
        assert isinstance(app.screen, CommandPalette)
        commands = app.screen.query_one(CommandList)
        await pilot.resize_terminal(3, 2)
        await settle(pilot)
        assert not commands.scrollable_content_region
        commands.set_options([Option("one"), Option("two")])
        commands.highlighted = 0
        assert commands.highlighted == 0
        commands.action_page_up()
        commands.action_page_down()
        assert app._exception is None


async def test_a_click_on_a_command_that_is_not_listed_any_more_does_nothing(fresh: tuple[Path, Path]) -> None:
    app = app_on(*fresh)
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        await pilot.press("ctrl+p")
        await settle(pilot)
        await pilot.press(*"go")
        await settle(pilot)
        commands = app.screen.query_one(CommandList)
        assert commands.option_count > 2
        late = events.Click(commands, 4, 2, 0, 0, 1, False, False, False, style=Style(meta={"option": 2}))
        commands.post_message(late)
        commands.clear_options()  # as the next letter does
        await settle(pilot)
        assert app._exception is None


class Plain(Sheet[str]):
    def compose(self) -> ComposeResult:
        yield Input()


async def test_a_sheet_under_another_one_goes_when_that_has_gone(fresh: tuple[Path, Path]) -> None:
    app = app_on(*fresh)
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        below, above = Plain(), Plain()
        answers: list[str | None] = []
        app.push_screen(below, answers.append)
        app.push_screen(above, answers.append)
        await settle(pilot)
        below.dismiss("below")
        below.dismiss("again")
        await settle(pilot)
        assert app.screen is above
        above.dismiss("above")
        await settle(pilot)
        assert answers == ["above", "below"]
        assert isinstance(app.screen, SuitesScreen)


async def test_a_theme_that_was_chosen_stays(fresh: tuple[Path, Path]) -> None:
    app = app_on(*fresh)
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await pilot.press("f2")
        await settle(pilot)
        before = app.theme
        for gesture in (key("down"), ENTER, ESCAPE, ESCAPE):
            gesture(app)
        await settle(pilot)
        assert app.theme != before
        assert isinstance(app.screen, SuitesScreen)


def test_a_theme_that_is_registered_anew_is_the_one_that_is_found(fresh: tuple[Path, Path]) -> None:
    app = app_on(*fresh)
    old = app.get_theme("dusk")
    assert old is not None
    assert app.get_theme("dusk") is old
    new = replace(old, primary="#123456")
    app.register_theme(new)
    assert app.get_theme("dusk") is new
    assert app.get_theme("another") is None
    app.register_theme(replace(old, name="another"))
    assert app.get_theme("another") is not None
    app.unregister_theme("another")
    assert app.get_theme("another") is None


@pytest.mark.parametrize("kind", [events.MouseDown, events.MouseUp, events.MouseMove, events.MouseScrollDown])
async def test_the_mouse_on_what_has_just_gone_does_nothing(kind: type[events.MouseEvent]) -> None:
    """What was removed is in the toolkit's picture until the next one."""

    class Small(App[None]):
        def __init__(self) -> None:
            super().__init__()
            self.keys = InputQueue(self)

        async def on_event(self, event: events.Event) -> None:
            await self.keys.take(event, super().on_event)

        def compose(self) -> ComposeResult:
            with Vertical():
                yield Static("text\n" * 5, id="text")

    app = Small()
    async with app.run_test(size=(40, 10)) as pilot:
        await pilot.pause()
        gone = app.query_one("#text")
        gone._parent = None  # as it is within the removing
        app.post_message(kind(None, 3, 2, 0, 0, 1, False, False, False, 3, 2))
        await pilot.pause()
        gone._parent = app.query_one(Vertical)
        assert app._exception is None


def test_every_sheet_of_the_program_is_one() -> None:
    """Also those of tomorrow: one that is no `Sheet` would pop whatever is on top."""
    every_screen()  # imports them
    found: list[type] = []
    pending: list[type] = [ModalScreen]
    while pending:
        kinds = pending.pop().__subclasses__()
        pending += kinds
        found += [kind for kind in kinds if kind.__module__.startswith("agenteval_tui.")]
    assert len(found) > 25
    assert [kind for kind in found if not issubclass(kind, Sheet | CommandSheet)] == []


@pytest.mark.parametrize("words", ["agenteval", "plan a run"])
async def test_a_double_click_opens_one_sheet(fresh: tuple[Path, Path], words: str) -> None:
    """The second click is for the sheet that the first one opened, however fast it comes."""
    app = app_on(*fresh)
    async with app.run_test(size=(140, 30)) as pilot:  # a narrow strip has no "agenteval"
        await settle(pilot)
        await pilot.press("g")  # a suite's last line has it
        await settle(pilot)
        places = [(line.index(words), y) for y, line in enumerate(text_of(app).splitlines()) if words in line]
        place = places[0] if words == "agenteval" else places[-1]
        for _ in range(2):
            click(*place)(app)
        await settle(pilot)
        assert len([one for one in app.screen_stack if isinstance(one, ModalScreen)]) == 1, app.screen_stack


async def test_a_key_waits_for_the_one_before_it_however_slow_the_machine_is(
    fresh: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its time is up at once here: it goes on only when the app has nothing to do."""
    monkeypatch.setattr(input_queue, "PATIENCE_S", 0.0)
    app = app_on(*fresh)
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        for _ in range(3):
            press_at_once(pilot, "tab", "slash", *"kettle")
            await until(pilot, lambda: app.input_queue.is_empty)
            await settle(pilot)
            assert isinstance(app.focused, Input)
            assert app.focused.value == "kettle"
            await pilot.press("escape")


async def test_what_is_pasted_waits_for_the_key_before_it(fresh: tuple[Path, Path]) -> None:
    app = app_on(*fresh)
    async with app.run_test(size=(100, 30)) as pilot:
        await settle(pilot)
        app.post_message(events.Key("slash", "/"))
        app.post_message(events.Paste("kettle"))
        await settle(pilot)
        assert isinstance(app.focused, Input)
        assert app.focused.value == "kettle"


LONG = (
    "arm B is 'shop/assistant', but test 'order-status' has no agent or variation of that name: known here are"
    " shop/support, shop/sql and the variations formal and terse"
)


def inside(app: AgentevalApp, widget: Widget) -> str:
    """The words within a widget on the screen."""
    region = widget.region
    rows = text_of(app).split("\n")[region.y : region.bottom]
    return " ".join(" ".join(row[region.x : region.right].strip("│▁▂▃▄▅▆▇█ ") for row in rows).split())


@pytest.mark.sweep
@pytest.mark.parametrize("size", [(80, 24), (60, 20), (140, 45)])
async def test_the_error_of_a_field_is_shown_whole(fresh: tuple[Path, Path], size: tuple[int, int]) -> None:
    """Beside the field where there is room, else below it; and it goes when it is no longer true."""
    app = app_on(*fresh)
    async with app.run_test(size=size) as pilot:
        await settle(pilot)
        await pilot.press("j", "P")
        await until(pilot, lambda: isinstance(app.screen, PlanScreen))
        form = app.screen.query_one(Form)
        await settle(pilot)
        form.complain({"ab": LONG, "repeat": "not a number"})
        await settle(pilot)
        assert f"! {LONG}" in inside(app, form)
        assert "! not a number" in inside(app, form)
        form.complain({})
        await settle(pilot)
        assert "!" not in inside(app, form)
        rows = [form.query_one(f"#field-{name}").region.y for name in ("variation", "ab", "sample")]
        assert rows == [rows[0], rows[0] + 1, rows[0] + 2], "the fields are below each other again"
