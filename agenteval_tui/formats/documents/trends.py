"""A trend as a document (what `agenteval trends --json` prints) and as CSV. Times have the local clock's offset."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Literal

from msgspec import Meta

from agenteval_tui.analysis import trends
from agenteval_tui.analysis.time_buckets import By
from agenteval_tui.analysis.trend_alerts import Alert, AlertCheck, State
from agenteval_tui.analysis.trend_breaks import Break, Kind, bin_of
from agenteval_tui.analysis.trend_scores import Extras, Scores
from agenteval_tui.analysis.trends import MEASURES, MeasureStats, OutcomeRates, Series
from agenteval_tui.core.document import Count, Document, Share, Time, extended
from agenteval_tui.history.feedback import FeedbackMean
from agenteval_tui.history.trends import Measure

if TYPE_CHECKING:
    from agenteval_tui.analysis.trend_regrade import Regrading

_NAMES: dict[Measure, str] = {"latency": "latency_ms", "tokens": "tokens", "cost": "cost", "steps": "steps"}

_COLUMNS = (
    *("since", "until", "execution", "group", "tests", "n", "passed", "failed", "errors", "undecided"),
    *("pass_rate", "low", "high"),
)


_Spent = Annotated[MeasureStats | None, Meta(description="null: not measured")]


class TrendPoint(OutcomeRates, frozen=True, kw_only=True):
    """The runs of one group in one piece of time."""

    latency_ms: _Spent
    tokens: _Spent
    cost: _Spent
    steps: _Spent


class TrendSeries(OutcomeRates, frozen=True, kw_only=True):
    """One group over time; its own figures are of the whole time."""

    latency_ms: _Spent
    tokens: _Spent
    cost: _Spent
    steps: _Spent
    name: str
    key: str
    bins: Annotated[tuple[TrendPoint | None, ...], Meta(description="as many as `bins`; null: nothing ran")]


class TrendBin(Document, frozen=True, kw_only=True):
    """A piece of time."""

    since: Time
    until: Time
    execution: str | None


class CriterionScores(Document, frozen=True, kw_only=True):
    """The results of a criterion."""

    file: str
    suite: str
    test: str
    criterion: Annotated[str, Meta(description="its name in the test")]
    n: Count
    passed: Count
    failed: Count
    errors: Count
    undecided: Count
    mean_score: Share | None
    tenths: Annotated[tuple[Count, ...], Meta(min_length=10, max_length=10)]


class FrequentCause(Document, frozen=True, kw_only=True):
    """A cause of failures."""

    id: Annotated[str, Meta(description="the id in `agenteval causes`; empty for errors of agents")]
    cause: str
    runs: Count
    tests: Count
    run: Annotated[str, Meta(description="the newest run")]


class TrendBreak(Document, frozen=True, kw_only=True):
    """A point in time: the runs before it can't be compared with the runs after it."""

    at: Annotated[Time, Meta(description="when the first execution with the new version started")]
    bin: Annotated[Count | None, Meta(description="the number of its bin, from 0")]
    file: str
    suite: str
    test: str
    criterion: str
    agent: Annotated[str, Meta(description="whose configuration changed; empty for a criterion")]
    kind: Kind
    old: str | None
    new: str | None


class Regraded(Document, frozen=True, kw_only=True):
    """The result of `--regrade`."""

    runs: Count
    changed: Annotated[Count, Meta(description="runs whose outcome changed")]
    errors: Annotated[Count, Meta(description="can't be decided without asking a judge or a person")]
    left_out: Annotated[Count, Meta(description="runs whose test is in no suite's file now")]
    cut: Annotated[bool, Meta(description="older runs of the window were not graded")]


class LeftOut(Document, frozen=True, kw_only=True):
    """A test or criterion in quarantine. `until`: milliseconds since 1970."""

    file: str
    test: str
    criterion: str | None
    until: Count


class TrendFeedbackAlert(Document, frozen=True, kw_only=True):
    """What `--alert-feedback` says of a key."""

    key: str
    below: Share
    state: State
    mean: Annotated[Share | None, Meta(description="null: no run has such feedback")]
    n: Count


class TrendAlerts(Document, frozen=True, kw_only=True):
    """What `--alert-below` and `--alert-feedback` say."""

    fired: bool
    feedback: tuple[TrendFeedbackAlert, ...]
    groups: tuple[Alert, ...]
    left_out: Annotated[tuple[LeftOut, ...], Meta(description="what is in quarantine")]


class Trends(Document, frozen=True, kw_only=True):
    """`agenteval trends`."""

    version: Literal[1] = 1
    since: Time
    until: Time
    by: By
    group: Annotated[
        str | None, Meta(description="suite, test, tag, agent, name, commit, meta.KEY; null: all runs together")
    ]
    bins: tuple[TrendBin, ...]
    series: Annotated[tuple[TrendSeries, ...], Meta(description="worst first; without a group one, of all runs")]
    criteria: Annotated[
        tuple[CriterionScores, ...],
        Meta(description="worst first; of the newest runs, from `criteria_since` on"),
    ]
    causes: Annotated[tuple[FrequentCause, ...], Meta(description="most frequent first")]
    feedback: Annotated[tuple[FeedbackMean, ...], Meta(description="by key")]
    breaks: Annotated[
        tuple[TrendBreak, ...],
        Meta(
            description="where a test's criteria changed, so that verdicts before and after are not comparable, or its"
            " agent did"
        ),
    ]
    regraded: Annotated[
        Regraded | None,
        Meta(description="with --regrade: all verdicts are those of today's criteria; null: as they were stored"),
    ]
    criteria_since: Time
    alerts: TrendAlerts | None


def trends_document(
    trend: trends.Trend, more: Extras, watched: AlertCheck | None = None, regraded: Regrading | None = None
) -> Trends:
    """A trend with what is shown beside its lines. `watched`: the alerts; `regraded`: what grading anew did."""
    return Trends(
        since=_moment(trend.since_ms),
        until=_moment(trend.until_ms),
        by=trend.by,
        group=trend.query.group or None,
        bins=tuple(
            TrendBin(since=_moment(bucket.since_ms), until=_moment(bucket.until_ms), execution=bucket.execution or None)
            for bucket in trend.bins
        ),
        series=tuple(map(_series, trend.series)),
        criteria=tuple(map(_scores, more.scores)),
        causes=tuple(
            FrequentCause(id=cause.id, cause=cause.title, runs=cause.runs, tests=cause.tests, run=cause.last)
            for cause in more.causes
        ),
        feedback=more.feedback,
        breaks=tuple(_break(trend, shift) for shift in more.breaks),
        regraded=None if regraded is None else extended(Regraded, regraded, runs=len(regraded.statuses)),
        criteria_since=_moment(more.since_ms or trend.since_ms),
        alerts=None if watched is None else _alerts(watched),
    )


def _series(series: Series) -> TrendSeries:
    return extended(
        TrendSeries,
        series.overall,
        name=series.name,
        key=series.key,
        **_all_spent(series.spent_overall),
        bins=tuple(
            None if point is None else extended(TrendPoint, point, **_all_spent(_spent_at(series, number)))
            for number, point in enumerate(series.points)
        ),
    )


def _spent_at(series: Series, number: int) -> dict[Measure, MeasureStats | None]:
    return {measure: points[number] for measure, points in series.spent.items()}


def _all_spent(spent: Mapping[Measure, MeasureStats | None]) -> dict[str, MeasureStats | None]:
    return {_NAMES[measure]: spent.get(measure) for measure in MEASURES}


def _scores(score: Scores) -> CriterionScores:
    return extended(
        CriterionScores,
        score,
        file=score.suite_key,
        test=score.test_id,
        undecided=score.review,
        mean_score=score.mean,
    )


def _break(trend: trends.Trend, trend_break: Break) -> TrendBreak:
    return extended(
        TrendBreak,
        trend_break,
        at=_moment(trend_break.at_ms),
        bin=bin_of(trend.bins, trend_break),
        file=trend_break.suite_key,
        test=trend_break.test_id,
        old=trend_break.old or None,
        new=trend_break.new or None,
    )


def _alerts(watched: AlertCheck) -> TrendAlerts:
    return TrendAlerts(
        fired=bool(watched.fired) or any(alert.state == "alert" for alert in watched.feedback),
        feedback=tuple(
            extended(
                TrendFeedbackAlert,
                alert,
                mean=None if alert.mean is None else alert.mean.mean,
                n=0 if alert.mean is None else alert.mean.n,
            )
            for alert in watched.feedback
        ),
        groups=watched.alerts,
        left_out=tuple(
            LeftOut(
                file=excluded.suite_key,
                test=excluded.test_id,
                criterion=excluded.criterion or None,
                until=excluded.until_ms,
            )
            for excluded in watched.left_out
        ),
    )


def trends_csv(trend: trends.Trend) -> str:
    """A line for each piece of time and group; pieces in which nothing ran are left out."""
    out = io.StringIO()
    # As RFC 4180 wants it, whatever the ends of lines are here.
    writer = csv.writer(out, lineterminator="\r\n")
    spent = [f"{_NAMES[m]}_{figure}" for m in MEASURES for figure in ("p50", "p95", "total")]
    writer.writerow([*_COLUMNS, *spent])
    for series in trend.series:
        for number, (place, point) in enumerate(zip(trend.bins, series.points, strict=True)):
            if point is None:
                continue
            spent_here = _spent_at(series, number)
            figures = [spent_here.get(measure) for measure in MEASURES]
            writer.writerow(
                [_moment(place.since_ms), _moment(place.until_ms), place.execution, _plain(series.name), point.tests]
                + [point.n, point.passed, point.failed, point.errors, point.review, _number(point.rate)]
                + [_number(edge) for edge in point.interval or (None, None)]
                + [
                    _number(figure)
                    for s in figures
                    for figure in ((s.p50, s.p95, s.total) if s else (None, None, None))
                ]
            )
    return out.getvalue()


def _plain(name: str) -> str:
    """A name that no spreadsheet takes for a formula."""
    return f"'{name}" if name[:1] in "=+-@\t\r" else name


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.6g}"


def _moment(at_ms: int) -> str:
    """A time as ISO 8601, to the second."""
    return datetime.fromtimestamp(at_ms / 1000).astimezone().isoformat(timespec="seconds")
