"""What stands beside the drawing of the Trends screen: groups, flaky tests, causes, criteria, alerts, as rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from agenteval_tui.analysis.trend_scores import criterion_labels
from agenteval_tui.core.display import one_line
from agenteval_tui.history.trends import NEWEST
from agenteval_tui.tui.presenters import number_format
from agenteval_tui.tui.presenters.status_style import UNICODE, glyph, mark
from agenteval_tui.tui.presenters.trend_lines import Shown, first_drawn, marker, value_text
from agenteval_tui.tui.styled_text import Cell, Line, fit, left, right, spread

if TYPE_CHECKING:
    from agenteval_tui.analysis.trend_alerts import Alert, AlertCheck
    from agenteval_tui.analysis.trend_scores import Extras, Scores
    from agenteval_tui.analysis.trends import Trend
    from agenteval_tui.analysis.variance import VarianceComponent, VarianceReport
    from agenteval_tui.history.quarantines import Quarantine

View = Literal["groups", "flaky", "causes", "criteria", "alerts", "quarantine"]
VIEWS: tuple[View, ...] = ("groups", "flaky", "causes", "criteria", "alerts", "quarantine")
_LEVELS = "▁▂▃▄▅▆▇█" if UNICODE else "_.-:=+*#"


@dataclass(frozen=True, slots=True)
class ComparisonSeries:
    """What is read after the drawing: it takes longer. `trend` has all measures; `quarantines` are those that hold."""

    trend: Trend
    extras: Extras
    ledger: VarianceReport
    watched: AlertCheck | None
    quarantines: tuple[Quarantine, ...]


Row = tuple[str, tuple[Cell, ...], tuple[Cell, ...]]
"""Its key, and what stands left and right in it."""


class TrendRows:
    """Rows that are laid out for the width they get: a source for the virtual list."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self._rows = tuple(rows)

    def count(self) -> int:
        """How many rows there are."""
        return len(self._rows)

    def key(self, index: int) -> str:
        """What row `index` is."""
        return self._rows[index][0]

    def line(self, index: int, width: int, *, focused: bool) -> Line:
        """Row `index`."""
        _, start, end = self._rows[index]
        return spread(start, end, width) if end else fit(start, width)


_HEADS: dict[View, tuple[str, str]] = {
    "groups": ("", f"{'here':>8}{'window':>9}{'95 %':>8}{'runs':>8} "),
    "flaky": ("   test, and its flaky criteria", f"{'passed':>9}{'rate':>6}{'95 %':>8} "),
    "causes": ("  runs  why", "in "),
    "criteria": (" test / criterion", f"{'rate':>6}{'mean':>6}  {'scores':^14}{'results':>8} "),
    "alerts": ("", f"{'rate':>6}  {'threshold':<10}{'95 %':>8}{'runs':>8} "),
    "quarantine": ("   test, and criterion", ""),
}


def head_line(view: View, beside: ComparisonSeries | None, width: int) -> Line:
    """What the columns of a list are; and that it is over the newest runs of the window only, where that is so."""
    start, end = _HEADS[view]
    cut = beside is not None and (beside.ledger.cut if view == "flaky" else beside.extras.cut)
    cells: list[Cell] = [("  " + start[1:] if start else "", "dim")]
    if cut and view in ("flaky", "causes", "criteria"):
        cells.append((f"  (newest {NEWEST:,} runs)", "review"))
    return spread(cells, ((end, "dim"),), width)


def view_bar(view: View, beside: ComparisonSeries | None, found: Trend | None, width: int) -> Line:
    """The names of the lists, how much is in each, and which one is shown."""
    cells: list[Cell] = [(" ", "")]
    for one in VIEWS:
        number = _number(one, beside, found)
        name = f"[{one}]" if one == view else one
        cells += [(name, "bold accent" if one == view else "dim")]
        if number:
            cells.append((f" {number}", "failed" if one == "alerts" else "dim"))
        cells.append(("  ", ""))
    return fit(cells, width)


def _number(view: View, beside: ComparisonSeries | None, found: Trend | None) -> int:
    if view == "groups":
        return len(found.series) if found is not None and found.wanted.group else 0
    if beside is None:
        return 0
    return {
        "flaky": len(beside.ledger.flaky),
        "causes": len(beside.extras.causes),
        "criteria": len(beside.extras.scores),
        "alerts": len(beside.watched.fired) if beside.watched else 0,
        "quarantine": len(beside.quarantines),
    }[view]


def rows_of(
    view: View, found: Trend, beside: ComparisonSeries | None, shown: Shown, cursor: int, chosen: int = 0
) -> TrendRows:
    """The rows of a list. `chosen`: the group that is drawn with those around it."""
    if view == "groups":
        return TrendRows(_groups(found, shown, cursor, first_drawn(chosen)))
    if beside is None:
        return TrendRows(())
    if view == "flaky":
        return TrendRows(_flaky(beside.ledger))
    if view == "causes":
        return TrendRows(_causes(beside.extras))
    if view == "criteria":
        scores = beside.extras.scores
        return TrendRows([_criterion(one, name) for one, name in zip(scores, criterion_labels(scores), strict=True)])
    if view == "alerts":
        return TrendRows([_alert(one) for one in beside.watched.alerts] if beside.watched else ())
    return TrendRows([_quarantine(one) for one in beside.quarantines])


def _groups(found: Trend, shown: Shown, cursor: int, first: int) -> list[Row]:
    rows: list[Row] = []
    for number, one in enumerate(found.series):
        at = value_text(one, shown, cursor) if 0 <= cursor < len(found.bins) else ""
        overall = value_text(one, shown, None)
        low, high = one.overall.interval
        interval = number_format.interval(low, high) if shown == "rate" and one.overall.n else ""
        rows.append(
            (
                f"group\x1f{one.key}",
                ((" ", ""), marker(number - first), (" ", ""), (one_line(one.name), "")),
                (
                    (right(at, 8), "accent"),
                    (right(overall, 9), "bold"),
                    (right(interval, 8), "dim"),
                    (right(f"{one.overall.runs:,}", 8), "dim"),
                    (" ", ""),
                ),
            )
        )
    return rows


def _flaky(ledger: VarianceReport) -> list[Row]:
    rows: list[Row] = []
    suites: dict[str, set[str]] = {}
    for test in ledger.flaky:
        suites.setdefault(test.test_id, set()).add(test.suite_key)
    for test in ledger.flaky:
        name = test.name if len(suites[test.test_id]) == 1 else f"{test.name} ({test.suite})"
        rows.append(_entry(test, f" {glyph('flaky')} ", one_line(name)))
        rows += [_entry(one, "     ", one_line(one.criterion)) for one in ledger.criteria_of(test) if one.flaky]
    return rows


def _entry(one: VarianceComponent, before: str, name: str) -> Row:
    low, high = one.interval
    held: Cell = (
        f"  quarantined until {number_format.date(one.quarantine.until_ms - 1)}" if one.quarantine else "",
        "review",
    )
    return (
        "\x1f".join(("test", one.suite_key, one.test_id, one.criterion)),
        ((before, "flaky"), (name, "" if not one.criterion else "dim"), held),
        (
            (right(f"{one.passed}/{one.n}", 9), "dim"),
            (right(number_format.percent(one.rate), 6), "bold" if not one.criterion else ""),
            (right(number_format.interval(low, high), 8), "dim"),
            (" ", ""),
        ),
    )


def _causes(extras: Extras) -> list[Row]:
    return [
        (
            f"run\x1f{one.last}\x1f{number}",
            ((right(f"{one.runs:,}", 6), "failed"), (f"  {one_line(one.title)}", "")),
            ((number_format.count(one.tests, "test"), "dim"), (" ", "")),
        )
        for number, one in enumerate(extras.causes)
    ]


def _criterion(one: Scores, name: str) -> Row:
    top = max(one.tenths) or 1
    bars = "".join(_LEVELS[-(-count * (len(_LEVELS) - 1) // top)] if count else " " for count in one.tenths)
    share = one.passed / one.n if one.n else None
    errors: Cell = (f"  {glyph('error')} {one.errors}" if one.errors else "", "error")
    return (
        "\x1f".join(("test", one.suite_key, one.test_id, one.criterion)),
        ((" ", ""), (one_line(name), ""), errors),
        (
            (right(number_format.percent(share), 6), "bold"),
            (right("" if one.mean is None else f"{one.mean:.2f}", 6), ""),
            ("  0|", "dim"),
            (bars, "accent"),
            ("|1", "dim"),
            (right(f"{one.n:,}", 8), "dim"),
            (" ", ""),
        ),
    )


def _alert(one: Alert) -> Row:
    words = {"ok": ("passed", "ok"), "alert": ("failed", "ALERT"), "errors": ("error", "no verdict")}
    outcome, word = words.get(one.state, ("queued", "nothing ran"))
    low, high = one.figures.interval
    chance = "  could be chance" if one.by_chance else ""
    return (
        f"alert\x1f{one.key}",
        (
            (" ", ""),
            mark(outcome),
            (f" {left(word, 11)} ", outcome),
            (one_line(one.name or "all runs"), ""),
            (chance, "dim"),
        ),
        (
            (right(number_format.percent(one.figures.rate), 6), "bold"),
            (f"  below {one.below * 100:g} %", "dim"),
            (right(number_format.interval(low, high) if one.figures.n else "", 8), "dim"),
            (right(f"{one.figures.runs:,}", 8), "dim"),
            (" ", ""),
        ),
    )


def _quarantine(one: Quarantine) -> Row:
    name = one_line(one.test_id) + (f" / {one_line(one.criterion)}" if one.criterion else "")
    return (
        "\x1f".join(("test", one.suite_key, one.test_id, one.criterion)),
        ((f" {glyph('flaky')} ", "flaky"), (name, ""), (f"  {one_line(one.reason, 60)}" if one.reason else "", "dim")),
        ((f"until {number_format.date(one.until_ms - 1)}", ""), (" ", "")),
    )


EMPTY: dict[View, tuple[str, str]] = {
    "groups": ("", ""),
    "flaky": ("Nothing is flaky in this window.", "P on the Suites screen plans more repetitions: few show little."),
    "causes": ("Nothing failed in this window.", ""),
    "criteria": ("No criterion was checked in this window.", ""),
    "alerts": ("No threshold is set.", "a sets the pass rate below which a window is an alert."),
    "quarantine": ("Nothing is in quarantine.", "Q on a test lets it run without gating, until a day."),
}
