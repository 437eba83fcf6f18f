"""Programs of folders that are not trusted, as lines: what a person reads before a program runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from agenteval_tui.agents.permission import TrustRequirement
from agenteval_tui.tui.presenters.status_style import WARNING
from agenteval_tui.tui.presenters.text_layout import indented, paragraph
from agenteval_tui.tui.styled_text import Line

MOST = 200
"""Programs that are listed of one folder; how many more there are is said."""


class TrustQuestion(Struct, frozen=True):
    """A folder, why it is not trusted (a sentence), and what would be executed or read because of it."""

    folder: Path
    reason: str
    what: tuple[str, ...]
    files: tuple[Path, ...] = ()
    """That its commands name, wherever they lie."""

    @property
    def need(self) -> TrustRequirement:
        """The same without the reason."""
        return TrustRequirement(self.folder, self.what, self.files)


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
                lines.append((("  ", ""), ("  " if number else f"{WARNING} ", "error"), *line))
        if len(one.what) > MOST:
            lines += indented([((f"… and {len(one.what) - MOST} more", "error"),)], 4)
    return lines
