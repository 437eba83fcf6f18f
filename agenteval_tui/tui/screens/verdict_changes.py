"""The runs that an edit would flip, as a list; enter opens one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType

from agenteval_tui.core.numbers import count
from agenteval_tui.tui.actions import bindings
from agenteval_tui.tui.presenters.impact import flip_line
from agenteval_tui.tui.terminal.sheet import Sheet
from agenteval_tui.tui.widgets.sheet_frame import SheetFrame
from agenteval_tui.tui.widgets.virtual_list import Rows, VirtualList

Flip = tuple[str, str, int, str, str, str]
"""Run id, test, repetition, why it failed, outcome now, outcome with the edit."""


class VerdictChangesScreen(Sheet[str]):
    """Dismissed with the id of the run to open, or None."""

    SCOPE = "flips"
    BINDINGS: ClassVar[list[BindingType]] = bindings("flips")

    def __init__(self, flips: Sequence[Flip], total: int) -> None:
        """`total` flips, of which the first are listed."""
        super().__init__()
        self._flips = flips
        self._total = total

    def compose(self) -> ComposeResult:
        subject = f"the first {len(self._flips)}" if self._total > len(self._flips) else ""
        title = f"{count(self._total, 'run')} would flip: now → with this edit"
        with SheetFrame(title, self.edge(("enter", "open this run")), subject=subject, width="large"):
            yield VirtualList(
                Rows(self._flips, lambda flip, width: flip_line(*flip[1:], width), lambda flip: flip[0]), id="flips"
            )

    def on_virtual_list_selected(self, event: VirtualList.Selected) -> None:
        """Open this run."""
        self.dismiss(event.key)
