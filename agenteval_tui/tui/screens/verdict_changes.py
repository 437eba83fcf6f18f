"""The runs that an edit would flip, as a list; enter opens one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical

from agenteval_tui.core.numbers import count
from agenteval_tui.tui.presenters.impact import flip_line
from agenteval_tui.tui.styled_text import Cell, Line, fit
from agenteval_tui.tui.terminal.sheet import Sheet
from agenteval_tui.tui.widgets.line_block import LineBlock
from agenteval_tui.tui.widgets.virtual_list import VirtualList

Flip = tuple[str, str, int, str, str, str]
"""Run id, test, repetition, why it failed, outcome now, outcome with the edit."""


class _FlipRows:
    def __init__(self, flips: Sequence[Flip]) -> None:
        self._flips = flips

    def count(self) -> int:
        return len(self._flips)

    def key(self, index: int) -> str:
        return self._flips[index][0]

    def line(self, index: int, width: int, *, focused: bool) -> Line:
        _, test, repetition, why, now, then = self._flips[index]
        return flip_line(test, repetition, why, now, then, width)


class FlipsScreen(Sheet[str]):
    """Dismissed with the id of the run to open, or "" for none."""

    CSS_PATH = "verdict_changes.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q,f9", "dismiss('')", "close", show=False)]

    def __init__(self, flips: Sequence[Flip], total: int) -> None:
        """`total` flips, of which the first are listed."""
        super().__init__()
        self._flips = flips
        self._total = total

    def compose(self) -> ComposeResult:
        with Vertical(id="sheet"):
            yield LineBlock(
                self._head,
                id="head",
            )
            yield VirtualList(_FlipRows(self._flips), id="flips")
            yield LineBlock(self._foot, id="foot")

    def _head(self, width: int) -> list[Line]:
        head: list[Cell] = [(f"{count(self._total, 'run')} would flip: now → with this edit", "bold")]
        if self._total > len(self._flips):
            head.append((f"   the first {len(self._flips)}", "dim"))
        return [fit(head, width), ()]

    @staticmethod
    def _foot(width: int) -> list[Line]:
        keys = (("enter", "bold accent"), (" open this run   ", ""), ("esc", "bold accent"), (" close", ""))
        return [fit(keys, width)]

    def on_mount(self) -> None:
        self.query_one("#flips", VirtualList).focus()

    def on_virtual_list_selected(self, event: VirtualList.Selected) -> None:
        """Open this run."""
        self.dismiss(event.key)
