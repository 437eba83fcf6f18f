"""The errors of an execution: how many of each, what happened, how to fix it; enter goes to the run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType

from agenteval_tui.core.numbers import count
from agenteval_tui.tui.actions import bindings
from agenteval_tui.tui.presenters.run_errors import ErrorGroup, group_detail, group_line
from agenteval_tui.tui.terminal.sheet import Sheet
from agenteval_tui.tui.widgets.lines_view import LinesView
from agenteval_tui.tui.widgets.sheet_frame import Section, SheetFrame
from agenteval_tui.tui.widgets.virtual_list import Rows, VirtualList


class RunErrorsScreen(Sheet[str]):
    """Dismissed with the id of the run to go to, or None. Enter again goes to the group's next run."""

    SCOPE = "errors"
    BINDINGS: ClassVar[list[BindingType]] = bindings("errors")

    def __init__(self, groups: Sequence[ErrorGroup]) -> None:
        super().__init__()
        self._groups = groups

    def compose(self) -> ComposeResult:
        keys = self.edge(("enter", "go to the run"), ("tab", "pane"))
        with SheetFrame("Errors", keys, subject=self._subject(), width="large"):
            yield VirtualList(Rows(self._groups, group_line), id="groups")
            yield Section("what happened, and how to fix it")
            yield LinesView(id="detail")

    def _subject(self) -> str:
        ended = sum(len(group.runs) for group in self._groups if not group.retried)
        again = sum(len(group.runs) for group in self._groups if group.retried)
        parts = [f"{count(ended, 'run')} ended in an error"] if ended else []
        parts += [f"{count(again, 'run')} tried again"] if again else []
        return ", ".join(parts)

    def on_virtual_list_highlighted(self, event: VirtualList.Highlighted) -> None:
        """Show what this one is about."""
        group = self._groups[event.index]
        self.query_one("#detail", LinesView).show(lambda width: group_detail(group, width), keep_place=False)

    def on_virtual_list_selected(self, event: VirtualList.Selected) -> None:
        """Go to the first run of the group."""
        self.dismiss(self._groups[event.index].runs[0])
