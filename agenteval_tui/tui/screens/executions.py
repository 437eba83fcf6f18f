"""The executions that run now, to choose which one to watch."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType

from agenteval_tui.core.display import one_line
from agenteval_tui.core.ids import now_ms, short_id
from agenteval_tui.core.numbers import age, count
from agenteval_tui.runs.live_registry import Live
from agenteval_tui.tui.actions import bindings
from agenteval_tui.tui.presenters.status_style import mark
from agenteval_tui.tui.styled_text import Line, spread
from agenteval_tui.tui.terminal.sheet import Sheet
from agenteval_tui.tui.widgets.sheet_frame import SheetFrame
from agenteval_tui.tui.widgets.virtual_list import Rows, VirtualList


def _line(execution: Live, width: int, watched: str, at_ms: int) -> Line:
    here = "watched  " if execution.execution == watched else ""
    end = (
        (f"  {here}", "accent"),
        (age(execution.started_ms, at_ms), "dim"),
        (f"  {short_id(execution.execution)} ", "dim"),
    )
    return spread(((" ", ""), mark("running"), (" ", ""), (one_line(execution.title, 200), "")), end, width)


class ExecutionsScreen(Sheet[str]):
    """Dismissed with the id of the execution to watch, or None."""

    SCOPE = "executions"
    BINDINGS: ClassVar[list[BindingType]] = bindings("executions")

    def __init__(self, live: Sequence[Live], watched: str) -> None:
        """`watched`: the one that is watched now; "" for none."""
        super().__init__()
        self._live = tuple(live)
        line = partial(_line, watched=watched, at_ms=now_ms())
        self._rows = Rows(self._live, line, lambda live: live.execution)

    def compose(self) -> ComposeResult:
        keys = self.edge(("enter", "watch"))
        with SheetFrame(f"{count(len(self._live), 'execution')} running", keys, width="medium"):
            yield VirtualList(self._rows, id="executions")

    def on_virtual_list_selected(self, event: VirtualList.Selected) -> None:
        """Watch this one."""
        self.dismiss(event.key)
