"""The head of a comparison, and one change of it in full."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from agenteval_tui.analysis.comparison_model import (
    Comparison,
    CriterionChange,
    MetricChange,
    Overall,
    SummaryMetric,
    Tally,
    TestChange,
)
from agenteval_tui.analysis.comparison_text import (
    figures_of,
    format_p_value,
    fraction,
    measures,
    points,
    rows_to_show,
    said_of_criteria,
    said_of_rate,
    said_of_row,
    said_of_rows,
    score_of,
    share,
    short_power,
    test_of,
    version,
)
from agenteval_tui.core import numbers
from agenteval_tui.core.display import one_line
from agenteval_tui.tui.presenters.compare_rows import WORDS, CompareRow
from agenteval_tui.tui.presenters.number_format import cost, date_time, duration
from agenteval_tui.tui.presenters.status_style import UNICODE, glyph
from agenteval_tui.tui.presenters.text_layout import labelled, paragraph
from agenteval_tui.tui.styled_text import Cell, Line, cell_len, fit, left, pad, right, width_of

if TYPE_CHECKING:
    from agenteval_tui.analysis.attribution import Attributed, Attribution

_TO = "→" if UNICODE else "->"
_LABEL = 11
_TWO_COLUMNS = 100
_MOST_ROWS = 40
_SAY: dict[str, Callable[[float], str]] = {
    "score": lambda value: f"{value:.2f}", "time": duration, "tokens": lambda value: f"{value:,.0f}", "cost": cost,
}  # fmt: skip
_HINTS = {
    "worse": ("failed", glyph("failed")),
    "better": ("passed", glyph("passed")),
    "added": ("added", "+"),
    "removed": ("removed", "-"),
}


def head_lines(found: Comparison, width: int) -> list[Line]:
    """Both sides, the pass rates with interval and test, what n could have shown, and what was measured."""
    lines: list[Line] = [_sides(found, width)]
    parts = [part for part in _rate(found.overall) if part] + [[(part, "dim")] for part in _measured(found)]
    lines += _side_by_side(parts, width)
    notes = [note for note in (*found.notes, said_of_criteria(found.not_comparable)) if note]
    lines += [fit(((" ", ""), (one_line(note, 300), "review")), width) for note in notes]
    lines.append(((("─" if UNICODE else "-") * width, "rule"),))
    return lines


def _side_by_side(parts: Sequence[list[Cell]], width: int) -> list[Line]:
    """Parts in a line, and what has no room there in the next: none is cut."""
    lines: list[Line] = []
    line: list[Cell] = []
    for part in parts:
        if line and width_of(line) + 3 + width_of(part) > width:
            lines.append(fit(line, width))
            line = []
        line += [("   " if line else " ", ""), *part]
    return [*lines, fit(line, width)] if line else lines


def _rate(one: Overall) -> list[list[Cell]]:
    """What stands together: the rates and their difference; the test; the power."""
    rate = one.rate
    if rate is None:
        return [[(said_of_rate(one), "")]]
    style = "passed" if rate.difference > 1e-9 else "failed" if rate.difference < -1e-9 else ""
    first: list[Cell] = [("pass ", "dim"), (f"{share(rate.was)} {_TO} {share(rate.now)}", "bold")]
    first.append((f"   {points(rate.difference)}", f"bold {style}"))
    if rate.interval is not None:
        low, high = numbers.points_interval(*rate.interval)
        first.append((f" ({low} … {high})", "dim"))
    name = {"mcnemar": "McNemar", "sign-flip": "sign flips", "fisher": "Fisher"}[one.test]
    test: list[Cell] = [(f"{name} {format_p_value(one.p_value)}", "dim")] if one.p_value is not None else []
    return [first, test, [(short_power(one), "dim")]]


def _sides(found: Comparison, width: int) -> Line:
    """Both sides. Where there is no room it is the longer name that is cut, and never a time."""
    names = [one_line(side.name, 60) for side in (found.a, found.b)]
    times = [f"  {when}" if (when := date_time(side.started_ms)) else "" for side in (found.a, found.b)]
    arrow = f"  {_TO}  "
    room = max(width - 1 - cell_len(arrow) - sum(map(cell_len, times)), 16)
    shorter = min(cell_len(names[0]), cell_len(names[1]), room // 2)
    first, second = (
        fit(((name, "bold"),), room if sum(map(cell_len, names)) <= room else room - shorter) for name in names
    )
    return fit(((" ", ""), *first, (times[0], "dim"), (arrow, "accent"), *second, (times[1], "dim")), width)


def _measured(found: Comparison) -> list[str]:
    return [
        f"{name} {_moved(measure, _SAY[name])}"
        for name, measure in sorted(measures(found.overall), key=lambda pair: pair[0] == "score")
        if measure.was or measure.now
    ]


def _moved(measure: SummaryMetric, shown: Callable[[float], str]) -> str:
    was, now = shown(measure.was) or "0", shown(measure.now) or "0"
    if was == now:
        return f"{now}"
    more = f" ({100 * measure.difference / measure.was:+.0f} %)" if measure.was else ""
    return f"{was} {_TO} {now}{more}"


def detail_lines(
    row: CompareRow,
    width: int,
    attributed: Attributed | None,
    metrics: Mapping[str, tuple[MetricChange, ...]] | None,
    *,
    waiting: bool = False,
    versions: bool = False,
) -> list[Line]:
    """One change in full: whose doing it was, what differs, then the figures. `waiting`: who changed it is still being
    found out; `versions`: two versions of a criterion are compared on the same outputs."""
    if row.change is None:
        return []
    inner = max(width - 2, 10)
    if inner < _TWO_COLUMNS:
        test = _of_test(row, inner, attributed, waiting=waiting, versions=versions)
        lines = [*test, (), *_of_criteria(row, inner, attributed, metrics)]
        return [((" ", ""), *line) for line in lines]
    half = (inner - 3) // 2
    sides = (
        _of_test(row, half, attributed, waiting=waiting, versions=versions),
        _of_criteria(row, half, attributed, metrics),
    )
    rows = max(map(len, sides))
    columns = [[*side, *[()] * (rows - len(side))] for side in sides]
    return [((" ", ""), *pad(one, half), ("   ", ""), *other) for one, other in zip(*columns, strict=True)]


def _of_test(
    row: CompareRow, width: int, attributed: Attributed | None, *, waiting: bool, versions: bool
) -> list[Line]:
    """The test: its names, who changed it, its figures on both sides."""
    change = row.change
    assert change is not None
    lines: list[Line] = [fit(((one_line(change.label), "bold"), (f"  {one_line(change.suite)}", "dim")), width)]
    if change.name != change.test:
        lines += paragraph(one_line(change.name, 300), width, "dim")
    if change.quarantine:
        lines += paragraph(f"in quarantine, does not gate: {change.quarantine}", width, "review")
    if not change.comparable and not versions:
        said = "its criteria are others on the right: these verdicts are not comparable, and count all the same"
        lines += paragraph(said, width, "review")
    lines += _who(row, attributed, width, waiting=waiting, versions=versions)
    lines += [_figures("was", change.was, width), _figures("now", change.now, width)]
    if change.difference is not None:
        said = f"{points(change.difference)} points"
        if change.cases > 1:
            said += f" over {change.cases:,} rows"
        if change.p_value is not None:
            said += f"   {test_of(change)}: {format_p_value(change.p_value)}"
        lines += labelled("change", said, width)
    return [*lines, *_of_rows(change, width)]


def _of_rows(change: TestChange, width: int) -> list[Line]:
    """The rows of its dataset: how many of each, then those of which there is something to say."""
    if not change.rows:
        return []
    lines: list[Line] = [*labelled("rows", said_of_rows(change), width)]
    shown = rows_to_show(change)
    for row in shown[:_MOST_ROWS]:
        style, sign = _HINTS.get(row.state, ("", "±" if row.state == "score" and UNICODE else " "))
        lines.append(
            fit(
                ((sign, style), (f" #{one_line(row.label, 30)}", ""), (f"  {one_line(said_of_row(row), 200)}", "dim")),
                width,
            )
        )
    if len(shown) > _MOST_ROWS:
        lines += paragraph(f"and {len(shown) - _MOST_ROWS:,} more: agenteval compare --all", width, "dim", 2)
    return lines


def _of_criteria(
    row: CompareRow,
    width: int,
    attributed: Attributed | None,
    metrics: Mapping[str, tuple[MetricChange, ...]] | None,
) -> list[Line]:
    """Its criteria on both sides; of the chosen one the metrics."""
    change = row.change
    if change is None or not change.criteria:
        return []
    head = (left("criteria", max(width - 14, 4)), "dim"), (right("was", 7), "dim"), (right("now", 7), "dim")
    lines: list[Line] = [fit(head, width)]
    for one in change.criteria:
        chosen = row.criterion is not None and one.name == row.criterion.name
        lines += _criterion(one, width, chosen=chosen)
        if chosen or len(change.criteria) == 1:
            lines += _metrics((metrics or {}).get(one.name, ()), width)
    return lines


def _figures(label: str, tally: Tally | None, width: int) -> Line:
    if tally is None:
        return fit(((left(label, _LABEL), "dim"), ("no run", "dim")), width)
    said = f"{fraction(tally)}"
    more = [share(tally.rate)] if tally.rate is not None else []
    more += [f"score {score_of(tally)}"] if tally.score is not None else []
    more += [f"{tally.errors} in error"] if tally.errors else []
    more += [text for text in (duration(tally.latency_ms), _tokens(tally.tokens), cost(tally.cost)) if text]
    return fit(((left(label, _LABEL), "dim"), (left(said, 7), ""), ("   ".join(more), "dim")), width)


def _tokens(number: float | None) -> str:
    return "" if number is None else f"{number:,.0f} tokens"


def _who(row: CompareRow, attributed: Attributed | None, width: int, *, waiting: bool, versions: bool) -> list[Line]:
    if row.state not in ("worse", "better"):
        return []
    if versions:
        return labelled("who", "criterion: both versions judge the same outputs", width, style="bold accent")
    if attributed is None:
        return labelled("who", "…" if waiting else "not known: no pair of runs shows it", width, style="dim")
    mine: Attribution | None = None
    if row.criterion is not None:
        mine = attributed.by_criterion.get(row.criterion.name)
    who, reason = (mine.who, mine.reason) if mine is not None else (attributed.who, attributed.reason)
    lines: list[Line] = [*labelled("who", WORDS.get(who, who), width, style="bold accent")]
    if reason and len(lines) == 1 and width_of(lines[0]) + 2 + cell_len(reason) <= width:
        lines[0] = (*lines[0], (f"  {reason}", "dim"))
    else:
        lines += labelled("", reason, width, style="dim")
    if mine is not None and (mine.old_under_new or mine.new_under_old):
        lines += labelled("crosswise", f"old output, new criterion: {mine.old_under_new}", width)
        lines += labelled("", f"new output, old criterion: {mine.new_under_old}", width)
    said = attributed.divergence or "both runs did the same, step by step"
    return [*lines, *labelled("differs", said, width)]


def _criterion(one: CriterionChange, width: int, *, chosen: bool) -> list[Line]:
    style, sign = _HINTS.get(one.state, ("", "±" if one.state == "score" and UNICODE else " "))
    figures = figures_of(one)
    end: tuple[Cell, ...] = ((right(figures[0], 7), "dim"), (right(figures[1], 7), style))
    room = max(width - 2 - width_of(end), 4)
    lines: list[Line] = [((sign, style), (" ", ""), (left(one_line(one.name), room), "bold" if chosen else ""), *end)]
    if one.was_name:
        lines += paragraph(f"was called {one.was_name}", width, "dim", 2)
    if one.edited:
        said = f"config changed: {version(one.versions_was[-1])} {_TO} {version(one.versions_now[-1])}"
        lines += paragraph(said, width, "accent", 2)
    return lines


def _metrics(metrics: tuple[MetricChange, ...], width: int) -> list[Line]:
    lines: list[Line] = []
    for one in metrics:
        figures = f"{right(score_of(one.was), 7)}{right(score_of(one.now), 7)}"
        name = one.name if one.name == one.type else f"{one.name} ({one.type})"
        room = max(width - 4 - 14, 4)
        lines.append((("    ", ""), (left(one_line(name), room), "dim"), (figures, "" if one.changed else "dim")))
    return lines
