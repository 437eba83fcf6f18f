"""Where the app can go: a screen, and a thing to show on it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack, cast

from textual import events
from textual.app import App
from textual.screen import ModalScreen

from agenteval_tui.agents.discovery.model import AgentCandidate
from agenteval_tui.core.display import one_line
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.grading.criterion_templates import Starter
from agenteval_tui.grading.spec import CriterionSpec
from agenteval_tui.runs.live_registry import Live
from agenteval_tui.tui.actions import ACTIONS, key_of, keys_of
from agenteval_tui.tui.analysis_context import Session
from agenteval_tui.tui.badges import Counts
from agenteval_tui.tui.code_watch import WatchRequest
from agenteval_tui.tui.inspect_target import InspectTarget
from agenteval_tui.tui.notifications import NotificationSource
from agenteval_tui.tui.presenters.navigation_strip import Tab, running_badge
from agenteval_tui.tui.screen_registry import FACTORIES, sheet
from agenteval_tui.tui.screens.base_screen import FrameScreen
from agenteval_tui.tui.screens.suites.screen import SuitesScreen
from agenteval_tui.tui.services import services
from agenteval_tui.tui.state import State
from agenteval_tui.tui.terminal.mounting import is_there
from agenteval_tui.tui.terminal.sheet import if_answered
from agenteval_tui.tui.workers import start_worker
from agenteval_tui.views.agent_candidates import what_it_is

if TYPE_CHECKING:
    from agenteval_tui.suites.load import LoadedSuite
    from agenteval_tui.tui.presenters.run_rows import Expected
    from agenteval_tui.tui.screens.causes import CausesScreen
    from agenteval_tui.tui.screens.compare.screen import CompareScreen
    from agenteval_tui.tui.screens.editor.screen import EditorScreen
    from agenteval_tui.tui.screens.history.screen import HistoryScreen
    from agenteval_tui.tui.screens.inspect.screen import InspectScreen
    from agenteval_tui.tui.screens.run.screen import RunScreen
    from agenteval_tui.tui.screens.watch import WatchScreen

# Keys that move a cursor: the view beside a list follows when the cursor rests, and before any other key.
MOVES = frozenset({"down", "up", "j", "k", "pagedown", "pageup", "home", "end", "g", "G", "ctrl+d", "ctrl+u"})

# They show something only when another screen says what: no key leads to them while they are empty.
NEED_A_RUN = ("run", "watch")

MOST_BACK = 20  # screens that one can go back to

_FORM = "form"  # what is chosen instead of an agent that was found


class Trail:
    """The names of the screens that were shown, one after the other."""

    def __init__(self) -> None:
        self.shown = ""
        """The screen that is shown now; "" before the first."""
        self._before: list[str] = []

    def go(self, name: str) -> None:
        """Another screen is shown."""
        if self.shown:
            self._before.append(self.shown)
            del self._before[:-MOST_BACK]
        self.shown = name

    def back(self) -> str:
        """Go back to the screen before, which is returned; "" where there is none."""
        if not self._before:
            return ""
        self.shown = self._before.pop()
        return self.shown


def first_screen(last: str, wanted: str) -> str:
    """Where to begin: at the `last` screen of the start before; the first time, or where that shows nothing by itself
    or is not there any more, at the `wanted` one."""
    return last if last in FACTORIES and last not in NEED_A_RUN else wanted or "suites"


class Navigation:
    """The work screens of an app, one of which is shown; `back` goes the way one came."""

    def __init__(
        self,
        app: App[Any],
        session: Session,
        state: State,
        keymap: Mapping[str, str],
        open_editor: Callable[[Path, int], None],
    ) -> None:
        self._app = app
        self._session = session
        self._state = state
        self._keymap = keymap
        self._open_editor = open_editor
        self._trail = Trail()
        self._untold = False
        there = {f"go.{name}": name for name in FACTORIES}
        self._names = [
            (there[action.id], key_of(action.id, keymap), action.label) for action in ACTIONS if action.id in there
        ]

    @property
    def top(self) -> FrameScreen | None:
        """The work screen that is shown, when nothing lies over it."""
        screen = self._app.screen_stack[-1] if self._app.screen_stack else None
        return screen if isinstance(screen, FrameScreen) else None

    def follow(self, event: events.Event) -> None:
        """What is done to the thing under the cursor is done to what is shown of it."""
        if isinstance(event, events.MouseDown) or (isinstance(event, events.Key) and event.key not in MOVES):
            screen = self.top
            if screen is not None:
                screen.follow_now()

    def tell_new_runs(self) -> None:
        """What the history says may be different now: the screen that is shown reads it again; one below a sheet does
        when the sheet is gone (`tell_late`), so that it says what the sheet is about."""
        self._untold = False
        screen = self._app.screen_stack[-1] if self._app.screen_stack else None
        # One that is still to be mounted reads the history anyway.
        if screen is None or not is_there(screen):
            return
        # Of the sheets those have it that list what is in the history; none is imported for this.
        if (tell := getattr(screen, "new_runs", None)) is not None:
            tell()
        # A sheet may have been told; the screen below it still has to be.
        self._untold = not isinstance(screen, FrameScreen)

    def tell_late(self) -> None:
        """Tell a screen that was below a sheet when there were new runs."""
        if self._untold and self.top is not None:
            self.tell_new_runs()

    def tabs(self, running: int, counts: Counts) -> tuple[Tab, ...]:
        """The screens as the strip names them; `running`: how many executions run."""
        badges = {"run": running_badge(running)}
        if counts.causes:
            badges["causes"] = (str(counts.causes), "failed")
        if counts.reviews:
            badges["review"] = (str(counts.reviews), "review")
        return tuple(Tab(name, key, label, badges.get(name, ("", ""))) for name, key, label in self._names)

    def retitle(self) -> None:
        """What the title says has changed, which can be read behind a sheet too."""
        below = (
            screen_below for screen_below in reversed(self._app.screen_stack) if isinstance(screen_below, FrameScreen)
        )
        screen = next(below, None)
        if screen is not None:
            screen.retitle()

    def go(self, name: str) -> None:
        """Show a screen, making it if it was never shown."""
        if name not in FACTORIES:
            return
        # An answer that comes while a sheet (help, a question) lies over the screen: the sheet would be replaced.
        while isinstance(self._app.screen, ModalScreen):
            self._app.pop_screen()
        if name == self._trail.shown:
            return
        made_before = self._made(name)
        if made_before is None:
            self._make(name)
        if self._trail.shown:
            self._app.switch_screen(name)
        else:
            self._app.push_screen(name)
        self._trail.go(name)
        if made_before is not None and is_there(made_before):
            made_before.let_keys_work()
            made_before.revisited()
        # After the screen has taken what it was opened with.
        self._app.call_later(self.keep_places)

    def _make(self, name: str) -> FrameScreen:
        """Make a screen that was never shown. It is mounted when it is shown."""
        screen = FACTORIES[name]()
        screen.restore(self._state.of(name) or self._place_of_selection(name))
        self._app.install_screen(screen, name)
        return screen

    def _place_of_selection(self, name: str) -> Mapping[str, Any]:
        """Where a screen begins that no start has kept a place of: the Editor on the test that Suites has selected."""
        suites = cast("SuitesScreen | None", self._made("suites")) if name == "editor" else None
        return {"test": suites.selected_test} if suites is not None and suites.selected_test else {}

    def _open(self, name: str) -> Any:
        """Show a screen and return it."""
        self.go(name)
        return self._app.get_screen(name)

    def _made(self, name: str) -> FrameScreen | None:
        """A screen, if it was ever shown."""
        return cast("FrameScreen", self._app.get_screen(name)) if self._app.is_screen_installed(name) else None

    def choose_screen(self) -> None:
        """List the screens, with their keys; for the mouse, which has no numbers."""
        there = {f"go.{name}": name for name in FACTORIES}
        choices = [
            (there[action.id], f"{keys_of(action, self._keymap)}  {action.label}", action.description)
            for action in ACTIONS
            if action.id in there
        ]

        self._app.push_screen(sheet("choose", "screens", choices, self._trail.shown), if_answered(self.go))

    def keep_places(self) -> None:
        """Keep where the person is and what the screens show, for the next start."""
        if not self._trail.shown:
            return
        # Of a screen that is not made yet stays what was kept before.
        screens = {name: screen for name in FACTORIES if (screen := self._made(name)) is not None and is_there(screen)}
        places = {name: screen.kept() for name, screen in screens.items()}
        places["projects"] = {"all": self._session.everything}
        self._state.keep_place(self._trail.shown, {name: data for name, data in places.items() if data is not None})

    def back(self) -> None:
        """Leave what is open inside the screen, else go to the screen before."""
        screen = self.top
        if screen is None or (is_there(screen) and (screen.pane_focus.leave() or screen.step_back())):
            return
        name = self._trail.back()
        if name:
            self._app.switch_screen(name)
            if (earlier := self._made(name)) is not None and is_there(earlier):
                earlier.let_keys_work()

    def inspect(self, run_id: str, **how: Unpack[InspectTarget]) -> None:
        """Open a run in the workbench."""
        screen: InspectScreen = self._open("inspect")
        screen.open_run(run_id, **how)

    def tried_criterion(self) -> CriterionSpec | None:
        """The criterion in no file yet that is tried in Inspect, as it is edited there."""
        screen = cast("InspectScreen | None", self._made("inspect"))
        return None if screen is None else screen.tried

    def show_difference(self, left: str, right: str) -> None:
        """Compare two runs step by step."""
        self.inspect(left, view="difference", beside=right)

    def compare(self, a: str, b: str, *, test: tuple[str, str] | None = None) -> None:
        """Compare two executions by id; `a` "" is the baseline, `b` "" the newest execution. `test`: the suite's key
        and the id of the test to begin with."""
        screen: CompareScreen = self._open("compare")
        screen.compare(a, b, test)

    def show_causes(self, execution: str = "", *, suites: Sequence[str] = (), tests: Sequence[str] = ()) -> None:
        """Show the causes of failures: of an execution, else of the newest runs of these suites (keys; none: of all)
        and tests (ids; none: of all)."""
        screen: CausesScreen = self._open("causes")
        screen.open_failures(execution, suites, tests)

    def compare_versions(self, suite_key: str, test: str, criterion: str, old: str, new: str) -> None:
        """Compare two versions of a criterion over the stored runs of its test."""
        screen: CompareScreen = self._open("compare")
        screen.open_versions(suite_key, test, criterion, old, new)

    def edit_test(
        self, suite: str, test: str, *, criterion: str = "", starter: Starter | None = None, run: str = ""
    ) -> None:
        """Open a test in the Editor; `starter`: with this criterion added, as an edit that is not saved yet; `run`: the
        recorded run that it is judged on first."""
        screen: EditorScreen = self._open("editor")
        screen.open_test(suite, test, criterion=criterion, starter=starter, run=run)

    def new_test(self, loaded: LoadedSuite) -> None:
        """Ask for a new test's name and prompt, write it into the suite's file, and open it in the Editor."""

        self._app.push_screen(sheet("new_test", loaded), if_answered(partial(self.edit_test, loaded.key)))

    def new_suite(self) -> None:
        """Offer a suite for each agent that is found in the folder, and a form; without any agent, the form at once."""
        start_worker(self._app, self._offer_agents, group="agents found", awaited=True)

    async def _offer_agents(self) -> None:
        workspace = self._session.workspace
        try:
            findings = await asyncio.to_thread(workspace.agent_candidates)
        except AgentevalError:
            findings = None  # the form says it
        if findings is None or not findings.agents:
            self._fill_in_suite()
            return
        agents = {agent.place: agent for agent in findings.agents}

        def chosen(place: str | None) -> None:
            if place == _FORM:
                self._fill_in_suite()
            elif place is not None:
                start_worker(self._app, partial(self._write_suite, agents[place]), group="agents found", awaited=True)

        choices = [
            (place, one_line(agent.name, 30), f"{one_line(agent.place)}  {what_it_is(agent)}")
            for place, agent in agents.items()
        ]
        choices.append((_FORM, "another agent…", "yours, the bundled one, or one of another suite: a form"))
        self._app.push_screen(sheet("choose", "A suite for which agent?", choices, choices[0][0]), chosen)

    async def _write_suite(self, agent: AgentCandidate) -> None:
        try:
            written = await asyncio.to_thread(self._session.workspace.suite_for, agent)
        except AgentevalError as error:
            services(self._app.screen).say_error(error)
            return
        self.show_test(*written)

    def _fill_in_suite(self) -> None:
        """Ask for a new suite and its first test, write its file, and open the test in the Editor."""

        def made(written: tuple[str, str]) -> None:
            self.edit_test(*written)

        self._app.push_screen(sheet("new_suite"), if_answered(made))

    def watch_live(self, live: Live, expected: Expected | None = None, *, show: bool = True) -> None:
        """Watch an execution that runs now. `expected`: what its plan said that it takes. Not `show`: the Run screen
        watches it, and the person stays where they are."""
        if show:
            self.go("run")
        screen = cast("RunScreen", self._made("run") or self._make("run"))
        screen.attach(live, expected)

    def watch_code(self, request: WatchRequest) -> None:
        """Watch the code of these tests' agents."""
        screen: WatchScreen = self._open("watch")
        screen.watch_code(request)

    def watches(self, execution: str) -> bool:
        """Does the Run screen watch it, shown or not? Then it says itself how it ended."""
        screen = cast("RunScreen | None", self._made("run"))
        return screen is not None and screen.watches(execution)

    def looks_at(self, execution: str) -> bool:
        """Is the person looking at it?"""
        if self._trail.shown == "inspect":
            inspect = cast("InspectScreen | None", self._made("inspect"))
            return inspect is not None and inspect.follows(execution)
        return self._trail.shown == "run" and self.watches(execution)

    def show_execution(self, execution: str, *, back: bool = True) -> None:
        """Show the runs of an execution that is in the history; esc leads back to the screen where this was asked.

        Not `back`: to the list of executions, for want of such a screen.
        """
        visiting = back and self._trail.shown != "history"
        screen: HistoryScreen = self._open("history")
        screen.open_execution(execution, visiting=visiting)

    def show_test(self, file: str, test: str) -> None:
        """Show a test on the Suites screen; the suites are read again."""
        screen: SuitesScreen = self._open("suites")
        screen.show_test(file, test)

    def visit(self, place: NotificationSource) -> None:
        """Show what a notice, or a row of a list, is about."""
        if place.kind == "run":
            self.inspect(place.ref)
        elif place.kind == "execution":
            self.show_execution(place.ref)
        elif place.kind == "file":
            self._open_editor(Path(place.ref), 1)
        elif place.kind == "screen":
            self.go(place.ref)
        else:
            self.show_test(place.ref, place.test)
