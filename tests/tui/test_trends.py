"""The Trends screen: its drawing, its cursor and lists, quarantine; and the pictures of it."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from pictures import LARGE, SMALL, Pictures, pictures, resized
from shop import app_on, screen_of, settle
from trend_made import NOON, SHOP, filled

from agenteval_tui.analysis.time_buckets import Bin
from agenteval_tui.analysis.trends import MeasureStats, OtherTests, OutcomeRates, Series, Trend, TrendQuery
from agenteval_tui.history import quarantines
from agenteval_tui.history.backup import move_suites
from agenteval_tui.tui.presenters import plot as plots
from agenteval_tui.tui.presenters.plot import BREAK, Curve, Plot, bin_at, draw, fitting, height_within
from agenteval_tui.tui.presenters.trend_lines import plot_lines, readout
from agenteval_tui.tui.screens.quarantine import QuarantineScreen
from agenteval_tui.tui.screens.select_dialog import SelectScreen
from agenteval_tui.tui.screens.trends import TrendsScreen
from agenteval_tui.tui.styled_text import plain, width_of
from agenteval_tui.tui.widgets.line_block import LineBlock
from agenteval_tui.tui.widgets.virtual_list import VirtualList

__all__ = ["pictures"]  # a fixture

NOW = NOON + 3_600_000


def rates(*values: float | None, mark: str = "o") -> Curve:
    return Curve(mark, "", values)


def drawing(*curves: Curve, width: int = 40, height: int = 12, cursor: int = -1, **more: Any) -> list[str]:
    labels = tuple((f"d{number}",) for number in range(len(curves[0].values)))
    made = draw(Plot(curves, labels, 0.0, 1.0, lambda v: f"{v * 100:.0f} %", cursor, **more), width, height)
    assert all(width_of(line) <= width for line in made)
    assert len(made) == height_within(height)
    return [plain(line) for line in made]


def test_a_mark_stands_at_its_value_and_a_gap_is_a_gap() -> None:
    lines = drawing(rates(0.0, None, 1.0, 0.5))
    assert "o" in lines[0], "1 stands in the top row"
    assert lines[0].startswith("  100 %")
    assert lines[8].lstrip().startswith("0 %")
    assert lines[8].count("o") == 1
    assert sum(line.count("o") for line in lines) == 3
    assert lines[-1].split() == ["d0", "d1", "d2", "d3"]


def test_series_differ_by_their_glyphs_and_the_first_lies_on_top() -> None:
    lines = drawing(rates(1.0, 0.5, mark="A"), rates(1.0, 0.0, mark="B"))
    text = "\n".join(lines)
    assert (text.count("A"), text.count("B")) == (2, 1)
    assert len(set(plots.MARKS[:5])) == 5


def test_ranges_limit_and_cursor_are_drawn() -> None:
    curve = Curve("o", "", (0.5, 0.5), ((0.2, 0.9), None))
    lines = drawing(curve, cursor=1, limit=0.7, limit_words=" alert ")
    text = "\n".join(lines)
    assert plots.RANGE in text
    assert plots.CURSOR in text
    assert " alert " in text
    assert lines[-2].count(plots.POINTER) == 1


@pytest.mark.parametrize("bins", [1, 2, 30, 92, 5000])
def test_any_number_of_bins_fits_and_clicks_find_theirs(bins: int) -> None:
    first, shown = fitting(bins, 80, -1)
    assert first + shown == bins
    drawing(rates(*[0.5] * bins), width=80)
    found = [bin_at(x, bins, 80, -1) for x in range(80)]
    assert [one for one in dict.fromkeys(found) if one is not None] == list(range(first, bins))
    start, number = fitting(bins, 80, 0)
    assert start == 0, "the cursor is in view"
    assert drawing(rates(*[0.5] * bins), width=80, cursor=0)[-2].count(plots.POINTER) == 1
    assert number == shown


@pytest.mark.parametrize("values", [(), (0.5,), (None, 0.5)])
@pytest.mark.parametrize("bins", [1, 3, 200])
def test_what_is_not_read_yet_is_left_empty(values: tuple[float | None, ...], bins: int) -> None:
    """Another measure is drawn before its values have come: nothing is known of them."""
    labels = tuple((str(number),) for number in range(bins))
    plot = plots.Plot((Curve("o", "", values, ((0.1, 0.2),)),), labels, 0.0, 1.0, str, cursor=0)
    assert len(plots.draw(plot, 80, 10)) == height_within(10) == 7


@pytest.mark.parametrize("room", [0, 7, 11, 22, 24, 60])
def test_the_grid_is_even_and_marks_of_its_values_lie_on_it(room: int) -> None:
    height = height_within(room)
    assert height <= max(room, 7)
    lines = drawing(rates(0.0, 0.25, 0.5, 0.75, 1.0), height=height)[:-2]
    grid = [number for number, line in enumerate(lines) if plots.AXIS in line]
    assert len({other - one for one, other in itertools.pairwise(grid)}) == 1
    marked = [number for number, line in enumerate(lines) if "o" in line]
    assert set(marked) == set(range(0, len(lines), (len(lines) - 1) // 4))


@pytest.mark.parametrize(("bins", "width"), [(2, 80), (3, 140), (7, 200), (60, 80)])
def test_all_of_the_width_is_used_and_a_line_leads_from_mark_to_mark(bins: int, width: int) -> None:
    lines = drawing(rates(*[0.6] * bins), width=width)
    (row,) = [line for line in lines if "o" in line]
    marks = [column for column, char in enumerate(row) if char == "o"]
    gap = (width - 8) / bins
    assert marks[0] - 8 <= gap
    assert width - marks[-1] <= gap + 1
    assert not row[marks[0] : marks[-1]].replace("o", "").strip("\u2812"), "it lies in the row of its marks"


def test_a_range_is_a_band_from_mark_to_mark() -> None:
    curve = Curve("o", "", (0.5, 0.5, None, 0.5), ((0.25, 0.75), (0.25, 0.75), None, (0.25, 0.75)))
    lines = drawing(curve, height=11, width=68)
    tops = [line for line in lines if plots.RANGE in line]
    assert len(tops) == 5, "from 25 % to 75 %"
    first, second, last = (column for column, char in enumerate(lines[4]) if char == "o")
    assert set(tops[0][first : second + 1]) == {plots.RANGE}
    assert plots.RANGE not in tops[0][second + 3 : last - 2], "nothing leads over what was not measured"


def test_labels_tell_neighbours_apart_where_there_is_room() -> None:
    labels = tuple(("21 Nov", f"21 Nov 14:0{number}") for number in range(3))
    plot = Plot((rates(0.1, 0.2, 0.3),), labels, 0.0, 1.0, str)
    assert plain(draw(plot, 80, 12)[-1]).split("  ")[-1].strip() == "21 Nov 14:02"
    assert plain(draw(plot, 40, 12)[-1]).split() == ["21", "Nov"] * 3
    assert plain(draw(plot, 20, 12)[-1]).split() == ["21", "Nov"], "once, where not each mark has its own"


def test_without_utf8_it_is_ascii(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, char in (("AXIS", "|"), ("GRID", "."), ("RANGE", ":"), ("CURSOR", "!"), ("LIMIT", "="), ("POINTER", "^")):
        monkeypatch.setattr(plots, name, char)
    monkeypatch.setattr(plots, "UNICODE", False)
    monkeypatch.setattr(plots, "_CORNER", "+")
    monkeypatch.setattr(plots, "_FLOOR", "-")
    curve = Curve("*", "", (0.1, 0.9, 0.4), ((0.0, 0.3), (0.5, 1.0), (0.2, 0.6)))
    assert "\n".join(drawing(curve, width=60, cursor=1, limit=0.7, limit_words=" alert ")).isascii()


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("trends") / "history.db"
    filled(path).close()
    return path


@pytest.fixture(autouse=True)
def still(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The same terminal, time zone and time of day everywhere."""
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    for module in ("tui.screens.trends", "history.quarantines", "cli.declared_options"):
        monkeypatch.setattr(f"agenteval_tui.{module}.now_ms", lambda: NOW, raising=False)
    yield
    monkeypatch.undo()
    time.tzset()


def text_of(screen: TrendsScreen, *names: str) -> str:
    blocks = [screen.query_one(f"#{name}", LineBlock) for name in names]
    return "\n".join(plain(line) for block in blocks for line in block.lines(block.size.width))


def listed(screen: TrendsScreen) -> list[str]:
    view = screen.query_one("#list", VirtualList)
    return [plain(view.source.line(n, 78, focused=False)) for n in range(view.source.count())]


async def test_the_keys_do_what_they_say(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import shutil

    db = tmp_path / "history.db"
    shutil.copy(made, db)
    app = app_on(tmp_path, db)
    async with app.run_test(size=(80, 24)) as pilot:

        async def press(*keys: str) -> None:
            await pilot.press(*keys)
            await settle(pilot)

        await settle(pilot)
        await press("7")
        screen = app.screen
        assert isinstance(screen, TrendsScreen)
        assert "Sat 2026-11-21   89 % (too few)" in text_of(screen, "readout")
        await press("h")
        assert "Fri 2026-11-20" in text_of(screen, "readout")
        await press("right_square_bracket")
        assert "latency per run" in text_of(screen, "legend")
        await press("left_square_bracket", "s")
        assert ["Shop" in row for row in listed(screen)] == [True, False], "worst first"
        assert "Help desk" in text_of(screen, "legend")
        # Of more groups than can be drawn, those around the cursor are.
        with monkeypatch.context() as fewer:
            fewer.setattr("agenteval_tui.tui.presenters.trend_lines.MOST", 1)
            await press("j")
            assert "Help desk   2–2 of 2" in text_of(screen, "legend")
            assert "100 %" in text_of(screen, "readout")
            assert "●" in listed(screen)[1]
            await press("k")
        await press("s", "s", "s", "s")
        assert "(no name)" in listed(screen)[0]
        await press("s")
        assert "(no commit)" in listed(screen)[0]
        await press("s")
        assert "all runs" in listed(screen)[0]
        await press("tab")
        assert [row.split()[:4] for row in listed(screen)[:2]] == [
            ["~", "orders", "49", "of"],
            ["right", "49", "of", "90"],
        ]
        await press("tab")
        assert "agent: timeout" in "\n".join(listed(screen))
        # A threshold: one more list, and a line in the drawing.
        await screen.do("alert")
        await settle(pilot)
        await press("9", "5")
        assert isinstance(app.screen, SelectScreen)
        await press("enter")
        assert "ALERT" in listed(screen)[0]
        assert "alert below 95 %" in text_of(screen, "plot")
        # Quarantine of a criterion, from the list of the flaky ones.
        await press("tab", "tab", "tab", "j", "j", "j", "Q")
        sheet = app.screen
        assert isinstance(sheet, QuarantineScreen)
        assert "refunds" in text_of(sheet, "head")  # type: ignore[arg-type]
        await press("enter")
        assert app.screen is screen
        held = quarantines.active(app.session.store, NOW)
        assert [(one.suite_key, one.test_id, one.criterion, one.reason) for one in held] == [
            (SHOP, "refunds", "right", "flaky: 60 of 90 passed")
        ]
        assert "in quarantine until 2026-12-05" in listed(screen)[3]
        await press("Q")
        assert "In quarantine until 2026-12-05" in text_of(app.screen, "note")  # type: ignore[arg-type]
        await press("ctrl+e")
        assert len(quarantines.active(app.session.store, NOW)) == 0
        # The filter, and what is said where nothing fits it.
        await press("slash", *"test:refu")
        assert "90 runs" in text_of(screen, "title")
        await press("escape")
        await press("slash", *"tag:nothing")
        assert "No run in this window matches" in text_of(screen, "plot")
        await press("escape")
        for _ in range(2):
            await screen.do("window(-1)")
        await settle(pilot)
        assert "the last 24 h" in text_of(screen, "title")
        await press("ctrl+e")
        assert app.screen is not screen, "the execution is shown in History"


async def test_where_nothing_ran_it_says_what_to_do(tmp_path: Path) -> None:
    app = app_on(tmp_path, tmp_path / "new.db")
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await pilot.press("7")
        await settle(pilot)
        screen = app.screen
        assert isinstance(screen, TrendsScreen)
        assert "Nothing has run yet." in text_of(screen, "plot"), "a longer window would not help"
        await pilot.press("left", "enter", "right_square_bracket", "s", "tab", "Q", "w", "w", "w")
        await settle(pilot)
        assert "agenteval import" in text_of(screen, "plot")


# Pictures


@pytest.mark.xdist_group("snapshots")
async def test_picture(pictures: Pictures, made: Path) -> None:
    async with pictures.of(app_on(made.parent, made)) as pilot:
        for key in ("7", "tab"):
            await pilot.press(key)
            await settle(pilot)
        await pictures.take("test_picture[{size}]", SMALL)
        await resized(pilot, LARGE)
        for key in ("shift+tab", "s", "h", "h"):
            await pilot.press(key)
            await settle(pilot)
        await pictures.take("test_picture[{size}]", LARGE, (200, 60))


def test_a_line_is_broken_where_a_criterion_changed() -> None:
    whole = Curve("●", "bold", (0.2, 0.8, 0.8, 0.2))
    broken = replace(whole, breaks=frozenset({2}))
    drawn = [
        "\n".join(
            "".join(text for text, _ in line) for line in draw(Plot((one,), tuple(zip("abcd")), 0.0, 1.0, str), 60, 12)
        )
        for one in (whole, broken)
    ]
    assert BREAK not in drawn[0]
    columns = {line.index(BREAK) for line in drawn[1].splitlines() if BREAK in line}
    marks = sorted({column for line in drawn[1].splitlines() for column, char in enumerate(line) if char == "●"})
    assert len(columns) == 1
    assert marks[1] < min(columns) < marks[2]
    between = [line[marks[1] + 1 : marks[2]] for line in drawn[1].splitlines()[:-2]]
    assert not any(0x2800 <= ord(char) < 0x2900 for text in between for char in text), "no line leads across"


def test_no_line_leads_to_the_rate_of_other_tests() -> None:
    point = OutcomeRates(2, 2, 1, 1, 0, 0, 0.5, (0.1, 0.9))
    one = Series("", "all runs", point, (point, point, point), other_tests={1: OtherTests(4, 2, 2)})
    found = Trend(
        TrendQuery(0, 3), 0, 3, "execution", tuple(Bin(n, n, n + 1, execution=f"E{n}") for n in range(3)), (one,)
    )
    drawn = [plain(line) for line in plot_lines(found, "rate", 60, 13, -1)]
    (between,) = {line.index(BREAK) for line in drawn if BREAK in line}
    assert not any(0x2800 <= ord(char) < 0x2900 for line in drawn for char in line[:between])
    assert "only 2 of the 4 tests before: not comparable" in plain(readout(found, "rate", 1, 100)[1])


def test_what_runs_took_gives_way_and_is_not_cut() -> None:
    point = OutcomeRates(2, 2, 1, 1, 0, 0, 0.5, (0.1, 0.9))
    taken = MeasureStats(2, 458.0, 976.0, 500.0, 2.0)
    one = Series(
        "", "all runs", point, (point, point), other_tests={1: OtherTests(82, 60, 60)},
        spent={"latency": (taken, taken), "tokens": (taken, taken)},
    )  # fmt: skip
    found = Trend(
        TrendQuery(0, 2), 0, 2, "execution", tuple(Bin(n, n, n + 1, execution=f"E{n}") for n in range(2)), (one,)
    )
    said = [plain(readout(found, "rate", 1, width)[1]) for width in (120, 80, 62)]
    assert all(" not comparable  p50 458 ms" in one and "…" not in one for one in said)
    assert [one.partition("p50 458 ms")[2] for one in said] == [
        ", p95 976 ms   458 tokens (p95 976)",
        "   458 tokens",
        "",
    ]


async def test_one_key_grades_the_history_with_the_criteria_of_today(tmp_path: Path) -> None:
    suite = tmp_path / "shop.suite.yaml"
    suite.write_text(
        "name: Shop\nagent: demo\ntests:\n"
        "  - {id: refunds, prompt: please, criteria: [{name: right, prototype_class: TextResponse,"
        " config_uxon: {metrics: [{type: TextMatch, contains: Answer}]}}]}\n",
        "utf-8",
    )
    db = tmp_path / "history.db"
    with filled(db, range(28, 30)) as store:
        move_suites(store, SHOP, str(suite))
    app = app_on(tmp_path, db)
    async with app.run_test(size=(140, 45)) as pilot:

        async def title(*keys: str) -> str:
            await (pilot.press(*keys) if keys else screen_of(app).do("regrade"))
            await settle(pilot)
            screen = app.screen
            assert isinstance(screen, TrendsScreen)
            return "".join(text for cells in screen.heading(140) for text, _ in cells)

        await settle(pilot)
        assert "criteria" not in await title("7", "s")
        shown = await title()
        assert (
            "graded with today's criteria: 6 runs, 2 have a different verdict, 12 left out, because their test is no "
            "longer "
            "in a file" in shown
        )
        narrow = app.screen.heading(80)  # type: ignore[attr-defined]
        assert "".join(text for cells in narrow for text, _ in cells).startswith("by today's criteria")
        assert "refunds" not in text_of(app.screen, "plot")
        assert len(listed(app.screen)) == 1, "the other suite has no file"
        assert "criteria" not in await title()
        assert len(listed(app.screen)) == 2
