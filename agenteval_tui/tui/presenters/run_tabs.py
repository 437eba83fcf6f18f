"""Lines about one run, for the tabs of Inspect: why its agent did not finish (the sentence, how to fix it, the
traceback), what its code printed and logged, and what its probes read before and after it."""

from __future__ import annotations

from collections.abc import Sequence

from agenteval_tui.analysis.function_exceptions import Raised
from agenteval_tui.core.display import displayable, one_line, printed_lines
from agenteval_tui.runs.around.record import AroundRecord
from agenteval_tui.transcripts.model import RunError, Transcript
from agenteval_tui.transcripts.traceback import Traceback
from agenteval_tui.tui.presenters.status_style import UNICODE
from agenteval_tui.tui.presenters.view_lines import line, style
from agenteval_tui.tui.styled_text import Cell, Line, fit, hanging, left, paragraph, width_of, wrap
from agenteval_tui.views.run_output import NO_OUTPUT, output_lines
from agenteval_tui.views.state import NO_STATE, ProbeView, probe_views, state_lines
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


_TIME = 9  # cells of the time of a line
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


BESIDE = 100
"""Cells from which before and after stand beside each other."""
_MOMENT = 8
_SIGNS = {"-": "removed", "+": "added", " ": ""}


def state_rows(transcript: Transcript, width: int) -> list[Line]:
    """The lines in `width` cells."""
    if not transcript.state:
        return [(), *[((f" {line}", "dim"),) for line in _wrapped(NO_STATE, width - 2)]]
    return _beside(transcript, width) if width >= BESIDE else _above(transcript, width)


def _above(transcript: Transcript, width: int) -> list[Line]:
    rows: list[Line] = []
    for each in state_lines(transcript):
        if each.probe:
            rows += [*([()] if rows else []), _title(each.probe, each.change, width)]
            continue
        look = style("warn") if each.unread else _SIGNS[each.sign]
        room = max(width - _MOMENT - 3, 12)
        for number, text in enumerate(_wrapped(each.text, room)):
            moment = left(f" {each.moment}", _MOMENT + 1) if not number else " " * (_MOMENT + 1)
            rows.append(fit(((moment, "dim"), (f"{each.sign} ", look), (text, look)), width))
    return rows


def _beside(transcript: Transcript, width: int) -> list[Line]:
    half = (width - 3) // 2
    rows: list[Line] = []
    for probe in probe_views(transcript):
        rows += [*([()] if rows else []), _title(probe.name, probe.change, width)]
        if probe.change != "unchanged" and not (probe.before and probe.before == probe.after):
            rows.append(_pair(((" before", "dim"),), ((" after", "dim"),), half))
        rows += _values(probe, half, width)
    return rows


def _values(probe: ProbeView, half: int, width: int) -> list[Line]:
    if probe.change == "unchanged":
        texts = [text for row in probe.rows for text in _wrapped(row.after or "", width - 3)]
        return [fit(((f"   {text}", ""),), width) for text in texts]
    rows: list[Line] = []
    if probe.before and probe.before == probe.after:
        return [
            fit(((f"   {line}", style("warn")),), width) for line in _wrapped(f"not read: {probe.before}", width - 3)
        ]
    for why, on_left in ((probe.before, True), (probe.after, False)):
        for text in _wrapped(f"not read: {why}", half - 3) if why else ():
            mark: Line = ((f"   {text}", style("warn")),)
            rows.append(_pair(mark, (), half) if on_left else _pair((), mark, half))
    for row in probe.rows:
        was = _wrapped(row.before, half - 3) if row.before is not None else []
        now = _wrapped(row.after, half - 3) if row.after is not None else []
        for number in range(max(len(was), len(now))):
            rows.append(_pair(_side(was, number, "-", row.changed), _side(now, number, "+", row.changed), half))
    return rows


def _side(lines: list[str], number: int, sign: str, changed: bool) -> Line:
    if number >= len(lines):
        return ()
    look = _SIGNS[sign] if changed else ""
    return ((f" {sign} " if changed else "   ", look), (lines[number], look))


def _pair(was: Line, now: Line, half: int) -> Line:
    before = fit(was, half)
    blank: Cell = (" " * (half - width_of(before)), "")
    return (*before, blank, (" │ ", "dim"), *fit(now, half))


def _title(name: str, change: str, width: int) -> Line:
    return fit(((f" {one_line(name)}", "bold"), (f"  {change}", "accent" if change == "changed" else "dim")), width)


def _wrapped(text: str, room: int) -> list[str]:
    displayed = displayable(text).expandtabs(4)
    return [displayed[start:end] for start, end in wrap(displayed, max(room, 8))] or [""]
