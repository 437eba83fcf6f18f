"""The list beside the drawing of the Trends screen: groups, flaky tests, causes, criteria, alerts, as rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, get_args

from msgspec import Struct

from agenteval_tui.analysis.trend_alerts import AlertCheck
from agenteval_tui.analysis.trend_scores import Extras
from agenteval_tui.analysis.trends import Trend
from agenteval_tui.analysis.variance import VarianceReport
from agenteval_tui.history.quarantines import Quarantine
from agenteval_tui.history.trends import NEWEST
from agenteval_tui.tui.presenters.tabs import Ends
from agenteval_tui.tui.presenters.trend_lines import first_drawn, marker
from agenteval_tui.tui.presenters.view_lines import TableRows
from agenteval_tui.tui.styled_text import Cell, Line, fit, width_of
from agenteval_tui.views.flaky import flaky_table
from agenteval_tui.views.model import Column, Table
from agenteval_tui.views.quarantine import quarantines_table
from agenteval_tui.views.trends import (
    Shown,
    alerts_table,
    failing_table,
    feedback_table,
    groups_table,
    scores_table,
)

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
