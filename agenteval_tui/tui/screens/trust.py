"""May code of this repository run? Asked before an execution, a check or a conversation starts any."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType

from agenteval_tui.core.display import one_line
from agenteval_tui.suites.trust import kind_of
from agenteval_tui.tui.actions import bindings
from agenteval_tui.tui.presenters.trust_lines import TrustQuestion, trust_lines
from agenteval_tui.tui.reading_time import ReadingTime
from agenteval_tui.tui.styled_text import Line, fit, labelled
from agenteval_tui.tui.terminal.sheet import Sheet
from agenteval_tui.tui.widgets.line_block import LineBlock
from agenteval_tui.tui.widgets.lines_view import LinesView
from agenteval_tui.tui.widgets.sheet_frame import SheetFrame


class TrustScreen(Sheet[str]):
    """Dismissed with "once", "trust" or None (do nothing)."""

    SCOPE = "trust"
    BINDINGS: ClassVar[list[BindingType]] = bindings("trust")

    def __init__(self, trust_questions: Sequence[TrustQuestion], doing: str) -> None:
        """`doing`: what was asked for, as "Running this"."""
        super().__init__()
        self._asked = tuple(trust_questions)
        self._doing = doing
        self._reading = ReadingTime(self)

    def compose(self) -> ComposeResult:
        doing = one_line(self._doing, 80)
        keys = self.edge("once", "always")
        with SheetFrame(f"{doing} needs your trust", keys, width="medium"):
            yield LineBlock(lambda width: [fit((("It wants to execute, send or read:", ""),), width)], id="about")
            yield LinesView(lambda width: trust_lines(self._asked, width), id="programs")
            yield LineBlock(self._answers, id="answers")

    def _answers(self, width: int) -> list[Line]:
        if all(question.need.trusted for question in self._asked):
            always = "this may go there from now on"
        elif len(self._asked) > 1:
            always = "all of these from now on, also when their files change. Each is asked about only once."
        else:
            kind = kind_of(self._asked[0].need.folder)
            always = f"this {kind} from now on, also when its files change. It is asked only once."
        effects = ("this time only", always)
        answers = (
            (f"{key}  {word}", what) for (key, word), what in zip(self.edge("once", "always"), effects, strict=False)
        )
        return [(), *(line for key, what in answers for line in labelled(key, what, width, label_style="bold accent"))]

    def on_mount(self) -> None:
        self._reading.begin()

    def action_answer(self, answer: str) -> None:
        """An answer, if there was time to see the question: it comes by itself, while somebody may be typing."""
        if self._reading.is_over:
            self.dismiss(answer)
        else:
            self.app.bell()
