"""A part of a screen with a title line, which says whether it has the keys."""

from __future__ import annotations

from typing import ClassVar, Generic, TypeVar

from textual.app import ComposeResult
from textual.containers import Vertical

from agenteval_tui.tui.presenters.run_header import pane_title
from agenteval_tui.tui.styled_text import Line
from agenteval_tui.tui.terminal.mounting import drop_messages, is_too_late
from agenteval_tui.tui.widgets.line_block import LineBlock

C = TypeVar("C")


@drop_messages(is_too_late)
class TitledPane(Vertical, Generic[C]):
    """`NAME` is what the screen calls the pane; its own id is `<NAME>-pane`, that of the widget in it that takes the
    keys is `NAME`. `WORDS` stands for it where the screen is narrow and shows one pane at a time. `active`: it has the
    keys; who sets it calls `retitle`."""

    NAME: ClassVar[str]
    WORDS: ClassVar[str] = ""

    def __init__(self, controller: C, *, disabled: bool = False) -> None:
        super().__init__(id=f"{self.NAME}-pane", classes="pane", disabled=disabled)
        self.active = False
        self._controller = controller

    def compose(self) -> ComposeResult:
        yield LineBlock(self._title_lines, id=f"{self.NAME}-title", classes="pane-title")
        yield from self.parts()

    def parts(self) -> ComposeResult:
        """What is below the title."""
        raise NotImplementedError

    def heading(self) -> tuple[str, str]:
        """The title: what stands left and right in it."""
        raise NotImplementedError

    def focus_first(self) -> None:
        """Give the keys to what they go to first."""
        self.query_one(f"#{self.NAME}").focus()

    def retitle(self) -> None:
        """Show the title anew, if it changed."""
        self.query_one(f"#{self.NAME}-title", LineBlock).show(self._title_lines)

    def _title_lines(self, width: int) -> list[Line]:
        return pane_title(*self.heading(), width, self.active)
