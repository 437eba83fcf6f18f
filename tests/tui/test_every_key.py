"""Every key that a footer, a help page or a sheet names does something, in a state with data; none ends in an error."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from compared import NEW, OLD, two_executions, write_suite
from shop import app_on, screen_of, settle, text_of
from test_snapshots import an_execution
from textual.pilot import Pilot
from textual.screen import ModalScreen

from agenteval_tui.history.store import Store
from agenteval_tui.tui.action import EVERYWHERE
from agenteval_tui.tui.actions import ACTIONS, key_name
from agenteval_tui.tui.app import AgentevalApp
from agenteval_tui.tui.screens.review import ReviewScreen
from agenteval_tui.tui.screens.run.screen import RunScreen
from agenteval_tui.tui.screens.trends import TrendsScreen
from agenteval_tui.tui.widgets.form import ChoiceField
from agenteval_tui.tui.widgets.sheet_frame import SheetFrame
from agenteval_tui.tui.widgets.virtual_list import VirtualList
from tests.sweeps import share

NAMED = {"↑ ↓": "down", "← →": "right", "j k": "j", "1-5": "3", "J K": "J", "+ -": "plus"}
"""Keys that are named together; one of them is pressed."""
QUIET: dict[str, set[str]] = {
    # What is on the disk and in the history is what is shown: reading it again changes nothing.
    **{scope: {"ctrl+r"} for scope in ("compare", "causes", "history", "agents")},
    "trends": {"ctrl+r", "l"},  # the cursor is on the newest period
    "inspect": {"comma", "f", "alt+a"},  # at the first evidence; nothing is so long that it folds
    "review": {"ctrl+r"},
    # The test that was marked is the one under the cursor; K says what J said: the worst are first now.
    "suites": {"M", "K"},
    "edit": {"f7"},  # it says what A said: nothing fails on this run
    "agents, wide": {"r"},  # the check was made before, with the same end
    "ImportScreen": {"tab"},  # nothing is typed that could be completed
    "ConfirmScreen": {"y"},  # it would delete what the other keys are about
    "SelectScreen": {"down"},  # one choice
    "TriageScreen": {"down"},  # one field
    "AgreementScreen": {"enter"},  # nobody has labelled anything
    "run": {"space", "minus", "plus", "T"},  # they are for a process, and this execution has none
}
"""By screen or sheet: keys that can have no effect in the state in which they are pressed."""


SHEETS: dict[str, str] = {
    "PlanScreen": "suites",
    "NewTestScreen": "suites",
    "ImportScreen": "suites",
    "ConfirmScreen": "suites",
    "TagsScreen": "suites",
    "QuarantineScreen": "suites",
    "RunErrorsScreen": "run",
    "RunPickerScreen": "inspect",
    "CriterionVersionsScreen": "inspect",
    "LabelScreen": "inspect",
    "AddRowScreen": "inspect",
    "ExportRunScreen": "inspect",
    "RelaxScreen": "inspect",
    "SelectScreen": "compare",
    "TriageScreen": "causes",
    "AgreementScreen": "review",
}
"""The screen on which a sheet's keys are pressed, though others open it too. Those of one that is not named here are
pressed on every screen that opens it."""


@dataclass
class Walk:
    """An app, and what it was asked for outside of itself."""

    app: AgentevalApp
    pilot: Pilot[int]
    asked: list[object] = field(default_factory=list)
    silent: list[str] = field(default_factory=list)
    scope: str = ""
    sheets: set[str] = field(default_factory=set)
    """Those whose keys were pressed."""

    def state(self) -> tuple[object, ...]:
        app = self.app
        focused = app.screen.focused
        said = [one.message for one in app._notifications]
        return (type(app.screen), focused and focused.id, text_of(app), app.clipboard, said, len(self.asked), app.theme)

    async def press(self, key: str, where: str) -> None:
        before = self.state()
        await self.pilot.press(key)
        await settle(self.pilot)
        if self.state() == before:
            self.silent.append(f"{where}: {key}")

    async def close_sheets(self) -> None:
        while isinstance(self.app.screen, ModalScreen):
            self.app.screen.dismiss(None)
            await settle(self.pilot)


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("keys")
    suite = write_suite(folder / "suites")
    with Store.open(folder / "h.db") as store:
        two_executions(store, str(suite))
    return suite.parent, folder / "h.db"


def go(walk: Walk, scope: str) -> None:
    """The screen with something in it, the focus on what it is about."""
    app = walk.app
    run = app.session.store.runs_of_execution(NEW)[0].id
    if scope == "inspect":
        app.inspect(run, view="transcript")
    elif scope == "compare":
        app.compare(OLD, NEW)
    elif scope == "edit":
        app.go("editor")
    else:
        app.go(scope)


async def begin(walk: Walk, scope: str) -> None:
    """On the screen, with the focus on what it is about; what can stay as it is stays."""
    await walk.close_sheets()
    if getattr(walk.app.screen, "SCOPE", "") != scope or scope != walk.scope:
        go(walk, scope)
        await settle(walk.pilot)
        walk.scope = scope
    screen = screen_of(walk.app)
    if isinstance(screen, RunScreen) and screen.controller.view is None:
        view = an_execution()
        screen.show_view(view)
        await settle(walk.pilot)
    if isinstance(screen, TrendsScreen) and screen.controller.window != "all":
        screen.controller.window = "all"
        screen.action_reload()
        await settle(walk.pilot)
    if isinstance(screen, ReviewScreen) and screen.controller.item is None:
        await walk.pilot.press("F")
        await settle(walk.pilot)
    first = {"edit": "#tests", "review": "#rating", "inspect": "#transcript"}.get(scope, "VirtualList")
    for found in screen.query(first)[:1]:
        found.focus()
        if isinstance(found, VirtualList) and scope in ("suites", "compare", "causes", "trends"):
            found.cursor = 1
    await walk.pilot.pause()


def keys_of(scope: str) -> list[str]:
    found = [key for one in ACTIONS if one.scope == scope for key in one.keys.split(",")[:1] if key]
    return sorted(found, key=lambda key: key == "l")  # what is open already can't be opened: after `h`


async def press_all(walk: Walk, scope: str) -> None:
    await begin(walk, scope)
    shown = {key_name(key) or NAMED.get(key, "") for key, _, _ in screen_of(walk.app).keys()}  # noqa: SIM118
    for key in dict.fromkeys((*keys_of(scope), *sorted(shown - {"", "question_mark", "f1"}))):
        if key in QUIET.get(scope, ()):
            continue
        await begin(walk, scope)
        await walk.press(key, scope)
        if key == "tab" and scope == "suites":
            await walk.pilot.press("tab")  # back to the list
        sheet = type(walk.app.screen).__name__
        if walk.app.screen.query(SheetFrame) and sheet not in walk.sheets and SHEETS.get(sheet, scope) == scope:
            await press_sheet(walk, lambda scope=scope, key=key: (scope, key))  # type: ignore[misc]


async def press_sheet(walk: Walk, opened_by: Callable[[], tuple[str, str]]) -> None:
    name = type(walk.app.screen).__name__
    walk.sheets.add(name)
    for word, _ in list(walk.app.screen.query_one(SheetFrame).keys):
        key = key_name(word) or NAMED.get(word, "")
        assert key, f"{name}: {word}"
        if key in QUIET.get(name, ()):
            continue
        if type(walk.app.screen).__name__ != name:
            scope, opens = opened_by()
            await begin(walk, scope)
            await walk.pilot.press(opens)
            await settle(walk.pilot)
        if key == "right":
            [one for one in walk.app.screen.query(ChoiceField) if len(one.choices) > 1][-1].focus()
            await walk.pilot.pause()
        await walk.press(key, name)


SCOPES = {
    "suites": 1, "run": 1, "edit": 2, "inspect": 3, "agents": 3,
    "compare": 4, "review": 4, "causes": 5, "history": 5, "trends": 5,
}  # fmt: skip
"""Every screen, with the number of its group: the groups take equally long, each on a worker."""


def in_group(number: int) -> pytest.MarkDecorator:
    return pytest.mark.xdist_group(f"every_key_{number}")


@pytest.fixture
def asked(
    compared: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[AgentevalApp, list[object]]:
    """An app, and what it was asked for outside of itself, which is not done."""
    monkeypatch.chdir(tmp_path)  # what is exported is written here
    app = app_on(*compared)
    found: list[object] = []
    for name in ("start_run", "resume_execution", "open_editor", "exit", "choose_live"):
        monkeypatch.setattr(app, name, lambda *given, name=name, **more: found.append((name, given)))
    return app, found


@pytest.mark.sweep
@pytest.mark.timeout(600)
@pytest.mark.parametrize("scope", [pytest.param(scope, marks=in_group(number)) for scope, number in SCOPES.items()])
async def test_every_key_that_is_named_does_something(asked: tuple[AgentevalApp, list[object]], scope: str) -> None:
    app, found = asked
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        walk = Walk(app, pilot, found)
        await settle(pilot)
        await press_all(walk, scope)
        await walk.close_sheets()
        # The footer of a wide screen names others.
        await pilot.resize_terminal(140, 45)
        await begin(walk, scope)
        named = screen_of(app).keys()
        assert len(named) <= 8
        for word, _, _ in named[:-1]:
            key = key_name(word) or NAMED[word]
            if key not in QUIET.get(scope, set()) | QUIET.get(f"{scope}, wide", set()):
                await begin(walk, scope)
                await walk.press(key, f"{scope}, wide")
        assert walk.silent == []
        assert {sheet for sheet, pressed in SHEETS.items() if pressed == scope} <= walk.sheets
        assert app._exception is None
        assert not [one.text for one in app.notices.all() if "in the program" in one.text]


@in_group(6)
async def test_every_key_that_works_everywhere_does_something(asked: tuple[AgentevalApp, list[object]]) -> None:
    app, found = asked
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        walk = Walk(app, pilot, found)
        await settle(pilot)
        # Redrawing shows the same; zoom has nothing to do where one pane is shown alone (test_pane_focus.py).
        skipped = ("redraw", "zoom")
        everywhere = [one for one in ACTIONS if one.scope == EVERYWHERE and one.keys and one.id not in skipped]
        for one in share(everywhere):
            await begin(walk, "history" if one.id != "go.history" else "suites")
            await walk.press(one.keys.split(",")[0], EVERYWHERE)
        assert walk.silent == []
        assert app._exception is None
