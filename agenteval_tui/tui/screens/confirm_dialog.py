"""A question with a few answers, each a key; with lines above it that may be long."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from textual.app import ComposeResult
from textual.events import Key

from agenteval_tui.core.numbers import count
from agenteval_tui.tui.actions import BY_ID, key_word
from agenteval_tui.tui.screens.base_screen import FrameScreen
from agenteval_tui.tui.styled_text import Line, cell_len, paragraph
from agenteval_tui.tui.terminal.sheet import Sheet
from agenteval_tui.tui.widgets.lines_view import LinesView
from agenteval_tui.tui.widgets.sheet_frame import SheetFrame


class ConfirmScreen(Sheet["str | None"]):
    """Dismissed with the answer, or None. `answers` are (key, answer, words)."""

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
        keys = [(key_word(key), words) for key, _answer, words in self._answers]
        with SheetFrame(self._title, self.edge(*keys, close=self._leave)):
            yield LinesView(self._lines, id="lines")

    def _lines(self, width: int) -> list[Line]:
        # A question that the frame has no room for is asked below it, whole.
        question = paragraph(self._title, width, "bold") if cell_len(self._title) > width - 4 else []
        return [*question, *self._make(width)]

    def on_key(self, event: Key) -> None:
        """An answer's key."""
        for key, answer, _words in self._answers:
            if event.key == key or event.character == key:
                event.stop()
                self.dismiss(answer)


MOST = 6
"""How many errors are named."""


def ask_and_save(
    screen: FrameScreen, errors: Sequence[str], save: Callable[[], None], fix: Callable[[], None] | None
) -> None:
    """Save; where the suite can't run then, only if that is wanted. `errors`: what is wrong then, each in a sentence;
    `fix` fixes the first one, None if that is impossible."""
    if not errors:
        save()
        return

    def lines(width: int) -> list[Line]:
        rows = [line for error in errors[:MOST] for line in paragraph(error, width)]
        more = len(errors) - MOST
        return [*rows, ((f"… {more} more", "dim"),)] if more > 0 else rows

    def answered(answer: str | None) -> None:
        if answer == "save":
            save()
        elif answer and fix is not None:
            fix()

    answers = [("y", "save", "save anyway")]
    fix_action = BY_ID[f"{screen.SCOPE}.fix"]
    fix_key = screen.agenteval.keymap.get(fix_action.id, fix_action.keys).split(",")[0]
    if fix is not None and fix_key:
        answers.append((fix_key, "fix", "fix"))
    title = f"{count(len(errors), 'error')}: the suite can't run"
    screen.app.push_screen(ConfirmScreen(title, lines, answers, leave="keep editing"), answered)
