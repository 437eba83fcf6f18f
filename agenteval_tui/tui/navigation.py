"""Where the app can go: a screen, and a thing to show on it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from textual import events
from textual.screen import ModalScreen

from agenteval_tui.tui.actions import ACTIONS, keys_of
from agenteval_tui.tui.external_programs import ExternalPrograms
from agenteval_tui.tui.screen_registry import FACTORIES
from agenteval_tui.tui.screens.base_screen import FrameScreen
from agenteval_tui.tui.terminal.mounting import is_there

# Keys that move a cursor: what stands beside a list follows when it rests, and before any other key.
MOVES = frozenset({"down", "up", "j", "k", "pagedown", "pageup", "home", "end", "g", "G"})

# They show something only when another screen says what: nobody is led to their emptiness.
NEED_A_RUN = ("run", "difference", "branches")

if TYPE_CHECKING:
    from agenteval_tui.grading.criterion_templates import Starter
    from agenteval_tui.grading.spec import CriterionSpec
    from agenteval_tui.runs.live_registry import Live
    from agenteval_tui.suites.load import LoadedSuite
    from agenteval_tui.tui.analysis_context import Session
    from agenteval_tui.tui.inspect_target import InspectTarget
    from agenteval_tui.tui.notification_log import NotificationSource
    from agenteval_tui.tui.presenters.run_rows import Expected
    from agenteval_tui.tui.screens.causes import CausesScreen
    from agenteval_tui.tui.screens.compare import CompareScreen
    from agenteval_tui.tui.screens.difference import DifferenceScreen
    from agenteval_tui.tui.screens.divergence import DivergenceScreen
    from agenteval_tui.tui.screens.editor.screen import EditorScreen
    from agenteval_tui.tui.screens.history.screen import HistoryScreen
    from agenteval_tui.tui.screens.inspect.screen import InspectScreen
    from agenteval_tui.tui.screens.run import RunScreen
    from agenteval_tui.tui.screens.suites.screen import SuitesScreen
    from agenteval_tui.tui.state import State


class Navigation(ExternalPrograms):
    """An app with work screens, one of which is shown; `escape` goes back the way one came."""

    state: State
    session: Session

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._trail: list[str] = []
        self._shown = ""

    async def on_event(self, event: events.Event) -> None:
        """What is done to the thing under the cursor is done to what is shown of it."""
        if isinstance(event, events.MouseDown) or (isinstance(event, events.Key) and event.key not in MOVES):
            screen = self.screen_stack[-1] if self.screen_stack else None
            if isinstance(screen, FrameScreen):
                screen.follow_now()
        await super().on_event(event)

    def go(self, name: str) -> None:
        """Show a screen, making it if it was never shown."""
        if name not in FACTORIES:
            return
        # An answer that comes while a sheet (help, a question) lies over the screen: the sheet would be replaced.
        while isinstance(self.screen, ModalScreen):
            self.pop_screen()
        if name == self._shown:
            return
        if not self.is_screen_installed(name):
            screen = FACTORIES[name]()
            screen.restore(self.state.of(name))
            self.install_screen(screen, name)
        if self._shown:
            self._trail.append(self._shown)
            del self._trail[:-20]
            self.switch_screen(name)
        else:
            self.push_screen(name)
        self._shown = name
        self.call_later(self.keep_places)

    def go_on(self, name: str) -> None:
        """Begin where the last start ended; the first time, or where that is not there any more, at screen `name`."""
        last = self.state.screen
        self.go(last if last in FACTORIES and last not in NEED_A_RUN else name or "suites")

    def choose_screen(self) -> None:
        """List the screens, with their keys; for the mouse, which has no numbers."""
        from agenteval_tui.tui.screens.select_dialog import ChooseScreen

        there = {f"go.{name}": name for name in FACTORIES}
        choices = [
            (there[one.id], f"{keys_of(one, self.keymap)}  {one.label}", one.description)
            for one in ACTIONS
            if one.id in there
        ]

        def chosen(name: str | None) -> None:
            if name:
                self.go(name)

        self.push_screen(ChooseScreen("screens", choices, self._shown), chosen)

    def keep_places(self) -> None:
        """Keep where the person is and what the screens show, for the next start."""
        if not self._shown:
            return
        made = [name for name in FACTORIES if self.is_screen_installed(name)]
        kept = {name: self.get_screen(name).kept() for name in made}  # type: ignore[attr-defined]
        kept["projects"] = {"all": self.session.everything}
        self.state.keep_place(self._shown, {name: data for name, data in kept.items() if data is not None})

    def action_go(self, name: str) -> None:
        """The key of a screen."""
        self.go(name)

    async def action_back(self) -> None:
        """Leave what is open inside the screen, else go to the screen before."""
        screen = self.screen
        if isinstance(screen, FrameScreen):
            if is_there(screen) and screen.step_back():
                return
            if self._trail:
                name = self._trail.pop()
                self.switch_screen(name)
                self._shown = name

    def inspect(self, run_id: str, **how: Unpack[InspectTarget]) -> None:
        """Open a run in the workbench."""
        self.go("inspect")
        screen: InspectScreen = self.get_screen("inspect")  # type: ignore[assignment]
        screen.open_run(run_id, **how)

    def tried_criterion(self) -> CriterionSpec | None:
        """The criterion in no file yet that is tried in Inspect, as it is edited there."""
        if not self.is_screen_installed("inspect"):
            return None
        screen: InspectScreen = self.get_screen("inspect")  # type: ignore[assignment]
        return screen.tried

    def show_difference(self, left: str, right: str) -> None:
        """Compare two runs step by step."""
        self.go("difference")
        screen: DifferenceScreen = self.get_screen("difference")  # type: ignore[assignment]
        screen.open(left, right)

    def compare(
        self,
        a: str = "",
        b: str = "",
        *,
        agents: Sequence[str] = (),
        variations: Sequence[str] = (),
        test: tuple[str, str] | None = None,
    ) -> None:
        """Compare two sides: executions by id; `a` "" is the baseline, `b` "" the newest execution. Two `agents` or
        `variations`: with each other. `test`: the suite's key and the id of the test to begin with."""
        from agenteval_tui.analysis.comparison_sides import Sides

        self.go("compare")
        screen: CompareScreen = self.get_screen("compare")  # type: ignore[assignment]
        screen.open(Sides(a, b, tuple(agents), tuple(variations)), test)

    def show_causes(self, execution: str = "", *, suites: Sequence[str] = (), tests: Sequence[str] = ()) -> None:
        """Show the causes of failures: of an execution, of the newest runs of these suites (keys) and tests (ids), or,
        with nothing given, of the last execution."""
        from agenteval_tui.tui.screens.causes_scope_picker import looking_at

        self.go("causes")
        screen: CausesScreen = self.get_screen("causes")  # type: ignore[assignment]
        screen.open(looking_at(execution, suites, tests))

    def compare_versions(self, suite_key: str, test: str, criterion: str, old: str, new: str) -> None:
        """Compare two versions of a criterion over the stored runs of its test."""
        self.go("compare")
        screen: CompareScreen = self.get_screen("compare")  # type: ignore[assignment]
        screen.open_versions(suite_key, test, criterion, old, new)

    def show_divergence(self, run_id: str) -> None:
        """Show where the repetitions of a run's test part."""
        self.go("branches")
        screen: DivergenceScreen = self.get_screen("branches")  # type: ignore[assignment]
        screen.open(run_id)

    def edit_test(
        self, suite: str, test: str, *, criterion: str = "", starter: Starter | None = None, run: str = ""
    ) -> None:
        """Open a test in the Editor; `starter`: with this criterion added, as an edit that is not saved yet; `run`: the
        recorded run that it is judged on first."""
        self.go("editor")
        screen: EditorScreen = self.get_screen("editor")  # type: ignore[assignment]
        screen.open_test(suite, test, criterion=criterion, starter=starter, run=run)

    def new_test(self, loaded: LoadedSuite) -> None:
        """Ask for a new test's name and prompt, write it into the suite's file, and open it in the Editor."""
        from agenteval_tui.tui.screens.new_test import NewTestScreen

        def made(test: str | None) -> None:
            if test:
                self.edit_test(loaded.key, test)

        self.push_screen(NewTestScreen(loaded), made)

    def new_suite(self) -> None:
        """Ask for a new suite and its first test, write its file, and open the test in the Editor."""
        from agenteval_tui.tui.screens.new_suite import NewSuiteScreen

        def made(written: tuple[str, str] | None) -> None:
            if written:
                self.edit_test(*written)

        self.push_screen(NewSuiteScreen(), made)

    def watch_live(self, live: Live, expected: Expected | None = None) -> None:
        """Show an execution that runs now. `expected`: what its plan said that it takes."""
        self.go("run")
        screen: RunScreen = self.get_screen("run")  # type: ignore[assignment]
        screen.attach(live, expected)

    def show_execution(self, execution: str, *, back: bool = True) -> None:
        """Show the runs of an execution that is in the history; esc leads back to the screen where this was asked.

        Not `back`: to the list of executions, for want of such a screen.
        """
        visiting = back and self._shown != "history"
        self.go("history")
        screen: HistoryScreen = self.get_screen("history")  # type: ignore[assignment]
        screen.open_execution(execution, visiting=visiting)

    def show_test(self, file: str, test: str) -> None:
        """Show a test on the Suites screen; the suites are read again."""
        self.go("suites")
        screen: SuitesScreen = self.get_screen("suites")  # type: ignore[assignment]
        screen.show_test(file, test)

    def visit(self, place: NotificationSource) -> None:
        """Show what a notice, or a row of a list, is about."""
        if place.kind == "run":
            self.inspect(place.ref)
        elif place.kind == "execution":
            self.show_execution(place.ref)
        elif place.kind == "file":
            self.open_editor(Path(place.ref), 1)
        elif place.kind == "screen":
            self.go(place.ref)
        else:
            self.show_test(place.ref, place.test)
