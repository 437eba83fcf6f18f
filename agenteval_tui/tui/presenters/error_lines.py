"""Why an agent did not finish, as lines: the sentence, how to fix it, and the traceback."""

from __future__ import annotations

from agenteval_tui.transcripts.model import RunError
from agenteval_tui.tui.presenters.status_style import UNICODE
from agenteval_tui.tui.presenters.text_layout import paragraph
from agenteval_tui.tui.presenters.view_lines import line
from agenteval_tui.tui.styled_text import Line, fit
from agenteval_tui.views.traceback import traceback_lines

_CURSOR = "▸" if UNICODE else ">"
_DEEPEST = 6  # levels of indentation


def error_lines(
    error: RunError, width: int, cursor: tuple[int, int] | None = None, *, all_frames: bool = False
) -> tuple[list[Line], dict[tuple[int, int], int]]:
    """The lines in `width` cells, and the row of each frame. `cursor`: the frame with a mark before it."""
    lines: list[Line] = [(), *paragraph(f"{error.kind}: {error.message}", width - 1, "error", 1)]
    if error.mend:
        lines += paragraph(error.mend, width - 1, "", 1)
    rows: dict[tuple[int, int], int] = {}
    if error.traceback is not None:
        lines.append(())
        for each in traceback_lines(error.traceback, all_frames=all_frames):
            marked = each.is_head and each.place == cursor
            if each.is_head and each.place is not None:
                rows[each.place] = len(lines)
            margin = (f"{_CURSOR} " if marked else "  ", "accent bold")
            indent = ("  " * min(each.indent, _DEEPEST), "")
            lines.append(fit((margin, indent, *line(each.words)), width))
    return lines, rows
