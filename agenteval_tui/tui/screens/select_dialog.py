"""Choosing one of several: a list that is filtered by typing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.widgets import Input

from agenteval_tui.core.display import one_line
from agenteval_tui.tui.styled_text import Line, fit, left
from agenteval_tui.tui.terminal.sheet import Sheet
from agenteval_tui.tui.widgets.line_block import LineBlock
from agenteval_tui.tui.widgets.virtual_list import Rows, VirtualList

Choice = tuple[str, str, str]
"""What is chosen, its words, and more words about it (or "")."""


class ChooseScreen(Sheet["str | None"]):
    """Dismissed with what is chosen, or None."""

    CSS_PATH = "select_dialog.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss(None)", "close", show=False),
        Binding("down", "step(1)", "next", show=False, priority=True),
        Binding("up", "step(-1)", "before", show=False, priority=True),
    ]

    def __init__(self, title: str, choices: Sequence[Choice], value: str = "") -> None:
        super().__init__()
        self._title = title
        self._choices = tuple(choices)
        self._value = value
        self._words = ""  # those that the list is filtered by

    def compose(self) -> ComposeResult:
        title = one_line(self._title, 80)
        with Vertical(id="sheet"):
            yield LineBlock(lambda width: [fit(((title, "bold"),), width)], id="head")
            yield Input(placeholder="type to filter", id="filter", classes="filter")
            yield VirtualList(id="choices")
            yield LineBlock(self._foot, id="foot")

    def on_mount(self) -> None:
        self.query_one("#choices", VirtualList).set_empty([(("  Nothing matches.", "dim"),)])
        self._show("")
        self.query_one("#filter", Input).focus()

    def _show(self, words: str) -> None:
        self._words = words
        wanted = words.lower().split()
        shown = [
            choice for choice in self._choices if all(word in f"{choice[1]} {choice[2]}".lower() for word in wanted)
        ]
        wide = min(max((len(one[1]) for one in shown), default=0), 34)
        rows: list[tuple[str, Line]] = []
        for value, name, about in shown:
            rows.append((value, ((f"{left(one_line(name), wide)}  ", ""), (one_line(about, 200), "dim"))))
        view = self.query_one("#choices", VirtualList)
        view.set_source(_Fitted(rows), keep_key=self._value if not words else "")

    def on_input_changed(self, event: Input.Changed) -> None:
        """Every letter filters."""
        event.stop()
        self._show(event.value)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Enter: the chosen one."""
        event.stop()
        if event.value != self._words:  # enter was faster than the last letter
            self._show(event.value)
        view = self.query_one("#choices", VirtualList)
        if view.cursor >= 0:
            self.dismiss(view.cursor_key)

    def on_virtual_list_selected(self, event: VirtualList.Selected) -> None:
        """Enter in the list, or a click on the chosen one."""
        event.stop()
        self.dismiss(event.key)

    def action_step(self, by: int) -> None:
        view = self.query_one("#choices", VirtualList)
        (view.action_cursor_down if by > 0 else view.action_cursor_up)()

    @staticmethod
    def _foot(width: int) -> list[Line]:
        cells = [("enter", "bold accent"), (" choose   ", ""), ("↑ ↓", "bold accent"), (" move   ", "")]
        return [fit((*cells, ("esc", "bold accent"), (" close", "")), width)]


class _Fitted(Rows):
    """Rows that are cut where they are too long."""

    def line(self, index: int, width: int, *, focused: bool) -> Line:
        """Row `index`."""
        return fit(super().line(index, width, focused=focused), width)
