"""The app: wiring only. Screens are made when they are first shown."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, ClassVar

from textual.app import SystemCommand
from textual.binding import Binding, BindingType
from textual.events import DescendantFocus
from textual.filter import LineFilter
from textual.screen import Screen
from textual.widgets import Input

from agenteval_tui import places
from agenteval_tui.text.problems import AgentevalError
from agenteval_tui.tui.actions import EVERYWHERE, bindings, in_scope
from agenteval_tui.tui.frames import FACTORIES
from agenteval_tui.tui.launching import Launching
from agenteval_tui.tui.safe import DisplaySafe
from agenteval_tui.tui.screens.frame import FrameScreen
from agenteval_tui.tui.session import Session, read_keymap, read_state, write_state
from agenteval_tui.tui.themes import DEFAULT_THEME, load_themes, variable_defaults

if TYPE_CHECKING:
    from agenteval_tui.cli.start import AppStart

__all__ = ["FACTORIES", "AgentevalApp", "run_app"]


class AgentevalApp(Launching):
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
        self._state_file = places.data_dir() / "state.json"
        self._state = read_state(self._state_file)
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

    def action_go(self, name: str) -> None:
        """The key of a screen."""
        self.go(name)

    def action_help(self) -> None:
        """The keys of where you are."""
        from agenteval_tui.tui.screens.help import HelpScreen

        scope = self.screen.SCOPE if isinstance(self.screen, FrameScreen) else ""
        if scope:
            self.push_screen(HelpScreen(scope, self.keymap))

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


def run_app(start: AppStart) -> int:
    """Run the app until it is left. Returns the exit code."""
    app = AgentevalApp(start)
    result = app.run()
    if app.return_code:
        return app.return_code
    sys.stdout.flush()
    return result or 0
