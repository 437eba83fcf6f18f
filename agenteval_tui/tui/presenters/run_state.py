"""What a run's probes read before and after it, as lines of a screen: beside each other where there is room."""

from __future__ import annotations

from agenteval_tui.core.display import displayable, one_line
from agenteval_tui.transcripts.model import Transcript
from agenteval_tui.tui.presenters.view_lines import style as styled
from agenteval_tui.tui.styled_text import Cell, Line, fit, left, width_of, wrap
from agenteval_tui.views.state import NO_STATE, ProbeView, probe_views, state_lines

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
        style = styled("warn") if each.unread else _SIGNS[each.sign]
        room = max(width - _MOMENT - 3, 12)
        for number, line in enumerate(_wrapped(each.text, room)):
            moment = left(f" {each.moment}", _MOMENT + 1) if not number else " " * (_MOMENT + 1)
            rows.append(fit(((moment, "dim"), (f"{each.sign} ", style), (line, style)), width))
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
        lines = [line for row in probe.rows for line in _wrapped(row.after or "", width - 3)]
        return [fit(((f"   {line}", ""),), width) for line in lines]
    rows: list[Line] = []
    if probe.before and probe.before == probe.after:
        return [
            fit(((f"   {line}", styled("warn")),), width) for line in _wrapped(f"not read: {probe.before}", width - 3)
        ]
    for why, on_left in ((probe.before, True), (probe.after, False)):
        for line in _wrapped(f"not read: {why}", half - 3) if why else ():
            mark: Line = ((f"   {line}", styled("warn")),)
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
    style = _SIGNS[sign] if changed else ""
    return ((f" {sign} " if changed else "   ", style), (lines[number], style))


def _pair(was: Line, now: Line, half: int) -> Line:
    before = fit(was, half)
    blank: Cell = (" " * (half - width_of(before)), "")
    return (*before, blank, (" │ ", "dim"), *fit(now, half))


def _title(name: str, change: str, width: int) -> Line:
    return fit(((f" {one_line(name)}", "bold"), (f"  {change}", "accent" if change == "changed" else "dim")), width)


def _wrapped(text: str, room: int) -> list[str]:
    displayed = displayable(text).expandtabs(4)
    return [displayed[start:end] for start, end in wrap(displayed, max(room, 8))] or [""]
