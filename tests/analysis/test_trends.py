"""Pass rates and what runs took over time, from a history made by hand."""

from __future__ import annotations

import csv
import io
import time
from collections.abc import Iterator
from datetime import date
from pathlib import Path

import msgspec
import pytest
from jsonschema import Draft202012Validator
from msgspec.structs import astuple, replace
from trend_made import DAY, DAYS, DESK, NOON, SHOP, execution, filled, undated

from agenteval_tui.analysis.summary import execution_stats
from agenteval_tui.analysis.time_buckets import HOUR_MS, bins_between, bucket_size, midnight_ms, window_label, window_ms
from agenteval_tui.analysis.trend_alerts import watch
from agenteval_tui.analysis.trend_scores import criterion_labels, extras
from agenteval_tui.analysis.trends import MEASURES, OtherTests, TrendQuery, executions_at, filtered, groups_of, trend
from agenteval_tui.analysis.variance import ledger
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.formats.documents.registry import schema
from agenteval_tui.formats.documents.trends import trends_csv, trends_document
from agenteval_tui.history import quarantines
from agenteval_tui.history import trends as history_trends
from agenteval_tui.history.execution_names import DescribeExecution
from agenteval_tui.history.quarantines import Quarantine
from agenteval_tui.history.store import Store
from agenteval_tui.history.trends import TestName
from agenteval_tui.views.terminal import plain_text
from agenteval_tui.views.trends import trends_view

NOW = NOON + 3_600_000
ALL = TrendQuery(None, NOW)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with filled(tmp_path_factory.mktemp("trends") / "history.db") as opened:
        yield opened


@pytest.fixture
def zone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A place whose clock is set twice a year."""
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def test_days_are_those_of_the_local_clock(zone: None) -> None:
    since = midnight_ms(date(2026, 10, 24)) + 5 * HOUR_MS
    bins = bins_between(since, midnight_ms(date(2026, 10, 27)), "day")
    assert [(one.until_ms - one.since_ms) / HOUR_MS for one in bins] == [19, 25, 24], "the clock is set on the 25th"
    assert bins[1].since_ms == midnight_ms(date(2026, 10, 25))
    weeks = bins_between(since, midnight_ms(date(2026, 11, 3)), "week")
    assert [one.since_ms for one in weeks[1:]] == [midnight_ms(date(2026, 10, 26)), midnight_ms(date(2026, 11, 2))]
    hours = bins_between(since + 1, since + 2 * HOUR_MS, "hour")
    assert [one.until_ms for one in hours] == [since + HOUR_MS, since + 2 * HOUR_MS]
    assert bins_between(since, since, "day") == []
    with pytest.raises(AgentevalError, match="more than"):
        bins_between(0, since, "hour")


@pytest.mark.parametrize(
    ("text", "milliseconds", "words"),
    [("24h", DAY, "the last 24 h"), ("7d", 7 * DAY, "the last 7 days"), ("90m", 5_400_000, "the last 90 min"),
     ("4w", 28 * DAY, "the last 4 weeks"), ("1.5h", 5_400_000, "the last 90 min"), ("all", None, "all time")],
)  # fmt: skip
def test_windows_are_read_and_said(text: str, milliseconds: int | None, words: str) -> None:
    assert window_ms(text) == milliseconds
    assert window_label(milliseconds) == words


@pytest.mark.parametrize("text", ["", "7", "d", "-3d", "0h", "nan h", "1e99w", "7 years"])
def test_what_is_no_window_is_refused(text: str) -> None:
    with pytest.raises(AgentevalError, match="not a time window"):
        window_ms(text)


def test_the_pieces_fit_the_span() -> None:
    assert [bucket_size(span) for span in (HOUR_MS, 2 * DAY, 3 * DAY, 92 * DAY, 93 * DAY)] == [
        "hour", "hour", "day", "day", "week",
    ]  # fmt: skip


def test_a_bin_says_what_stats_says_of_its_execution(store: Store) -> None:
    found = trend(store, replace(ALL, by="execution"), MEASURES)
    assert len(found.bins) == DAYS
    (one,) = found.series
    for place, point in zip(found.bins, one.points, strict=True):
        overall = execution_stats(store.runs_of_execution(place.execution)).overall
        assert point is not None
        assert point.rate == overall.pass_rate
        assert point.interval == overall.interval
        assert (point.n, point.passed, point.errors) == (overall.n, overall.passed, overall.errors)
    last = execution_stats(store.runs_of_execution("EXECUTION-29"), steps=store.steps_of_execution("EXECUTION-29"))
    for measure, name in (("latency", "latency_ms"), ("tokens", "tokens"), ("cost", "cost"), ("steps", "steps")):
        spent = one.spent[measure][-1]  # type: ignore[index]
        assert spent is not None
        assert (spent.p50, spent.p95) == astuple(getattr(last.overall, name)), measure
    assert found.runs == 9 * DAYS


def test_days_without_runs_are_gaps_and_errors_are_no_verdicts(store: Store) -> None:
    found = trend(store, TrendQuery(NOON - 35 * DAY, NOW, "day"))
    (one,) = found.series
    ran = [point is not None for point in one.points]
    assert ran.count(True) == DAYS
    assert not any(ran[:5])
    errors = [point for point in one.points if point is not None and point.errors]
    assert [(point.errors, point.n) for point in errors] == [(3, 6)]
    counted = trend(store, TrendQuery(NOON - 35 * DAY, NOW, "day", count_errors=True)).series[0]
    assert [point.n for point in counted.points if point is not None and point.errors] == [9]


def test_a_rate_of_other_tests_is_not_compared_with_the_one_before(tmp_path: Path) -> None:
    """Who runs again what failed runs the worst tests alone: no fall of the rate."""
    store = Store.open(tmp_path / "h.db")
    ran = (("orders", "refunds", "greeting"), ("refunds",), ("refunds", "orders"), ("greeting",))
    for day, tests in enumerate(ran):
        record, runs = execution(day)
        store.import_runs(record, iter([one for one in runs if one[0].test_id in tests]))
    found = trend(store, replace(ALL, by="execution"))
    assert found.series[0].other_tests == {1: OtherTests(3, 1, 1), 2: OtherTests(1, 2, 1), 3: OtherTests(2, 1, 0)}
    assert not any(one.other_tests for one in trend(store, replace(ALL, by="execution", group="test")).series)
    printed = plain_text(trends_view(found, extras(store, ALL), "all")).splitlines()
    said = [line.strip() for line in printed if "not comparable" in line]
    assert said == [
        "╌╌ only 1 of the 3 tests before: not comparable",
        "╌╌ 1 test more than before: not comparable",
        "╌╌ other tests than before: not comparable",
    ]
    store.close()


def test_groups_are_apart_and_worst_first(store: Store) -> None:
    def names(group: str) -> list[tuple[str, int]]:
        return [(one.name, one.overall.runs) for one in trend(store, replace(ALL, group=group)).series]

    assert names("suite") == [("Shop", 180), ("Help desk", 90)]
    assert names("test") == [("orders", 90), ("refunds", 90), ("greeting", 90)]
    assert names("agent") == [("demo", 180), ("desk", 90)]
    # One id in two suites says whose it is.
    known = [TestName(1, "/a", "A", "0", ""), TestName(2, "/b", "B", "0", ""), TestName(3, "/b", "B", "1", "")]
    assert [groups_of(None, "test", known, {1, 2, 3})(row)[0][1] for row in (1, 2, 3)] == ["0 (A)", "0 (B)", "1"]  # type: ignore[arg-type]
    assert groups_of(None, "test", known, {1, 3})(1) == [("/a::0", "0")]  # type: ignore[arg-type]
    assert sorted(names("tag")) == [("(no tag)", 90), ("smoke", 180)]
    by_test = {one.name: one.overall for one in trend(store, replace(ALL, group="test")).series}
    assert by_test["refunds"].rate == pytest.approx(2 / 3)
    assert by_test["greeting"].rate == 1.0
    spent = trend(store, replace(ALL, group="agent"), ("tokens",)).series
    assert [one.spent_overall["tokens"].n for one in spent if one.spent_overall["tokens"]] == [180, 90]


def test_what_is_wanted_is_all_that_counts(store: Store, tmp_path: Path) -> None:
    def runs(**more: object) -> int:
        return trend(store, replace(ALL, **more)).runs  # type: ignore[arg-type]

    assert runs(paths=(Path("/suites"),)) == 270
    assert runs(paths=(Path(DESK),)) == 90
    assert runs(suites=("help DESK",)) == 90
    assert runs(tests=("orders", "greeting")) == 180
    assert runs(tags=("smoke",)) == 180
    assert runs(tags=("smoke", "other")) == 0
    assert runs(agents=("desk",), tests=("orders",)) == 0
    assert runs(since_ms=NOON - DAY) == 18
    for wrong, said in (
        ({"tests": ("order",)}, "did you mean orders"),
        ({"suites": ("nothing",)}, "no such suite"),
        ({"paths": (tmp_path,)}, "has ever run"),
        ({"paths": (Path("/elsewhere"),)}, "no such file or folder"),
    ):
        with pytest.raises(AgentevalError, match=said):
            runs(**wrong)


def test_what_people_type_narrows_it(store: Store) -> None:
    def runs(text: str) -> int:
        return trend(store, filtered(store, ALL, text)).runs

    typed = ("", "ORDER", "tag:smo", "tag:smoke suite:shop", "agent:des", "suite:desk greet")
    assert [runs(text) for text in typed] == [270, 90, 180, 90, 90, 90]
    assert [runs(text) for text in ("nothing", "tag:x", "agent:nobody", "suite:desk orders")] == [0, 0, 0, 0]
    first, second, *_ = store.executions()
    store.write(DescribeExecution(first.id, name="V2 nightly", meta={"Model": "mini-1"}))
    store.write(DescribeExecution(second.id, name="other"))
    store.flush()
    each = len(store.runs_of_execution(first.id))
    assert 0 < each < 270
    assert [runs(text) for text in ("name:v2", "name:NIGHT", "meta.model:mini", "name:v2 order")] == [
        each, each, each, runs("name:v2 test:orders"),
    ]  # fmt: skip
    assert [runs(text) for text in ("name:v3", "commit:abc", "meta.model:large", "meta.other:mini")] == [0, 0, 0, 0]


def test_runs_without_a_time_stand_at_their_execution(tmp_path: Path) -> None:
    with filled(tmp_path / "h.db", range(28, 30)) as store:
        record, runs = execution(20)
        store.import_runs(record, undated(runs))
        found = trend(store, TrendQuery(NOON - 20 * DAY, NOW, "day"), ("tokens",))
        points = [point.n if point is not None else 0 for point in found.series[0].points]
        assert sum(points) == 27
        at = [number for number, n in enumerate(points) if n]
        assert [found.bins[number].since_ms <= NOON - 9 * DAY < found.bins[number].until_ms for number in at[:1]] == [
            True
        ]
        assert found.series[0].spent["tokens"][at[0]] is not None
        assert trend(store, TrendQuery(None, NOW, "execution")).bins[0].execution == "EXECUTION-20"
        assert sum(one.n for one in extras(store, TrendQuery(None, NOW)).scores) == 54


def test_an_empty_history_has_no_trend(tmp_path: Path) -> None:
    with Store.open(tmp_path / "h.db") as store:
        found = trend(store, ALL, MEASURES)
        assert (found.series, found.bins, found.runs) == ((), (), 0)
        assert extras(store, ALL).scores == ()
        assert watch(store, ALL, 0.5, NOW).alerts[0].state == "empty"


def test_scores_and_causes(store: Store) -> None:
    found = extras(store, ALL)
    # The same two criteria, equal in content, in three tests of two suites: a line each.
    assert {(one.suite, one.test_id, one.criterion): one.n for one in found.scores} == {
        (suite, test, criterion): n
        for suite, test, n in (("Shop", "orders", 90), ("Shop", "refunds", 90), ("Help desk", "greeting", 87))
        for criterion in ("polite", "right")
    }
    right = next(one for one in found.scores if (one.test_id, one.criterion) == ("refunds", "right"))
    assert (right.n, right.passed, right.failed, right.errors) == (90, 60, 30, 0)
    assert right.tenths[2] == right.failed
    assert right.tenths[9] == right.passed
    assert right.failed_tenths[2] == right.failed == sum(right.failed_tenths)
    assert "refunds / right" in criterion_labels(found.scores)
    assert right.mean == pytest.approx((right.passed + 0.25 * right.failed) / 90)
    runs = {one.title: (one.runs, one.tests) for one in found.causes}
    assert runs["agent: timeout"] == (3, 1)
    ((title, (failed, tests)),) = [item for item in runs.items() if item[0] != "agent: timeout"]
    assert title.startswith("right: ")
    assert (failed, tests) == (sum(one.failed for one in found.scores), 2)
    assert store.run(found.causes[0].last).status == "failed"


def test_the_executions_of_a_piece_of_time(store: Store) -> None:
    found = trend(store, replace(ALL, by="week"))
    week = executions_at(store, found.query, found.bins[1])
    assert len(week) == 7
    assert [one.first_ms for one in week] == sorted(one.first_ms for one in week)
    by_execution = trend(store, replace(ALL, by="execution"))
    (only,) = executions_at(store, by_execution.query, by_execution.bins[3])
    assert only.id == "EXECUTION-03"


# Alerts


def test_an_alert_fires_below_its_threshold_and_not_at_it(store: Store) -> None:
    day = TrendQuery(NOON - DAY // 2, NOW)
    rate = trend(store, day).series[0].overall.rate
    assert rate == pytest.approx(8 / 9)
    assert rate is not None
    assert watch(store, day, rate, NOW).fired == ()
    (alert,) = watch(store, day, 0.9, NOW).fired
    assert (alert.n, alert.passed, alert.by_chance) == (9, 8, True)
    groups = watch(store, replace(day, group="test"), 0.9, NOW).alerts
    assert [(one.name, one.state) for one in groups] == [("refunds", "alert"), ("greeting", "ok"), ("orders", "ok")]


def test_only_errors_are_no_verdict_and_no_run_is_empty(store: Store) -> None:
    at = NOON - 20 * DAY
    broken = TrendQuery(at - 1, at + HOUR_MS, tests=("greeting",))
    assert [one.state for one in watch(store, broken, 0.5, NOW).alerts] == ["errors"]
    assert watch(store, replace(broken, count_errors=True), 0.5, NOW).fired
    assert [one.state for one in watch(store, TrendQuery(0, 1), 0.5, NOW).alerts] == ["empty"]


def test_what_is_in_quarantine_fires_no_alert(tmp_path: Path) -> None:
    with filled(tmp_path / "h.db", range(29, 30)) as store:
        assert watch(store, ALL, 0.95, NOW).fired
        held = Quarantine(SHOP, "refunds", NOW + DAY, "right", at_ms=NOW)
        quarantines.put(store, held).result()
        one = watch(store, ALL, 0.95, NOW)
        assert one.fired == (), "without the criterion the run passes"
        assert (one.alerts[0].n, one.alerts[0].passed) == (9, 9)
        assert [q.criterion for q in one.left_out] == ["right"]
        assert [a.state for a in watch(store, replace(ALL, group="tag"), 0.95, NOW).alerts] == ["ok", "ok"]
        quarantines.put(store, replace(held, criterion="polite")).result()
        alert = watch(store, ALL, 0.95, NOW).alerts[0]
        assert (alert.n, alert.passed) == (6, 6), "nothing of the test is left, also of its runs that passed"
        quarantines.put(store, replace(held, criterion="")).result()
        assert watch(store, ALL, 0.95, NOW).alerts[0].n == 6, "the whole test is left out"
        assert watch(store, ALL, 0.95, NOW + DAY).fired, "its day is over"


def test_the_document_has_its_schema_and_the_table_its_lines(store: Store) -> None:
    for wanted in (ALL, replace(ALL, group="agent", by="week"), TrendQuery(0, 1)):
        found = trend(store, wanted, MEASURES)
        document = msgspec.json.decode(
            msgspec.json.encode(trends_document(found, extras(store, wanted), watch(store, wanted, 0.5, NOW)))
        )
        Draft202012Validator(schema("trends")).validate(document)
    table = list(csv.DictReader(io.StringIO(trends_csv(trend(store, replace(ALL, by="day"), MEASURES)))))
    assert len(table) == DAYS
    assert {row["n"] for row in table} == {"9", "6"}
    assert float(table[-1]["pass_rate"]) == pytest.approx(8 / 9, abs=1e-5)
    assert float(table[-1]["cost_total"]) == pytest.approx(0.021)


def test_the_cap_is_of_the_runs_that_were_asked_for(tmp_path: Path) -> None:
    """Runs of another suite, however new, take no place from those that were asked for."""
    store = filled(tmp_path / "h.db", range(4))
    desk = tuple(one.row for one in store.read(history_trends.tests_known) if one.suite_key == DESK)
    only = history_trends.SelectedRuns(0, NOON + DAY, tests=desk)
    # 36 runs in all, nine a day; twelve of the desk, the last three of each day, a second apart.
    assert store.read(lambda c: history_trends.newest_runs(c, only, 12)) == (0, False)
    sixth = NOON - (DAYS - 1 - 2) * DAY + 6_000
    assert store.read(lambda c: history_trends.newest_runs(c, only, 5)) == (sixth + 1, True)
    store.close()


def test_a_ledger_of_a_quiet_suite_is_not_cut_by_a_busy_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history_trends, "NEWEST", 15)
    store = Store.open(tmp_path / "h.db")
    for day in range(5):  # the shop's runs are newer than all of the desk's
        record, runs = execution(day)
        kept = [one for one in runs if (one[0].suite_key == DESK) == (day == 0)]
        store.import_runs(record, iter(kept))
    found = ledger(store, TrendQuery(None, NOON + DAY, suites=(DESK,)), NOON)
    assert [(one.test_id, one.n) for one in found.tests] == [("greeting", 3)]
    assert not found.cut
    assert [one.criterion for one in extras(store, TrendQuery(None, NOON + DAY, suites=(DESK,))).scores] != []
    assert ledger(store, TrendQuery(None, NOON + DAY), NOON).cut
    store.close()


def test_runs_without_a_time_of_their_own_are_in_the_cap(tmp_path: Path) -> None:
    store = Store.open(tmp_path / "h.db")
    for day in range(3):
        record, runs = execution(day)
        store.import_runs(record, undated(runs))
    picked = history_trends.SelectedRuns(0, NOON + DAY)
    assert store.read(lambda c: history_trends.newest_runs(c, picked, 27)) == (0, False)
    middle = NOON - (DAYS - 1 - 1) * DAY
    assert store.read(lambda c: history_trends.newest_runs(c, picked, 10)) == (middle + 1, True)
    # The nine newest have one time. They are more than the cap, and are in it: nothing would be left without them.
    assert store.read(lambda c: history_trends.newest_runs(c, picked, 5)) == (middle + DAY, True)
    store.close()


@pytest.mark.parametrize("group", ["", "suite", "test", "agent", "tag"])
def test_what_runs_took_is_shown_of_those_only_that_were_graded_again(store: Store, group: str) -> None:
    """Of runs that nothing can grade again (their test is gone) there is no end, and no group to show figures of."""
    by_test = trend(store, replace(ALL, group="test"), MEASURES)
    [kept, *_] = [one.key for one in by_test.series]
    ids = store.run_rows(store.read(lambda connection: [row[0] for row in connection.execute("SELECT id FROM runs")]))
    statuses = {one.rowid: one.status for one in ids if f"{one.suite_key}::{one.test_id}" == kept}
    assert statuses
    found = trend(store, replace(ALL, group=group), MEASURES, statuses)  # type: ignore[arg-type]
    assert sum(one.overall.n for one in found.series) <= len(statuses)
    if group == "test":
        assert [one.key for one in found.series] == [kept]
    assert trend(store, replace(ALL, group=group), MEASURES, {}).series == ()  # type: ignore[arg-type]
