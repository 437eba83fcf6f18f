"""A question with a few answers, each of them a key; with lines above it that may be long."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.events import Key, Resize

from agenteval_tui.core.display import one_line
from agenteval_tui.tui.actions import key_word
from agenteval_tui.tui.styled_text import Line, fit
from agenteval_tui.tui.terminal.sheet import Sheet
from agenteval_tui.tui.widgets.line_block import LineBlock
from agenteval_tui.tui.widgets.lines_view import LinesView

MOST = 20
"""Lines that are shown at once."""
AROUND = 8
"""Rows around them: the frame, title and answers, and some of the screen below."""
WIDEST = 86
"""Columns of the sheet, as confirm_dialog.tcss has them; at most 96 % of the screen."""
BESIDE = 5
"""Columns of it that are frame, padding and scroll bar."""


class QuestionScreen(Sheet["str | None"]):
    """Dismissed with the answer, or None. `answers` are (key, answer, words)."""

    CSS_PATH = "confirm_dialog.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss(None)", "close", show=False)]

    def __init__(
        self,
        title: str,
        make: Callable[[int], Sequence[Line]],
        answers: Sequence[tuple[str, str, str]],
        *,
        leave: str = "leave it",
    ) -> None:
        super().__init__()
        self._title = title
        self._make = make
        self._answers = tuple(answers)
        self._leave = leave

    def compose(self) -> ComposeResult:
        title = one_line(self._title, 200)
        with Vertical(id="sheet"):
            yield LineBlock(lambda width: [fit(((title, "bold"),), width), ()], id="head")
            yield LinesView(id="lines")
            yield LineBlock(self._foot, id="foot")

    def on_mount(self) -> None:
        view = self.query_one("#lines", LinesView)
        self._fit()
        view.show(self._make)
        view.focus()

    def on_resize(self, event: Resize) -> None:
        """Another width may take other lines."""
        self._fit()

    def _fit(self) -> None:
        width = min(WIDEST, self.app.size.width * 96 // 100) - BESIDE
        lines = len(self._make(max(width, 10)))
        height = max(min(lines, MOST, self.app.size.height - AROUND), 1)
        self.query_one("#lines", LinesView).styles.height = height

    def on_key(self, event: Key) -> None:
        """An answer's key."""
        for key, answer, _words in self._answers:
            if event.key == key or event.character == key:
                event.stop()
                self.dismiss(answer)

    def _foot(self, width: int) -> list[Line]:
        cells: list[tuple[str, str]] = []
        for key, _answer, words in self._answers:
            cells += [(key_word(key), "bold accent"), (f" {words}   ", "")]
        return [(), fit((*cells, ("esc", "bold accent"), (f" {self._leave}", "")), width)]
