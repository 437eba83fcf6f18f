"""The questions about a run and the replies: both unchanged; and its failed attempts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType

from agenteval_tui.core.display import displayable
from agenteval_tui.tui.actions import bindings
from agenteval_tui.tui.presenters.judge_log import LogEntry, entry_lines
from agenteval_tui.tui.styled_text import Line
from agenteval_tui.tui.terminal.sheet import Sheet
from agenteval_tui.tui.widgets.lines_view import LinesView
from agenteval_tui.tui.widgets.sheet_frame import SheetFrame


class JudgeLogScreen(Sheet[None]):
    """`n` and `p` go from entry to entry, `y` copies the one at the top."""

    SCOPE = "replies"
    BINDINGS: ClassVar[list[BindingType]] = bindings("replies")

    def __init__(self, entries: Sequence[LogEntry], summary: str) -> None:
        super().__init__()
        self._entries = tuple(entries)
        self._summary = summary
        self._rows: list[int] = []

    def compose(self) -> ComposeResult:
        keys = self.edge("next", "previous", ("j k", "scroll"), "copy")
        with SheetFrame("Replies and failed attempts", keys, subject=self._summary, width="large"):
            yield LinesView(id="asked")

    def on_mount(self) -> None:
        view = self.query_one("#asked", LinesView)
        view.show(self._lines)
        view.focus()

    def _lines(self, width: int) -> list[Line]:
        lines, self._rows = entry_lines(self._entries, width)
        return lines

    def _here(self) -> int:
        top = self.query_one("#asked", LinesView).scroll_offset.y
        return max((number for number, row in enumerate(self._rows) if row <= top), default=0)

    def action_step(self, by: int) -> None:
        view = self.query_one("#asked", LinesView)
        here = self._here()
        # From the middle of this one, its own start is the previous one.
        number = here if by < 0 and view.scroll_offset.y > self._rows[here] else here + by
        if 0 <= number < len(self._rows):
            view.scroll_to(y=self._rows[number], animate=False)

    def action_copy(self) -> None:
        """The question and the reply at the top, whole."""
        text = displayable(self._entries[self._here()].text)
        self.agenteval.copy(text, "this question with its reply.")
