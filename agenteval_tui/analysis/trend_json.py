"""A trend as JSON data and as CSV. Times are ISO 8601 with the offset of the local clock."""

from __future__ import annotations

import csv
import io
from datetime import datetime
from typing import TYPE_CHECKING, Any

from agenteval_tui.analysis.trend_breaks import Break, bin_of
from agenteval_tui.analysis.trends import MEASURES, Figures, Series, Spent, Trend
from agenteval_tui.history.trends import Measure

if TYPE_CHECKING:
    from agenteval_tui.analysis.trend_alerts import AlertCheck
    from agenteval_tui.analysis.trend_regrade import Regrading
    from agenteval_tui.analysis.trend_scores import Extras

_NAMES: dict[Measure, str] = {"latency": "latency_ms", "tokens": "tokens", "cost": "cost", "steps": "steps"}

_COLUMNS = (
    *("since", "until", "execution", "group", "tests", "n", "passed", "failed", "errors", "undecided"),
    *("pass_rate", "low", "high"),
)


def moment(at_ms: int) -> str:
    """A time as ISO 8601, to the second."""
    return datetime.fromtimestamp(at_ms / 1000).astimezone().isoformat(timespec="seconds")


def to_json(
    found: Trend, more: Extras, watched: AlertCheck | None = None, regraded: Regrading | None = None
) -> dict[str, Any]:
    """The document of `agenteval trends --json`."""
    return {
        "version": 1,
        "since": moment(found.since_ms),
        "until": moment(found.until_ms),
        "by": found.by,
        "group": found.wanted.group or None,
        "bins": [
            {"since": moment(one.since_ms), "until": moment(one.until_ms), "execution": one.execution or None}
            for one in found.bins
        ],
        "series": [_series(one) for one in found.series],
        "criteria": [
            {
                "file": one.suite_key,
                "suite": one.suite,
                "test": one.test_id,
                "criterion": one.criterion,
                "n": one.n,
                "passed": one.passed,
                "failed": one.failed,
                "errors": one.errors,
                "undecided": one.review,
                "mean_score": one.mean,
                "tenths": list(one.tenths),
            }
            for one in more.scores
        ],
        "causes": [
            {"id": one.id, "cause": one.title, "runs": one.runs, "tests": one.tests, "run": one.last}
            for one in more.causes
        ],
        "breaks": [_break(found, one) for one in more.breaks],
        "regraded": None
        if regraded is None
        else {
            "runs": len(regraded.statuses),
            "changed": regraded.changed,
            "errors": regraded.errors,
            "left_out": regraded.left_out,
            "cut": regraded.cut,
        },
        "criteria_since": moment(more.since_ms) if more.since_ms else moment(found.since_ms),
        "alerts": None if watched is None else _alerts(watched),
    }


def _break(found: Trend, one: Break) -> dict[str, Any]:
    return {
        "at": moment(one.at_ms),
        "bin": bin_of(found.bins, one),
        "file": one.suite_key,
        "suite": one.suite,
        "test": one.test_id,
        "criterion": one.criterion,
        "agent": one.agent,
        "kind": one.kind,
        "old": one.old or None,
        "new": one.new or None,
    }


def _series(one: Series) -> dict[str, Any]:
    return {
        "name": one.name,
        "key": one.key,
        **figures_json(one.overall),
        **{_NAMES[measure]: _spent(one.spent_overall.get(measure)) for measure in MEASURES},
        "bins": [
            None
            if point is None
            else {**figures_json(point), **{_NAMES[m]: _spent(_at(one, m, number)) for m in MEASURES}}
            for number, point in enumerate(one.points)
        ],
    }


def _at(one: Series, measure: Measure, number: int) -> Spent | None:
    points = one.spent.get(measure)
    return None if points is None else points[number]


def figures_json(one: Figures) -> dict[str, Any]:
    """The figures in the words of `agenteval stats`."""
    return {
        "tests": one.tests,
        "n": one.n,
        "passed": one.passed,
        "failed": one.failed,
        "errors": one.errors,
        "undecided": one.review,
        "pass_rate": one.rate,
        "interval": list(one.interval),
    }


def _spent(one: Spent | None) -> dict[str, Any] | None:
    if one is None:
        return None
    return {"n": one.n, "p50": one.p50, "p95": one.p95, "mean": one.mean, "total": one.total}


def _alerts(watched: AlertCheck) -> dict[str, Any]:
    return {
        "fired": bool(watched.fired),
        "groups": [
            {
                "name": one.name,
                "key": one.key,
                "below": one.below,
                "state": one.state,
                "by_chance": one.by_chance,
                **figures_json(one.figures),
            }
            for one in watched.alerts
        ],
        "left_out": [
            {"file": one.suite_key, "test": one.test_id, "criterion": one.criterion or None, "until": one.until_ms}
            for one in watched.left_out
        ],
    }


def to_csv(found: Trend) -> str:
    """A line for each piece of time and group; pieces in which nothing ran are left out."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\r\n")
    spent = [f"{_NAMES[m]}_{figure}" for m in MEASURES for figure in ("p50", "p95", "total")]
    writer.writerow([*_COLUMNS, *spent])
    for one in found.series:
        for number, (place, point) in enumerate(zip(found.bins, one.points, strict=True)):
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
