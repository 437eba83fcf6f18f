"""A trend as lines of text: a line for each piece of time, with its pass rate drawn where it is a terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from agenteval_tui.analysis.trend_bins import at_text, window_words
from agenteval_tui.analysis.trend_breaks import breaks_in
from agenteval_tui.analysis.trend_extras import criterion_labels
from agenteval_tui.cli.output import Output, Style, dollars, duration, percent, percent_range, plural
from agenteval_tui.cli.quarantine_lines import day_of, name_of
from agenteval_tui.text.display import one_line

if TYPE_CHECKING:
    from agenteval_tui.analysis.trend_alerts import Alert, Watched
    from agenteval_tui.analysis.trend_breaks import Break
    from agenteval_tui.analysis.trend_extras import Extras
    from agenteval_tui.analysis.trends import Figures, Series, Spent, Trend
    from agenteval_tui.history.trends import Measure

_SCALE = 31  # columns of a drawn rate, from 0 to 100 %
_MOST = 8
_MOST_BREAKS = 3  # that are named before a piece of time
_LEVELS = "▁▂▃▄▅▆▇█"
_ASCII_LEVELS = "_.-:=+*#"


def print_trend(out: Output, found: Trend, more: Extras, span: int | None) -> None:
    """All of it: lines over time, then criteria and causes."""
    what = f"{window_words(span)}, by {found.by}"
    if not found.series:
        out.line(f"nothing ran in {window_words(span)}")
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
    wide = max((len(at_text(place, found.by)) for place in found.bins), default=10)
    scale = f" {'0%':<{_SCALE // 2 - 1}}{'50%':<{_SCALE // 2}}{'100%':>4}" if out.is_terminal else ""
    head = f"  {found.by:<{wide}} {'rate':>6} {'95 % interval':<13}{scale} {'n':>6} {'errors':>6}"
    out.line((f"{head} {'p50':>8} {'p95':>8} {'tokens':>8} {'cost':>9}", "dim"))
    for number, (place, point) in enumerate(zip(found.bins, one.points, strict=True)):
        if point is not None:
            _print_breaks(out, breaks.get(number, ()))
            at = {measure: points[number] for measure, points in one.spent.items()}
            _print_point(out, f"{at_text(place, found.by):<{wide}}", point, at, one_line(place.title, 30))
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
        from agenteval_tui.history.trends import NEWEST

        out.line((f"criteria and causes are of the newest {NEWEST:,} of these runs only", "warn"))


def print_alerts(out: Output, watched: Watched, span: int | None) -> None:
    """What the alert says, with the numbers; what was left out of it."""
    for one in watched.alerts:
        _print_alert(out, one, window_words(span))
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
