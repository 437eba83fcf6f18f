"""Trends and flaky tests in words and tables, without a screen."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace
from trend_made import DAY, NOON, filled

from agenteval_tui.analysis.trend_alerts import AlertCheck, watch
from agenteval_tui.analysis.trend_breaks import Break
from agenteval_tui.analysis.trend_regrade import Regrading
from agenteval_tui.analysis.trend_scores import Extras, extras
from agenteval_tui.analysis.trends import MEASURES, MeasureStats, TrendQuery, trend
from agenteval_tui.analysis.variance import ledger
from agenteval_tui.history.quarantines import Quarantine
from agenteval_tui.history.store import Store
from agenteval_tui.history.trends import NEWEST
from agenteval_tui.views import terminal
from agenteval_tui.views.flaky import flaky_table, flaky_view, suggestions_view
from agenteval_tui.views.model import ASCII, Table, View, plain
from agenteval_tui.views.trends import (
    FIGURE_TEXTS,
    alert_view,
    alerts_table,
    break_text,
    failing_table,
    figures_text,
    groups_table,
    regrading_text,
    scores_table,
    series_table,
    spent_text,
    trends_view,
    value_text,
)

NOW = NOON + 3_600_000
WEEK = TrendQuery(NOW - 7 * DAY, NOW + 1, by="day")
EVER = TrendQuery(None, NOW + 1)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with filled(tmp_path_factory.mktemp("trends") / "history.db") as made:
        yield made


def printed(view: View | Table, width: int = 100) -> list[str]:
    return [plain(line) for line in terminal.lines((view,) if isinstance(view, Table) else view, width)]


@pytest.mark.parametrize(
    ("cost", "said"), [(0.0, "$0.00"), (0.00002, "< $0.0001"), (0.0018, "$0.0018"), (0.25, "$0.25"), (12.3, "$12.30")]
)
def test_a_cost_is_not_rounded_to_nothing(cost: float, said: str) -> None:
    assert FIGURE_TEXTS["cost"](cost) == said


def test_figures_over_time_are_a_row_a_day_and_one_over_all(store: Store) -> None:
    found = trend(store, WEEK, MEASURES)
    lines = printed(trends_view(found, extras(store, WEEK), "the last 7 days"))
    assert lines[0] == "all runs  the last 7 days, by day"
    assert lines[1].split() == ["day", "rate", "95", "%", "interval", "n", "errors", "p50", "p95", "tokens", "cost"]
    assert [line.split()[1] for line in lines if line.startswith("  2026-11-")] == ["89"] * 7
    assert next(line for line in lines if line.startswith("  all")).startswith("  all         89 %")
    assert "why runs failed" in lines
    assert any(line.startswith("orders / right") for line in lines)
    assert not any(line != line.rstrip() for line in lines)


@pytest.mark.parametrize("width", [60, 80, 120])
def test_a_narrow_terminal_gets_figures_without_the_drawing_of_rates(store: Store, width: int) -> None:
    found = trend(store, WEEK, MEASURES)
    drawn = printed(series_table(found, (), 31), 120)
    assert all("●" in line for line in drawn[1:])
    assert all(line.translate(ASCII).isascii() for line in drawn), "every sign of it has one in ASCII"
    lines = printed(series_table(found, ()), width)
    assert max(map(len, lines)) <= width
    assert "…" not in "".join(lines) or width < 70


def test_groups_stand_below_their_names_and_what_is_left_out_is_counted(store: Store) -> None:
    grouped = trend(store, replace(WEEK, group="test"), MEASURES)
    lines = printed(series_table(grouped, ()))
    assert [line for line in lines[1:] if not line.startswith(" ")] == ["refunds", "greeting", "orders"]
    many = replace(grouped, series=grouped.series * 4)
    assert series_table(many, ()).more == "and 4 more groups: --json and --csv list all"
    rows = groups_table(grouped, "rate", 0).rows
    assert [[plain(cell) for cell in row.cells] for row in rows][1][:3] == ["greeting", "", "100 %"]
    assert plain(groups_table(grouped, "cost", -1).rows[0].cells[1]) == "", "nothing is under the cursor"


def test_what_changed_stands_before_the_day_from_which_it_holds(store: Store) -> None:
    found = trend(store, WEEK, MEASURES)
    made = [
        Break(found.bins[2].since_ms, 1, "s", "Shop", "refunds", f"right {n}", "changed", "a" * 9, "b" * 9)
        for n in range(5)
    ]
    lines = printed(series_table(found, made))
    (at,) = [number for number, line in enumerate(lines) if "right 0" in line]
    assert lines[at] == '  ╌╌ criterion "right 0" of refunds changed (aaaaaa to bbbbbb): judged differently from here'
    assert lines[at + 3] == "     and 2 more changes of criteria and agents"
    agent = replace(made[0], kind="agent", agent="desk")
    assert break_text(agent) == "agent desk has another configuration (aaaaaa to bbbbbb)"
    assert break_text(replace(made[0], kind="removed")) == 'criterion "right 0" of refunds was removed'


def test_a_day_and_what_it_took_in_words(store: Store) -> None:
    series = trend(store, WEEK, MEASURES).series[0]
    assert series.points[-1] is not None
    assert plain(figures_text(series.points[-1])) == "89 % (too few)  ✓ 8  ✗ 1  of 3 tests"
    took = spent_text({measure: points[-1] for measure, points in series.spent.items()})
    assert re.fullmatch(r"p50 [\d.]+ s, p95 [\d.]+ s   153 tokens \(p95 157\)   \$0\.0210   2 calls \(p95 3\)", took)
    assert spent_text({"latency": None}) == ""
    nothing = replace(series.points[-1], n=0, passed=0, failed=0, errors=2, review=1, rate=None)
    assert plain(figures_text(nothing)) == "no verdict  ! 2  ? 1  of 3 tests"


def test_scores_and_causes_are_rows_with_keys(store: Store) -> None:
    more = extras(store, WEEK)
    scores = scores_table(more.scores)
    assert [plain(cell) for cell in scores.rows[-1].cells][1:4] == ["21 of 21", "100 %", "1.00"]
    assert scores.rows[0].key.split("\x1f")[0] == "test"
    assert scores_table(more.scores, 2).more == f"and {len(more.scores) - 2} more criteria"
    assert failing_table(more.causes).rows[0].key.startswith("run\x1f")
    assert plain(failing_table(more.causes).rows[0].cells[0]) == str(more.causes[0].runs)


def test_alerts_are_sentences_and_rows_of_the_same_words(store: Store) -> None:
    fired = watch(store, WEEK, 0.9, NOW)
    (line, chance) = printed(alert_view(fired, "the last 7 days"))
    assert re.match(
        r"ALERT: pass rate 89 % \(56 of 63 runs of 3 tests passed, too few for an interval\) in .*, below 90 %$", line
    )
    assert chance == "  with so few runs this can be chance"
    of_tests = watch(store, replace(WEEK, group="test"), 0.7, NOW)
    assert any("70 % is inside the interval" in line for line in printed(alert_view(of_tests, "the last 7 days")))
    cells = [plain(cell) for cell in alerts_table(fired).rows[0].cells]
    assert (cells[0], cells[1], cells[3]) == ("ALERT", "all runs  could be chance", "below 90 %")
    empty = watch(store, replace(WEEK, since_ms=NOW), 0.5, NOON)
    assert printed(alert_view(empty, "1 h"))[0].split(":")[0] == plain(alerts_table(empty).rows[0].cells[0])
    held = tuple(Quarantine("s", f"t\n{n}", NOON, "right", "") for n in range(12))
    lines = printed(alert_view(replace(fired, left_out=held), "1 h"))
    assert lines[2].startswith("~ in quarantine, left out: t 0 / right  until 2026-11-")
    assert lines[-1] == "~ and 2 more in quarantine"


def test_a_rate_and_its_threshold_are_not_rounded_to_the_same_figure(store: Store) -> None:
    (alert,) = watch(store, WEEK, 0.9, NOW).alerts
    near = AlertCheck((replace(alert, rate=0.896, passed=1_344, n=1_500), replace(alert, rate=0.9, below=0.985)), ())
    below, exact, *_ = (line for line in printed(alert_view(near, "the last 7 days")) if line.startswith("ALERT"))
    assert below.startswith("ALERT: pass rate 89.6 % (1,344 of 1,500 runs of ")
    assert below.endswith("below 90 %")
    assert exact.endswith("below 98.5 %")
    assert exact.startswith("ALERT: pass rate 90 % by test (56 of 63 runs of 3 tests passed, "), "not the runs' share"
    rows = [[plain(cell) for cell in row.cells] for row in alerts_table(near).rows]
    assert [row[2:4] for row in rows] == [["89.6 %", "below 90 %"], ["90 %", "below 98.5 %"]]


def test_figures_of_thousands_of_runs_have_separators(store: Store) -> None:
    trended = trend(store, WEEK, MEASURES)
    (series,) = trended.series
    many = replace(series, overall=replace(series.overall, n=12_345, errors=1_200))
    cells = [plain(cell) for cell in series_table(replace(trended, series=(many,)), ()).rows[-1].cells]
    assert cells[3:5] == ["12,345", "1,200"]
    steps = MeasureStats(1, 1_234.0, 1_234.0, 1_234.0, 1_234.0)
    assert value_text(replace(many, spent_overall={"steps": steps}), "steps", None) == "1,234"


def test_what_grading_again_came_to() -> None:
    made = Regrading(dict.fromkeys(range(1200), "passed"), {}, (), 4, 2, 3, 0, True)
    assert regrading_text(made) == (
        "graded with today's criteria: 1,200 runs, 4 have a different verdict, 3 in error, because nothing is asked "
        "or run again, "
        f"2 left out, because their test is no longer in a file, only the newest {NEWEST:,}"
    )
    assert regrading_text(Regrading({1: "failed"}, {}, (), 0, 0, 0, 0, False)).endswith(
        ": 1 run, 0 have a different verdict"
    )
    assert ": 2 runs, 1 has a different verdict" in regrading_text(
        Regrading({1: "failed", 2: "passed"}, {}, (), 1, 0, 0, 0, False)
    )


def test_nothing_ran(store: Store) -> None:
    none = trend(store, TrendQuery(1, 2), ())
    lines = printed(trends_view(none, Extras((), (), 0, False), "the last 24 h"))
    assert lines[0] == "nothing ran in the last 24 h"


def test_flaky_tests_with_their_criteria_and_whose_doing_it_is(store: Store) -> None:
    found = ledger(store, EVER, NOW)
    lines = printed(flaky_view(found, "all"))
    assert re.match(r"~ orders +49 of 90 +54 %  44–64 % +91 % ", lines[1])
    assert lines[3] == "    the agent: its outputs differ"
    assert not any("polite" in line for line in lines)
    everything = printed(flaky_view(found, "all", everything=True))
    assert any(line.startswith("    polite") for line in everything)
    short = flaky_table(found, in_short=True)
    assert {len(row.cells) for row in short.rows} == {4}
    assert "  (Shop)" not in plain(short.rows[0].cells[0]), "all of one suite"
    held = Quarantine(found.tests[0].suite_key, "orders", NOON, "", "")
    quiet = replace(found, tests=(replace(found.tests[0], quarantine=held), *found.tests[1:]))
    assert "    in quarantine until 2026-11-21" in printed(flaky_view(quiet, "all"))
    assert plain(flaky_table(quiet, in_short=True).rows[0].cells[0]) == "~ orders  in quarantine until 2026-11-21"


def test_what_might_go_into_quarantine_and_what_went(store: Store) -> None:
    suggested = ledger(store, EVER, NOW).suggestions()
    lines = printed(suggestions_view(suggested))
    assert lines[:2] == ["", "suggested (--quarantine does all of it):"]
    assert lines[-1].endswith("--criterion right --reason 'flaky: 60 of 90 passed'")
    assert printed(suggestions_view(suggested, NOON))[-1] == "~ in quarantine: refunds / right  until 2026-11-21"
    assert suggestions_view(()) == ()


def test_a_steady_history_says_how_much_was_looked_at(store: Store, tmp_path: Path) -> None:
    steady = ledger(store, replace(EVER, tests=("greeting",)), NOW)
    assert printed(flaky_view(steady, "all")) == ["nothing is flaky: 1 test, up to 87 runs each"]
    with Store.open(tmp_path / "new.db") as empty:
        said = printed(flaky_view(ledger(empty, TrendQuery(None, NOON), NOON), "24h"))
    assert said == ["no run has a verdict in this window (24h): try a longer --window, or --window all"]
