"""The errors of an execution: how many of each, what happened, how to fix it; enter goes to the run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical

from agenteval_tui.core.numbers import count
from agenteval_tui.tui.presenters.run_errors import ErrorGroup, group_detail, group_line
from agenteval_tui.tui.styled_text import Line, fit
from agenteval_tui.tui.terminal.sheet import Sheet
from agenteval_tui.tui.widgets.line_block import LineBlock
from agenteval_tui.tui.widgets.lines_view import LinesView
from agenteval_tui.tui.widgets.virtual_list import VirtualList


class _Rows:
    def __init__(self, groups: Sequence[ErrorGroup]) -> None:
        self._groups = groups

    def count(self) -> int:
        return len(self._groups)

    def key(self, index: int) -> str:
        return str(index)

    def line(self, index: int, width: int, *, focused: bool) -> Line:
        return group_line(self._groups[index], width)


class ErrorsScreen(Sheet[str]):
    """Dismissed with the id of the run to go to, or "" for none. Enter again goes to the group's next run."""

    CSS_PATH = "run_errors.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,x", "dismiss('')", "close", show=False),
        Binding("tab", "next_pane", "the other pane", show=False),
    ]

    def __init__(self, groups: Sequence[ErrorGroup]) -> None:
        super().__init__()
        self._groups = groups

    def compose(self) -> ComposeResult:
        with Vertical(id="sheet"):
            yield LineBlock(self._head, id="head")
            yield VirtualList(_Rows(self._groups), id="groups")
            yield LinesView(id="detail")
            yield LineBlock(
                lambda width: [
                    fit(
                        (
                            ("enter", "bold accent"),
                            (" go to the run   ", ""),
                            ("esc", "bold accent"),
                            (" close", ""),
                        ),
                        width,
                    )
                ],
                id="foot",
            )

    def on_mount(self) -> None:
        rows = self.query_one("#groups", VirtualList)
        # As high as there are groups, within half of the sheet.
        rows.styles.height = min(len(self._groups), 8)
        rows.focus()

    def _head(self, width: int) -> list[Line]:
        ended = sum(len(group.runs) for group in self._groups if not group.retried)
        again = sum(len(group.runs) for group in self._groups if group.retried)
        said = [f"{count(ended, 'run')} ended in an error"] if ended else []
        said += [f"{count(again, 'run')} tried again"] if again else []
        return [fit((("Errors", "bold"), (f"   {', '.join(said)}", "dim")), width), ()]

    def on_virtual_list_highlighted(self, event: VirtualList.Highlighted) -> None:
        """Show what this one is about."""
        group = self._groups[event.index]
        self.query_one("#detail", LinesView).show(lambda width: group_detail(group, width), keep_place=False)

    def on_virtual_list_selected(self, event: VirtualList.Selected) -> None:
        """Go to the first run of the group."""
        self.dismiss(self._groups[event.index].runs[0])

    def action_next_pane(self) -> None:
        rows, detail = self.query_one("#groups", VirtualList), self.query_one("#detail", LinesView)
        (detail if rows.has_focus else rows).focus()
