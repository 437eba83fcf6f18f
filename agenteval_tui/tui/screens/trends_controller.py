"""What the Trends screen reads, draws and lists, and what its actions are meant for. No widget."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar, cast, get_args

from msgspec import Struct
from msgspec.structs import replace

from agenteval_tui.analysis.time_buckets import Bin, By, window_label, window_ms
from agenteval_tui.analysis.trend_alerts import watch
from agenteval_tui.analysis.trend_breaks import Break
from agenteval_tui.analysis.trend_regrade import Regrading, regrade_history, regraded_trend
from agenteval_tui.analysis.trend_scores import extras
from agenteval_tui.analysis.trends import MEASURES, Trend, TrendQuery, filtered, trend
from agenteval_tui.analysis.variance import ledger
from agenteval_tui.core.display import one_line
from agenteval_tui.core.numbers import count, percent_limit
from agenteval_tui.history import quarantines
from agenteval_tui.history.execution_names import GROUPS as OF_RUNS
from agenteval_tui.history.quarantines import Quarantine
from agenteval_tui.history.store import Store
from agenteval_tui.history.trends import Group
from agenteval_tui.tui.presenters.plot import bin_at
from agenteval_tui.tui.presenters.tabs import tab_at
from agenteval_tui.tui.presenters.trend_lines import (
    EMPTY,
    SHOWN,
    VIEWS,
    ComparisonSeries,
    View,
    first_drawn,
    legend,
    plot_lines,
    readout,
    rows_of,
    view_bar,
)
from agenteval_tui.tui.presenters.view_lines import TableRows
from agenteval_tui.tui.styled_text import Cell, Line, empty_state, nothing_here, nothing_ran
from agenteval_tui.views.flaky import reason_text
from agenteval_tui.views.trends import Shown, regrading_text

WINDOWS = ("24h", "7d", "30d", "12w", "52w", "all")
BYS: tuple[By | None, ...] = (None, *get_args(By))
GROUPS: tuple[Group, ...] = ("", *OF_RUNS)
FEW = 3
"""Days (or hours, or weeks) with runs, below which executions say more, if nothing was chosen."""
PURPOSE = "How tests do over time: pass rates, flaky tests, causes, scores, alerts."
_ROOM_FOR_SAID = 120
"""Cells of a title in which all of what a regrading came to can be read."""
_BELOW = (None, 0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 0.99)
_Choice = TypeVar("_Choice")
_MOST = 100  # runs of a test that next and previous go through in Inspect


class TrendRequest(Struct, frozen=True):
    """What is to be read: the window, as it ends at `now` (ms), cut and grouped, and the measure that is drawn."""

    window: str
    by: By | None
    group: Group
    words: str
    shown: Shown
    below: float | None
    projects: tuple[str, ...]
    now: int


class QuarantineTarget(Struct, frozen=True):
    """A test, or one of its criteria, that may be put in quarantine: its criteria, why, and what holds already."""

    suite_key: str
    test_id: str
    criterion: str
    criteria: list[str]
    reason: str
    held: list[Quarantine]


def read_trend(store: Store, request: TrendRequest) -> tuple[TrendQuery, Trend]:
    """What is drawn; all the other measures come with `read_beside`. Raises `AgentevalError`."""
    span, now = window_ms(request.window), request.now
    since = None if span is None else now - span
    query = TrendQuery(since, now + 1, request.by, request.group, projects=request.projects)
    query = filtered(store, query, request.words)
    measures = () if request.shown == "rate" else (request.shown,)
    result = trend(store, query, measures)
    if request.by is None and 0 < result.eventful < FEW:
        # A new history: as days it would be one dot on an empty plain.
        query = replace(query, by="execution")
        result = trend(store, query, measures)
    return query, result


def read_beside(store: Store, query: TrendQuery, below: float | None, now: int) -> ComparisonSeries:
    """The content below the drawing. Raises `AgentevalError`."""
    return ComparisonSeries(
        trend(store, query, MEASURES),
        extras(store, query),
        ledger(store, query, now, judges=False),
        watch(store, query, below, now) if below is not None else None,
        tuple(quarantines.active(store, now)),
    )


def regrade_beside(store: Store, query: TrendQuery, now: int) -> tuple[Regrading, ComparisonSeries]:
    """All of it with today's criteria. Flaky tests and quarantines are those of the stored verdicts, and alerts are not
    wanted here. Raises `AgentevalError`."""
    again = regrade_history(store, query)
    trend, more = regraded_trend(store, query, MEASURES, again)
    held = tuple(quarantines.active(store, now))
    return again, ComparisonSeries(trend, more, ledger(store, query, now, judges=False), None, held)


def newest_failure(store: Store, suite_key: str, test_id: str) -> tuple[str, list[str]]:
    """The newest run of a test that did not pass, or its newest run; and its runs. Raises `AgentevalError`."""
    runs = store.runs_of_test(suite_key, test_id, _MOST)
    failed = [run.id for run in runs if run.status in ("failed", "error", "needs_review")]
    ids = [run.id for run in runs]
    return (failed or ids)[0], ids


class TrendsController:
    """The state of the Trends screen: what is asked, what was read, and both cursors. `row` in its methods is the key
    of the list's row with the cursor."""

    def __init__(self) -> None:
        self.window, self.by, self.group = "30d", BYS[0], GROUPS[0]
        self.shown: Shown = "rate"
        self.view: View = "groups"
        self.below: float | None = None
        self.words = ""
        self.trend: Trend | None = None  # None: not read yet
        self.rows: TableRows | None = None  # what the list shows
        self.today = False  # graded with today's criteria, instead of as it was stored
        self.elsewhere: int | None = 0  # executions of other projects, where this one has none; None: nothing ever ran
        self.cursor = -1  # on the time axis; -1: none chosen yet, the newest
        self.chosen = 0  # the group whose curve lies on top
        self._beside: ComparisonSeries | None = None
        self._regraded: Regrading | None = None
        self._row_key = ""

    def kept(self) -> dict[str, Any]:
        """What to know again at the next start."""
        return {
            "window": self.window,
            "by": self.by,
            "group": self.group,
            "shown": self.shown,
            "view": self.view,
            "below": self.below,
            "filter": self.words,
        }

    def restore(self, stored: Mapping[str, Any]) -> None:
        """Take what an earlier start kept."""

        def known(name: str, choices: Sequence[_Choice], default: _Choice) -> _Choice:
            return next((choice for choice in choices if choice == stored.get(name)), default)

        self.window = known("window", WINDOWS, "30d")
        self.by, self.group = known("by", BYS, None), known("group", GROUPS, "")
        self.shown, self.view = known("shown", SHOWN, "rate"), known("view", VIEWS, "groups")
        self.below = known("below", _BELOW, None)
        text = stored.get("filter")
        self.words = text if isinstance(text, str) else ""

    # Reading

    def request(self, projects: tuple[str, ...], now: int) -> TrendRequest:
        """What is to be read now."""
        return TrendRequest(
            self.window,
            by=self.by,
            group=self.group,
            words=self.words,
            shown=self.shown,
            below=self.below,
            projects=projects,
            now=now,
        )

    def outdate(self) -> None:
        """What is below the drawing no longer fits what is asked."""
        self._beside = None

    def take(self, trend: Trend) -> None:
        """This is drawn now. The cursor stays at its time, or at the newest time in which anything ran."""
        before = self.trend
        at = before.bins[self.cursor].since_ms if before and 0 <= self.cursor < len(before.bins) else None
        newest = before is None or self.cursor in (-1, len(before.bins) - 1)
        self.trend = trend
        self.cursor = len(trend.bins) - 1
        if at is not None and not newest and trend.bins and trend.bins[0].since_ms <= at:
            self.cursor = max(n for n, time_bin in enumerate(trend.bins) if time_bin.since_ms <= at)
        elif trend.series:
            ran = [n for n in range(len(trend.bins)) if any(series.points[n] is not None for series in trend.series)]
            self.cursor = ran[-1] if ran else self.cursor

    def take_stored(self, trend: Trend, elsewhere: int | None) -> None:
        """The stored verdicts are drawn; `elsewhere` executions of other projects are in the history, which is empty
        where it is None."""
        self._regraded, self.elsewhere = None, elsewhere
        self.take(trend)

    def take_beside(self, beside: ComparisonSeries) -> None:
        """This is listed below the drawing, which has all measures now."""
        self._beside = beside
        # While it was read, another window may have been drawn.
        if self.trend is not None and self.trend.bins == beside.trend.bins:
            self.trend = beside.trend

    def take_regraded(self, regraded: tuple[Regrading, ComparisonSeries]) -> bool:
        """This is shown instead of the stored verdicts. False: those are wanted again by now."""
        if not self.today:
            return False
        self._regraded, self._beside = regraded
        self.take(regraded[1].trend)
        return True

    def fail(self) -> None:
        """It can't be read."""
        self.trend = self._beside = None

    @property
    def has_runs(self) -> bool:
        """Whether there is something to draw."""
        return self.trend is not None and bool(self.trend.series)

    # What a person does

    def toggle_today(self) -> None:
        """All of it with today's criteria, or as it was stored."""
        self.today = not self.today
        self._regraded = None

    def move(self, by: int) -> bool:
        """Move the cursor on the time axis. False: there is none."""
        if self.trend is None or not self.trend.bins:
            return False
        self.cursor = min(max(self.cursor + by, 0), len(self.trend.bins) - 1)
        return True

    def next_measure(self, by: int) -> None:
        self.shown = SHOWN[(SHOWN.index(self.shown) + by) % len(SHOWN)]

    def next_group(self) -> None:
        self.group = GROUPS[(GROUPS.index(self.group) + 1) % len(GROUPS)]
        self.chosen, self._row_key = 0, ""
        self.view = "groups"

    def next_by(self) -> None:
        """Cut the window in other pieces of time than those that are shown."""
        current = self.trend.by if self.trend is not None else None
        was = self.by
        self.by = BYS[(BYS.index(was) + 1) % len(BYS)]
        if was is None and self.by == current:
            self.by = BYS[(BYS.index(self.by) + 1) % len(BYS)]  # that is what is shown: a key must show something

    def next_window(self, by: int) -> None:
        self.window = WINDOWS[(WINDOWS.index(self.window) + by) % len(WINDOWS)]

    def next_view(self, by: int) -> None:
        self.view = VIEWS[(VIEWS.index(self.view) + by) % len(VIEWS)]

    def alert_choices(self) -> tuple[list[tuple[str, str, str]], str]:
        """The pass rates below which an alert can be: (value, words, ""), and the value that is chosen."""
        choices = [
            ("" if level is None else str(level), "no alert" if level is None else f"below {percent_limit(level)}", "")
            for level in _BELOW
        ]
        return choices, "" if self.below is None else str(self.below)

    def alert_below(self, value: str) -> None:
        """An alert for a pass rate below this choice, which its list shows."""
        self.below = float(value) if value else None
        self.view = "alerts" if value else self.view

    def choose(self, index: int) -> tuple[bool, bool]:
        """The group at `index` of the list lies on top of the drawing. Whether that changes the drawing, and whether
        other groups are drawn than before."""
        if self.view != "groups" or self.trend is None or not self.trend.query.group or index == self.chosen:
            return False, False
        others = first_drawn(index) != first_drawn(self.chosen)
        self.chosen = index
        return True, others

    def open_bin(self) -> tuple[TrendQuery, Bin] | None:
        """What was asked, and the time under the cursor; None where there is none."""
        if self.trend is None or not 0 <= self.cursor < len(self.trend.bins):
            return None
        return self.trend.query, self.trend.bins[self.cursor]

    def quarantine_target(self, row: Sequence[str]) -> QuarantineTarget | None:
        """What the row's quarantine is about; None where the row is not a test."""
        kind, *rest = row
        if kind != "test" or self._beside is None:
            return None
        suite_key, test_id, criterion = rest
        ledger, held = self._beside.ledger, self._beside.quarantines
        entries = [
            variance_component
            for test in ledger.tests
            if (test.suite_key, test.test_id) == (suite_key, test_id)
            for variance_component in (test, *ledger.criteria_of(test))
        ]
        meant = next((entry for entry in entries if entry.criterion == criterion), None)
        return QuarantineTarget(
            suite_key,
            test_id,
            criterion,
            [entry.criterion for entry in entries if entry.criterion],
            reason_text(meant) if meant and meant.flaky else "",
            [quarantine for quarantine in held if (quarantine.suite_key, quarantine.test_id) == (suite_key, test_id)],
        )

    # Lines

    def arrange(self, row: str | None) -> tuple[TableRows | None, str]:
        """The rows of the list, and the key of the one that gets the cursor; `row` has it now. None: nothing ran."""
        if self.trend is None or not self.trend.series:
            return None, ""
        self.rows = rows_of(self.view, self.trend, self._beside, self.shown, self.cursor, self.chosen)
        # While the list is read again it is empty: the cursor comes back to its row afterwards.
        self._row_key = row or self._row_key
        return self.rows, self._row_key

    def empty_list(self) -> list[Line]:
        """What is shown instead of rows."""
        if self._beside is None and self.view != "groups":
            return [(("  Reading…", "dim"),)]
        first, second = EMPTY[self.view]
        return [((f"  {first}", ""),), ((f"  {second}", "dim"),)]

    def legend_lines(self, width: int) -> list[Line]:
        """What is drawn."""
        return [legend(self.trend, self.shown, width, self.chosen)] if self.trend is not None else []

    def plot_lines(self, width: int, height: int) -> list[Line]:
        """The drawing."""
        if self.trend is None:
            return []
        return plot_lines(
            self.trend,
            self.shown,
            width=width,
            height=height,
            cursor=self.cursor,
            below=self.below,
            chosen=self.chosen,
            breaks=self._breaks,
        )

    def readout_lines(self, width: int) -> list[Line]:
        """The facts under the cursor of the time axis."""
        if self.trend is None:
            return []
        return readout(self.trend, self.shown, self.cursor, width, self.chosen, self._breaks)

    @property
    def _breaks(self) -> tuple[Break, ...]:
        """Where criteria changed; nothing while that is read."""
        return self._beside.extras.breaks if self._beside is not None else ()

    def views_lines(self, width: int) -> list[Line]:
        """The names of the lists, and the head of the one that is shown."""
        # The list's rows are a cell to the right, after the cursor's sign.
        head = ((" ", ""), *self.rows.head(width - 2)) if self.rows is not None else ()
        return [view_bar(self.view, self._beside, self.trend, width)[0], head]

    def show_view_at(self, x: int, width: int) -> bool:
        """Show the list whose name is in column `x`. False: there is none."""
        name = tab_at(view_bar(self.view, self._beside, self.trend, width)[1], x)
        if name:
            self.view = cast(View, name)
        return bool(name)

    def move_to(self, x: int, width: int) -> bool:
        """Move the cursor to column `x` of the drawing. False: no time is there."""
        place = bin_at(x, len(self.trend.bins), width, self.cursor) if self.trend is not None else None
        return place is not None and self.move(place - self.cursor)

    def empty(self) -> list[Line]:
        """What is shown instead of the drawing."""
        if self.elsewhere:
            return nothing_here(self.elsewhere, PURPOSE)
        if self.elsewhere is None:
            return nothing_ran(PURPOSE)
        if self.words:
            why = "No run in this window matches the filter."
            return empty_state(
                "", why, "{everywhere.back}", "clear the filter", "Press {trends.window} to change the window."
            )
        if self.window != "all":
            why = f"Nothing ran in {window_label(window_ms(self.window))}."
            return empty_state(
                PURPOSE,
                why,
                "{trends.window}",
                "show a longer window",
                "Press {go.suites} to go to the suites and run tests there.",
            )
        return nothing_ran(PURPOSE)

    def heading(self, width: int) -> tuple[tuple[Cell, ...], tuple[Cell, ...]]:
        """The left and right texts of the title."""
        trend = self.trend
        by = trend.by if trend is not None else self.by
        cells: list[Cell] = [(window_label(window_ms(self.window)), "")]
        if by:
            cells.append((f", by {by}", ""))
        if self.group:
            cells.append((f", one line for each {self.group}", ""))
        if self.today:
            # The figures of the stored verdicts are shown until the others have arrived.
            regraded = self._regraded
            progress = regrading_text(regraded) if regraded is not None else "grading with today's criteria …"
            if width >= _ROOM_FOR_SAID:
                cells.append((f"   {progress}", "review"))
            else:
                cells.insert(0, ("by today's criteria   ", "review"))
        if self.words:
            cells.append((f"  “{one_line(self.words, 30)}”", "accent"))
        fired = len(self._beside.watched.fired) if self._beside and self._beside.watched else 0
        right: list[Cell] = [(f"{count(fired, 'alert')}   ", "failed")] if fired else []
        right.append((count(trend.runs, "run") if trend is not None else "", "dim"))
        return tuple(cells), tuple(right)

    def key_names(self) -> list[str]:
        """What can be done now: names of actions, the most important first."""
        if not self.has_runs:
            return ["window", "filter"]
        quarantine = self.view in ("flaky", "criteria", "quarantine")
        return ["open", "measure", "group", "window", "view", "alert", "quarantine" if quarantine else "filter"]
