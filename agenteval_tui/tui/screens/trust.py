"""May programs of this folder run? Asked before an execution, a check or a conversation starts any."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical

from agenteval_tui.core.display import one_line
from agenteval_tui.tui.presenters.text_layout import paragraph
from agenteval_tui.tui.presenters.trust_lines import TrustQuestion, trust_lines
from agenteval_tui.tui.styled_text import fit
from agenteval_tui.tui.terminal.sheet import Sheet
from agenteval_tui.tui.widgets.line_block import LineBlock
from agenteval_tui.tui.widgets.lines_view import LinesView


class TrustScreen(Sheet[str]):
    """Dismissed with "once", "trust" or "" (do nothing)."""

    CSS_PATH = "trust.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,n", "dismiss('')", "cancel", show=False),
        Binding("o", "dismiss('once')", "once", show=False),
        Binding("t", "dismiss('trust')", "trust", show=False),
    ]

    def __init__(self, asked: Sequence[TrustQuestion], doing: str) -> None:
        """`doing`: what was asked for, as "Running this"."""
        super().__init__()
        self._asked = tuple(asked)
        self._doing = doing

    def compose(self) -> ComposeResult:
        doing = one_line(self._doing, 80)
        folders = "these folders" if len(self._asked) > 1 else "this folder"
        with Vertical(id="sheet"):
            yield LineBlock(
                lambda width: [
                    *paragraph(f"{doing} needs your trust. It would execute, send or read:", width, "bold"),
                    (),
                ],
                id="head",
            )
            yield LinesView(id="programs")
            yield LineBlock(
                lambda width: [
                    (),
                    fit((("o", "bold accent"), (" once, this time only", "")), width),
                    fit(
                        (
                            ("t", "bold accent"),
                            (
                                f" trust {folders}, until what can run there changes",
                                "",
                            ),
                        ),
                        width,
                    ),
                    fit((("esc", "bold accent"), (" run nothing", "")), width),
                ],
                id="foot",
            )

    def on_mount(self) -> None:
        view = self.query_one("#programs", LinesView)
        view.show(lambda width: trust_lines(self._asked, width))
        view.styles.height = min(len(trust_lines(self._asked, 70)), 16)
        view.focus()
