"""The file changed on disk since it was read: show how, and ask."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from agenteval_tui.core.display import displayable, one_line
from agenteval_tui.tui.styled_text import Line, fit
from agenteval_tui.tui.terminal.sheet import Sheet
from agenteval_tui.tui.widgets.lines_view import LinesView
from agenteval_tui.tui.widgets.sheet_frame import SheetFrame


def diff_lines(diff: str, width: int) -> list[Line]:
    """A unified difference, added and removed lines coloured (the signs say it too)."""
    styles = {"+": "added", "-": "removed", "@": "accent"}
    return [fit(((displayable(line).expandtabs(4), styles.get(line[:1], "")),), width) for line in diff.splitlines()]


class FileConflictScreen(Sheet[bool]):
    """True: put my edit into the file as it is now. False: leave the file alone; the edit stays in the editor."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,n,q", "answer(False)", "leave the file alone", show=False),
        Binding("enter,y", "answer(True)", "apply my edit to it", show=False),
    ]

    def __init__(self, name: str, diff: str, what: str = "apply my edit to the new version") -> None:
        """`what`: what is done when the person says yes."""
        super().__init__()
        self._what = one_line(what, 60)
        self._file_name = name
        self._diff = diff

    def compose(self) -> ComposeResult:
        keys = (("y", self._what), ("esc", "keep the file as it is"))
        with SheetFrame("Changed on disk since it was loaded", keys, subject=one_line(self._file_name)):
            yield LinesView(id="diff")

    def on_mount(self) -> None:
        view = self.query_one("#diff", LinesView)
        view.show(lambda width: diff_lines(self._diff, width))
        view.focus()

    def action_answer(self, put_in: bool) -> None:
        self.dismiss(put_in)
