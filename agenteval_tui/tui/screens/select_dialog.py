"""Choosing one of several: a list that is filtered by typing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.widgets import Input

from agenteval_tui.core.display import one_line
from agenteval_tui.tui.actions import bindings
from agenteval_tui.tui.styled_text import Line, cell_len, fit, left, paragraph
from agenteval_tui.tui.terminal.mounting import is_there
from agenteval_tui.tui.terminal.sheet import Sheet
from agenteval_tui.tui.widgets.line_block import LineBlock
from agenteval_tui.tui.widgets.sheet_frame import SheetFrame
from agenteval_tui.tui.widgets.virtual_list import Rows, VirtualList

Choice = tuple[str, str, str]
"""What is chosen, its words, and more words about it (or "")."""


class SelectScreen(Sheet["str | None"]):
    """Dismissed with what is chosen, or None."""

    SCOPE = "select"
    BINDINGS: ClassVar[list[BindingType]] = bindings("select")

    def __init__(
        self,
        title: str,
        choices: Sequence[Choice],
        value: str = "",
        read_again: Callable[[Callable[[Sequence[Choice]], None]], object] | None = None,
    ) -> None:
        """`read_again` reads the choices once more, and hands them on: where they come from the history."""
        super().__init__()
        self._read_again = read_again
        self._title = title
        self._choices = tuple(choices)
        self._value = value
        self._words = ""  # those that the list is filtered by
        self._wide = 0  # cells of the names

    def compose(self) -> ComposeResult:
        keys = self.edge(("enter", "choose"), ("↑ ↓", "move"))
        with SheetFrame(self._title, keys, width="medium"):
            yield Input(placeholder="type to filter", id="filter", classes="filter")
            yield VirtualList(id="choices")
            yield LineBlock(self._whole, id="whole")

    def on_mount(self) -> None:
        self.query_one("#choices", VirtualList).set_empty([(("  Nothing matches.", "dim"),)])
        self._show("")
        self.query_one("#filter", Input).focus()

    def new_runs(self) -> None:
        """The history says other things than it did."""
        if self._read_again is not None:
            self._read_again(self._take)

    def _take(self, choices: Sequence[Choice]) -> None:
        if not is_there(self) or tuple(choices) == self._choices:
            return
        key = self.query_one("#choices", VirtualList).cursor_key
        self._choices = tuple(choices)
        self._show(self._words, key or "")

    def _show(self, words: str, keep: str = "") -> None:
        self._words = words
        query_words = words.lower().split()
        matching = [
            choice
            for choice in self._choices
            if all(word in f"{choice[1]} {choice[2]}".lower() for word in query_words)
        ]
        wide = self._wide = min(max((cell_len(choice[1]) for choice in matching), default=0), 34)
        rows = Rows(matching, partial(_line, wide=wide), lambda choice: choice[0])
        view = self.query_one("#choices", VirtualList)
        view.set_source(rows, keep_key=keep or (self._value if not words else ""))

    def _whole(self, width: int) -> list[Line]:
        """What is said about the choice under the cursor, where its row has no room for all of it."""
        chosen = self.query_one("#choices", VirtualList).cursor_key
        about = next((one_line(about, 200) for value, _, about in self._choices if value == chosen), "")
        return paragraph(about, width, "dim") if cell_len(about) > width - self._wide - 2 else []

    def on_virtual_list_highlighted(self, event: VirtualList.Highlighted) -> None:
        """Say all of what is said about it."""
        self.query_one("#whole", LineBlock).retell()

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


def _line(choice: Choice, width: int, wide: int) -> Line:
    _, name, about = choice
    return fit(((f"{left(one_line(name), wide)}  ", ""), (one_line(about, 200), "dim")), width)
