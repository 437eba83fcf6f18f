"""What an agent's code printed and logged, as lines of a screen."""

from __future__ import annotations

from agenteval_tui.core.display import displayable, one_line
from agenteval_tui.runs.around.record import AroundRecord
from agenteval_tui.transcripts.model import Transcript
from agenteval_tui.tui.presenters.view_lines import style
from agenteval_tui.tui.styled_text import Line, fit, left, wrap
from agenteval_tui.views.run_output import NO_OUTPUT, output_lines

_TIME = 9
_SOURCE = 8  # cells of stdout and stderr; a record's logger is longer, and pushes its text


def output_rows(transcript: Transcript, record: AroundRecord, width: int) -> list[Line]:
    """The lines in `width` cells: time, source, text; long texts are wrapped."""
    rows: list[Line] = []
    for each in output_lines(transcript, record):
        if each.step:
            rows.append(fit(((" ", ""), (one_line(each.step), "bold")), width))
            continue
        source = one_line(each.source, 40)
        head = left(f" {each.at}", _TIME) + left(source, max(_SOURCE, len(source) + 1))
        displayed = displayable(each.text).expandtabs(4)
        room = max(width - len(head), 16)
        for number, (start, end) in enumerate(wrap(displayed, room) or [(0, 0)]):
            margin = (" " * (_TIME + _SOURCE), "") if number else (head, "dim")
            rows.append(fit((margin, (displayed[start:end], style(each.tokens))), width))
    return rows or [(), ((f" {NO_OUTPUT}", "dim"),)]
