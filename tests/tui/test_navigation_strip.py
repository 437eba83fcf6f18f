"""The strip at the top: what it says at each width, what waits, and what a click on it does."""

from __future__ import annotations

import itertools
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from shop import app_on, as_they_were, screen_of, settle, text_of, until
from textual.widget import Widget

from agenteval_tui.tui.analysis_context import Session
from agenteval_tui.tui.badges import Counts
from agenteval_tui.tui.presenters.navigation_strip import StripState, Tab, running_badge, strip_line, strip_zones
from agenteval_tui.tui.screen_registry import FACTORIES
from agenteval_tui.tui.screens.select_dialog import SelectScreen
from agenteval_tui.tui.styled_text import plain, width_of
from agenteval_tui.tui.workers import is_busy

pytestmark = pytest.mark.xdist_group("screens")

NAMES = ("suites", "edit", "run", "inspect", "history", "compare", "trends", "agents", "causes", "review")
BADGES = {"run": running_badge(1), "causes": ("14", "failed"), "review": ("3", "review")}


def state(active: str = "suites", *, everything: bool = False, bare: bool = False) -> StripState:
    badges = {} if bare else BADGES
    tabs = tuple(Tab(name, str((at + 1) % 10), name, badges.get(name, ("", ""))) for at, name in enumerate(NAMES))
    return StripState(tabs, active, everything)


@pytest.fixture(scope="module")
def samples(recorded_ran: tuple[Path, Path]) -> Iterator[tuple[Path, Path]]:
    """(folder with the recorded suite, history in which it ran once)."""
    yield from as_they_were(*recorded_ran)


def test_where_there_is_room_every_screen_has_its_name() -> None:
    said = plain(strip_line(state(), 140))
    assert said.startswith(" agenteval   1 suites  2 edit  3 run ◐  4 inspect  5 history  6 compare  7 trends")
    assert "8 agents  9 causes 14  0 review 3   " in said
    assert said.rstrip().endswith("here ▾")
    assert plain(strip_line(state(everything=True), 140)).rstrip().endswith("all projects ▾")


def test_with_80_columns_every_screen_has_a_short_name() -> None:
    said = "  1 suites 2 edit 3 run 4 insp 5 hist 6 comp 7 trend 8 agent 9 cause 0 rev"
    assert plain(strip_line(state(bare=True), 80)).startswith(said)
    assert "3 run◐ 4 insp" in plain(strip_line(state(), 90))
    assert "9 cause 14 0 rev 3" in plain(strip_line(state(), 90))


@pytest.mark.parametrize("everything", [True, False])
@pytest.mark.parametrize("active", NAMES)
def test_with_80_columns_names_stay_whatever_waits(active: str, everything: bool) -> None:
    line = strip_line(state(active, everything=everything), 80)
    for name in ("suites", "edit", "run", "insp", "hist", "comp", "trend", "agent", "cause", "rev"):
        assert f" {name}" in plain(line)
    assert (" rev", "review") in line or " rev 3" in plain(line) or active == "review", "what waits is seen"
    assert ("all" in plain(line)) == everything


def test_where_short_names_have_no_room_only_the_active_screen_has_its_name() -> None:
    assert plain(strip_line(state(bare=True), 66)).split() == ["agenteval", "1", "suites", "·2·3·4·5·6·7·8·9·0", "here"]
    assert "·3◐·4·5·6·7·8·9 14·0 3" in plain(strip_line(state(), 66))
    assert " 3 run ◐ " in plain(strip_line(state("run"), 66))


@pytest.mark.sweep
@pytest.mark.parametrize("width", [1, 5, 19, 20, 21, 30, 40, 60, 80, 100, 110, 120, 130, 140, 200, 300])
@pytest.mark.parametrize("active", ["suites", "causes", "", "nowhere"])
def test_it_fits_every_width_and_a_click_on_a_digit_goes_to_its_screen(width: int, active: str) -> None:
    shown = state(active, everything=True)
    line, zones = strip_line(shown, width), strip_zones(shown, width)
    assert width_of(line) <= width
    if width < 20:
        return
    text = plain(line)
    by_target = {
        zone.target: "".join(text[z.start : z.end] for z in zones if z.target == zone.target) for zone in zones
    }
    for tab in shown.tabs:
        assert by_target[tab.name].strip().startswith(tab.key)
    if width >= 40:
        assert by_target["scope"].startswith("all")
    for one, other in itertools.pairwise(zones):
        assert one.end <= other.start


def test_several_executions_are_counted_in_the_badge() -> None:
    assert running_badge(0) == ("", "")
    assert running_badge(1)[0] == "◐"
    assert running_badge(3)[0] == "◐3"


async def test_every_screen_has_the_strip_with_its_own_tab_marked(samples: tuple[Path, Path]) -> None:
    app = app_on(*samples)
    async with app.run_test(size=(140, 45)) as pilot:
        await settle(pilot)
        marked = set()
        for name in FACTORIES:
            app.go(name)
            await settle(pilot)
            marked.add(screen_of(app).tab())
            first = text_of(app).splitlines()[0]
            assert "1 suites  2 edit  3 run  4 inspect  5 history  6 compare  7 trends  8 agents" in first
            assert "▾" in first
        assert marked == {tab.name for tab in app.strip_tabs()}


async def test_open_causes_and_waiting_reviews_are_counted_and_counted_again_when_the_history_changes(
    samples: tuple[Path, Path], tmp_path: Path
) -> None:
    db = tmp_path / "history.db"
    shutil.copy(samples[1], db)
    app = app_on(samples[0], db)
    async with app.run_test(size=(140, 45)) as pilot:
        await settle(pilot)
        counted = app.badges.counts
        assert counted.causes > 1
        assert f"9 causes {counted.causes} " in text_of(app)
        # Ignoring one leaves one less, and the strip says so at once.
        await pilot.press("9")
        await settle(pilot)
        await pilot.press("I")
        await settle(pilot)
        await pilot.press("enter")
        await until(pilot, lambda: app.badges.counts.causes == counted.causes - 1)
        assert f"9 causes {counted.causes - 1} " in text_of(app)


@pytest.mark.parametrize("theme", ["dusk", "sixteen"])
async def test_what_is_counted_while_a_sheet_is_open_is_shown_behind_it(
    samples: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, theme: str
) -> None:
    app = app_on(*samples)
    async with app.run_test(size=(140, 45)) as pilot:
        app.theme_controller.read()
        app.theme = theme
        await settle(pilot)
        await pilot.press("N")
        await settle(pilot)
        assert f"9 causes {app.badges.counts.causes} " in text_of(app)
        monkeypatch.setattr(app.badges, "are_stale", lambda: app.badges.counts.causes != 77)
        monkeypatch.setattr(app.badges, "count", lambda: setattr(app.badges, "counts", Counts(77, 5)))
        app.count_badges()
        await until(pilot, lambda: "9 causes 77  0 review 5" in text_of(app))


async def test_a_cursor_key_counts_nothing(samples: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    app = app_on(*samples)
    async with app.run_test(size=(140, 45)) as pilot:
        await settle(pilot)
        counts: list[int] = []
        monkeypatch.setattr(app.badges, "count", lambda: counts.append(1))
        for key in ("j", "k", "9", "j", "j", "1", "5", "j"):
            await pilot.press(key)
            await settle(pilot)
        assert not counts


async def test_nothing_is_counted_while_the_first_suites_are_read(
    samples: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    read, counts, overview = threading.Event(), list[int](), Session.overview
    monkeypatch.setattr(Session, "overview", lambda session: read.wait(250) and overview(session))
    app = app_on(*samples)
    count = app.badges.count
    monkeypatch.setattr(app.badges, "count", lambda: counts.append(1) or count())
    async with app.run_test(size=(140, 45)) as pilot:
        try:
            await until(pilot, lambda: bool(screen_of(app).unanswered))
            app._look_at_history()
            await until(pilot, lambda: not any(one.group == "history" for one in app.workers))
            assert not is_busy(app, "badges")
            assert not counts
        finally:
            read.set()
        await until(pilot, lambda: bool(counts))


async def test_a_click_goes_to_a_screen_lists_the_screens_and_changes_the_scope(samples: tuple[Path, Path]) -> None:
    for width in (140, 80):
        app = app_on(*samples)
        async with app.run_test(size=(width, 30)) as pilot:
            await settle(pilot)
            for name in ("history", "causes", "suites"):
                zones = strip_zones(screen_of(app)._strip_state(), width)
                await pilot.click("#title", offset=(next(z.start for z in zones if z.target == name), 0))
                await settle(pilot)
                assert screen_of(app).tab() == name
            before = app.session.everything
            if width == 80 and not before:  # the names take the room of the scope: a key changes it
                await pilot.press("H")
            else:
                await pilot.click("#title", offset=(width - 2, 0))
            await settle(pilot)
            assert app.session.everything is not before
            said = "all projects" if width == 140 else "all"
            assert (said in text_of(app).splitlines()[0]) is app.session.everything
            await pilot.press("H")
            assert app.session.everything is before
            if width == 140:
                await pilot.click("#title", offset=(3, 0))
                await settle(pilot)
                assert isinstance(app.screen, SelectScreen)


async def test_few_rows_are_for_the_list_and_not_for_a_title_line(samples: tuple[Path, Path]) -> None:
    app = app_on(*samples)
    async with app.run_test(size=(40, 24)) as pilot:
        await pilot.press("5")
        await settle(pilot)
        title: Widget = app.screen.query_one("#title")
        assert title.size.height == 2
        await pilot.resize_terminal(20, 5)
        await settle(pilot)
        assert title.size.height == 1
        assert text_of(app).splitlines()[0].strip() == "1·2·3·4·5·6·7·8·9·0"
        await pilot.resize_terminal(80, 24)
        await settle(pilot)
        assert title.size.height == 2
