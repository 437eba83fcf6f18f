"""Choosing a theme: each is shown while the cursor is on it; escape goes back to the one before."""

from __future__ import annotations

from collections.abc import Mapping

from textual.theme import Theme

from agenteval_tui.tui.screens.select_dialog import Choice, SelectScreen
from agenteval_tui.tui.themes import FileTheme, kind_of
from agenteval_tui.tui.widgets.virtual_list import VirtualList


class ThemeScreen(SelectScreen):
    """Dismissed with the name of the theme, or None."""

    def __init__(self, themes: Mapping[str, Theme], current: str) -> None:
        """`themes` by name. Those out of files come first."""
        own: list[Choice] = []
        others: list[Choice] = []
        for name, theme in themes.items():
            if isinstance(theme, FileTheme):
                own.append((name, name, " · ".join(filter(None, (kind_of(theme), theme.about)))))
            else:
                others.append((name, name, f"{kind_of(theme)} · one of Textual's"))
        super().__init__("Theme", [*own, *sorted(others)], current)
        self._before = current

    def on_virtual_list_highlighted(self, event: VirtualList.Highlighted) -> None:
        """The screen behind shows it at once."""
        super().on_virtual_list_highlighted(event)
        event.stop()
        self.app.theme = event.key

    def leaves(self, result: str | None) -> None:
        """Closed without a choice: as it was."""
        if result is None:
            self.app.theme = self._before
