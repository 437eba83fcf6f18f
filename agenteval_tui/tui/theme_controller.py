"""The app's themes: those that ship, the person's own, and which one is shown."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from textual.app import App
from textual.screen import Screen

from agenteval_tui.core import directories
from agenteval_tui.core.display import one_line
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.tui.notifications import Notifier
from agenteval_tui.tui.screen_registry import sheet
from agenteval_tui.tui.state import State
from agenteval_tui.tui.themes import DEFAULT_THEME, SIXTEEN, default_theme, load_themes


class ThemeController:
    """The themes of an app, out of files."""

    def __init__(self, app: App[Any], state: State, notifier: Notifier) -> None:
        self._app = app
        self._state = state
        self._notifier = notifier
        # Textual has taken NO_COLOR out of the environment, and asks for this whenever it paints a widget.
        self.colourless = app.no_color or os.environ.get("TERM", "").startswith(("vt", "mono"))
        """Whether colours are unwanted (`NO_COLOR`), or the terminal has none."""
        self._theme_problems: list[AgentevalError] = []
        self._themes_read = False
        self._missing = ""  # the theme that was chosen, and is not there now
        self._sheet: Screen[Any] | None = None  # where a theme was chosen last

    def begin(self) -> None:
        """Show the theme that was chosen last."""
        # What was chosen where there are millions of colours can't be read where there are sixteen.
        theme = SIXTEEN if self.colourless else self._state.theme(has_limited_colours())
        theme = theme or (SIXTEEN if has_limited_colours() else DEFAULT_THEME)
        if theme == DEFAULT_THEME and not self._own_themes().is_dir():
            # Known without a file: the others are read when one of them is to be chosen (`read`).
            self._app.register_theme(default_theme())
        else:
            self.read()
        if theme not in self._app.available_themes:
            self._missing, theme = theme, DEFAULT_THEME
        self._app.theme = theme

    def read(self) -> None:
        """Read all themes, unless that was done."""
        if self._themes_read:
            return
        self._themes_read = True
        themes, self._theme_problems = load_themes((directories.bundled("themes"), self._own_themes()))
        for theme in themes.values():
            # To register what is shown would make every style anew.
            if theme.name != DEFAULT_THEME or theme.name not in self._app.available_themes:
                self._app.register_theme(theme)

    @staticmethod
    def _own_themes() -> Path:
        return directories.config_dir() / "themes"

    def say_problems(self) -> None:
        """What is wrong with the person's themes, in one notification; and that the one they chose isn't there."""
        if self._own_themes().is_dir():  # those that ship are right: to read them takes 25 ms
            self.read()
        if self._theme_problems:
            # What is wrong comes first: a note is one line, and the folder is the same for all.
            folder = directories.config_dir()
            problems = [str(theme_problem).removeprefix(f"{folder}{os.sep}") for theme_problem in self._theme_problems]
            self._notifier.say("\n".join([*problems, f"in {folder}"]), severity="error")
        if self._missing:
            message = f"Theme {one_line(self._missing, 40)} can't be loaded: {DEFAULT_THEME} is used."
            self._notifier.say(f"{message} Press {{everywhere.theme}} to choose another.", severity="warning")

    def keep(self, _theme: object) -> None:
        """Another theme is shown: the next start shows it too, unless it is only looked at."""
        # In the sheet each theme under the cursor is shown: only the chosen one is kept.
        if self._sheet not in self._app.screen_stack:
            self._state.keep_theme(self._app.theme, has_limited_colours())

    def choose(self) -> None:
        """Choose a theme; each is shown while the cursor is on it."""
        self.read()

        def chosen(name: str | None) -> None:
            if name is not None:
                self._app.theme = name
                self._state.keep_theme(name, has_limited_colours())

        self._sheet = sheet("theme", self._app.available_themes, self._app.theme)
        self._app.push_screen(self._sheet, chosen)


def has_limited_colours() -> bool:
    """No more than 16 colours, or none: the terminal's own colours serve better than ours."""
    return os.environ.get("TERM", "") in ("linux", "xterm", "screen", "ansi", "rxvt", "cygwin")
