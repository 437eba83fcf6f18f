"""What is shown of how tests do over time: figures by piece of time and group, scores, causes of failures, alerts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from agenteval_tui.analysis.statistics import Interval
from agenteval_tui.analysis.time_buckets import bucket_label
from agenteval_tui.analysis.trend_alerts import Alert, AlertCheck, FeedbackAlert, State
from agenteval_tui.analysis.trend_breaks import Break, breaks_in
from agenteval_tui.analysis.trend_scores import Extras, Failing, Scores, criterion_labels
from agenteval_tui.analysis.trends import MeasureStats, OtherTests, OutcomeRates, Series, Trend
from agenteval_tui.core import numbers
from agenteval_tui.core.display import one_line
from agenteval_tui.core.ids import short_id
from agenteval_tui.history.feedback import FeedbackMean
from agenteval_tui.history.trends import NEWEST, Measure
from agenteval_tui.views.model import LEVELS, Column, Paragraph, Row, Span, Table, Text, View, paragraphs, row_key, text
from agenteval_tui.views.quarantine import skipped_view

if TYPE_CHECKING:
    from agenteval_tui.analysis.trend_regrade import Regrading  # it loads all of grading: a start would pay for it

Shown = Literal["rate", "latency", "tokens", "cost", "steps"]
"""What of a trend is looked at."""

MEASURES: dict[Shown, str] = {
    "rate": "pass rate, 95 % interval",
    "latency": "latency per run",
    "tokens": "tokens per run",
    "cost": "cost, US dollars",
    "steps": "tool calls per run",
}
FIGURE_TEXTS: dict[Shown, Callable[[float], str]] = {
    "rate": lambda value: f"{value * 100:.0f} %",
    "latency": numbers.duration,
    "tokens": lambda value: f"{value:,.0f}" if value < 100_000 else f"{value / 1000:,.0f}k",
    "cost": lambda value: f"${value:.2f}" if value >= 0.1 or not value else numbers.dollars(value),
    "steps": lambda value: f"{value:.3g}" if value < 1_000 else f"{value:,.0f}",
}
"""A value of each measure in a few characters."""

_BARS = LEVELS[:6]
_MOST = 8
_MOST_BREAKS = 3  # that are named before a piece of time
_STATES: dict[State, Span] = {
    "ok": ("ok", "good"),
    "alert": ("ALERT", "bad"),
    "errors": ("no verdict", "broken"),
    "empty": ("no alert", "warn"),
}


def interval_text(interval: Interval | None) -> str:
    """`38–100 %`; `too few` where there is none."""
    return numbers.TOO_FEW if interval is None else f"{numbers.percent_span(*interval)} %"


def break_text(shift: Break) -> str:
    """`criterion "tone" of greeting changed (1a2b3c to 4d5e6f)`."""
    if shift.kind == "agent":
        return f"agent {shift.agent} has another configuration ({shift.old[:6]} to {shift.new[:6]})"
    versions = f" ({shift.old[:6]} to {shift.new[:6]})" if shift.kind == "changed" else ""
    return f'criterion "{shift.criterion}" of {shift.test_id} {"" if versions else "was "}{shift.kind}{versions}'


def other_tests_text(other: OtherTests) -> str:
    """`only 11 of the 22 tests before: not comparable`."""
    if not other.both:
        which = "other tests than before"
    elif other.both == other.now:
        which = f"only {other.now} of the {numbers.count(other.before, 'test')} before"
    elif other.both == other.before:
        which = f"{numbers.count(other.now - other.before, 'test')} more than before"
    else:
        which = f"{other.now - other.both} of these {numbers.count(other.now, 'test')} did not run before"
    return f"{which}: not comparable"


def regrading_text(regrading: Regrading) -> str:
    """`graded with today's criteria: 30 runs, 4 have a different verdict, 2 left out, because ...`."""
    have = "has" if regrading.changed == 1 else "have"
    parts = [numbers.count(len(regrading.statuses), "run"), f"{regrading.changed:,} {have} a different verdict"]
    if regrading.errors:
        parts.append(f"{regrading.errors:,} in error, because nothing is asked or run again")
    if regrading.left_out:
        parts.append(f"{regrading.left_out:,} left out, because their test is no longer in a file")
    if regrading.cut:
        parts.append(f"only the newest {NEWEST:,}")
    return f"graded with today's criteria: {', '.join(parts)}"


def value_text(series: Series, figure: Shown, at: int | None) -> str:
    """A group's value in a piece of time (None: over all), in a few characters; "" for nothing."""
    if figure == "rate":
        point = series.overall if at is None else series.points[at]
        return "" if point is None or point.rate is None else numbers.percent(point.rate)
    points = series.spent.get(figure)
    spent = series.spent_overall.get(figure) if at is None else points[at] if points else None
    return "" if spent is None else FIGURE_TEXTS[figure](spent.total if figure == "cost" else spent.p50)


def figures_text(point: OutcomeRates) -> Text:
    """`72 % (38–100 %)  ✓ 9  ✗ 4  of 3 tests`: the runs of a piece of time."""
    ends = (
        (point.passed, "✓", "good"),
        (point.failed, "✗", "bad"),
        (point.errors, "!", "broken"),
        (point.review, "?", "warn"),
    )
    return text(
        ("no verdict" if point.rate is None else numbers.percent(point.rate), "bold"),
        (f" ({interval_text(point.interval)})" if point.n else "", "dim"),
        *((f"  {sign} {number:,}", token) for number, sign, token in ends if number),
        (f"  of {numbers.count(point.tests, 'test')}", "dim"),
    )


def spent_text(spent: Mapping[Measure, MeasureStats | None], *, brief: bool = False) -> str:
    """What the runs of a piece of time took: `p50 2.1 s, p95 3.4 s   $0.0320   52 tokens (p95 170)`; `brief`: without
    the 95th percentiles."""

    def high(words: str) -> str:
        return "" if brief else words

    texts: dict[Measure, Callable[[MeasureStats], str]] = {
        "latency": lambda stats: f"p50 {numbers.duration(stats.p50)}" + high(f", p95 {numbers.duration(stats.p95)}"),
        "tokens": lambda stats: f"{stats.p50:,.0f} tokens" + high(f" (p95 {stats.p95:,.0f})"),
        "cost": lambda stats: numbers.dollars(stats.total) if stats.total else "",
        "steps": lambda stats: f"{stats.p50:g} {'call' if stats.p50 == 1 else 'calls'}" + high(f" (p95 {stats.p95:g})"),
    }
    return "   ".join(filter(None, (texts[measure](stats) for measure, stats in spent.items() if stats is not None)))


def trends_view(trend: Trend, more: Extras, window: str, scale: int = 0, options: str = "") -> View:
    """All of it in lines: figures over time, then criteria, then causes. `scale`: cells in which rates are drawn."""
    if not trend.series:
        hint = "try a longer --window, or --window all; agenteval run PATH makes runs"
        return paragraphs([text(f"nothing ran in {window}"), text((hint, "dim"))])
    which = f"each {trend.query.group}" if trend.query.group else one_line(trend.series[0].name, 70)
    view: View = (
        Paragraph(text((which, "bold"), (f"  {window}, by {trend.by}", "dim"))),
        series_table(trend, more.breaks, scale),
    )
    if more.scores:
        view += (Paragraph(()), scores_table(more.scores, 2 * _MOST))
    if more.feedback:
        view += (Paragraph(()), feedback_table(more.feedback))
    if more.causes:
        view += (Paragraph(()), *failing_view(more.causes, options))
    if more.cut:
        cut = f"criteria and causes cover only the newest {NEWEST:,} of these runs"
        view += (Paragraph(text((cut, "warn"))),)
    return view


def series_table(trend: Trend, breaks: Sequence[Break], scale: int = 0) -> Table:
    """A row a piece of time and one over all, of each group; before a row what changed there."""
    grouped = bool(trend.query.group)
    series = trend.series[:_MOST] if grouped else trend.series
    # Executions have titles; days and weeks have none.
    titles = any(place.title for place in trend.bins)
    label = 2 + max((len(bucket_label(place, trend.by)) for place in trend.bins), default=0)
    heads = [Column(f"  {trend.by}", least=label), Column("rate", "right"), Column("95 % interval")]
    heads += [Column(f"{'0%':<{scale // 2 - 1}}{'50%':<{scale // 2}}{'100%':>4}")] if scale else []
    heads += [Column(head, "right") for head in ("n", "errors", "p50", "p95", "tokens", "cost")]
    heads += [Column("")] if titles else []
    rows: list[Row] = []
    for curve in series:
        rows += [Row((text((curve.name, "bold")),))] if grouped else []
        changes = breaks_in(trend, curve, breaks)
        for number, (place, point) in enumerate(zip(trend.bins, curve.points, strict=True)):
            if point is None:
                continue
            if number in curve.other_tests:
                rows.append(Row((text((f"  ╌╌ {other_tests_text(curve.other_tests[number])}", "warn")),)))
            rows += [Row((line,)) for line in _break_lines(changes.get(number, ()))]
            at = {measure: points[number] for measure, points in curve.spent.items()}
            title = (text((place.title, "dim")),) if titles else ()
            rows.append(Row((*_point(bucket_label(place, trend.by), point, at, scale), *title)))
        rows.append(Row((*_point("all", curve.overall, curve.spent_overall, scale, "bold"), *((),) * titles)))
    remaining = len(trend.series) - len(series)
    more = f"and {numbers.count(remaining, 'more group')}: --json and --csv list all" if remaining else ""
    return Table(tuple(heads), tuple(rows), more)


def _break_lines(breaks: Sequence[Break]) -> Iterator[Text]:
    """What makes the piece of time that follows another thing than those before."""
    for shift in breaks[:_MOST_BREAKS]:
        what = "answered" if shift.kind == "agent" else "judged"
        yield text((f"  ╌╌ {break_text(shift)}: {what} differently from here", "warn"))
    if len(breaks) > _MOST_BREAKS:
        remaining = numbers.count(len(breaks) - _MOST_BREAKS, "more change")
        yield text((f"     and {remaining} of criteria and agents", "warn"))


def _point(
    label: str, point: OutcomeRates, spent: Mapping[Measure, MeasureStats | None], scale: int, token: str = ""
) -> Iterator[Text]:
    latency, tokens, cost = (spent.get(measure) for measure in ("latency", "tokens", "cost"))
    yield text((f"  {label}", token))
    yield text((numbers.percent(point.rate), token))
    yield text((interval_text(point.interval) if point.n else "", token))
    if scale:
        yield text((_drawn(point, scale), token))
    for line in (
        f"{point.n:,}",
        f"{point.errors:,}" if point.errors else "",
        numbers.duration(latency.p50 if latency else None),
        numbers.duration(latency.p95 if latency else None),
        f"{tokens.p50:,.0f}" if tokens else "",
        numbers.dollars(cost.total if cost else None),
    ):
        yield text((line, token))


def _drawn(point: OutcomeRates, scale: int) -> str:
    """The interval as a line and the rate as a mark on it."""
    if point.rate is None:
        return ""
    low, high = point.interval or (point.rate, point.rate)
    low, at, high = (round(edge * (scale - 1)) for edge in (low, point.rate, high))
    return "".join("●" if n == at else "─" if low <= n <= high else "·" for n in range(scale))


def scores_table(scores: Sequence[Scores], most: int | None = None) -> Table:
    """A row a criterion: how many of its results passed, and how its scores are spread."""
    listed = scores[:most]
    figures = (Column(head, "right") for head in ("passed", "rate", "mean"))
    # The column stays without errors, so that the others keep their places.
    errors = Column("errors" if any(row.errors for row in listed) else "", "right")
    columns = (Column("test / criterion"), *figures, Column("0 scores 1"), errors)
    # The labels tell all criteria apart, also from those that are not listed.
    rows = tuple(_score(score, name) for score, name in zip(listed, criterion_labels(scores), strict=False))
    remaining = len(scores) - len(listed)
    return Table(columns, rows, f"and {numbers.count(remaining, 'more criterion')}" if remaining else "")


def feedback_table(means: Sequence[FeedbackMean]) -> Table:
    """A row for each key of feedback: its mean, how many scores, the lowest."""
    columns = (Column("feedback"), *(Column(head, "right") for head in ("mean", "scores", "runs", "lowest")))
    rows = (
        Row(
            (
                text(mean.key),
                text((numbers.decimal(mean.mean), "bold")),
                text((f"{mean.n:,}", "dim")),
                text((f"{mean.runs:,}", "dim")),
                text((numbers.decimal(mean.lowest), "dim")),
            ),
            row_key("feedback", mean.key),
        )
        for mean in means
    )
    return Table(columns, tuple(rows))


def _score(scores: Scores, name: str) -> Row:
    return Row(
        (
            text(name),
            text((f"{scores.passed:,} of {scores.n:,}", "dim")),
            text((numbers.percent(scores.passed / scores.n if scores.n else None), "bold")),
            text("" if scores.mean is None else numbers.decimal(scores.mean)),
            _histogram(scores),
            text((f"{scores.errors:,}" if scores.errors else "", "broken")),
        ),
        row_key("test", scores.suite_key, scores.test_id, scores.criterion),
    )


def _histogram(scores: Scores) -> Text:
    """A bar for each tenth of the scores, in the colour of how these results ended. It leaves the top of its row free,
    so that the row above stays apart."""
    top, highest = max(scores.tenths) or 1, len(_BARS) - 1
    return text(
        *(
            (
                # Rounded up: one score among thousands has a bar, too.
                _BARS[-(-number * highest // top)] if number else " ",
                "good" if not failed else "bad" if failed >= number else "warn",
            )
            for number, failed in zip(scores.tenths, scores.failed_tenths, strict=True)
        )
    )


def failing_view(causes: Sequence[Failing], options: str = "") -> View:
    """The most frequent causes of failures: runs, what it is, its short name, tests, the newest run."""
    lines = [text(("why runs failed", "dim"))]
    for cause in causes[:_MOST]:
        name = f"{cause.id}  " if cause.id else ""
        more = f"  {name}{numbers.count(cause.tests, 'test')}, {short_id(cause.last)}"
        lines.append(text(f"{cause.runs:>6,}  {one_line(cause.title, 90)}", (more, "dim")))
    if len(causes) > _MOST:
        lines.append(
            text((f"and {numbers.count(len(causes) - _MOST, 'more cause')}: agenteval causes{options}", "dim"))
        )
    return paragraphs(lines)


def failing_table(causes: Sequence[Failing]) -> Table:
    """A row a cause of failures: runs, what it is, tests."""
    columns = (Column("runs", "right"), Column("why runs failed"), Column("tests", "right"))
    rows = (
        Row(
            (text((f"{cause.runs:,}", "bad")), text(cause.title), text((f"{cause.tests:,}", "dim"))),
            row_key("run", cause.last, str(number)),
        )
        for number, cause in enumerate(causes)
    )
    return Table(columns, tuple(rows))


def groups_table(trend: Trend, figure: Shown, at: int) -> Table:
    """A row a group: its value in a piece of time and over all, with the interval of rates."""
    rows = []
    for line in trend.series:
        interval = interval_text(line.overall.interval) if figure == "rate" and line.overall.n else ""
        here = value_text(line, figure, at) if 0 <= at < len(trend.bins) else ""
        cells = (
            text(line.name),
            text((here, "accent")),
            text((value_text(line, figure, None), "bold")),
            text((interval, "dim")),
            text((f"{line.overall.runs:,}", "dim")),
        )
        rows.append(Row(cells, row_key("group", line.key)))
    heads = ("cursor", "window", "95 %", "runs")
    return Table((Column(""), *(Column(head, "right", 6) for head in heads)), tuple(rows))


def alerts_table(watched: AlertCheck) -> Table:
    """A row for each alert that was checked: its result, and the figures."""
    rows = []
    for alert in watched.alerts:
        cells = (
            text(_STATES[alert.state]),
            text(alert.name or "all runs", ("  could be chance" if alert.by_chance else "", "dim")),
            text((_rate(alert), "bold")),
            text((f"below {numbers.percent_limit(alert.below)}", "dim")),
            text((interval_text(alert.interval) if alert.n else "", "dim")),
            text((f"{alert.runs:,}", "dim")),
        )
        rows.append(Row(cells, row_key("alert", alert.key)))
    heads = ("rate", "threshold", "95 %", "runs")
    return Table((Column("", "right"), Column(""), *(Column(head, "right") for head in heads)), tuple(rows))


def _rate(alert: Alert) -> str:
    return numbers.percent(alert.rate, beside=alert.below)


def alert_view(watched: AlertCheck, window: str) -> View:
    """The result of each alert, in words with the numbers; then what was left out of it."""
    lines = [line for alert in watched.alerts for line in _alert(alert, window)]
    lines += [_feedback_alert(alert, window) for alert in watched.feedback]
    return (*paragraphs(lines), *skipped_view(watched.left_out))


def _feedback_alert(alert: FeedbackAlert, window: str) -> Text:
    word, token = _STATES[alert.state]
    if alert.mean is None:
        return text((f"{word}: ", token), f"no run has feedback {alert.key} in {window}")
    under = "below" if alert.state == "alert" else "not below"
    figures = (
        f"{alert.mean.mean:.2f} ({numbers.count(alert.mean.n, 'score')} of {numbers.count(alert.mean.runs, 'run')})"
    )
    return text((f"{word}: ", token), f"feedback {alert.key} {figures} in {window}, {under} {alert.below:g}")


def _alert(alert: Alert, window: str) -> Iterator[Text]:
    word, token = _STATES[alert.state]
    who = f"{one_line(alert.name, 60)}: " if alert.key else ""
    passed = f"{alert.passed:,} of {numbers.count(alert.n, 'run')} of {numbers.count(alert.tests, 'test')} passed"
    # As at the end of an execution: the rate is the mean over the tests.
    by_test = " by test" if alert.n and numbers.percent(alert.passed / alert.n) != numbers.percent(alert.rate) else ""
    figures = f"pass rate {_rate(alert)}{by_test} ({passed}, {numbers.interval_phrase(alert.interval)}) in {window}"
    below = numbers.percent_limit(alert.below)
    phrases = {
        "ok": f"{figures}, not below {below}",
        "alert": f"{figures}, below {below}",
        "errors": f"all of {numbers.count(alert.errors, 'run')} ended in an error in {window}",
        "empty": f"no run has a verdict in {window}",
    }
    yield text((f"{word}: ", token), f"{who}{phrases[alert.state]}")
    if alert.by_chance:
        inside = "" if alert.interval is None else f"{below} is inside the interval: "
        yield text((f"  {inside}with so few runs this can be chance", "dim"))
