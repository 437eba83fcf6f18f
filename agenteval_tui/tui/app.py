"""The app: wiring only. Screens are made when they are first shown."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from textual.app import App
from textual.binding import Binding, BindingType
from textual.command import Provider
from textual.events import DescendantFocus
from textual.filter import LineFilter
from textual.widgets import Input

from agenteval_tui.core import directories
from agenteval_tui.history.lock_wait import told
from agenteval_tui.tui.actions import EVERYWHERE, bindings
from agenteval_tui.tui.analysis_context import Session
from agenteval_tui.tui.keymap import NAME as KEYS_FILE
from agenteval_tui.tui.keymap import read_keymap
from agenteval_tui.tui.presenters.status_style import UNICODE
from agenteval_tui.tui.screen_registry import FACTORIES
from agenteval_tui.tui.state import State, flag, name_of_start
from agenteval_tui.tui.terminal.output_filters import AsciiOnly, Colourless, DisplaySafe
from agenteval_tui.tui.theme_controller import ThemeController
from agenteval_tui.tui.workers import start_worker

if TYPE_CHECKING:
    from agenteval_tui.cli.start import AppStart
    from agenteval_tui.tui.services import Services

SERVER_SECONDS = 5.0
HISTORY_SECONDS = 2.0  # between two looks whether the history file is still the one that was opened

__all__ = ["FACTORIES", "AgentevalApp", "run_app"]


def _places() -> type[Provider]:
    from agenteval_tui.tui.command_providers import PlacesProvider

    return PlacesProvider


class AgentevalApp(ThemeController):
    """The terminal program. `start` says what to open; everything else is found by the session."""

    TITLE = "agenteval"
    CSS_PATH = "app.tcss"
    BINDINGS: ClassVar[list[BindingType]] = list(bindings(EVERYWHERE))
    ENABLE_COMMAND_PALETTE = True
    COMMANDS: ClassVar[set[type[Provider] | Callable[[], type[Provider]]]] = {*App.COMMANDS, _places}

    def __init__(self, start: AppStart) -> None:
        super().__init__()
        self.animation_level = "none"
        self.start = start
        self._waits = contextlib.ExitStack()
        self._places_kept = False
        self.session = Session(start.paths, directories.history_file(start.db))
        self.state = State(directories.data_dir() / "state.json", name_of_start(start.paths, self.session.db))
        kept = self.state.of("projects")
        if "all" in kept:
            self.session.everything = flag(kept, "all")
        self.begin_themes()

    def get_line_filters(self) -> Sequence[LineFilter]:
        # The last defence: whatever slipped past `displayable` is made visible here.
        filters: list[LineFilter] = [*super().get_line_filters(), DisplaySafe()]
        if not UNICODE:
            filters.append(AsciiOnly())
        if self.colourless:
            filters.append(Colourless())
        return filters

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
        self.set_interval(HISTORY_SECONDS, self._look_at_history)
        self._say_waits()
        self._take_keys()
        if self.state.problem is not None:
            self.say_error(self.state.problem)
        # The other themes are read here; nobody can choose one before the first frame.
        self.call_after_refresh(self.say_theme_problems)
        self.theme_changed_signal.subscribe(self, self.keep_theme)
        if self.start.screen == "inspect" and self.start.target:
            self.go("inspect")
            self.inspect(self.start.target, criterion=self.start.criterion)
        elif self.start.screen == "history" and self.start.target:
            self.show_execution(self.start.target, back=False)
        else:
            self.go_on(self.start.screen)

    def _end_with(self, server: int) -> None:
        """In a browser: the server was killed, and nobody can see this app any more."""
        if os.getppid() != server:
            self.exit(0)

    def _look_at_history(self) -> None:
        """Say it when the history file is another one than before, and show that."""

        async def look() -> None:
            moved = await asyncio.to_thread(self.session.moved)
            if moved:
                self.say(moved, severity="warning")
                self.tell_new_runs()

        start_worker(self, look, group="history")

    def _say_waits(self) -> None:
        """Say it when the history is waited for, in whichever thread that is."""
        loop = asyncio.get_running_loop()

        def say(said: str) -> None:
            with contextlib.suppress(RuntimeError):  # the app has just ended
                loop.call_soon_threadsafe(partial(self.say, said, severity="warning"))

        self._waits.enter_context(told(say))

    def _take_keys(self) -> None:
        """The person's own keys; what is wrong with them in one notification."""
        path = directories.config_dir() / KEYS_FILE
        self.keymap, problems = read_keymap(path)
        self.set_keymap(self.keymap)
        if problems:
            self.say(f"{path}: " + "\n".join(problems), severity="warning")

    def on_unmount(self) -> None:
        self.session.close()
        self._waits.close()

    def exit(self, result: int | None = None, *arguments: Any, **options: Any) -> None:
        """Leave; where one was is kept for the next start."""
        if not self._places_kept:  # once: the screens may be going already
            self._places_kept = True
            self.keep_places()
        super().exit(result, *arguments, **options)

    def on_descendant_focus(self, event: DescendantFocus) -> None:
        """No cursor blinks, in Textual's own palette neither: who waits writes nothing to the terminal."""
        if isinstance(event.widget, Input):
            event.widget.cursor_blink = False

    async def action_quit(self) -> None:
        """Leave. Executions live in their own process and go on."""
        self._leave()

    def _leave(self) -> None:
        # What the terminal answers now would be typed to the shell.
        if self.awaits_terminal:
            self.set_timer(0.05, self._leave)
        else:
            self.exit(0)

    def action_go(self, name: str) -> None:
        """The key of a screen."""
        self.go(name)

    def handle_bindings_clash(self, clashed_bindings: set[Binding], node: object) -> None:
        """Said already, for all screens at once, when the file was read."""


if TYPE_CHECKING:
    _HAS_ALL_SERVICES: type[Services] = AgentevalApp


def run_app(start: AppStart) -> int:
    """Run the app until it is left. Returns the exit code."""
    app = AgentevalApp(start)
    result = app.run()
    if app.return_code:
        return app.return_code
    sys.stdout.flush()
    return result or 0
