"""`agenteval trends`: how tests do over time; an alert when a window's pass rate is under its threshold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from agenteval_tui.analysis.time_buckets import bucket_label, window_label, window_ms
from agenteval_tui.analysis.trend_alerts import watch
from agenteval_tui.analysis.trend_breaks import breaks_in
from agenteval_tui.analysis.trend_json import to_csv, to_json
from agenteval_tui.analysis.trend_scores import criterion_labels, extras
from agenteval_tui.analysis.trends import MEASURES, TrendQuery, trend
from agenteval_tui.cli.exit_codes import read_rate
from agenteval_tui.cli.invocation import Invocation, all_projects, common_options, pass_invocation
from agenteval_tui.cli.output import Output, Style, dollars, duration, percent, percent_range, plural
from agenteval_tui.cli.quarantine_lines import day_of, name_of
from agenteval_tui.core.display import one_line
from agenteval_tui.core.errors import INFRASTRUCTURE
from agenteval_tui.core.ids import now_ms
from agenteval_tui.history.trends import NEWEST

if TYPE_CHECKING:
    from agenteval_tui.analysis.trend_alerts import Alert, AlertCheck
    from agenteval_tui.analysis.trend_breaks import Break
    from agenteval_tui.analysis.trend_scores import Extras
    from agenteval_tui.analysis.trends import Figures, Series, Spent, Trend
    from agenteval_tui.history.trends import Measure

_FIRED = 1


@click.command("trends")
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path))
@click.option("--window", default="30d", metavar="TIME", help="Runs of this time: 24h, 7d, 30d (the default), 8w, all.")
@click.option(
    "--by",
    type=click.Choice(("execution", "hour", "day", "week")),
    default=None,
    help="What a line is; without it hours, days or weeks, as the window is long.",
)
@click.option(
    "--group", type=click.Choice(("suite", "test", "tag", "agent")), default=None, help="Apart by this, worst first."
)
@click.option(
    "--suite", "suites", multiple=True, metavar="SUITE", help="Only this suite (name or file); may come often."
)
@click.option("--test", "tests", multiple=True, metavar="ID", help="Only this test; may come often.")
@click.option("--tag", "tags", multiple=True, metavar="T", help="Only tests with this tag; with several: with all.")
@click.option("--agent", "agents", multiple=True, metavar="A", help="Only runs of this agent; may come often.")
@click.option("--alert-below", metavar="RATE", help="Exit code 1 when the window's pass rate is below this (0.7, 70%).")
@click.option("--alert-empty", is_flag=True, help="With --alert-below: exit code 1 also when nothing ran.")
@click.option("--count-errors", is_flag=True, help="Count runs that ended in an error as not passed.")
@click.option(
    "--regrade", is_flag=True, help="Grade the stored runs with today's criteria; no agent and no judge is asked."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.option("--csv", "as_csv", is_flag=True, help="Print a table as CSV: a line for each piece of time and group.")
@all_projects("--all")
@common_options
@pass_invocation
def command(
    invocation: Invocation,
    paths: tuple[Path, ...],
    window: str,
    by: str | None,
    group: str | None,
    suites: tuple[str, ...],
    tests: tuple[str, ...],
    tags: tuple[str, ...],
    agents: tuple[str, ...],
    alert_below: str | None,
    alert_empty: bool,
    count_errors: bool,
    regrade: bool,
    as_json: bool,
    as_csv: bool,
) -> int:
    """Show how the runs of a window did over time: pass rate with its 95 % interval, latency, tokens, cost, steps,
    the causes of failures, and the scores of each criterion. PATH: only suites there (files or folders).

    With --alert-below the exit code is 1 when the pass rate of the whole window (of any group, with --group) is below
    RATE; tests and criteria in quarantine are left out of it. It is 3 when every run ended in an error, and 0 when
    nothing ran, unless --alert-empty. docs/trends.md has a line for cron and a job for CI.
    """

    if as_json and as_csv:
        raise click.UsageError("give --json or --csv, not both")
    if alert_empty and alert_below is None:
        raise click.UsageError("--alert-empty goes with --alert-below")
    if regrade and alert_below is not None:
        raise click.UsageError("an alert is of the verdicts as they were stored: give --regrade or --alert-below")
    below = read_rate(alert_below, "--alert-below") if alert_below is not None else None
    span, now = window_ms(window), now_ms()
    wanted = TrendQuery(
        None if span is None else now - span,
        now + 1,
        by,  # type: ignore[arg-type]
        group or "",  # type: ignore[arg-type]
        paths,
        suites,
        tests,
        tags,
        agents,
        count_errors,
        # Suites that are named are meant, wherever they are.
        projects=() if paths else invocation.projects,
    )
    with invocation.store(to_look=True) as store:
        if not paths and (said := invocation.elsewhere(store)):
            invocation.err.line(("note: ", "warn"), said)
        again = None
        if regrade:
            from agenteval_tui.analysis.trend_regrade import regrade_history, regraded_trend

            again = regrade_history(store, wanted)
            found, more = regraded_trend(store, wanted, MEASURES, again)
        else:
            found, more = trend(store, wanted, MEASURES), extras(store, wanted)
        watched = watch(store, wanted, below, now) if below is not None else None
    if as_json:
        invocation.out.json(to_json(found, more, watched, again))
    elif as_csv:
        for line in to_csv(found).splitlines():
            invocation.out.line(line)
    else:
        if again is not None:
            invocation.out.line((again.said, "bold"))
        print_trend(invocation.out, found, more, span)
    if watched is None:
        return 0

    # A document on stdout stays one: what a person wants to know of the alert goes to stderr then.
    print_alerts(invocation.err if as_json or as_csv else invocation.out, watched, span)
    return _code(watched, alert_empty)


def _code(watched: AlertCheck, alert_empty: bool) -> int:
    states = {one.state for one in watched.alerts}
    if "alert" in states or ("empty" in states and alert_empty):
        return _FIRED
    return INFRASTRUCTURE if "errors" in states else 0


_SCALE = 31  # columns of a drawn rate, from 0 to 100 %
_MOST = 8
_MOST_BREAKS = 3  # that are named before a piece of time
_LEVELS = "▁▂▃▄▅▆▇█"
_ASCII_LEVELS = "_.-:=+*#"


def print_trend(out: Output, found: Trend, more: Extras, span: int | None) -> None:
    """All of it: lines over time, then criteria and causes."""
    what = f"{window_label(span)}, by {found.by}"
    if not found.series:
        out.line(f"nothing ran in {window_label(span)}")
        out.line(("a longer window by --window, or all; runs are made by agenteval run PATH", "dim"))
        return
    for number, one in enumerate(found.series):
        if number == _MOST and found.wanted.group:
            rest = len(found.series) - _MOST
            out.line((f"and {rest} more {'groups' if rest > 1 else 'group'}: --json and --csv have all of them", "dim"))
            break
        out.line((one_line(one.name, 70), "bold"), (f"  {what}" if number == 0 else "", "dim"))
        _print_series(out, found, one, breaks_in(found, one, more.breaks))
    _print_scores(out, more)
    _print_causes(out, more)


def _print_series(out: Output, found: Trend, one: Series, breaks: Mapping[int, Sequence[Break]]) -> None:
    wide = max((len(bucket_label(place, found.by)) for place in found.bins), default=10)
    scale = f" {'0%':<{_SCALE // 2 - 1}}{'50%':<{_SCALE // 2}}{'100%':>4}" if out.is_terminal else ""
    head = f"  {found.by:<{wide}} {'rate':>6} {'95 % interval':<13}{scale} {'n':>6} {'errors':>6}"
    out.line((f"{head} {'p50':>8} {'p95':>8} {'tokens':>8} {'cost':>9}", "dim"))
    for number, (place, point) in enumerate(zip(found.bins, one.points, strict=True)):
        if point is not None:
            _print_breaks(out, breaks.get(number, ()))
            at = {measure: points[number] for measure, points in one.spent.items()}
            _print_point(out, f"{bucket_label(place, found.by):<{wide}}", point, at, one_line(place.title, 30))
    _print_point(out, f"{'all':<{wide}}", one.overall, dict(one.spent_overall), "", style="bold")


def _print_breaks(out: Output, breaks: Sequence[Break]) -> None:
    """What makes the piece of time that follows another thing than those before."""
    for one in breaks[:_MOST_BREAKS]:
        rule = "--" if out.ascii_only else "╌╌"
        what = "answered" if one.kind == "agent" else "judged"
        out.line((f"  {rule} {one_line(one.said, 100)}: {what} otherwise from here", "warn"))
    if len(breaks) > _MOST_BREAKS:
        out.line((f"     and {plural(len(breaks) - _MOST_BREAKS, 'more change')} of criteria and agents", "warn"))


def _print_point(
    out: Output, when: str, point: Figures, spent: dict[Measure, Spent | None], title: str, style: Style = ""
) -> None:
    low, high = point.interval
    interval = percent_range(low, high, " - ") if point.n else ""
    drawn = f" {_drawn(point, ascii_only=out.ascii_only)}" if out.is_terminal else ""
    latency, tokens, cost = (spent.get(measure) for measure in ("latency", "tokens", "cost"))
    taken = (
        f" {duration(latency.p50) if latency else '':>8} {duration(latency.p95) if latency else '':>8}"
        f" {f'{tokens.p50:,.0f}' if tokens else '':>8} {dollars(cost.total) if cost else '':>9}"
    )
    line = f"  {when} {percent(point.rate):>6} {interval:<13}{drawn} {point.n:>6} {point.errors or '':>6}{taken}"
    out.line((line.rstrip() if not title else line, style), (f"  {title}" if title else "", "dim"))


def _drawn(point: Figures, *, ascii_only: bool) -> str:
    """The interval as a line and the rate as a mark on it."""
    if point.rate is None:
        return " " * _SCALE
    line, mark, dot = ("-", "o", ".") if ascii_only else ("─", "●", "·")
    low, at, high = (round(edge * (_SCALE - 1)) for edge in (point.interval[0], point.rate, point.interval[1]))
    return "".join(mark if n == at else line if low <= n <= high else dot for n in range(_SCALE))


def _print_scores(out: Output, more: Extras) -> None:
    if not more.scores:
        return
    shown = more.scores[: _MOST * 2]
    names = criterion_labels(more.scores)
    width = min(max(len(one_line(name)) for name in names[: len(shown)]), 60)
    levels = _ASCII_LEVELS if out.ascii_only else _LEVELS
    out.line()
    out.line((f"{'test / criterion':<{width}}  {'passed':>13} {'mean':>5}  scores 0 to 1", "dim"))
    for one, name in zip(shown, names, strict=False):
        top = max(one.tenths) or 1
        bars = "".join(levels[-(-count * (len(levels) - 1) // top)] if count else " " for count in one.tenths)
        mean = "" if one.mean is None else f"{one.mean:.2f}"
        errors = f"  {plural(one.errors, 'error')}" if one.errors else ""
        out.line(
            f"{one_line(name, width):<{width}}  {f'{one.passed} of {one.n}':>13} {mean:>5}  |{bars}|",
            (errors, "dim"),
        )
    if len(more.scores) > len(shown):
        out.line((f"and {len(more.scores) - len(shown)} more criteria", "dim"))


def _print_causes(out: Output, more: Extras) -> None:
    if more.causes:
        out.line()
        out.line(("why runs failed", "dim"))
    for one in more.causes[:_MOST]:
        name = f"{one.id}  " if one.id else ""
        out.line(
            f"{one.runs:>6}  {one_line(one.title, 90)}",
            (f"  {name}{plural(one.tests, 'test')}, {one.last[-8:]}", "dim"),
        )
    if len(more.causes) > _MOST:
        out.line((f"and {len(more.causes) - _MOST} more causes: agenteval causes", "dim"))
    if more.cut:
        out.line((f"criteria and causes are of the newest {NEWEST:,} of these runs only", "warn"))


def print_alerts(out: Output, watched: AlertCheck, span: int | None) -> None:
    """What the alert says, with the numbers; what was left out of it."""
    for one in watched.alerts:
        _print_alert(out, one, window_label(span))
    for held in watched.left_out[:_MOST]:
        out.line(("~ in quarantine, left out: ", "warn"), name_of(held), (f"  until {day_of(held.until_ms)}", "dim"))
    if len(watched.left_out) > _MOST:
        out.line((f"~ and {len(watched.left_out) - _MOST} more in quarantine", "warn"))


def _print_alert(out: Output, one: Alert, window: str) -> None:
    who = f"{one_line(one.name, 60)}: " if one.key else ""
    point = one.figures
    if one.state == "empty":
        out.line(("no alert: ", "warn"), f"{who}no run has a verdict in {window}")
        return
    if one.state == "errors":
        out.line(("no verdict: ", "bad"), f"{who}all of {plural(point.errors, 'run')} ended in an error in {window}")
        return
    low, high = point.interval
    numbers = (
        f"pass rate {percent(point.rate)} ({point.passed} of {plural(point.n, 'run')} of {plural(point.tests, 'test')}"
        f" passed, 95 % interval {percent_range(low, high)})"
    )
    if one.state == "ok":
        out.line(("ok: ", "good"), f"{who}{numbers} in {window}, not below {percent(one.below)}")
        return
    out.line(("ALERT: ", "bad"), f"{who}{numbers} in {window}, below {percent(one.below)}")
    if one.by_chance:
        out.line((f"  {percent(one.below)} lies in the interval: with so few runs chance alone can do that", "dim"))
