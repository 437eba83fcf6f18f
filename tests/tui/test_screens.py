"""From screen to screen by keys; themes and small windows; a run that is started and found again."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from sampled import fresh, go_to, samples
from shop import app_on, copy_samples, settle, text_of, until
from test_writing_once import Held, again
from textual.command import CommandPalette
from textual.pilot import Pilot
from textual.widgets import Input

from agenteval_tui.cli.app_start import AppStart
from agenteval_tui.core import directories
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.history import connections
from agenteval_tui.history.store import Store
from agenteval_tui.runs.events import Planned, RunRef
from agenteval_tui.runs.live_view import ExecutionView
from agenteval_tui.suites.load import load_suite
from agenteval_tui.tui.app import AgentevalApp
from agenteval_tui.tui.screens.editor.screen import EditorScreen
from agenteval_tui.tui.screens.help import HelpScreen
from agenteval_tui.tui.screens.history.screen import HistoryScreen
from agenteval_tui.tui.screens.inspect.screen import InspectScreen
from agenteval_tui.tui.screens.prune import PruneScreen
from agenteval_tui.tui.screens.run.screen import RunScreen
from agenteval_tui.tui.screens.suites.screen import SuitesScreen
from agenteval_tui.tui.widgets.titled_pane import PaneTitle
from agenteval_tui.tui.widgets.virtual_list import VirtualList
from tests.sweeps import share

__all__ = ["fresh", "samples"]  # fixtures

pytestmark = pytest.mark.xdist_group("screens")


async def test_a_folder_with_files_of_another_tool_names_the_command_and_the_page(tmp_path: Path) -> None:
    (tmp_path / "promptfooconfig.yaml").write_text("prompts: [a]\nproviders: [b]\n")
    (tmp_path / "test_shop.py").write_text("from deepeval import assert_test\n")
    app = app_on(tmp_path, tmp_path / "history.db")
    async with app.run_test(size=(160, 40)) as pilot:
        await until(pilot, lambda: "is a promptfoo configuration:" in text_of(app))
        assert "--to promptfooconfig.suite.yaml" in text_of(app)
        assert "agenteval docs coming-from/promptfoo" in text_of(app)
        assert "test_shop.py is a program that uses DeepEval:" in text_of(app)


async def test_an_empty_folder_says_what_to_do(tmp_path: Path) -> None:
    app = app_on(tmp_path, tmp_path / "history.db")
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        assert "No suites in" in text_of(app)
        assert "look at the samples" in text_of(app)
        await pilot.press("a")
        await settle(pilot)
        await pilot.press(*"My shop", "down", "down", "down", *"Status", "enter", "enter")
        await settle(pilot)
        assert "this is needed" in text_of(app)
        await pilot.press(*"Where?", "enter")
        await until(pilot, lambda: isinstance(app.screen, EditorScreen))
        await settle(pilot)
        assert "my-shop.suite.yaml" in text_of(app).splitlines()[1]
        made = load_suite(tmp_path / "my-shop.suite.yaml").suite
        assert made is not None
        assert [(made.name, made.agent, one.id, one.prompt) for one in made.tests] == [
            ("My shop", "shop", "status", "Where?")
        ]


async def test_the_samples_are_shown_where_a_folder_that_was_named_has_no_suite(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    app = app_on(tmp_path / "empty", tmp_path / "history.db")
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        await pilot.press("alt+v")
        await until(pilot, lambda: "Shop support" in text_of(app))


async def test_from_screen_to_screen(fresh: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    app = app_on(*fresh)
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        await numbers_and_escape_go_between_screens(pilot, app)
        await going_somewhere_takes_the_sheet_away_first(pilot, app)
        await keys_faster_than_the_history_are_no_bug(pilot, app)
        app.go("suites")
        await settle(pilot)
        await the_history_lists_opens_searches_and_filters(pilot, app)
        await more_and_fewer_at_once_count_from_what_was_asked_for(pilot, app, monkeypatch)


async def numbers_and_escape_go_between_screens(pilot: Pilot[int], app: AgentevalApp) -> None:
    for key, screen in (("5", HistoryScreen), ("3", RunScreen), ("4", InspectScreen), ("1", SuitesScreen)):
        await pilot.press(key)
        await settle(pilot)
        assert isinstance(app.screen, screen)
    await pilot.press("escape", "question_mark")
    await settle(pilot)
    assert isinstance(app.screen, HelpScreen)
    assert "Rerun" in text_of(app) or "Run what failed last" in text_of(app)
    await pilot.press("ctrl+p")
    await settle(pilot)
    assert isinstance(app.screen, CommandPalette)
    await pilot.press("escape")
    await settle(pilot)
    assert isinstance(app.screen, SuitesScreen)


async def going_somewhere_takes_the_sheet_away_first(pilot: Pilot[int], app: AgentevalApp) -> None:
    await pilot.press("question_mark")
    await settle(pilot)
    app.go("history")
    await settle(pilot)
    assert isinstance(app.screen, HistoryScreen)
    assert len(app.screen_stack) == 2
    await pilot.press("1")
    await settle(pilot)
    assert isinstance(app.screen, SuitesScreen)


async def keys_faster_than_the_history_are_no_bug(pilot: Pilot[int], app: AgentevalApp) -> None:
    await pilot.press("5")
    for _ in range(20):
        app.screen.action_only_failed()  # type: ignore[attr-defined]
        await asyncio.sleep(0)
    await settle(pilot)
    assert "bug" not in " ".join(note.message for note in app._notifications)
    assert "1 execution" in text_of(app)


async def the_history_lists_opens_searches_and_filters(pilot: Pilot[int], app: AgentevalApp) -> None:
    await pilot.press("5")
    await settle(pilot)
    assert "1 execution" in text_of(app)
    await pilot.press("enter")
    await settle(pilot)
    assert "kunden-deutschland" in text_of(app)
    await pilot.press("F")
    await settle(pilot)
    rows = app.screen.query_one("#list", VirtualList).count
    store = Store.open(app.session.store.path, read_only=True)
    try:
        execution = store.execution("last")
        assert rows == execution.failed + execution.errors
    finally:
        store.close()
    await pilot.press("F", "escape", "slash", *"customs")
    await settle(pilot)
    shown = text_of(app)
    assert "order-status" in shown
    assert "kunden-deutschland" not in shown
    await pilot.press("enter", "enter")
    await settle(pilot)
    assert isinstance(app.screen, InspectScreen)
    assert "order-status" in text_of(app)


async def more_and_fewer_at_once_count_from_what_was_asked_for(
    pilot: Pilot[int], app: AgentevalApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    from test_snapshots import an_execution

    await pilot.press("3")
    await settle(pilot)
    screen = app.screen
    assert isinstance(screen, RunScreen)
    named = screen.keys()
    assert {key for key, _, _ in named} == {"1", "5", "?"}  # nothing is watched: nothing to pause
    screen.show_view(an_execution())  # whose figures, of 8 at once, do not change meanwhile
    asked: list[int] = []
    monkeypatch.setattr(screen, "_send", lambda verb, run="", number=0: asked.append(number) if number else None)
    await pilot.press("plus", "plus", "minus")
    assert asked == [9, 10, 9]
    # The title counts the tests of the execution that is shown, also where it is another one.
    title = lambda: screen.query_one("#cells-title", PaneTitle).render_line(0).text.split()[-2:]  # noqa: E731
    assert title() == ["3", "tests"]
    only, ref = ExecutionView(), RunRef("one-1", "one", "one", "", 0, 1, "shop/support")
    only.apply(Planned(1, "01M8029MCF6CGVEKSBGJT430FL", "one", (ref,), 8, 0))
    screen.show_view(only)
    await settle(pilot)
    assert title() == ["1", "test"]


async def test_a_run_is_started_watched_and_found_in_the_history(tmp_path: Path) -> None:
    suites = copy_samples(tmp_path)
    text = (suites / "support.suite.yaml").read_text(encoding="utf-8")
    (suites / "support.suite.yaml").write_text(text.replace("pace: 0,", "pace: 0.2,"), encoding="utf-8")
    db = tmp_path / "history.db"
    app = app_on(suites, db)
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        await go_to(pilot, "order-status")
        await pilot.press("r")
        await settle(pilot)
        await until(pilot, lambda: "3 of 3" in text_of(app) or isinstance(app.screen, HistoryScreen))
        if isinstance(app.screen, RunScreen):
            await until(pilot, lambda: "The clearest failure:   enter  open it" in text_of(app))
            assert 'expected "#W1042"  got "W1042"' in text_of(app)
            await pilot.press("enter")
            await until(pilot, lambda: isinstance(app.screen, InspectScreen))
        await pilot.press("5")
        await settle(pilot)
        assert "order-status" in text_of(app)
    store = Store.open(db, read_only=True)
    try:
        assert [run.status for run in store.runs_of_execution(store.execution("last").id)] == ["failed"] * 3
    finally:
        store.close()


async def test_every_theme_can_be_lived_in(fresh: tuple[Path, Path]) -> None:
    app = app_on(*fresh)
    async with app.run_test(size=(150, 45)) as pilot:
        for theme in share(("contrast", "dusk", "moss", "paper", "sixteen")):
            app.theme = theme
            await settle(pilot)
            await go_to(pilot, "kunden-deutschland")
            await pilot.press("enter")
            await settle(pilot)
            assert "evidence" in text_of(app), theme
            again = app_on(*fresh)
            assert again.theme == theme  # kept for the next start
            await pilot.press("1")
            await settle(pilot)


@pytest.mark.parametrize(
    ("sizes", "screen"), [([(40, 12), (80, 24)], "suites"), ([(20, 5)], "history")], ids=["suites", "history"]
)
async def test_small_windows_are_survived(sizes: list[tuple[int, int]], screen: str, fresh: tuple[Path, Path]) -> None:
    app = app_on(*fresh, screen=screen)
    async with app.run_test(size=sizes[0]) as pilot:
        for size in sizes:
            await pilot.resize_terminal(*size)
            await settle(pilot)
            await pilot.press("j", "enter")
            await settle(pilot)
            await pilot.resize_terminal(30, 8)
            await settle(pilot)
            await pilot.press("tab", "tab", "escape", "3", "4", "5", "1")
            await settle(pilot)
            assert isinstance(app.screen, SuitesScreen)


async def test_a_picture_goes_to_the_data_folder_and_never_into_the_project(
    fresh: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(fresh[0])
    before = sorted(fresh[0].iterdir())
    app = app_on(*fresh)
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await pilot.press("f12", "f12")
        await settle(pilot)
        told = " ".join(note.text for note in app.notices.all())
    pictures = sorted(directories.data_dir().glob("*.svg"))
    assert [one.name for one in pictures] == ["agenteval-suites-2.svg", "agenteval-suites.svg"]
    assert str(pictures[1]) in told
    assert sorted(fresh[0].iterdir()) == before


async def test_a_history_that_moves_under_the_open_app_is_said_and_the_new_one_is_shown(
    fresh: tuple[Path, Path],
) -> None:
    suites, db = fresh
    app = app_on(suites, db)
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        await pilot.press("5")
        await settle(pilot)
        assert "1 execution" in text_of(app)
        db.rename(db.with_name("moved.db"))
        app._look_at_history()
        await settle(pilot)
        assert any("moved or deleted while it was open" in note.message for note in app._notifications)
        await pilot.press("ctrl+r")
        await settle(pilot)
        assert "1 execution" not in text_of(app)
        assert app.session.store.in_place
        app._look_at_history()
        await settle(pilot)
        assert sum("moved or deleted" in note.text for note in app.notices.all()) == 1


async def test_a_look_at_the_history_that_waits_is_not_replaced_by_the_next(
    fresh: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    app = app_on(*fresh)
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        held = Held(lambda: "The history was replaced.")
        monkeypatch.setattr(app.session, "moved", held)
        await again(pilot, held, app._look_at_history)
        assert len(held.begun) == 1
        assert [note.text for note in app.notices.all()] == ["The history was replaced."]


async def test_pruning_that_breaks_off_may_have_removed_runs(
    fresh: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise AgentevalError("the disk is full")

    monkeypatch.setattr("agenteval_tui.tui.screens.prune.prune", broken)
    app = app_on(*fresh)
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        done: list[object] = []
        app.push_screen(PruneScreen(), done.append)
        await settle(pilot)
        app.screen.query_one("#field-age", Input).value = ""
        app.screen.query_one("#field-keep", Input).value = "1"
        await settle(pilot)
        assert "would be removed" in text_of(app)
        await pilot.press("enter", "enter")
        await until(pilot, lambda: "the disk is full" in text_of(app))
        await pilot.press("escape")
        await settle(pilot)
        assert done == [True]


async def test_a_file_name_that_is_too_long_is_one_sentence_and_the_sheet_stays(fresh: tuple[Path, Path]) -> None:
    from agenteval_tui.tui.screens.import_export_dialogs import ExportRunScreen
    from agenteval_tui.tui.widgets.form import Form

    app = app_on(*fresh)
    async with app.run_test(size=(120, 40), notifications=True) as pilot:
        await settle(pilot)
        await go_to(pilot, "order-status")
        await pilot.press("enter")
        await settle(pilot)
        await pilot.press("X")
        await settle(pilot)
        sheet = app.screen
        assert isinstance(sheet, ExportRunScreen)
        sheet.query_one(Form).fill({"file": "x" * 300 + ".md"})
        await pilot.press("enter")
        await settle(pilot)
        told = text_of(app) + " ".join(note.message for note in app._notifications)
        assert "this file name is too long" in told
        assert "A bug in agenteval" not in told
        assert app.screen is sheet
    assert not (directories.data_dir() / "errors.log").exists()


def test_a_name_that_the_system_just_takes_can_be_written(tmp_path: Path) -> None:
    from agenteval_tui.core.atomic_write import write_pieces

    for name in ("x" * 255, "日" * 85):
        write_pieces(tmp_path / name, ["text"])
        assert (tmp_path / name).read_text() == "text"


async def test_a_locked_history_is_said_in_the_app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "history.db"
    Store.open(path).close()
    monkeypatch.setattr(connections, "BUSY_SECONDS", 0.01)
    app = app_on(tmp_path, path)
    async with app.run_test(size=(140, 30)) as pilot:
        await settle(pilot)
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            store = app.session.store
            await asyncio.to_thread(lambda: store.delete_execution("none").exception())
            other.execute("ROLLBACK")
        await until(pilot, lambda: any("waiting for the history file" in one.text for one in app.notices.all()))


async def test_a_folder_with_agents_offers_a_suite_for_each(tmp_path: Path) -> None:
    (tmp_path / "bot.py").write_text(
        "from pydantic_ai import Agent\nshop = Agent(system_prompt='You sell pans.')\ncook = Agent(name='cook')\n"
    )
    app = app_on(tmp_path, tmp_path / "history.db")
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: "2 agents found" in text_of(app))
        assert "bot.py:3  cook = Agent(…)" in text_of(app)
        await pilot.press("a")
        await until(pilot, lambda: "A suite for which agent?" in text_of(app))
        await pilot.press("down", "enter")
        await until(pilot, lambda: (tmp_path / "cook.suite.yaml").exists())
        await until(pilot, lambda: "says-what-it-is-for" in text_of(app))
        assert load_suite(tmp_path / "cook.suite.yaml").problems == ()
        # From any screen, by the palette.
        await pilot.press("2", "ctrl+p", *(char if char != " " else "space" for char in "make a new suite"))
        await until(pilot, lambda: "Make a new suite, with a first test" in text_of(app))
        await pilot.press("enter")
        await until(pilot, lambda: "A suite for which agent?" in text_of(app))
        await pilot.press("down", "enter")
        await until(pilot, lambda: any("already exists" in notice.text for notice in app.notices.all()))
        app.new_suite()
        await until(pilot, lambda: "A suite for which agent?" in text_of(app))
        await pilot.press("down", "down", "enter")
        await until(pilot, lambda: "A new suite" in text_of(app))


async def test_a_start_without_paths_shows_the_agents_of_the_folder_and_the_samples_by_a_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "bot.py").write_text(
        "from pydantic_ai import Agent\nshop = Agent(system_prompt='You sell pans.')\n"
    )
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setenv("AGENTEVAL_DATA_DIR", str(tmp_path / "data"))
    app = AgentevalApp(AppStart(paths=(), db=tmp_path / "history.db"))
    async with app.run_test(size=(100, 30)) as pilot:
        await until(pilot, lambda: "1 agent found" in text_of(app))
        assert "Shop support" not in text_of(app)
        await pilot.press("alt+v")
        await until(pilot, lambda: "Shop support" in text_of(app))
        await until(pilot, lambda: "This folder has no suites" in text_of(app))


async def test_a_start_without_paths_agents_and_suites_shows_the_samples(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setenv("AGENTEVAL_DATA_DIR", str(tmp_path / "data"))
    app = AgentevalApp(AppStart(paths=(), db=tmp_path / "history.db"))
    async with app.run_test(size=(100, 30)) as pilot:
        await until(pilot, lambda: "Shop support" in text_of(app))
