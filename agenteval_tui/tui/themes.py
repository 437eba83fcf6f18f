"""The app's themes: YAML files, those that ship with the program and the person's own; and which one is shown."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from textual.app import App
from textual.color import Color, ColorParseError
from textual.screen import Screen
from textual.theme import Theme

from agenteval_tui.core import directories
from agenteval_tui.core.did_you_mean import did_you_mean
from agenteval_tui.core.display import one_line
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.private_files import read_small
from agenteval_tui.tui.notifications import Notifier
from agenteval_tui.tui.screen_registry import sheet
from agenteval_tui.tui.state import State
from agenteval_tui.tui.terminal.sheet import if_answered
from agenteval_tui.tui.theme_tokens import DARK, complete

DEFAULT_THEME = "dusk"
SIXTEEN = "sixteen"
"""The theme of the terminal's own colours."""
LONGEST_ABOUT = 200  # characters of a description
_FILE_KEYS = {"name", "description", "dark", "ansi", "colours"}


@dataclass
class FileTheme(Theme):
    """A theme out of a file, with what that says of it."""

    about: str = ""


def kind_of(theme: Theme) -> str:
    """What sort of theme it is, in a word or two."""
    return "16 colours" if theme.ansi else "dark" if theme.dark else "light"


def default_theme() -> Theme:
    """The default theme, without its file: values that a theme file leaves out are as here."""
    return _theme(DEFAULT_THEME, DARK, dark=True, ansi=False, about="Calm and dark.")


def load_theme(path: Path) -> Theme:
    """The theme in a YAML file. Raises AgentevalError naming the file, every wrong key, and how to fix each."""
    text = read_small(path, "this theme")
    if text is None:
        raise AgentevalError("this theme can't be read", where=str(path), fix="the file is not there")
    import yaml

    try:
        data = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f"{path}:{mark.line + 1}:{mark.column + 1}" if mark else str(path)
        raise AgentevalError("this theme is not valid YAML", where=place, fix=getattr(error, "problem", "")) from error
    if not isinstance(data, Mapping):
        raise AgentevalError("a theme needs `name` and `colours`", where=str(path))
    mistakes = _unknown_keys(data, _FILE_KEYS, f"the keys are {', '.join(sorted(_FILE_KEYS))}")
    wrong = [key for key in ("ansi", "dark") if not isinstance(data.get(key, True), bool)]
    mistakes += [(f"`{key}` is true or false", f"write `{key}: true`, or leave it out") for key in wrong]
    colours = data.get("colours") or {}
    if isinstance(colours, Mapping):
        mistakes += [*_unknown_keys(colours, DARK, "`agenteval docs themes` lists them"), *_not_colours(colours)]
    else:
        mistakes.append(("`colours` maps tokens to colours", ""))
    name = str(data.get("name") or path.stem)
    if not re.fullmatch(r"\w[\w .-]{0,39}", name):
        # It is shown by Textual's own palette, which would pass on what it holds.
        mistakes.append(("a theme's name has letters, digits, spaces, `.`, `-` and `_`, at most 40", ""))
    if len(mistakes) == 1:
        what, remedy = mistakes[0]
        raise AgentevalError(what, where=str(path), fix=remedy)
    if mistakes:
        listed = "\n".join(f"  {what}{f' ({remedy})' if remedy else ''}" for what, remedy in mistakes)
        raise AgentevalError(f"this theme has {len(mistakes)} mistakes", where=str(path), fix=listed)
    ansi, dark = bool(data.get("ansi", False)), bool(data.get("dark", True))
    own_colours = {str(key): str(value) for key, value in colours.items()}
    about = str(data.get("description") or "")[:LONGEST_ABOUT]
    return _theme(name, complete(own_colours, dark=dark), dark=dark, ansi=ansi, about=about)


def load_themes(folders: Iterable[Path]) -> tuple[dict[str, Theme], list[AgentevalError]]:
    """All themes in the folders, later ones replacing earlier ones of the same name, and what could not be read."""
    themes: dict[str, Theme] = {}
    problems: list[AgentevalError] = []
    for folder in folders:
        if not folder.is_dir():
            continue
        for path in sorted([*folder.glob("*.yaml"), *folder.glob("*.yml")]):
            try:
                theme = load_theme(path)
            except AgentevalError as error:
                problems.append(error)
            else:
                themes[theme.name] = theme
    return themes, problems


def variable_defaults() -> dict[str, str]:
    """The tokens while a theme is shown that does not know them."""
    return {token: colour for token, colour in DARK.items() if token not in _TEXTUAL_NAMES}


def with_tokens(theme: Theme) -> Theme:
    """The theme with all of our tokens. Textual's own have none: they are made from its colours when it is
    first asked for, as that takes a hundredth of a second."""
    if isinstance(theme, FileTheme):
        return theme
    if theme.name not in _COMPLETED:
        _COMPLETED[theme.name] = _from_terminal(theme) if theme.ansi else _from_colours(theme)
    return _COMPLETED[theme.name]


_COMPLETED: dict[str, Theme] = {}


def _from_terminal(theme: Theme) -> Theme:
    own = load_theme(directories.bundled("themes") / f"{SIXTEEN}.yaml")
    return replace(theme, error=own.error, accent=own.accent, variables={**own.variables, **theme.variables})


def _from_colours(theme: Theme) -> Theme:
    generated = theme.to_color_system().generate()
    background = Color.parse(generated["background"])
    own_colours = {token: (background + Color.parse(generated[name])).hex6 for token, name in _FROM_TEXTUAL.items()}
    colours = complete(own_colours, dark=theme.dark, fitted=True)
    return replace(
        theme,
        foreground=colours["foreground"],
        accent=colours["accent"],
        error=colours["error"],
        variables={**theme.variables, **_variables(colours)},
    )


_FROM_TEXTUAL = {
    "background": "background",
    "surface": "surface",
    "panel": "panel",
    "foreground": "foreground",
    "accent": "primary",
    "passed": "success",
    "failed": "error",
    "error": "warning",
}
_TEXTUAL_NAMES = {"background", "surface", "panel", "foreground", "accent", "error"}


def _theme(name: str, colours: dict[str, str], *, dark: bool, ansi: bool, about: str) -> Theme:
    variables = _variables(colours)
    if ansi:
        # Textual makes these for every theme but an ANSI one, and its own styles name them.
        variables |= {
            "block-cursor-text-style": "reverse",
            "ansi-background": "ansi_black",
            "ansi-foreground": "ansi_white",
            "input-cursor-background": "ansi_white",
            "input-cursor-foreground": "ansi_black",
            "input-cursor-text-style": "none",
            "input-selection-foreground": "ansi_white",
            "screen-selection-background": "ansi_blue",
            "screen-selection-foreground": "ansi_white",
        }
    return FileTheme(
        about=about,
        name=name,
        primary=colours["accent"],
        secondary=colours["accent"],
        accent=colours["accent"],
        warning=colours["error"],
        error=colours["error"],
        success=colours["passed"],
        foreground=colours["foreground"],
        background=colours["background"],
        surface=colours["surface"],
        panel=colours["panel"],
        boost=colours["panel"],
        dark=dark,
        ansi=ansi,
        variables=variables,
    )


def _variables(colours: Mapping[str, str]) -> dict[str, str]:
    """What our styles and Textual's name, beside the colours that every theme of Textual's has."""
    return {
        **{token: colour for token, colour in colours.items() if token not in _TEXTUAL_NAMES},
        "block-cursor-background": colours["cursor"],
        "block-cursor-foreground": colours["foreground"],
        "block-cursor-text-style": "bold",
        "block-cursor-blurred-background": colours["cursor"],
        "block-cursor-blurred-foreground": colours["foreground"],
        "input-selection-background": colours["cursor"],
        "border": colours["accent"],
        "border-blurred": colours["rule"],
        "scrollbar": colours["rule"],
        "scrollbar-hover": colours["muted"],
        "scrollbar-active": colours["accent"],
        "scrollbar-background": colours["background"],
        "scrollbar-background-hover": colours["background"],
        "scrollbar-background-active": colours["background"],
        "scrollbar-corner-color": colours["background"],
    }


def _unknown_keys(data: Mapping[Any, Any], keys: Collection[str], otherwise: str) -> list[tuple[str, str]]:
    """The keys that a theme does not have: what is wrong, and what to write; `otherwise` where nothing is near."""
    problems = []
    for key in data:
        if key not in keys:
            problems.append((f"a theme has no `{key}`", did_you_mean(key, keys, otherwise, quotes="`")))
    return problems


def _not_colours(colours: Mapping[Any, Any]) -> list[tuple[str, str]]:
    """The values of tokens that are not colours: what is wrong, and what to write."""
    problems = []
    for token, colour in colours.items():
        try:
            Color.parse(str(colour))
        except ColorParseError:
            if token in DARK:
                problems.append((f"`{token}: {colour}` is not a colour", "write #rrggbb, a name, or ansi_green"))
    return problems


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

        def chosen(name: str) -> None:
            self._app.theme = name
            self._state.keep_theme(name, has_limited_colours())

        self._sheet = sheet("theme", self._app.available_themes, self._app.theme)
        self._app.push_screen(self._sheet, if_answered(chosen))


def has_limited_colours() -> bool:
    """No more than 16 colours, or none: the terminal's own colours serve better than ours."""
    return os.environ.get("TERM", "") in ("linux", "xterm", "screen", "ansi", "rxvt", "cygwin")
