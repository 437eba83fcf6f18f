"""Why an agent did not finish, as lines: the sentence, how to fix it, and the traceback."""

from __future__ import annotations

from collections.abc import Sequence

from agenteval_tui.analysis.raised import Raised
from agenteval_tui.core.display import one_line, printed_lines
from agenteval_tui.transcripts.model import RunError
from agenteval_tui.transcripts.traceback import Traceback
from agenteval_tui.tui.presenters.status_style import UNICODE
from agenteval_tui.tui.presenters.view_lines import line
from agenteval_tui.tui.styled_text import Line, fit, hanging, paragraph
from agenteval_tui.views.traceback import raised_title, traceback_lines

Place = tuple[int, int, int]
"""A traceback, by its number; an exception of it; and a frame of that."""
_CURSOR = "▸" if UNICODE else ">"
_DEEPEST = 6  # levels of indentation


def error_lines(error: RunError, width: int) -> list[Line]:
    """The lines in `width` cells."""
    lines = _head(error, width)
    if error.traceback is not None:
        lines += [(), *traceback_rows(error.traceback, width)]
    return lines


def traceback_rows(traceback: Traceback, width: int) -> list[Line]:
    """The lines of a traceback."""
    return _traceback(traceback, 0, width, None, {}, all_frames=False)


def raised_lines(
    error: RunError | None,
    raised: Sequence[Raised],
    width: int,
    cursor: Place | None = None,
    *,
    all_frames: bool = False,
) -> tuple[list[Line], dict[Place, int]]:
    """The run's error, then what functions around the agent raised; and the row of each frame. The error's traceback
    has the number 0, the others follow. `cursor`: the frame with a mark before it."""
    lines: list[Line] = [] if error is None else _head(error, width)
    rows: dict[Place, int] = {}

    def add(traceback: Traceback, number: int) -> None:
        lines.append(())
        below = _traceback(traceback, number, width, cursor, rows, all_frames=all_frames, first=len(lines))
        lines.extend(below)

    if error is not None and error.traceback is not None:
        add(error.traceback, 0)
    for number, each in enumerate(raised, 1):
        lines += [(), *paragraph(raised_title(each), width - 1, "error", 1)]
        add(each.traceback, number)
        if each.output:
            lines += [(), (("  printed:", "dim"),)]
            lines += [row for text in printed_lines(each.output) for row in paragraph(one_line(text), width, "", 4)]
    return lines, rows


def _head(error: RunError, width: int) -> list[Line]:
    lines: list[Line] = [(), *paragraph(f"{error.kind}: {error.message}", width - 1, "error", 1)]
    return [*lines, *paragraph(error.fix, width - 1, "", 1)] if error.fix else lines


def _traceback(
    traceback: Traceback,
    number: int,
    width: int,
    cursor: Place | None,
    rows: dict[Place, int],
    *,
    all_frames: bool,
    first: int = 0,
) -> list[Line]:
    lines: list[Line] = []
    for each in traceback_lines(traceback, all_frames=all_frames):
        place = (number, *each.place) if each.is_head and each.place is not None else None
        if place is not None:
            rows[place] = first + len(lines)
        margin = (f"{_CURSOR} " if place is not None and place == cursor else "  ", "accent bold")
        indent = ("  " * min(each.indent, _DEEPEST), "")
        lines += [fit(row, width) for row in hanging((margin, indent, *line(each.words)), width)]
    return lines
