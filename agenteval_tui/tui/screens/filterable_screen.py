"""A screen with a list and a filter box over it: every letter filters, enter goes to what was found, esc leaves it."""

from __future__ import annotations

from typing import ClassVar

from textual.widgets import Input

from agenteval_tui.tui.screens.base_screen import FrameScreen
from agenteval_tui.tui.widgets.virtual_list import VirtualList


class FilteredScreen(FrameScreen):
    """What Compare and Causes have in common. The box is `#search`; `LIST` says which list it filters."""

    LIST: ClassVar[str]

    def __init__(self) -> None:
        super().__init__()
        self._words = ""

    def show_filtered(self) -> None:
        """Show what has the words. Subclasses say how."""
        raise NotImplementedError

    def hide_filter(self) -> None:
        """At the start: no box, and the list has the keys."""
        self.query_one("#search", Input).display = False
        self.query_one(self.LIST, VirtualList).focus()

    def action_filter(self) -> None:
        box = self.query_one("#search", Input)
        box.display = True
        box.focus()

    def leave_text(self) -> None:
        self.query_one(self.LIST, VirtualList).focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Every letter filters."""
        self._words = event.value.strip()
        self.show_filtered()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Enter goes to what was found."""
        self.leave_text()

    def step_back(self) -> bool:
        """Leave the filter; False where there is none."""
        box = self.query_one("#search", Input)
        if not box.display:
            return False
        box.value = ""
        self.hide_filter()
        return True
