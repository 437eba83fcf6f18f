"""The app: wiring only. Screens are made when they are first shown."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property, partial
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, ClassVar, ParamSpec

from textual.binding import Binding, BindingType
from textual.command import Provider
from textual.events import DescendantFocus, Event, Key
from textual.filter import LineFilter, Monochrome
from textual.notifications import Notification, Notify
from textual.screen import Screen
from textual.theme import Theme
from textual.widgets import Input
from textual.worker import Worker, WorkerState

from agenteval_tui.cli.app_start import AppStart
from agenteval_tui.core import directories
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.ids import short_id
from agenteval_tui.core.outcomes import ENDED
from agenteval_tui.core.standard_streams import has_hung_up
from agenteval_tui.history.lock_wait import listen_for_waits
from agenteval_tui.history.records import ExecutionRow
from agenteval_tui.runs.live_registry import Live
from agenteval_tui.tui.action import EVERYWHERE
from agenteval_tui.tui.actions import bindings, key_of
from agenteval_tui.tui.analysis_context import Session
from agenteval_tui.tui.badges import Badges
from agenteval_tui.tui.command_providers import ActionsProvider, PlacesProvider
from agenteval_tui.tui.external_programs import ExternalPrograms, save_picture
from agenteval_tui.tui.help_controller import HelpController
from agenteval_tui.tui.input_queue import InputQueue
from agenteval_tui.tui.keymap import NAME as KEYS_FILE
from agenteval_tui.tui.keymap import read_keymap
from agenteval_tui.tui.live_executions import LiveExecutions
from agenteval_tui.tui.navigation import Navigation, first_screen
from agenteval_tui.tui.notifications import Notifier
from agenteval_tui.tui.presenters.navigation_strip import Tab
from agenteval_tui.tui.presenters.status_style import UNICODE
from agenteval_tui.tui.screen_registry import read_screen
from agenteval_tui.tui.screens.base_screen import FrameScreen
from agenteval_tui.tui.services import PaletteCommand, Services
from agenteval_tui.tui.state import State, flag, name_of_start
from agenteval_tui.tui.terminal.output_filters import AsciiOnly, Colourless, DisplaySafe
from agenteval_tui.tui.terminal.terminal_app import TerminalApp
from agenteval_tui.tui.themes import ThemeController, variable_defaults, with_tokens
from agenteval_tui.tui.workers import call_after, is_busy, start_worker, until_painted

if TYPE_CHECKING:
    from agenteval_tui.tui.execution_ends import ExecutionEnds
    from agenteval_tui.tui.execution_launcher import ExecutionLauncher
    from agenteval_tui.tui.recordings import RecordingLauncher

SERVER_SECONDS = 5.0  # how often the app in a browser looks whether its server is still there: nothing tells it
TERMINAL_SECONDS = 1.0  # and the app in a terminal whether that is: some go without a SIGHUP
NOTE_EDGES = 3  # cells of a line that a note does not write in
HISTORY_SECONDS = 2.0  # between two looks whether the history file is still the one that was opened

_P = ParamSpec("_P")


def _when_called(method: Callable[[], Callable[_P, None]]) -> Callable[_P, None]:
    """A method of an object that is not there yet: it is made, and its module imported, with the first call."""

    def call(*arguments: _P.args, **named: _P.kwargs) -> None:
        method()(*arguments, **named)

    return call


STYLE = Path(__file__).with_suffix(".tcss")


class AgentevalApp(TerminalApp):
    """The terminal program. `start` says what to open; the session finds everything else.

    The app has the objects that do the work, offers them to screens (`Services`), and passes Textual's events and
    actions to them.
    """

    TITLE = "agenteval"
    # With the screens' own: for each screen that brought one, Textual would read all stylesheets anew.
    CSS_PATH: ClassVar[list[str | PurePath]] = [STYLE, *sorted(STYLE.with_name("screens").rglob("*.tcss"))]
    BINDINGS: ClassVar[list[BindingType]] = bindings(EVERYWHERE)
    ENABLE_COMMAND_PALETTE = True
    COMMANDS: ClassVar[set[type[Provider] | Callable[[], type[Provider]]]] = {ActionsProvider, PlacesProvider}

    def __init__(self, start: AppStart) -> None:
        self._themes_found: dict[str, Theme] = {}  # Textual registers its own while it begins
        # Before `super().__init__`, which already asks for themes.
        self._has_begun = self._has_theme = False
        super().__init__()
        self._has_begun = True
        # An animation writes a picture for each of its steps.
        self.animation_level = "none"
        self.start = start
        self._waits = contextlib.ExitStack()
        self._places_kept = False
        self._recordings: set[str] = set()  # executions, started here
        self.session = Session(start.paths, directories.history_file(start.db))
        self.state = State(directories.data_dir() / "state.json", name_of_start(start.paths, self.session.db))
        stored = self.state.of("projects")
        if "all" in stored:
            self.session.everything = flag(stored, "all")
        self.begun: set[str] = set()
        """The ids of the executions that were started here."""
        self._keys_file = directories.config_dir() / KEYS_FILE
        self.keymap, self._keymap_problems = read_keymap(self._keys_file)
        self.input_queue = InputQueue(self)
        self.notifier = Notifier(self._show_note, self.keymap, self._room_of_notes, self._is_typing)
        self.programs = ExternalPrograms(self, self.notifier)
        self.navigation = Navigation(self, self.session, self.state, self.keymap, self.programs.open_editor)
        self.badges = Badges(self.session)
        self.live_executions = LiveExecutions(self.session, self.notifier, self.navigation, self._execution_ended)
        self.help_controller = HelpController(self, self.notifier, self.navigation, self.keymap)
        self.theme_controller = ThemeController(self, self.state, self.notifier)
        self._offer_services()
        self.theme_controller.begin()
        self._has_theme = True

    def _offer_services(self) -> None:
        notifier, navigation = self.notifier, self.navigation
        self.notices = notifier.notices
        self.say = notifier.say
        self.say_error = notifier.say_error
        self.say_bug = notifier.say_bug
        self.say_changed = notifier.say_changed
        self.go = navigation.go
        self.choose_screen = navigation.choose_screen
        self.visit = navigation.visit
        self.keep_places = navigation.keep_places
        self.inspect = navigation.inspect
        self.tried_criterion = navigation.tried_criterion
        self.show_difference = navigation.show_difference
        self.compare = navigation.compare
        self.compare_versions = navigation.compare_versions
        self.show_causes = navigation.show_causes
        self.show_execution = navigation.show_execution
        self.show_test = navigation.show_test
        self.edit_test = navigation.edit_test
        self.new_test = navigation.new_test
        self.new_suite = navigation.new_suite
        self.watch_live = navigation.watch_live
        self.open_editor = self.programs.open_editor
        self.debug_run = lambda run: self.programs.debug(run, self.session.db)
        self.open_attachment = self.programs.open_attachment
        self.copy = self.programs.copy
        self.keys_wait_for = self.input_queue.wait_for
        self.start_run = _when_called(lambda: self._launcher.start_run)
        self.watch_code = _when_called(lambda: self._launcher.watch_code)
        self.start_fork = _when_called(lambda: self._launcher.start_fork)
        self.start_live = _when_called(lambda: self._launcher.start_live)
        self.resume_execution = _when_called(lambda: self._launcher.resume_execution)
        self.choose_live = _when_called(lambda: self._launcher.choose_live)
        self.ask_trust = _when_called(lambda: self._launcher.ask_trust)
        self.record = _when_called(lambda: self._recording_launcher.record)
        self.replay = _when_called(lambda: self._recording_launcher.replay)

    @cached_property
    def _execution_ends(self) -> ExecutionEnds:
        # With the models of YAML files, 100 ms: neither the first frame nor the strip waits for them.
        from agenteval_tui.tui.execution_ends import ExecutionEnds

        return ExecutionEnds(self.session, self.notifier, self.send_notification, lambda: not self.app_focus)

    @cached_property
    def _launcher(self) -> ExecutionLauncher:
        # 150 ms with what plans and runs tests: neither the first frame nor the tree of suites waits for it.
        from agenteval_tui.tui.execution_launcher import ExecutionLauncher

        return ExecutionLauncher(
            self,
            self.session,
            self.notifier,
            self.navigation,
            self.keymap,
            started=self._execution_started,
            recorded=self._recordings.add,
            queue=self.input_queue,
            begun=self.begun,
        )

    @cached_property
    def _recording_launcher(self) -> RecordingLauncher:
        # With the models' client, 120 ms: who runs tests does not wait for it.
        from agenteval_tui.tui.recordings import RecordingLauncher

        return RecordingLauncher(self, self.session, self.notifier, self.navigation, self._launcher)

    # What Textual asks and tells

    def get_line_filters(self) -> Sequence[LineFilter]:
        # The last defence: whatever slipped past `displayable` is made visible here.
        filters: list[LineFilter] = [*super().get_line_filters(), DisplaySafe()]
        if self.theme_controller.colourless:
            # Textual's own filter for `NO_COLOR` leaves greys; these are colours, too.
            filters = [line_filter for line_filter in filters if not isinstance(line_filter, Monochrome)] + [
                Colourless()
            ]
        if not UNICODE:
            filters.append(AsciiOnly())
        return filters

    def get_theme(self, theme_name: str) -> Theme | None:
        # Textual asks for each widget that it paints, and copies the table of themes twice each time.
        if not self._has_begun:
            # The theme that Textual begins with is never shown: to make our tokens for it takes 12 ms.
            return super().get_theme(theme_name)
        theme = self._themes_found.get(theme_name)
        if theme is None and (plain_theme := super().get_theme(theme_name)) is not None:
            theme = self._themes_found[theme_name] = with_tokens(plain_theme)
        return theme

    @property
    def available_themes(self) -> dict[str, Theme]:
        """All themes by name; those out of files are read when this is asked for the first time."""
        if self._has_theme:
            self.theme_controller.read()
        return super().available_themes

    def register_theme(self, theme: Theme) -> None:
        self._themes_found.clear()
        super().register_theme(theme)

    def unregister_theme(self, theme_name: str) -> None:
        self._themes_found.clear()
        super().unregister_theme(theme_name)

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return variable_defaults()

    def refresh_css(self, animate: bool = True) -> None:
        if self.screen_stack:
            super().refresh_css(animate)
        else:
            # The theme that the app begins with. Textual would read all stylesheets for nobody, and forget them: the
            # first screen reads them anyway.
            self.stylesheet.set_variables(self.get_css_variables())

    def offered_commands(self, screen: Screen[object]) -> Iterable[PaletteCommand]:
        """Every action that applies here, for the palette."""
        return self.help_controller.commands(screen) if isinstance(screen, FrameScreen) else ()

    def commands_elsewhere(self, screen: Screen[object]) -> Iterable[PaletteCommand]:
        """As `Services` says."""
        return self.help_controller.commands_elsewhere(screen) if isinstance(screen, FrameScreen) else ()

    async def on_event(self, event: Event) -> None:
        """Any key, click and paste waits for the one before it."""
        await self.input_queue.take(event, self._on_event_in_turn)

    async def _on_event_in_turn(self, event: Event) -> None:
        """Letters of jump mode take a key first."""
        if not self.help_controller.takes(event):
            self.navigation.follow(event)
            if isinstance(event, Key) and not event.is_forwarded and self.notifier.is_standing:
                self.clear_notifications()
            await super().on_event(event)

    def on_load(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGHUP):
            try:
                loop.add_signal_handler(number, self.exit, 0)
            except (NotImplementedError, RuntimeError, ValueError):
                # Not in the main thread (tests, textual-serve): the driver ends us instead.
                return

    def on_mount(self) -> None:
        if self.is_web:
            self.set_interval(SERVER_SECONDS, partial(self._end_with, os.getppid()))
        elif not self.is_headless:
            self.set_interval(TERMINAL_SECONDS, self._end_without_terminal)
        self.set_interval(HISTORY_SECONDS, self._look_at_history)
        self._say_waits()
        self.set_keymap(self.keymap)
        if self._keymap_problems:
            lines = (f"{KEYS_FILE}: {self._keymap_problems[0]}", *self._keymap_problems[1:])
            self.say("\n".join((*lines, f"in {self._keys_file.parent}")), severity="warning")
        if self.state.problem is not None:
            self.say_error(self.state.problem)
        # The person's own themes are read here: none can be chosen before the first frame.
        self.call_after_refresh(self.theme_controller.say_problems)
        self.theme_changed_signal.subscribe(self, self.theme_controller.keep)
        if self.start.screen == "inspect" and self.start.target:
            self.go("inspect")
            self.inspect(self.start.target, criterion=self.start.criterion)
        elif self.start.screen == "history" and self.start.target:
            self.show_execution(self.start.target, back=False)
        else:
            self.go(first_screen(self.state.screen, self.start.screen))
        if not self.is_headless:
            # Behind the first frame, which would share the processor with the imports.
            self.call_after_refresh(start_worker, self, self._import_ahead, group="ahead")

    async def _import_ahead(self) -> None:
        """Import in a thread the screens that are opened most. Without it, a third of the time until a screen
        appears is spent on importing it."""
        for name in ("inspect", "editor", "compare"):
            await asyncio.to_thread(read_screen, name)

    def _is_reading(self) -> bool:
        if not self.screen_stack:  # behind the last screen
            return False
        return isinstance(self.screen, FrameScreen) and self.screen.unanswered > 0

    def _end_with(self, server: int) -> None:
        """In a browser: the server was killed, and this app is no longer visible."""
        if os.getppid() != server:
            self.exit(0)

    def _end_without_terminal(self) -> None:
        # A terminal that isn't the controlling one goes without a SIGHUP. Textual then reads its end again and again.
        if has_hung_up(sys.__stdin__):
            self.exit(0)

    def _look_at_history(self) -> None:
        """Report that the history file was replaced, show the new one, and show what another process runs."""
        if is_busy(self, "history"):
            return  # a look that waits for a lock would be replaced by the next, and what it found out never said

        async def look() -> None:
            moved = await asyncio.to_thread(self.session.moved)
            if moved:
                self.say(moved, severity="warning")
                self.navigation.tell_new_runs()
            # A screen that waits for its suites counts when it has them: until then, counting would take half of the
            # processor from reading them.
            if not self._is_reading():
                self.count_badges()
                # What another process runs; what is known to run is looked at anyway.
                begun = not is_busy(self, "running") and self.live_executions.have_changed()
                if await asyncio.to_thread(self.live_executions.runs_have_changed) or begun:
                    self.navigation.tell_new_runs()
                else:
                    self.navigation.tell_late()
                if begun:
                    self.count_running()

        start_worker(self, look, group="history")

    def _say_waits(self) -> None:
        """Say it when the history is waited for, in whichever thread that is."""
        loop = asyncio.get_running_loop()

        def say(message: str) -> None:
            with contextlib.suppress(RuntimeError):  # the app has just ended
                loop.call_soon_threadsafe(partial(self.say, message, severity="warning"))

        self._waits.enter_context(listen_for_waits(say))

    def on_unmount(self) -> None:
        self.session.close()
        self._waits.close()

    def exit(self, result: int | None = None, *arguments: Any, **options: Any) -> None:
        """Leave; where one was is kept for the next start."""
        if not self._places_kept:  # once: the screens may be going already
            self._places_kept = True
            self.keep_places()
        super().exit(result, *arguments, **options)

    def copy_to_clipboard(self, text: str) -> None:
        """What Textual's own fields copy goes the same way as everything else."""
        self.copy(text)

    def on_descendant_focus(self, event: DescendantFocus) -> None:
        """No cursor blinks, in Textual's own palette neither: who waits writes nothing to the terminal."""
        if isinstance(event.widget, Input):
            event.widget.cursor_blink = False

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        """A worker of the app's own that broke: say it once, go on."""
        if event.state is WorkerState.ERROR and event.worker.error is not None:
            self.say_bug(event.worker.error, event.worker.name)

    def _show_note(self, note: Notification) -> None:
        self.post_message(Notify(note))

    def on_notify(self, event: Notify) -> None:
        """A note goes when its time is over. The timer of Textual's toast may never fire (`workers.call_after`)."""
        call_after(self, event.notification.timeout, partial(self._take_away, event.notification))

    def _take_away(self, note: Notification) -> None:
        notification = self.notifier.expire(note)
        if notification is None:
            self.clear_notifications()
        else:
            self.post_message(Notify(notification))  # which shows those that are left

    def take_back(self, message: str) -> None:
        """As `Services` says."""
        if (note := self.notifier.standing(message)) is not None:
            self._take_away(note)

    def _room_of_notes(self) -> int:
        """Cells of one line of a note: its edge and the space at both sides are none. 0: not known yet."""
        return max(self.size.width - NOTE_EDGES, 1) if self.size.width else 0

    def _is_typing(self) -> bool:
        """Whether letters go into a text."""
        if not self.screen_stack:  # before the first screen, and behind the last
            return False
        return self.focused is not None and self.focused.check_consume_key("n", "n")

    def clear_notifications(self) -> None:
        """Take all notes from the screen."""
        self.notifier.forget_standing()
        super().clear_notifications()

    def strip_tabs(self) -> Sequence[Tab]:
        """The screens as the strip names them, with what waits on them."""
        return self.navigation.tabs(self.live_executions.running, self.badges.counts)

    def count_badges(self) -> None:
        """Count what waits, for the strip, where the history has changed since the last count."""
        if not is_busy(self, "badges") and self.badges.are_stale():
            start_worker(self, self._count_badges, group="badges")

    async def _count_badges(self) -> None:
        # Runs may end while it counts.
        while self.badges.are_stale():
            await until_painted(self)
            before = self.badges.counts
            await asyncio.to_thread(self.badges.count)
            if self.badges.counts != before:
                self.navigation.retitle()

    def _execution_ended(self, row: ExecutionRow, started_here: bool, looked_at: bool) -> None:
        if looked_at and row.id in self._recordings:
            start_worker(self, partial(self._inspect_recorded, row.id), group="recorded")
        tell = partial(self._execution_ends.tell, row, started_here=started_here, looked_at=looked_at)
        start_worker(self, tell, group=f"end of {row.id}")

    def show_ended(self, execution: str) -> None:
        """An execution ended before it could be watched: open the run of a recording, else the runs in the history."""
        if execution in self._recordings:
            otherwise = partial(self.show_execution, execution, back=False)
            start_worker(self, partial(self._inspect_recorded, execution, otherwise), group="recorded")
        else:
            self.show_execution(execution, back=False)

    async def _inspect_recorded(self, execution: str, otherwise: Callable[[], None] | None = None) -> None:
        """The person watched a recording to its end: show what it is; `otherwise` where it has no run with an end."""
        runs = await asyncio.to_thread(self.session.store.runs_of_execution, execution)
        if not self.navigation.looks_at(execution):
            return
        if runs and runs[0].status in ENDED:
            self.inspect(runs[0].id)
        elif otherwise is not None:
            otherwise()

    def _execution_started(self, live: Live) -> None:
        self.live_executions.started(live)
        self.count_running()

    def count_running(self) -> None:
        """Look how many executions run now, for the strip; while there are some, look again."""
        start_worker(self, self.live_executions.watch, group="running")

    # Actions, each with its key in the table of actions

    async def action_quit(self) -> None:
        """Leave. Executions live in their own process and go on."""
        self._leave()

    def action_help_quit(self) -> None:
        """ctrl+c, which ends other programs."""
        key = key_of("quit", self.keymap)
        self.say(f"Press {key} to quit, or ^q in a text field. Running executions continue.")

    def _leave(self) -> None:
        # What the terminal answers now would be typed to the shell.
        if self.awaits_terminal:
            call_after(self, 0.05, self._leave)
        else:
            self.exit(0)

    def action_record(self) -> None:
        """Record what a program asks of models."""
        self.record()

    def action_extension(self, place: str) -> None:
        """Call an extension's function ("package.module:name") with the screen."""
        if self.navigation.top is not None:
            self.navigation.top.action_extension(place)

    def action_go(self, name: str) -> None:
        """The key of a screen."""
        self.go(name)

    def action_projects(self) -> None:
        """List the runs of this project, or of all."""
        if self.navigation.top is not None:
            self.navigation.top.action_projects()

    async def action_back(self) -> None:
        """Leave what is open inside the screen, else go to the screen before."""
        self.navigation.back()

    def action_zoom(self) -> None:
        """The focused pane gets the room of all panes, or gives it back."""
        screen = self.navigation.top
        if screen is not None:
            screen.pane_focus.toggle()

    def action_new_suite(self) -> None:
        """Make a suite, wherever you are."""
        self.new_suite()

    def action_jump(self) -> None:
        """Letters on what can be seen; typing one goes there."""
        self.help_controller.jump()

    def action_visit_notice(self) -> None:
        """Go to what the last notification was about."""
        self.help_controller.visit_notice()

    def action_list_notices(self) -> None:
        """The last notifications."""
        self.help_controller.list_notices()

    def action_command_palette(self) -> None:
        """Find a command or a place by its name."""
        self.help_controller.show_palette()

    def action_help(self) -> None:
        """The keys of where you are."""
        self.help_controller.show_help()

    def action_change_theme(self) -> None:
        """Choose a theme; each is shown while the cursor is on it."""
        self.theme_controller.choose()

    def action_save_screen(self) -> None:
        """A picture of the screen, as SVG."""
        screen = self.navigation.top
        svg = self.export_screenshot(title="agenteval", simplify=True)
        try:
            path = save_picture(svg, screen.SCOPE if screen is not None else "sheet")
        except AgentevalError as error:
            self.say_error(error)
        else:
            self.say(f"Saved a picture of this screen: {path}")

    def handle_bindings_clash(self, clashed_bindings: set[Binding], node: object) -> None:
        """Said already, for all screens at once, when the file was read."""


if TYPE_CHECKING:
    _HAS_ALL_SERVICES: type[Services] = AgentevalApp


def continuing(execution_ids: Iterable[str], options: str = "") -> list[str]:
    """What is to be said when the app has ended: which of these executions run on, and how to reach them. `options`:
    those that the commands need, as ` --db FILE`."""
    ids = set(execution_ids)
    if not ids:
        return []
    # 13 ms, for which the first frame does not wait.
    from agenteval_tui.runs.client import live_executions

    ends = [
        short_id(live_execution.execution) for live_execution in live_executions() if live_execution.execution in ids
    ]
    return [f"{end} continues: agenteval attach {end}{options} | agenteval cancel {end}{options}" for end in ends]


def run_app(start: AppStart) -> int:
    """Run the app until it is left. Returns the exit code."""
    app = AgentevalApp(start)
    result = app.run()
    if app.return_code:
        return app.return_code
    with contextlib.suppress(OSError):  # the terminal may be gone
        lines = continuing({*app.live_executions.known, *app.begun}, app.session.db_option)
        sys.stdout.writelines(f"{line}\n" for line in lines)
        sys.stdout.flush()
    return result or 0
