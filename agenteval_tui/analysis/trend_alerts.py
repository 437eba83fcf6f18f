"""Alerts: a window's pass rate under its threshold. What is in quarantine does not count."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Literal

from msgspec import Meta, Struct
from msgspec.structs import replace

from agenteval_tui.analysis.quarantine_gate import gating
from agenteval_tui.analysis.statistics import reaches
from agenteval_tui.analysis.trends import OutcomeRates, TrendQuery, figures, groups_of, select_runs
from agenteval_tui.core.document import Share, extended
from agenteval_tui.core.outcomes import COMPLETED
from agenteval_tui.history import quarantines
from agenteval_tui.history import trends as rows
from agenteval_tui.history.connections import Connection
from agenteval_tui.history.execution_names import META, OF_EXECUTIONS, version_groups
from agenteval_tui.history.feedback import FeedbackMean
from agenteval_tui.history.quarantines import ActiveQuarantines, Quarantine
from agenteval_tui.history.records import RunRow
from agenteval_tui.history.store import Store
from agenteval_tui.history.trends import Tally, TestName, TimeBucket

State = Literal["ok", "alert", "empty", "errors"]
"""`empty`: no run at all. `errors`: runs, but none with a verdict, and some ended in an error."""
_JUDGED = 5_000  # runs whose evidence is read, the newest; older ones count as they ended


class Alert(OutcomeRates, frozen=True, kw_only=True):
    """What the window says of all runs (`name` ""), or of one group, without what is in quarantine."""

    name: str
    key: str
    below: Share
    state: State
    by_chance: Annotated[bool, Meta(description="the threshold lies in the interval, or there is none")]


class FeedbackAlert(Struct, frozen=True):
    """What the window says of the feedback under a key; `mean` None: none was given."""

    key: str
    below: float
    mean: FeedbackMean | None

    @property
    def state(self) -> State:
        """Whether the mean is under the limit."""
        if self.mean is None:
            return "empty"
        return "ok" if reaches(self.mean.mean, self.below) else "alert"


class AlertCheck(Struct, frozen=True):
    """The alerts of a window, those that fired first, and the quarantines that had a part in it."""

    alerts: tuple[Alert, ...]
    left_out: tuple[Quarantine, ...]
    feedback: tuple[FeedbackAlert, ...] = ()

    @property
    def fired(self) -> tuple[Alert, ...]:
        """Those whose rate is under the threshold."""
        return tuple(alert for alert in self.alerts if alert.state == "alert")


def watch_feedback(means: Iterable[FeedbackMean], limits: Mapping[str, float]) -> tuple[FeedbackAlert, ...]:
    """Compare the means of feedback with limits by key, those that fired first."""
    by_key = {mean.key: mean for mean in means}
    alerts = [FeedbackAlert(key, below, by_key.get(key)) for key, below in limits.items()]
    return tuple(sorted(alerts, key=lambda alert: ("alert", "empty", "ok").index(alert.state)))


def watch(store: Store, trend_query: TrendQuery, below: float, at_ms: int) -> AlertCheck:
    """Compare the pass rate of the window (of each group, where `trend_query` has one) with `below` (0..1).

    The rate is that of `agenteval stats`: the mean over tests. Raises AgentevalError, HistoryError.
    """
    held = quarantines.active(store, at_ms)
    grouped, test_names, left_out, runs = store.read(lambda connection: _read(connection, trend_query, held))
    tests = {(test_name.suite_key, test_name.test_id): test_name.row for test_name in test_names}
    before = store.run_rows(runs)
    of_datasets = store.read(lambda connection: rows.rows_of_runs(connection, runs))
    versions: Mapping[int | str, str] = {}
    if trend_query.group in OF_EXECUTIONS or trend_query.group.startswith(META):
        executions = {run.execution_id for run in before}
        versions = store.read(lambda connection: version_groups(connection, trend_query.group, ids=executions))
    after = {run.id: run.status for run in gating(store, before, held).runs}
    for was in before:
        status = after.get(was.id, "")  # "": all its criteria are in quarantine
        if was.status == status:
            continue
        test = tests[was.suite_key, was.test_id]
        # One run less of the one kind, one more of the other: figures add tallies up. The row makes it one of the same
        # test: a tally of another row would be another test in the mean.
        row = of_datasets.get(was.rowid, 0)
        change = Tally(0, None, test, was.variation, row, *((status == end) - (was.status == end) for end in COMPLETED))
        for key in _groups(trend_query, was, versions):
            grouped.setdefault(key, (key, []))[1].append(change)
    alerts = []
    for key, (name, tallies) in grouped.items():
        rates = figures(tallies, count_errors=trend_query.count_errors)
        alerts.append(_alert(rates, key, name, below, _state(rates, below)))
    # A window without runs must say so: no alert at all would look like success.
    if not alerts:
        alerts = [_alert(figures([]), "", "", below, "empty")]
    order = {"alert": 0, "errors": 1, "empty": 2, "ok": 3}
    alerts.sort(key=lambda alert: (order[alert.state], alert.rate or 0.0, alert.name))
    return AlertCheck(tuple(alerts), left_out)


def _alert(rates: OutcomeRates, key: str, name: str, below: float, state: State) -> Alert:
    by_chance = state == "alert" and (rates.interval is None or rates.interval[0] <= below <= rates.interval[1])
    return extended(Alert, rates, key=key, name=name, below=below, state=state, by_chance=by_chance)


def _groups(trend_query: TrendQuery, run: RunRow, versions: Mapping[int | str, str]) -> tuple[str, ...]:
    if run.execution_id in versions:
        return (versions[run.execution_id],)
    by = {
        "suite": (run.suite_key,),
        "test": (f"{run.suite_key}::{run.test_id}",),
        "agent": (run.agent,),
        "tag": run.tags or ("(no tag)",),
    }
    return by.get(trend_query.group, ("",))


def _read(
    connection: Connection, trend_query: TrendQuery, held: ActiveQuarantines
) -> tuple[dict[str, tuple[str, list[Tally]]], list[TestName], tuple[Quarantine, ...], list[int]]:
    """The tallies by group, the tests, the quarantines that have a part in it, and the runs that may end otherwise
    without the criteria in quarantine."""
    test_names = rows.tests_known(connection)
    picked = select_runs(connection, trend_query, test_names)
    place = TimeBucket(0, picked.since_ms, picked.until_ms)
    every = rows.tallies(connection, picked, [place], trend_query.group)
    whole = {test_name.row for test_name in test_names if held.test(test_name.suite_key, test_name.test_id) is not None}
    ran = {tally.test for tally in every}
    partly = {
        test_name.row: criteria
        for test_name in test_names
        if test_name.row in ran - whole and (criteria := held.criteria_of(test_name.suite_key, test_name.test_id))
    }
    names = {(test_name.suite_key, test_name.test_id) for test_name in test_names if test_name.row in ran}
    groups = groups_of(connection, trend_query.group, test_names, {tally.key for tally in every})
    grouped: dict[str, tuple[str, list[Tally]]] = {}
    for tally in every:
        if tally.test not in whole:
            for key, name in groups(tally.key):
                grouped.setdefault(key, (name, []))[1].append(tally)
    runs: list[int] = []
    # Their evidence has to be read, which takes longest: only of tests with a criterion in quarantine.
    if partly:
        runs = rows.runs_to_judge_again(connection, replace(picked, tests=tuple(sorted(partly))), partly, _JUDGED)
    left_out = tuple(quarantine for quarantine in held if (quarantine.suite_key, quarantine.test_id) in names)
    return grouped, test_names, left_out, runs


def _state(figures: OutcomeRates, below: float) -> State:
    if figures.rate is None:
        return "errors" if figures.errors else "empty"
    return "ok" if reaches(figures.rate, below) else "alert"
