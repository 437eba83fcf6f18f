"""What Trends reads, draws and lists, and what its keys are meant for. No app, no widget."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from trend_made import NOON, SHOP, filled

from agenteval_tui.history.store import Store
from agenteval_tui.tui.screens.trends_controller import (
    TrendsController,
    newest_failure,
    read_beside,
    read_trend,
    regrade_beside,
)
from agenteval_tui.tui.styled_text import Line, plain

NOW = NOON + 3_600_000


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with filled(tmp_path_factory.mktemp("trends") / "h.db", range(24, 30)) as opened:
        yield opened


def read(controller: TrendsController, store: Store) -> None:
    """As the screen does it."""
    request = controller.request((), NOW)
    query, found = read_trend(store, request)
    controller.take_stored(found, 0)
    controller.take_beside(read_beside(store, query, request.below, NOW))


@pytest.fixture
def controller(store: Store) -> TrendsController:
    made = TrendsController()
    read(made, store)
    return made


def shown(lines: list[Line]) -> str:
    return "\n".join(map(plain, lines))


def listed(controller: TrendsController) -> list[str]:
    rows, _ = controller.arrange(None)
    assert rows is not None
    return [plain(rows.line(n, 78, focused=False)) for n in range(rows.count())]


def test_the_cursor_is_at_the_newest_runs_and_stays_at_its_time(controller: TrendsController, store: Store) -> None:
    assert "2026-11-21" in shown(controller.readout_lines(80))
    assert controller.move(-2)
    assert "2026-11-19" in shown(controller.readout_lines(80))
    controller.next_window(-1)
    controller.outdate()
    read(controller, store)
    assert controller.window == "7d"
    assert "2026-11-19" in shown(controller.readout_lines(80)), "in another window, at the same time"
    assert controller.move(-100)
    assert controller.cursor == 0
    controller.next_window(-1)
    controller.outdate()
    read(controller, store)
    assert controller.window == "24h"
    assert "2026-11-21" in shown(controller.readout_lines(80)), "its time is not in this window"
    assert not TrendsController().move(1), "nothing was read"


def test_days_are_executions_where_only_few_have_runs(store: Store) -> None:
    controller = TrendsController()
    controller.window = "24h"
    read(controller, store)
    assert controller.trend is not None
    assert controller.trend.by == "execution"
    assert "by execution" in plain(controller.heading(80)[0])
    controller.next_by()
    assert controller.by not in (None, "execution"), "a key shows something else"


def test_the_keys_of_the_lists(controller: TrendsController, store: Store) -> None:
    assert controller.key_names()[-1] == "filter"
    controller.next_view(1)
    assert "[flaky]" in shown(controller.views_lines(80))
    assert [row.split()[:2] for row in listed(controller)[:2]] == [["~", "refunds"], ["right", "12"]]
    assert controller.key_names()[-1] == "quarantine"
    target = controller.quarantine_target(["test", SHOP, "refunds", "right"])
    assert target is not None
    assert (target.test_id, target.criterion, target.criteria) == ("refunds", "right", ["right", "polite"])
    assert target.reason == "flaky: 12 of 18 passed"
    assert controller.quarantine_target(["run", "R"]) is None
    run, runs = newest_failure(store, SHOP, "refunds")
    assert store.run(run).status == "failed"
    assert len(runs) == 18
    assert controller.show_view_at(shown(controller.views_lines(80)[:1]).index("causes"), 80)
    assert controller.view == "causes"
    assert not controller.show_view_at(79, 80)


def test_an_alert_has_its_own_list_and_is_counted(controller: TrendsController, store: Store) -> None:
    choices, chosen = controller.alert_choices()
    assert (choices[0][1], chosen) == ("no alert", "")
    controller.alert_below("0.95")
    assert controller.view == "alerts"
    assert "Reading" not in shown(controller.empty_list())
    controller.outdate()
    assert "Reading" in shown(controller.empty_list()), "until what is asked now has come"
    read(controller, store)
    assert "ALERT" in listed(controller)[0]
    assert "alert" in plain(controller.heading(140)[1])


def test_groups_are_drawn_by_the_cursor_of_the_list(controller: TrendsController, store: Store) -> None:
    assert controller.choose(1) == (False, False), "one line only"
    controller.next_group()
    controller.outdate()
    read(controller, store)
    assert "one line for each suite" in plain(controller.heading(140)[0])
    assert controller.choose(1) == (True, False)
    assert controller.chosen == 1


def test_verdicts_of_today_come_only_while_they_are_wanted(controller: TrendsController, store: Store) -> None:
    query, _ = read_trend(store, controller.request((), NOW))
    found = regrade_beside(store, query, NOW)
    assert not controller.take_regraded(found)
    controller.toggle_today()
    assert "grading with today's criteria …" in plain(controller.heading(140)[0])
    assert controller.take_regraded(found)
    assert "54 left out" in plain(controller.heading(200)[0])
    assert plain(controller.heading(80)[0]).startswith("by today's criteria")


def test_where_nothing_fits_it_says_what_to_do(store: Store, tmp_path: Path) -> None:
    controller = TrendsController()
    controller.words = "tag:nothing"
    read(controller, store)
    assert "No run in this window matches" in shown(controller.empty())
    assert controller.key_names() == ["window", "filter"]
    assert controller.arrange(None) == (None, "")
    controller.words, controller.elsewhere = "", 3
    assert "3 executions" in shown(controller.empty())
    controller.elsewhere = None
    assert "Nothing has run yet." in shown(controller.empty()), "a longer window would not help"
    controller.elsewhere = 0
    assert "show a longer window" in shown(controller.empty())
    controller.fail()
    assert controller.plot_lines(80, 11) == controller.legend_lines(80) == controller.readout_lines(80) == []


def test_what_is_kept_is_taken_again_and_nothing_else() -> None:
    controller = TrendsController()
    controller.restore({"window": "7d", "by": "day", "shown": "nonsense", "below": 3, "filter": 7})
    assert (controller.window, controller.by, controller.shown, controller.below, controller.words) == (
        "7d", "day", "rate", None, "",
    )  # fmt: skip
    again = TrendsController()
    again.restore(controller.kept())
    assert again.kept() == controller.kept()
