"""May programs of this folder run? Asked before an execution, a check or a conversation starts any."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical

from agenteval_tui.agents.permission import Need
from agenteval_tui.core.display import one_line
from agenteval_tui.tui.presenters.status_style import glyph
from agenteval_tui.tui.presenters.text_layout import indented, paragraph
from agenteval_tui.tui.styled_text import Line, fit
from agenteval_tui.tui.terminal.sheet import Sheet
from agenteval_tui.tui.widgets.line_block import LineBlock
from agenteval_tui.tui.widgets.lines_view import LinesView

MOST = 200
"""Programs that are listed of one folder; how many more there are is said."""


@dataclass(frozen=True, slots=True)
class TrustQuestion:
    """A folder, why it is not trusted (a sentence), and what would be executed or read because of it."""

    folder: Path
    reason: str
    what: tuple[str, ...]
    files: tuple[Path, ...] = ()
    """That its commands name, wherever they lie."""

    @property
    def need(self) -> Need:
        """The same without the reason."""
        return Need(self.folder, self.what, self.files)


def trust_lines(asked: Sequence[TrustQuestion], width: int) -> list[Line]:
    """What would run, folder by folder."""
    lines: list[Line] = []
    for one in asked:
        if lines:
            lines.append(())
        lines += paragraph(str(one.folder), width, "bold")
        lines += paragraph(one.reason, width, "dim")
        for what in one.what[:MOST]:
            # Whole: who is asked must see all of what would run.
            written = paragraph(what.replace("\n", " ⏎ "), width - 4)
            for number, line in enumerate(written):
                lines.append((("  ", ""), ("  " if number else f"{glyph('error')} ", "error"), *line))
        if len(one.what) > MOST:
            lines += indented([((f"… and {len(one.what) - MOST} more", "error"),)], 4)
    return lines


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
