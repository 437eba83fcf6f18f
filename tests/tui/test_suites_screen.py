"""The Suites screen, driven by keys: what a person sees and does on it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from pictures import resized
from sampled import fresh, go_to, samples
from shop import app_on, copy_samples, press_at_once, run_samples, settle, text_of, until
from textual.pilot import Pilot
from textual.widgets import Input

from agenteval_tui.core import directories
from agenteval_tui.tui.app import AgentevalApp
from agenteval_tui.tui.screens.inspect.screen import InspectScreen
from agenteval_tui.tui.screens.suites.screen import SuitesScreen
from agenteval_tui.tui.widgets.virtual_list import VirtualList

__all__ = ["fresh", "samples"]  # fixtures

pytestmark = pytest.mark.xdist_group("screens")


async def test_the_first_start_says_which_key_to_press(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENTEVAL_RUNTIME_DIR", str(tmp_path / "run"))
    suites = copy_samples(tmp_path)
    app = app_on(suites, tmp_path / "history.db")
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        shown = text_of(app)
        assert "Nothing has run yet." in shown
        assert "R  run all now" in shown
        assert "rerun failed" not in shown
        assert "SQL-Assistent des Ladens" in shown
        assert "▸ – order-status" in shown
        # To look at one types nothing: the next key goes on.
        await pilot.press("enter")
        await until(
            pilot, lambda: " 2 edit " in text_of(app) and app.focused is not None and app.focused.id == "criteria"
        )
        await pilot.press("1")
        await settle(pilot)
        assert "R  run all now" in text_of(app)
        # In a terminal of a few rows they are for the list.
        await resized(pilot, (20, 5))
        await settle(pilot)
        assert "Nothing has run" not in text_of(app)
        assert "Shop support" in text_of(app)
        # Another process runs a test: the figures come, and nobody is told that nothing was run.
        await resized(pilot, (120, 40))
        await asyncio.to_thread(run_samples, suites, tmp_path / "history.db", tests=("order-status",))
        (tmp_path / "run" / "live").mkdir(parents=True)  # as where an execution begins or ends
        app._look_at_history()
        await until(pilot, lambda: "▸ ✗ order-status" in text_of(app))
        assert "Nothing has run" not in text_of(app)


async def test_samples_that_somebody_names_are_not_there_for_want_of_suites(tmp_path: Path) -> None:
    named = directories.bundled("sample_suites")
    app = app_on(named, tmp_path / "history.db")
    async with app.run_test(size=(160, 40)) as pilot:
        await settle(pilot)
        shown = text_of(app)
        assert "5 sample suites with 24 tests." in shown
        assert "They are in " in shown
        assert "no suites" not in shown


async def test_in_a_small_terminal_the_banner_leaves_half_of_the_rows_to_the_list(tmp_path: Path) -> None:
    app = app_on(directories.bundled("sample_suites"), tmp_path / "history.db")
    async with app.run_test(size=(40, 12)) as pilot:
        await settle(pilot)
        assert "sample suites with" in text_of(app)
        assert "▸ – order-status" in text_of(app)


async def test_a_broken_suite_is_shown_with_place_and_remedy(tmp_path: Path) -> None:
    (tmp_path / "broken.suite.yaml").write_text(
        "name: Broken\ntests:\n  - id: a\n    promt: hi\n    criteria:\n"
        '      - {name: c, prototype_class: TextResponse, config_uxon: \'{"metrics": [{"type": "TextMach"}]}\'}\n'
    )
    app = app_on(tmp_path, tmp_path / "history.db")
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        shown = text_of(app)
        assert "problem" in shown
        assert "4:5 error" in shown
        assert "prompt" in shown


async def test_a_suite_that_cannot_be_read_and_a_broken_dataset_are_shown(tmp_path: Path) -> None:
    (tmp_path / "a.suite.yaml").write_bytes(b"name: x\n\xff\n")
    (tmp_path / "b.suite.yaml").write_text(
        "name: Rows\nagent: shop\nagents: {shop: {kind: demo}}\ntests:\n  - id: a\n    dataset: {file: rows.csv}\n"
        "    criteria: [{name: c, prototype_class: TextResponse, config_uxon: {metrics: [{type: TextMatch, "
        "contains: x}]}}]\n"
    )
    (tmp_path / "rows.csv").write_text("input,more\nhi\n")
    app = app_on(tmp_path, tmp_path / "history.db")
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        assert text_of(app).count("! 1 problem") == 2
        assert "2:1 error" in text_of(app)
        assert "this file is not UTF-8" in text_of(app)
        # Keys that need its tests say what they can; none of them breaks.
        await pilot.press("space", "U", "P", "D", "enter", "enter", "j")
        await settle(pilot)
        assert "rows.csv:2:1 error" in text_of(app)


async def test_a_history_that_is_no_folder_is_one_clear_sentence(tmp_path: Path) -> None:
    suites = copy_samples(tmp_path)
    (tmp_path / "file").write_text("not a folder")
    app = app_on(suites, tmp_path / "file" / "history.db")
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        assert "file" in text_of(app)
        assert "!" in text_of(app)
        assert isinstance(app.screen, SuitesScreen)


async def test_what_the_system_refuses_is_shown_where_the_list_would_be_and_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = app_on(copy_samples(tmp_path), tmp_path / "history.db")
    read, asked = app.session.overview, []

    def overview() -> object:
        asked.append(1)
        if len(asked) == 1:
            raise PermissionError(13, "Permission denied", "/data/history.db")  # a long path is wrapped
        return read()

    monkeypatch.setattr(app.session, "overview", overview)
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        shown = text_of(app)
        assert "history.db" in shown
        assert "check the path and its permissions" in shown
        assert "Loading" not in shown
        await pilot.press("P")  # any key that needs them reads them again
        await until(pilot, lambda: "Shop support" in text_of(app))


async def test_the_list_its_details_and_its_filter(fresh: tuple[Path, Path]) -> None:
    """One app, first narrow, then wide."""
    app = app_on(*fresh)
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await narrow_the_details_take_turns_with_the_list_and_the_last_line_follows(pilot, app)
        await pilot.press("slash", "escape")
        await pilot.resize_terminal(140, 45)
        await settle(pilot)
        assert "kunden-deutschland" in text_of(app)
        await a_suite_shows_rates_causes_and_criteria(pilot, app)
        await the_filter_narrows_by_words_and_fields(pilot, app)
        await a_filter_may_leave_fewer_rows_than_the_cursor_is_down(pilot, app)
        await enter_before_the_runs_are_read_opens_the_run(pilot, app)


async def narrow_the_details_take_turns_with_the_list_and_the_last_line_follows(
    pilot: Pilot[int], app: AgentevalApp
) -> None:
    def last() -> str:
        return text_of(app).split("\n")[-1]

    assert "enter inspect  tab details" in last(), "the cursor begins on a test that failed"
    await pilot.press("g")
    await settle(pilot)
    assert "enter close" in last()
    await go_to(pilot, "order-status")
    await settle(pilot)
    assert "enter inspect  tab details" in last()
    for _ in range(2):
        await pilot.press("tab")
        await settle(pilot)
        assert "why it fails" in text_of(app)
        assert "tab list" in last()
        await pilot.press("tab")
        await settle(pilot)
        assert "▸ ✗ order-status" in text_of(app), "once is enough to come back"
    tree = pilot.app.screen.query_one("#tree", VirtualList)
    row = tree.cursor - tree.scroll_offset.y
    for sign in "▾▸":
        await pilot.click(tree, offset=(4, row))
        await settle(pilot)
        assert f"{sign} ✗ order-status" in text_of(app), "a click on the sign folds; it opens no run"
    await pilot.press("space")
    assert "D duplicate  x delete" in last()
    await pilot.press("x")
    await settle(pilot)
    assert "with its comments. Its runs stay in the history." in " ".join(text_of(app).replace("│", " ").split())
    await pilot.press("escape", "U")
    await settle(pilot)
    press_at_once(pilot, "tab", "slash", *"zzz")
    await settle(pilot)
    box = app.screen.query_one("#filter", Input)
    assert (box.value, app.focused) == ("zzz", box)
    assert "Nothing matches the filter." in text_of(app), "a filter is for the list: the list is shown"
    await pilot.press("enter", "a")
    await settle(pilot)
    assert any("Press esc to clear it" in note.message for note in app._notifications)


async def a_suite_shows_rates_causes_and_criteria(pilot: Pilot[int], app: AgentevalApp) -> None:
    await go_to(pilot, "order-status")
    shown = text_of(app)
    assert "0/3" in shown
    assert "why it fails" in shown
    assert "get_order" in shown
    assert "interval" in shown


async def the_filter_narrows_by_words_and_fields(pilot: Pilot[int], app: AgentevalApp) -> None:
    await pilot.press("slash", *"order-status")
    await settle(pilot)
    assert isinstance(app.focused, Input)
    shown = text_of(app)
    assert "order-status" in shown
    assert "kunden-deutschland" not in shown
    app.focused.value = "outcome:passed tag:smoke"
    await settle(pilot)
    assert "order-status" not in text_of(app)
    await pilot.press("escape")
    await settle(pilot)
    assert "kunden-deutschland" in text_of(app)


async def a_filter_may_leave_fewer_rows_than_the_cursor_is_down(pilot: Pilot[int], app: AgentevalApp) -> None:
    await pilot.press("G", "slash", *"order-status")
    await settle(pilot)
    assert "1 shown" in text_of(app)
    tree = app.screen.query_one("#tree", VirtualList)
    found = tree.cursor_key or ""
    assert found.endswith("order-status"), "the test, not its suite"
    await pilot.press(*"zzz")
    await settle(pilot)
    assert "Nothing matches the filter" in text_of(app)
    await pilot.press("escape")
    await settle(pilot)
    assert "kunden-deutschland" in text_of(app)
    # Back on the row that the filter hid; a row that was gone to in the filtered list keeps the cursor.
    assert tree.cursor == tree.count - 1 != tree.index_of(found)
    await pilot.press("slash", *"kunden-d", "enter", "g", "j")
    await settle(pilot)
    gone_to = tree.cursor_key or ""
    assert gone_to.endswith("kunden-deutschland")
    await pilot.press("escape")
    await settle(pilot)
    assert tree.cursor_key == gone_to


async def enter_before_the_runs_are_read_opens_the_run(pilot: Pilot[int], app: AgentevalApp) -> None:
    screen = app.screen
    await go_to(pilot, "order-status")
    assert isinstance(screen, SuitesScreen)
    assert screen.controller.tree is not None
    screen.controller.take_overview(screen.controller.tree.overview)  # what was read of runs is old now
    screen.action_inspect()
    await settle(pilot)
    assert isinstance(app.screen, InspectScreen)
