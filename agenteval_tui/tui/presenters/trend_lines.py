"""The Trends screen: its drawing, the facts under the cursor of its time axis, and the lists beside it (groups, flaky
tests, causes, criteria, alerts)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Literal, get_args

from msgspec import Struct

from agenteval_tui.analysis.time_buckets import bucket_label
from agenteval_tui.analysis.trend_alerts import AlertCheck
from agenteval_tui.analysis.trend_breaks import Break, bin_of, breaks_in, distinct
from agenteval_tui.analysis.trend_scores import Extras
from agenteval_tui.analysis.trends import MeasureStats, OutcomeRates, Series, Trend
from agenteval_tui.analysis.variance import VarianceReport
from agenteval_tui.core.display import one_line
from agenteval_tui.core.numbers import count, percent_limit, short_duration
from agenteval_tui.history.quarantines import Quarantine
from agenteval_tui.history.trends import NEWEST, Measure
from agenteval_tui.tui.presenters.plot import BREAK, MARKS, STYLES, Curve, Plot, draw
from agenteval_tui.tui.presenters.tabs import Ends
from agenteval_tui.tui.presenters.view_lines import TableRows, line
from agenteval_tui.tui.styled_text import Cell, Line, fit, fit_text, longest_that_fits, width_of
from agenteval_tui.views.flaky import flaky_table
from agenteval_tui.views.model import Column, Table
from agenteval_tui.views.quarantine import quarantines_table
from agenteval_tui.views.trends import (
    FIGURE_TEXTS,
    MEASURES,
    Shown,
    alerts_table,
    break_text,
    failing_table,
    feedback_table,
    figures_text,
    groups_table,
    other_tests_text,
    scores_table,
    spent_text,
    value_text,
)

SHOWN: tuple[Shown, ...] = get_args(Shown)
MOST = 5
"""Groups that are drawn at a time: those around the cursor of the list below, which has all."""

LEAST_NAME = 6  # cells of a group's name over the drawing
_AXIS = FIGURE_TEXTS | {"latency": lambda value: short_duration(value) or "0 ms"}


def plot_lines(
    trend: Trend,
    shown: Shown,
    width: int,
    height: int,
    cursor: int,
    below: float | None = None,
    chosen: int = 0,
    breaks: Sequence[Break] = (),
) -> list[Line]:
    """The drawing in `width` cells and `height` lines. `chosen`: the group whose curve lies on top, among those around
    it. `breaks` are drawn where they say something of the measure: of the rate."""
    curves = tuple(_curves(trend, shown, chosen, breaks if shown == "rate" else ()))
    values = [value for curve in curves for value in curve.values if value is not None]
    low, high = 0.0, 1.0
    if shown != "rate":
        high = _round_up(max(values, default=1.0))
    plot = Plot(
        curves,
        labels=_labels(trend),
        low=low,
        high=high,
        say=_AXIS[shown],
        cursor=cursor,
        limit=below if shown == "rate" else None,
        limit_words=f" alert below {percent_limit(below)} " if below is not None else "",
    )
    return draw(plot, width, height)


def first_drawn(chosen: int) -> int:
    """The first of the groups that are drawn with this one."""
    return max(chosen, 0) // MOST * MOST


def _drawn(trend: Trend, chosen: int) -> list[tuple[int, Series]]:
    """The groups that are drawn, each with the number of its mark."""
    first = first_drawn(chosen)
    return list(enumerate(trend.series[first : first + MOST]))


def _curves(trend: Trend, shown: Shown, chosen: int, breaks: Sequence[Break]) -> list[Curve]:
    grouped = bool(trend.query.group)
    curves = []
    drawn = _drawn(trend, chosen) if grouped else list(enumerate(trend.series[:1]))
    for number, series in sorted(drawn, key=lambda pair: pair[0] != chosen - first_drawn(chosen)):
        mark, style = marker(number)
        if shown == "rate":
            rates = tuple(None if point is None else point.rate for point in series.points)
            # Of several groups the intervals would lie on each other: the list and the cursor say them.
            ranges = () if grouped else tuple(_range(point) for point in series.points)
            apart = frozenset((*breaks_in(trend, series, breaks), *series.other_tests))
            curves.append(Curve(mark, style, rates, ranges, apart))
            continue
        spent = series.spent.get(shown, ())
        if shown == "cost":
            curves.append(Curve(mark, style, tuple(None if s is None else s.total for s in spent)))
            continue
        curves.append(Curve(mark, style, tuple(None if s is None else s.p50 for s in spent)))
        if not grouped:
            mark, style = marker(1)
            curves.append(Curve(mark, style, tuple(None if s is None else s.p95 for s in spent)))
    return curves


def _range(point: OutcomeRates | None) -> tuple[float, float] | None:
    return None if point is None or point.rate is None else point.interval


def marker(number: int) -> Cell:
    """The glyph and style of a series; " " of those that are not drawn."""
    return (MARKS[number], STYLES[number]) if 0 <= number < MOST else (" ", "dim")


def _round_up(value: float) -> float:
    """A round number that is not less, so that the axis has readable ones."""
    if value <= 0:
        return 1.0
    power = 1.0
    while power * 10 <= value:
        power *= 10
    while power > value:
        power /= 10
    return next(step * power for step in (1, 2, 4, 5, 8, 10) if step * power >= value * (1 - 1e-12))


def _labels(trend: Trend) -> tuple[tuple[str, ...], ...]:
    """The label below each bin, the shortest form first. Executions of one day differ by the time of day."""
    days = {datetime.fromtimestamp(trend_bin.since_ms / 1000).date() for trend_bin in trend.bins}
    if trend.by != "execution":
        return tuple((short_label(trend_bin.since_ms, trend.by),) for trend_bin in trend.bins)
    ways = ("minute", "second") if len(days) == 1 else ("day", "day and minute", "second")
    return tuple(tuple(short_label(trend_bin.since_ms, way) for way in ways) for trend_bin in trend.bins)


def short_label(at_ms: int, by: str) -> str:
    """A bin below the axis: `14:00`, `21 Nov`, `21 Nov 14:00`."""
    moment = datetime.fromtimestamp(at_ms / 1000)
    if by == "minute":
        return f"{moment:%H:%M}"
    if by == "second":
        return f"{moment:%H:%M:%S}"
    if by == "hour":
        return f"{moment:%d %b}" if moment.hour == 0 else f"{moment:%H:%M}"
    day = f"{moment.day} {moment:%b}"
    return f"{day} {moment:%H:%M}" if by == "day and minute" else day


def legend(trend: Trend, shown: Shown, width: int, chosen: int = 0) -> Line:
    """What is drawn, in one line: the measure, and of each mark what it is, as far as there is room."""
    grouped = bool(trend.query.group)
    words = "pass rate" if grouped and shown == "rate" else MEASURES[shown]
    cells: list[Cell] = [
        (f" {words}", "bold"),
        (", median" if grouped and shown in ("latency", "tokens", "steps") else "", ""),
    ]
    if trend.query.group:
        drawn = _drawn(trend, chosen)
        first, every = first_drawn(chosen), len(trend.series)
        more: Line = ((f"   {first + 1}–{first + len(drawn)} of {every}", "dim"),) if every > len(drawn) else ()
        room = (width - width_of(cells) - width_of(more)) // max(len(drawn), 1) - 5
        # Where there is no room for names, the list below has them beside the same marks.
        for number, series in drawn if room >= LEAST_NAME else ():
            mark, style = marker(number)
            cells += [("   ", ""), (mark, style), (f" {fit_text(one_line(series.name, 24), room)}", "")]
        cells += more
    elif shown in ("latency", "tokens", "steps"):
        cells += [("   ", ""), marker(0), (" median", ""), ("   ", ""), marker(1), (" 95 % point", "")]
    elif shown == "cost":
        cells.append(("  all runs together, without judges", "dim"))
    return fit(cells, width)


def readout(
    trend: Trend, shown: Shown, cursor: int, width: int, chosen: int = 0, breaks: Sequence[Break] = ()
) -> list[Line]:
    """The facts under the cursor, in two lines; of criteria that changed there, the first."""
    if not 0 <= cursor < len(trend.bins):
        return [(), ()]
    place = trend.bins[cursor]
    when = bucket_label(place, trend.by)
    if trend.by in ("day", "hour"):
        when = f"{datetime.fromtimestamp(place.since_ms / 1000):%a} {when}"
    head: list[Cell] = [(f" {when}", "bold accent")]
    # What it was called comes last: the figures are not to be cut for it.
    title = ((f"   {one_line(place.title, 60)}", "dim"),) if place.title else ()
    if trend.query.group:
        values = _group_cells(trend, shown, cursor, chosen)
        rest = (_runs_cell(trend, cursor), *_break_cells(trend, cursor, breaks))
        return [fit((*head, *values, *title), width), fit(rest, width)]
    point = trend.series[0].points[cursor] if trend.series else None
    spent = {measure: points[cursor] for measure, points in trend.series[0].spent.items()} if trend.series else {}
    if point is None:
        return [fit((*head, ("  nothing ran", "dim")), width), ()]
    apart = (*_other_cells(trend, cursor), *_break_cells(trend, cursor, breaks))
    return [
        fit((*head, ("   ", ""), *line(figures_text(point)), *title), width),
        longest_that_fits([(*apart, (f" {words}", "dim")) for words in _spent(spent)], width),
    ]


def _spent(spent: Mapping[Measure, MeasureStats | None]) -> list[str]:
    """What runs took, in fewer and fewer words."""
    least: dict[Measure, MeasureStats | None] = {"latency": spent.get("latency")}
    return [spent_text(spent), spent_text(spent, brief=True), spent_text(least, brief=True)]


def _other_cells(trend: Trend, cursor: int) -> list[Cell]:
    """Whether the rate is one of other tests than the rate before."""
    other = trend.series[0].other_tests.get(cursor)
    return [] if other is None else [(f" {BREAK} {other_tests_text(other)}", "review"), (" ", "")]


def _break_cells(trend: Trend, cursor: int, breaks: Sequence[Break]) -> list[Cell]:
    """Which criterion changed in this piece of time."""
    here = distinct(trend_break for trend_break in breaks if bin_of(trend.bins, trend_break) == cursor)
    if not here:
        return []
    more = f" and {len(here) - 1} more" if len(here) > 1 else ""
    return [(f" {BREAK} {one_line(break_text(here[0]), 80)}{more}", "review"), (" ", "")]


def _group_cells(trend: Trend, shown: Shown, cursor: int, chosen: int) -> list[Cell]:
    cells: list[Cell] = []
    for number, series in _drawn(trend, chosen):
        cells += [("   ", ""), marker(number), (f" {value_text(series, shown, cursor) or '–'}", "")]
    return cells


def _runs_cell(trend: Trend, cursor: int) -> Cell:
    points = [series.points[cursor] for series in trend.series]
    runs = sum(point.runs for point in points if point is not None)
    many = "  a run counts for each of its tags" if trend.query.group == "tag" else ""
    return f" {count(runs, 'run')}{many}  ", "dim"


View = Literal["groups", "flaky", "causes", "criteria", "feedback", "alerts", "quarantine"]
VIEWS: tuple[View, ...] = get_args(View)


class ComparisonSeries(Struct, frozen=True):
    """What is read after the drawing: it takes longer. `trend` has all measures; `quarantines` are those that hold."""

    trend: Trend
    extras: Extras
    ledger: VarianceReport
    watched: AlertCheck | None
    quarantines: tuple[Quarantine, ...]


def view_bar(view: View, beside: ComparisonSeries | None, trend: Trend | None, width: int) -> tuple[Line, Ends]:
    """The names of the lists, how much is in each, and which one is shown, with where each ends; and whether that is of
    the newest runs of the window only."""
    cells: list[Cell] = [(" ", "")]
    ends: list[tuple[str, int]] = []
    for other_view in VIEWS:
        number = _number(other_view, beside, trend)
        name = f"[{other_view}]" if other_view == view else other_view
        cells += [(name, "bold accent" if other_view == view else "dim")]
        if number:
            cells.append((f" {number}", "failed" if other_view == "alerts" else "dim"))
        ends.append((other_view, width_of(cells)))
        cells.append(("  ", ""))
    # Only these lists look at results run by run, which is bounded.
    cut = beside is not None and (beside.ledger.cut if view == "flaky" else beside.extras.cut)
    if cut and view in ("flaky", "causes", "criteria"):
        cells.append((f"(newest {NEWEST:,} runs)", "review"))
    return fit(cells, width), tuple(ends)


def _number(view: View, beside: ComparisonSeries | None, trend: Trend | None) -> int:
    if view == "groups":
        return len(trend.series) if trend is not None and trend.query.group else 0
    if beside is None:
        return 0
    return {
        "flaky": len(beside.ledger.flaky),
        "causes": len(beside.extras.causes),
        "criteria": len(beside.extras.scores),
        "feedback": len(beside.extras.feedback),
        "alerts": len(beside.watched.fired) if beside.watched else 0,
        "quarantine": len(beside.quarantines),
    }[view]


def rows_of(
    view: View, trend: Trend, beside: ComparisonSeries | None, figure: Shown, cursor: int, chosen: int = 0
) -> TableRows:
    """The rows of a list. `chosen`: the group that is drawn with those around it."""
    if view == "groups":
        first = first_drawn(chosen)
        signs = [marker(number - first) for number in range(len(trend.series))]
        return TableRows(groups_table(trend, figure, cursor), indent=1, signs=signs)
    table = _NOTHING if beside is None else _TABLES[view](beside)
    return TableRows(table, indent=1)


_NOTHING = Table((Column(""),), ())
_TABLES: dict[View, Callable[[ComparisonSeries], Table]] = {
    "flaky": lambda beside: flaky_table(beside.ledger, in_short=True),
    "causes": lambda beside: failing_table(beside.extras.causes),
    "criteria": lambda beside: scores_table(beside.extras.scores),
    "feedback": lambda beside: feedback_table(beside.extras.feedback),
    "alerts": lambda beside: alerts_table(beside.watched) if beside.watched else _NOTHING,
    "quarantine": lambda beside: quarantines_table(beside.quarantines),
}

EMPTY: dict[View, tuple[str, str]] = {
    "groups": ("", ""),
    "flaky": (
        "Nothing is flaky in this window.",
        "A few runs show little. Press {suites.plan} on Suites to plan more repetitions.",
    ),
    "causes": ("Nothing failed in this window.", ""),
    "criteria": ("No criterion ran in this window.", ""),
    "feedback": (
        "No run of this window has feedback.",
        "`agenteval label RUN --key user_satisfaction 0.8` gives some.",
    ),
    "alerts": (
        "No threshold is set.",
        "Press {everywhere.palette}, type alert, and set the pass rate that triggers one.",
    ),
    "quarantine": (
        "Nothing is in quarantine.",
        "Press {trends.quarantine} on a flaky test to quarantine it: it runs, but does not gate.",
    ),
}
