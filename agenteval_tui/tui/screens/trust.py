"""May programs of this folder run? Asked before an execution, a check or a conversation starts any."""

from __future__ import annotations

import time
from collections.abc import Sequence
from math import inf
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from agenteval_tui.core.display import one_line
from agenteval_tui.tui.presenters.text_layout import labelled
from agenteval_tui.tui.presenters.trust_lines import TrustQuestion, trust_lines
from agenteval_tui.tui.styled_text import Line, fit
from agenteval_tui.tui.terminal.sheet import Sheet
from agenteval_tui.tui.widgets.line_block import LineBlock
from agenteval_tui.tui.widgets.lines_view import LinesView
from agenteval_tui.tui.widgets.sheet_frame import SheetFrame

READ_S = 0.4
"""A letter that comes sooner was meant for what was shown before."""


class TrustScreen(Sheet[str]):
    """Dismissed with "once", "trust" or "" (do nothing)."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,n", "dismiss('')", "cancel", show=False),
        Binding("o", "answer('once')", "once", show=False),
        Binding("t", "answer('trust')", "trust", show=False),
    ]

    def __init__(self, asked: Sequence[TrustQuestion], doing: str) -> None:
        """`doing`: what was asked for, as "Running this"."""
        super().__init__()
        self._asked = tuple(asked)
        self._doing = doing
        self._shown_at = inf

    def compose(self) -> ComposeResult:
        doing = one_line(self._doing, 80)
        keys = (("o", "once"), ("t", "trust"), ("esc", "run nothing"))
        with SheetFrame(f"{doing} needs your trust", keys, width="medium"):
            yield LineBlock(lambda width: [fit((("It wants to execute, send or read:", ""),), width)], id="about")
            yield LinesView(id="programs")
            yield LineBlock(self._answers, id="answers")

    def _answers(self, width: int) -> list[Line]:
        folders = "these folders" if len(self._asked) > 1 else "this folder"
        until = f"{folders}, until what can run there changes"
        said = (("o  once", "this time only"), ("t  trust", until))
        return [(), *(line for key, what in said for line in labelled(key, what, width, label_style="bold accent"))]

    def on_mount(self) -> None:
        view = self.query_one("#programs", LinesView)
        view.show(lambda width: trust_lines(self._asked, width))
        view.focus()
        self.call_after_refresh(self._is_shown)

    def _is_shown(self) -> None:
        self._shown_at = time.monotonic()

    def action_answer(self, answer: str) -> None:
        """An answer, if there was time to see the question: it comes by itself, while somebody may be typing."""
        if time.monotonic() - self._shown_at < READ_S:
            self.app.bell()
        else:
            self.dismiss(answer)
