"""A screen with a list and a filter box over it: every letter filters, enter goes to what was found, esc leaves it."""

from __future__ import annotations

from typing import ClassVar

from textual.widgets import Input

from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.history.errors import NothingRanError
from agenteval_tui.history.references import NothingHereError
from agenteval_tui.tui.screens.base_screen import FrameScreen
from agenteval_tui.tui.styled_text import Line, nothing_here, nothing_ran
from agenteval_tui.tui.widgets.filter_box import FilterBox
from agenteval_tui.tui.widgets.lines_view import LinesView
from agenteval_tui.tui.widgets.virtual_list import VirtualList


def without_runs(error: AgentevalError, purpose: str) -> list[Line] | None:
    """What a screen about runs lists if the error is that there are none; None for any other error."""
    if isinstance(error, NothingHereError):
        return nothing_here(error.elsewhere, purpose)
    return nothing_ran(purpose) if isinstance(error, NothingRanError) else None


class FilteredScreen(FrameScreen):
    """What Compare and Causes have in common. The box is `#search`; `LIST` says which list it filters, and `#details`
    is beside it."""

    LIST: ClassVar[str]

    def __init__(self) -> None:
        super().__init__()
        self._words = ""
        self._nothing_ran = False

    @property
    def _list(self) -> VirtualList:
        return self.query_one(self.LIST, VirtualList)

    def action_next_pane(self) -> None:
        """Between the list and the details."""
        details = self.query_one("#details", LinesView)
        (self._list if details.has_focus else details).focus()

    def show_filtered(self) -> None:
        """Show what has the words. Subclasses say how."""
        raise NotImplementedError

    def action_filter(self) -> None:
        self.query_one(FilterBox).open()

    def leave_text(self) -> None:
        self._list.focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Every letter filters."""
        self._words = event.value.strip()
        self.show_filtered()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Enter goes to what was found."""
        self.leave_text()

    def step_back(self) -> bool:
        """Leave the filter; False where there is none."""
        was_open = self.query_one(FilterBox).close()
        if was_open:
            self._list.focus()
        return was_open
