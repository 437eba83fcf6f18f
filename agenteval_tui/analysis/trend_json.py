"""A trend as JSON data and as CSV. Times are ISO 8601 with the offset of the local clock."""

from __future__ import annotations

import csv
import io
from datetime import datetime
from typing import TYPE_CHECKING, Any

from agenteval_tui.analysis.trend_alerts import AlertCheck
from agenteval_tui.analysis.trend_breaks import Break, bin_of
from agenteval_tui.analysis.trend_scores import Extras
from agenteval_tui.analysis.trends import MEASURES, Figures, Series, Spent, Trend
from agenteval_tui.history.trends import Measure

if TYPE_CHECKING:
    from agenteval_tui.analysis.trend_regrade import Regrading

_NAMES: dict[Measure, str] = {"latency": "latency_ms", "tokens": "tokens", "cost": "cost", "steps": "steps"}

_COLUMNS = (
    *("since", "until", "execution", "group", "tests", "n", "passed", "failed", "errors", "undecided"),
    *("pass_rate", "low", "high"),
)


def moment(at_ms: int) -> str:
    """A time as ISO 8601, to the second."""
    return datetime.fromtimestamp(at_ms / 1000).astimezone().isoformat(timespec="seconds")


def to_json(
    trend: Trend, more: Extras, watched: AlertCheck | None = None, regraded: Regrading | None = None
) -> dict[str, Any]:
    """The document of `agenteval trends --json`."""
    return {
        "version": 1,
        "since": moment(trend.since_ms),
        "until": moment(trend.until_ms),
        "by": trend.by,
        "group": trend.wanted.group or None,
        "bins": [
            {"since": moment(bucket.since_ms), "until": moment(bucket.until_ms), "execution": bucket.execution or None}
            for bucket in trend.bins
        ],
        "series": [_series(one) for one in trend.series],
        "criteria": [
            {
                "file": score.suite_key,
                "suite": score.suite,
                "test": score.test_id,
                "criterion": score.criterion,
                "n": score.n,
                "passed": score.passed,
                "failed": score.failed,
                "errors": score.errors,
                "undecided": score.review,
                "mean_score": score.mean,
                "tenths": list(score.tenths),
            }
            for score in more.scores
        ],
        "causes": [
            {"id": cause.id, "cause": cause.title, "runs": cause.runs, "tests": cause.tests, "run": cause.last}
            for cause in more.causes
        ],
        "breaks": [_break(trend, shift) for shift in more.breaks],
        "regraded": None
        if regraded is None
        else {
            "runs": len(regraded.statuses),
            "changed": regraded.changed,
            "errors": regraded.errors,
            "left_out": regraded.left_out,
            "cut": regraded.cut,
        },
        "criteria_since": moment(more.since_ms) if more.since_ms else moment(trend.since_ms),
        "alerts": None if watched is None else _alerts(watched),
    }


def _break(trend: Trend, one: Break) -> dict[str, Any]:
    return {
        "at": moment(one.at_ms),
        "bin": bin_of(trend.bins, one),
        "file": one.suite_key,
        "suite": one.suite,
        "test": one.test_id,
        "criterion": one.criterion,
        "agent": one.agent,
        "kind": one.kind,
        "old": one.old or None,
        "new": one.new or None,
    }


def _series(series: Series) -> dict[str, Any]:
    return {
        "name": series.name,
        "key": series.key,
        **_figures_json(series.overall),
        **{_NAMES[measure]: _spent(series.spent_overall.get(measure)) for measure in MEASURES},
        "bins": [
            None
            if point is None
            else {**_figures_json(point), **{_NAMES[m]: _spent(_at(series, m, number)) for m in MEASURES}}
            for number, point in enumerate(series.points)
        ],
    }


def _at(series: Series, measure: Measure, number: int) -> Spent | None:
    points = series.spent.get(measure)
    return None if points is None else points[number]


def _figures_json(figures: Figures) -> dict[str, Any]:
    """The figures in the words of `agenteval stats`."""
    return {
        "tests": figures.tests,
        "n": figures.n,
        "passed": figures.passed,
        "failed": figures.failed,
        "errors": figures.errors,
        "undecided": figures.review,
        "pass_rate": figures.rate,
        "interval": list(figures.interval),
    }


def _spent(spent: Spent | None) -> dict[str, Any] | None:
    if spent is None:
        return None
    return {"n": spent.n, "p50": spent.p50, "p95": spent.p95, "mean": spent.mean, "total": spent.total}


def _alerts(watched: AlertCheck) -> dict[str, Any]:
    return {
        "fired": bool(watched.fired),
        "groups": [
            {
                "name": alert.name,
                "key": alert.key,
                "below": alert.below,
                "state": alert.state,
                "by_chance": alert.by_chance,
                **_figures_json(alert.figures),
            }
            for alert in watched.alerts
        ],
        "left_out": [
            {
                "file": excluded.suite_key,
                "test": excluded.test_id,
                "criterion": excluded.criterion or None,
                "until": excluded.until_ms,
            }
            for excluded in watched.left_out
        ],
    }


def to_csv(trend: Trend) -> str:
    """A line for each piece of time and group; pieces in which nothing ran are left out."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\r\n")
    spent = [f"{_NAMES[m]}_{figure}" for m in MEASURES for figure in ("p50", "p95", "total")]
    writer.writerow([*_COLUMNS, *spent])
    for one in trend.series:
        for number, (place, point) in enumerate(zip(trend.bins, one.points, strict=True)):
            if point is None:
                continue
            taken = [_at(one, measure, number) for measure in MEASURES]
            writer.writerow(
                [moment(place.since_ms), moment(place.until_ms), place.execution, _plain(one.name), point.tests]
                + [point.n, point.passed, point.failed, point.errors, point.review, _number(point.rate)]
                + [_number(edge) for edge in point.interval]
                + [_number(figure) for s in taken for figure in ((s.p50, s.p95, s.total) if s else (None, None, None))]
            )
    return out.getvalue()


def _plain(name: str) -> str:
    """A name that no spreadsheet takes for a formula."""
    return f"'{name}" if name[:1] in "=+-@\t\r" else name


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.6g}"
