"""The app: wiring only. Screens are made when they are first shown."""

from __future__ import annotations

import asyncio
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, TypeVar

from textual.app import App, SuspendNotSupported, SystemCommand
from textual.binding import Binding, BindingType
from textual.events import DescendantFocus
from textual.filter import LineFilter
from textual.screen import ModalScreen, Screen
from textual.widgets import Input

from agenteval_tui import places
from agenteval_tui.text.problems import AgentevalError
from agenteval_tui.tui.actions import EVERYWHERE, bindings, in_scope
from agenteval_tui.tui.lines import Cell
from agenteval_tui.tui.safe import DisplaySafe, say
from agenteval_tui.tui.screens.frame import FrameScreen
from agenteval_tui.tui.session import Session, read_keymap, read_state, write_state
from agenteval_tui.tui.themes import DEFAULT_THEME, load_themes, variable_defaults

if TYPE_CHECKING:
    from agenteval_tui.cli.start import AppStart
    from agenteval_tui.grading.starters import Starter
    from agenteval_tui.runs.client import Live
    from agenteval_tui.runs.plan import PlanOptions
    from agenteval_tui.suites.load import LoadedSuite
    from agenteval_tui.tui.presenters.run_rows import Expected
    from agenteval_tui.tui.presenters.transcript_blocks import BlockKey
    from agenteval_tui.tui.screens.difference import DifferenceScreen
    from agenteval_tui.tui.screens.divergence import DivergenceScreen
    from agenteval_tui.tui.screens.editor import EditorScreen
    from agenteval_tui.tui.screens.history import HistoryScreen
    from agenteval_tui.tui.screens.inspect import InspectScreen
    from agenteval_tui.tui.screens.run import RunScreen
    from agenteval_tui.tui.screens.suites import SuitesScreen
    from agenteval_tui.tui.screens.trust import Asked


def _suites() -> FrameScreen:
    from agenteval_tui.tui.screens.suites import SuitesScreen

    return SuitesScreen()


def _editor() -> FrameScreen:
    from agenteval_tui.tui.screens.editor import EditorScreen

    return EditorScreen()


def _run() -> FrameScreen:
    from agenteval_tui.tui.screens.run import RunScreen

    return RunScreen()


def _inspect() -> FrameScreen:
    from agenteval_tui.tui.screens.inspect import InspectScreen

    return InspectScreen()


def _history() -> FrameScreen:
    from agenteval_tui.tui.screens.history import HistoryScreen

    return HistoryScreen()


def _agents() -> FrameScreen:
    from agenteval_tui.tui.screens.agents import AgentsScreen

    return AgentsScreen()


def _difference() -> FrameScreen:
    from agenteval_tui.tui.screens.difference import DifferenceScreen

    return DifferenceScreen()


def _branches() -> FrameScreen:
    from agenteval_tui.tui.screens.divergence import DivergenceScreen

    return DivergenceScreen()


FACTORIES: dict[str, Callable[[], FrameScreen]] = {
    "suites": _suites,
    "editor": _editor,
    "run": _run,
    "inspect": _inspect,
    "history": _history,
    "agents": _agents,
    "difference": _difference,
    "branches": _branches,
}


COUNT_SECONDS = 2.0
T = TypeVar("T")


class AgentevalApp(App[int]):
    """The terminal program. `start` says what to open; everything else is found by the session."""

    TITLE = "agenteval"
    CSS_PATH = "app.tcss"
    BINDINGS: ClassVar[list[BindingType]] = list(bindings(EVERYWHERE))
    ENABLE_COMMAND_PALETTE = True

    def __init__(self, start: AppStart) -> None:
        super().__init__()
        self.animation_level = "none"
        self.start = start
        self.session = Session(start.paths, places.history_file(start.db))
        self.keymap: dict[str, str] = {}
        self._state_file = places.data_dir() / "state.json"
        self._state = read_state(self._state_file)
        self._trail: list[str] = []
        self._shown = ""
        self._executions = 0
        self._begin_themes()

    # Start and end

    def _begin_themes(self) -> None:
        themes, self._theme_problems = load_themes((places.bundled("themes"), places.config_dir() / "themes"))
        for theme in themes.values():
            self.register_theme(theme)
        wanted = self._state.get("theme", "sixteen" if _poor_terminal() else DEFAULT_THEME)
        self.theme = wanted if wanted in self.available_themes else DEFAULT_THEME

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return variable_defaults()

    def get_line_filters(self) -> Sequence[LineFilter]:
        # The last defence: whatever slipped past `displayable` is made visible here.
        return [*super().get_line_filters(), DisplaySafe()]

    def on_load(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGHUP):
            try:
                loop.add_signal_handler(number, self.exit, 0)
            except (NotImplementedError, RuntimeError, ValueError):
                # Not in the main thread (tests, textual-serve): the driver ends us instead.
                return

    def on_mount(self) -> None:
        try:
            self.keymap = read_keymap(places.config_dir() / "keys.yaml")
        except AgentevalError as error:
            self.say_error(error)
        self.set_keymap(self.keymap)
        for problem in self._theme_problems:
            self.say_error(problem)
        self.theme_changed_signal.subscribe(self, self._keep_theme)
        self.go(self.start.screen or "suites")
        if self.start.screen == "inspect" and self.start.target:
            self.inspect(self.start.target, criterion=self.start.criterion)
        if self.start.screen == "history" and self.start.target:
            self.show_execution(self.start.target)

    def on_unmount(self) -> None:
        self.session.close()

    def on_descendant_focus(self, event: DescendantFocus) -> None:
        """No cursor blinks, in Textual's own palette neither: who waits writes nothing to the terminal."""
        if isinstance(event.widget, Input):
            event.widget.cursor_blink = False

    def _keep_theme(self, _theme: object) -> None:
        self._state["theme"] = self.theme
        write_state(self._state_file, self._state)

    async def action_quit(self) -> None:
        """Leave. Executions live in their own process and go on."""
        self.exit(0)

    # Going places

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
            self.install_screen(FACTORIES[name](), name)
        if self._shown:
            self._trail.append(self._shown)
            del self._trail[:-20]
            self.switch_screen(name)
        else:
            self.push_screen(name)
        self._shown = name

    def action_go(self, name: str) -> None:
        """The key of a screen."""
        self.go(name)

    async def action_back(self) -> None:
        """Leave what is open inside the screen, else go to the screen before."""
        screen = self.screen
        if isinstance(screen, FrameScreen):
            if screen.step_back():
                return
            if self._trail:
                name = self._trail.pop()
                self.switch_screen(name)
                self._shown = name

    def inspect(
        self,
        run_id: str,
        *,
        criterion: str = "",
        runs: Sequence[str] = (),
        edit: bool = False,
        at: BlockKey | None = None,
    ) -> None:
        """Open a run in the workbench; `runs` are those that next and previous go through, `at` a place in its
        transcript."""
        self.go("inspect")
        screen: InspectScreen = self.get_screen("inspect")  # type: ignore[assignment]
        screen.open_run(run_id, criterion=criterion, runs=runs, edit=edit, at=at)

    def show_difference(self, left: str, right: str) -> None:
        """Compare two runs step by step."""
        self.go("difference")
        screen: DifferenceScreen = self.get_screen("difference")  # type: ignore[assignment]
        screen.open(left, right)

    def show_divergence(self, run_id: str) -> None:
        """Show where the repetitions of a run's test part."""
        self.go("branches")
        screen: DivergenceScreen = self.get_screen("branches")  # type: ignore[assignment]
        screen.open(run_id)

    def edit_test(self, suite: str, test: str, *, criterion: str = "", starter: Starter | None = None) -> None:
        """Open a test in the Editor; `starter`: with this criterion added, as an edit that is not saved yet."""
        self.go("editor")
        screen: EditorScreen = self.get_screen("editor")  # type: ignore[assignment]
        screen.open_test(suite, test, criterion=criterion, starter=starter)

    def new_test(self, loaded: LoadedSuite) -> None:
        """Ask for a new test's name and prompt, write it into the suite's file, and open it in the Editor."""
        from agenteval_tui.tui.screens.new_test import NewTestScreen

        def made(test: str | None) -> None:
            if test:
                self.edit_test(loaded.key, test)

        self.push_screen(NewTestScreen(loaded), made)

    def watch_live(self, live: Live, expected: Expected | None = None) -> None:
        """Show an execution that runs now. `expected`: what its plan said that it takes."""
        self.go("run")
        screen: RunScreen = self.get_screen("run")  # type: ignore[assignment]
        screen.attach(live, expected)

    def show_execution(self, execution: str) -> None:
        """Show the runs of an execution that is in the history."""
        self.go("history")
        screen: HistoryScreen = self.get_screen("history")  # type: ignore[assignment]
        screen.open_execution(execution)

    def show_test(self, file: str, test: str) -> None:
        """Show a test on the Suites screen; the suites are read again."""
        self.go("suites")
        screen: SuitesScreen = self.get_screen("suites")  # type: ignore[assignment]
        screen.show_test(file, test)

    # Executions

    def start_run(self, paths: Sequence[Path], options: PlanOptions) -> None:
        """Start an execution in its own process and watch it; asks first where it would start programs."""
        from agenteval_tui.tui.presenters.plan_lines import expected_of

        self._launch(
            "Running this",
            lambda trust: self.session.start(paths, replace(options, trust=options.trust or trust)),
            lambda started: self.watch_live(started[0], expected_of(started[1])),
        )

    def resume_execution(self, execution: str, limits: PlanOptions | None = None) -> None:
        """Run what is left of an execution and watch it. Where a limit stopped it, ask for another one first."""
        from agenteval_tui.tui.screens.resume import ResumeScreen

        if limits is None:
            screen = self.screen
            if not isinstance(screen, FrameScreen):
                return

            def resume(chosen: PlanOptions | None) -> None:
                if chosen is not None:
                    self.resume_execution(execution, chosen)

            def then(options: PlanOptions) -> None:
                if options.max_cost is None and options.max_tokens is None and options.max_seconds is None:
                    resume(options)
                else:
                    self.push_screen(ResumeScreen(options), resume)

            screen.ask(lambda: self.session.limits_of(execution), then, group="start")
            return
        self._launch(
            "Resuming this",
            lambda trust: self.session.resume(execution, replace(limits, trust=trust)),
            self.watch_live,
        )

    def _launch(self, doing: str, start: Callable[[bool], T], then: Callable[[T], None]) -> None:
        """Call `start(trusted)` in a thread; where it needs trust that is not there, ask for it and call it again."""
        from agenteval_tui.runs.trusting import NotTrustedError
        from agenteval_tui.tui.screens.trust import Asked

        screen = self.screen
        if not isinstance(screen, FrameScreen):
            return

        def refused(error: AgentevalError) -> None:
            if not isinstance(error, NotTrustedError):
                self.say_error(error)
                return
            asked = [Asked(need.folder, self.session.why_not(need.folder), need.what) for need in error.needs]
            self.ask_trust(asked, doing, lambda: screen.ask(lambda: start(True), then, group="start"))

        screen.ask(lambda: start(False), then, group="start", failed=refused)

    def ask_trust(self, asked: Sequence[Asked], doing: str, then: Callable[[], None]) -> None:
        """Ask whether programs of these folders may run; `then` is called when they may."""
        from agenteval_tui.tui.screens.trust import TrustScreen

        def answered(answer: str | None) -> None:
            screen = self.screen
            if answer == "once":
                then()
            elif answer == "trust" and isinstance(screen, FrameScreen):
                folders = [one.folder for one in asked]
                screen.ask(lambda: self.session.trust(folders), lambda _: then(), group="trust")
            elif not answer:
                self.say("Nothing was run.")

        self.push_screen(TrustScreen(asked, doing), answered)

    def choose_live(self, watched: str = "") -> None:
        """Choose which of the running executions to watch; the only one at once."""
        from agenteval_tui.runs.client import live_executions
        from agenteval_tui.tui.screens.executions import ExecutionsScreen

        screen = self.screen
        if not isinstance(screen, FrameScreen):
            return

        def show(live: list[Live]) -> None:
            if not live:
                self.say("No execution is running.")
            elif len(live) == 1:
                if live[0].execution == watched:
                    self.say("This is the only execution that runs now.")
                else:
                    self.watch_live(live[0])
            else:
                by_id = {one.execution: one for one in live}

                def watch(chosen: str | None) -> None:
                    if chosen:
                        self.watch_live(by_id[chosen])

                self.push_screen(ExecutionsScreen(live, watched), watch)

        screen.ask(live_executions, show, group="live")

    def count_running(self) -> None:
        """Look how many executions run now, for the title; while there are some, look again."""
        self.run_worker(self._count_running(), group="running", exclusive=True, exit_on_error=False)

    async def _count_running(self) -> None:
        from agenteval_tui.runs.client import live_executions

        while True:
            self._set_running(len(await asyncio.to_thread(live_executions)))
            if not self._executions:
                return
            await asyncio.sleep(COUNT_SECONDS)

    def _set_running(self, number: int) -> None:
        if number != self._executions:
            self._executions = number
            if isinstance(self.screen, FrameScreen):
                self.screen.retitle()

    def live_note(self) -> tuple[Cell, ...]:
        """What the title says of running executions."""
        if not self._executions:
            return ()
        plural = "" if self._executions == 1 else "s"
        return (("   ", ""), (f"◐ {self._executions} execution{plural} running", "running"))

    def open_editor(self, path: Path, line: int) -> None:
        """The person's own editor on a file at a line; the app waits for it."""
        try:
            editor = shlex.split(os.environ.get("VISUAL") or os.environ.get("EDITOR") or "")
        except ValueError as error:
            self.say_error(AgentevalError(f"$EDITOR can't be read: {error}", mend="close its quotes"))
            return
        if not editor:
            where = f"{path}:{line}"
            self.say_error(AgentevalError("no editor is set", where=where, mend="set $EDITOR, for example to vim"))
            return
        command = [*editor, f"+{line}", str(path)]
        try:
            with self.suspend():
                subprocess.run(command, check=False)  # noqa: S603  the person's own editor
        except OSError as error:
            self.say_error(AgentevalError(f"{command[0]} can't be started", mend=str(error)))
        except SuspendNotSupported:
            self.say_error(AgentevalError("this terminal can't be given to an editor", where=f"{path}:{line}"))
        self.refresh()

    # Saying things

    def say(self, message: str, *, severity: str = "information") -> None:
        """A short note: what happened and where it is."""
        say(self, message, severity=severity)

    def say_error(self, error: AgentevalError) -> None:
        """What is wrong, where, and how to mend it."""
        say(self, str(error), severity="error")

    def say_bug(self, error: BaseException, doing: str) -> None:
        """Something broke that should not: one sentence here, the traceback in a file."""
        import traceback

        path = places.data_dir() / "errors.log"
        try:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            with path.open("a", encoding="utf-8", errors="backslashreplace") as log:
                log.write(f"while: {doing}\n" + "".join(traceback.format_exception(error)) + "\n")
        except OSError:
            pass
        kind = type(error).__name__
        self.say(f"A bug in agenteval ({doing}: {kind}: {error}). The traceback is in {path}", severity="error")

    def action_help(self) -> None:
        """The keys of where you are."""
        from agenteval_tui.tui.screens.help import HelpScreen

        scope = self.screen.SCOPE if isinstance(self.screen, FrameScreen) else ""
        if scope:
            self.push_screen(HelpScreen(scope, self.keymap))

    def action_save_screen(self) -> None:
        """A picture of the screen, as SVG, in the current folder or the data folder."""
        svg = self.export_screenshot(title="agenteval", simplify=True)
        for folder in (Path.cwd(), places.data_dir()):
            path = _free_name(folder / f"agenteval-{self._shown}.svg")
            try:
                path.write_text(svg, encoding="utf-8")
            except OSError:
                continue
            self.say(f"Saved a picture of this screen: {path}")
            return
        self.say_error(AgentevalError("no folder can be written for the picture", mend="start in a folder of yours"))

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        """Every action that applies here, for the palette."""
        if not isinstance(screen, FrameScreen):
            return
        for action in in_scope(screen.SCOPE):
            if action.id == "palette":
                continue

            async def act(method: str = action.method, on: FrameScreen = screen) -> None:
                await on.run_action(method)

            yield SystemCommand(action.description, f"{action.id}  ({self.keymap.get(action.id, action.keys)})", act)

    def handle_bindings_clash(self, clashed_bindings: set[Binding], node: object) -> None:
        names = ", ".join(sorted(binding.id or binding.action for binding in clashed_bindings))
        self.say(f"keys.yaml gives one key to several actions: {names}", severity="warning")


def _poor_terminal() -> bool:
    """No more than 16 colours, or none: the terminal's own colours serve better than ours."""
    term = os.environ.get("TERM", "")
    return "NO_COLOR" not in os.environ and term in ("linux", "xterm", "screen", "vt100", "ansi")


def _free_name(path: Path) -> Path:
    number = 1
    free = path
    while free.exists():
        number += 1
        free = path.with_stem(f"{path.stem}-{number}")
    return free


def run_app(start: AppStart) -> int:
    """Run the app until it is left. Returns the exit code."""
    app = AgentevalApp(start)
    result = app.run()
    if app.return_code:
        return app.return_code
    sys.stdout.flush()
    return result or 0
