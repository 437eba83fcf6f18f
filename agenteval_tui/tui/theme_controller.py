"""The app's themes: those that ship, the person's own, and which one is shown."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from agenteval_tui.core import directories
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.tui.help_actions import HelpController
from agenteval_tui.tui.state import State
from agenteval_tui.tui.themes import DEFAULT_THEME, default_theme, load_themes, variable_defaults


class ThemeController(HelpController):
    """An app with themes out of files."""

    state: State

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._theme_problems: list[AgentevalError] = []
        self._themes_read = False

    @property
    def colourless(self) -> bool:
        """Does nobody want colours (`NO_COLOR`), or has the terminal none?"""
        # Textual has taken NO_COLOR out of the environment.
        return self.no_color or os.environ.get("TERM", "").startswith(("vt", "mono"))

    def begin_themes(self) -> None:
        """Show the theme that was chosen last."""
        # What was chosen where there are millions of colours can't be read where there are sixteen.
        wanted = "sixteen" if self.colourless else self.state.theme(has_limited_colours())
        wanted = wanted or ("sixteen" if has_limited_colours() else DEFAULT_THEME)
        if wanted == DEFAULT_THEME and not self._own_themes().is_dir():
            # Known without a file: the others are read when the first frame is there (`read_themes`).
            self.register_theme(default_theme())
        else:
            self.read_themes()
        self.theme = wanted if wanted in self.available_themes else DEFAULT_THEME

    def read_themes(self) -> None:
        """Read all themes, unless that was done."""
        if self._themes_read:
            return
        self._themes_read = True
        themes, self._theme_problems = load_themes((directories.bundled("themes"), self._own_themes()))
        for theme in themes.values():
            # To register what is shown would make every style anew.
            if theme.name != DEFAULT_THEME or theme.name not in self.available_themes:
                self.register_theme(theme)

    @staticmethod
    def _own_themes() -> Path:
        return directories.config_dir() / "themes"

    def say_theme_problems(self) -> None:
        """What is wrong with the person's themes, in one notification."""
        self.read_themes()
        if len(self._theme_problems) == 1:
            self.say_error(self._theme_problems[0])
        elif self._theme_problems:
            self.say("\n".join(str(one) for one in self._theme_problems), severity="error")

    def keep_theme(self, _theme: object) -> None:
        """Another theme is shown: the next start shows it too, unless it is only looked at."""
        from agenteval_tui.tui.screens.theme import ThemeScreen

        if not any(isinstance(screen, ThemeScreen) for screen in self.screen_stack):
            self.state.keep_theme(self.theme, has_limited_colours())

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return variable_defaults()

    def action_change_theme(self) -> None:
        """Choose a theme; each is shown while the cursor is on it."""
        from agenteval_tui.tui.screens.theme import ThemeScreen

        self.read_themes()

        def chosen(name: str | None) -> None:
            if name is not None:
                self.theme = name
                self.state.keep_theme(name, has_limited_colours())

        self.push_screen(ThemeScreen(self.available_themes, self.theme), chosen)


def has_limited_colours() -> bool:
    """No more than 16 colours, or none: the terminal's own colours serve better than ours."""
    return os.environ.get("TERM", "") in ("linux", "xterm", "screen", "ansi", "rxvt", "cygwin")
