"""The work screens, driven by keys: what a person sees and does on them."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest
from shop import app_on, copy_samples, run_samples, settle, text_of, until
from textual.widgets import Input

from agenteval_tui.history.store import Store
from agenteval_tui.tui.screens.flips import FlipsScreen
from agenteval_tui.tui.screens.help import HelpScreen
from agenteval_tui.tui.screens.history import HistoryScreen
from agenteval_tui.tui.screens.inspect import InspectScreen
from agenteval_tui.tui.screens.run import RunScreen
from agenteval_tui.tui.screens.suites import SuitesScreen
from agenteval_tui.tui.widgets.config_editor import ConfigEditor
from agenteval_tui.tui.widgets.virtual_list import VirtualList

pytestmark = pytest.mark.xdist_group("screens")


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """(folder with the sample suites, history in which they ran once)."""
    folder = tmp_path_factory.mktemp("samples")
    suites = copy_samples(folder)
    run_samples(suites, folder / "history.db")
    return suites, folder / "history.db"


@pytest.fixture
def fresh(samples: tuple[Path, Path], tmp_path: Path) -> tuple[Path, Path]:
    """The same suites, and a copy of the history that a test may change."""
    suites, db = samples
    mine = tmp_path / "history.db"
    shutil.copy(db, mine)
    return suites, mine


async def go_to(pilot: object, name: str) -> None:
    """Put the cursor of the Suites screen on a test."""
    from textual.pilot import Pilot

    assert isinstance(pilot, Pilot)
    view = pilot.app.screen.query_one("#tree", VirtualList)
    source = view.source
    for index in range(source.count()):
        if source.key(index).endswith("\x1f" + name):
            view.cursor = index
    await settle(pilot)


async def test_the_first_start_says_which_key_to_press(tmp_path: Path) -> None:
    suites = copy_samples(tmp_path)
    app = app_on(suites, tmp_path / "history.db")
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        shown = text_of(app)
        assert "Nothing was run yet. R runs every test" in shown
        assert "SQL-Assistent des Ladens" in shown
        assert "not run yet" in shown


async def test_an_empty_folder_says_what_to_do(tmp_path: Path) -> None:
    app = app_on(tmp_path, tmp_path / "history.db")
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        assert "No suites in" in text_of(app)
        assert "agenteval demo" in text_of(app)


async def test_a_suite_shows_rates_causes_and_criteria(fresh: tuple[Path, Path]) -> None:
    app = app_on(*fresh)
    async with app.run_test(size=(140, 45)) as pilot:
        await settle(pilot)
        await go_to(pilot, "order-status")
        shown = text_of(app)
        assert "0/3" in shown
        assert "Why it fails" in shown
        assert "get_order" in shown
        assert "interval" in shown


async def test_narrow_the_details_take_turns_with_the_list_and_the_last_line_follows(fresh: tuple[Path, Path]) -> None:
    app = app_on(*fresh)
    async with app.run_test(size=(80, 24)) as pilot:

        def last() -> str:
            return text_of(app).split("\n")[-1]

        await settle(pilot)
        assert "enter close" in last()
        await go_to(pilot, "order-status")
        await settle(pilot)
        assert "enter inspect  tab details" in last()
        for _ in range(2):
            await pilot.press("tab")
            await settle(pilot)
            assert "Why it fails" in text_of(app)
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
        await pilot.press("m")
        assert "d copy  x delete" in last()
        await pilot.press("x")
        await settle(pilot)
        assert "with its comments. Its runs stay in the history." in " ".join(text_of(app).replace("│", " ").split())
        await pilot.press("escape", "u", "tab", "slash", *"zzz")
        await settle(pilot)
        assert "Nothing matches the filter." in text_of(app), "a filter is for the list: the list is shown"
        await pilot.press("enter", "n")
        await settle(pilot)
        assert any("esc clears the filter" in note.message for note in app._notifications)


async def test_the_filter_narrows_by_words_and_fields(fresh: tuple[Path, Path]) -> None:
    app = app_on(*fresh)
    async with app.run_test(size=(140, 45)) as pilot:
        await settle(pilot)
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


async def test_a_filter_may_leave_fewer_rows_than_the_cursor_is_down(fresh: tuple[Path, Path]) -> None:
    app = app_on(*fresh)
    async with app.run_test(size=(140, 45)) as pilot:
        await settle(pilot)
        await pilot.press("G", "slash", *"order-status")
        await settle(pilot)
        assert "1 shown" in text_of(app)
        await pilot.press(*"zzz")
        await settle(pilot)
        assert "Nothing matches the filter" in text_of(app)
        await pilot.press("escape")
        await settle(pilot)
        assert "kunden-deutschland" in text_of(app)


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


async def test_a_history_that_is_no_folder_is_one_clear_sentence(tmp_path: Path) -> None:
    suites = copy_samples(tmp_path)
    (tmp_path / "file").write_text("not a folder")
    app = app_on(suites, tmp_path / "file" / "history.db")
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        assert "file" in text_of(app)
        assert "!" in text_of(app)
        assert isinstance(app.screen, SuitesScreen)


async def test_numbers_and_escape_go_between_screens(fresh: tuple[Path, Path]) -> None:
    app = app_on(*fresh)
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        for key, screen in (("5", HistoryScreen), ("3", RunScreen), ("4", InspectScreen), ("1", SuitesScreen)):
            await pilot.press(key)
            await settle(pilot)
            assert isinstance(app.screen, screen)
        await pilot.press("escape", "question_mark")
        await settle(pilot)
        assert isinstance(app.screen, HelpScreen)
        assert "Rerun" in text_of(app) or "Run what failed last" in text_of(app)
        await pilot.press("escape")
        await settle(pilot)
        assert isinstance(app.screen, SuitesScreen)


async def test_a_failed_run_shows_why(fresh: tuple[Path, Path]) -> None:
    app = app_on(*fresh)
    async with app.run_test(size=(150, 45)) as pilot:
        await settle(pilot)
        await go_to(pilot, "order-status")
        await pilot.press("enter")
        await settle(pilot)
        assert isinstance(app.screen, InspectScreen)
        shown = text_of(app)
        assert "Where is my order #W1042?" in shown
        assert "get_order" in shown
        assert "differs only in" in shown or "order_id" in shown
        assert "failure 1 of 3" in shown
        assert '"ToolCheck"' in shown
        await pilot.press("t")
        await settle(pilot)
        assert "Toolname:" in text_of(app)
        await pilot.press("n")
        await settle(pilot)
        assert "failure 2 of 3" in text_of(app)


async def test_an_edit_is_judged_counted_saved_and_nothing_else_changes(tmp_path: Path) -> None:
    suites = copy_samples(tmp_path)
    db = tmp_path / "history.db"
    await asyncio.to_thread(run_samples, suites, db, tests=("kunden-deutschland",))
    file = suites / "shop-sql.suite.yaml"
    before = file.read_text(encoding="utf-8")
    app = app_on(suites, db)
    async with app.run_test(size=(150, 45)) as pilot:
        await settle(pilot)
        await go_to(pilot, "kunden-deutschland")
        await pilot.press("e")
        await settle(pilot)
        editor = app.screen.query_one("#config", ConfigEditor)
        await until(pilot, lambda: editor.has_focus)
        at = editor.text.index("country = '")
        editor.go_to(at + len("country"))
        await pilot.press(*["delete"] * len(" = '{{country}}'"))
        await settle(pilot)
        shown = text_of(app)
        assert "edited" in shown
        assert "the criteria as shown say passed" in shown
        assert "3 runs flip to passed" in shown
        await pilot.press("f9")
        await settle(pilot)
        assert isinstance(app.screen, FlipsScreen)
        assert "3 runs would flip" in text_of(app)
        await pilot.press("escape", "ctrl+s")
        await settle(pilot)
        assert "saved" in text_of(app)
    after = file.read_text(encoding="utf-8")
    assert after == before.replace("\"country = '{{country}}'\"", '"country"')


async def test_a_broken_edit_is_an_error_with_a_fix_that_one_key_applies(fresh: tuple[Path, Path]) -> None:
    app = app_on(*fresh)
    async with app.run_test(size=(150, 45)) as pilot:
        await settle(pilot)
        await go_to(pilot, "kunden-deutschland")
        await pilot.press("e")
        await settle(pilot)
        editor = app.screen.query_one("#config", ConfigEditor)
        good = editor.text
        editor.replace_all(good.replace('"contains_all"', '"contains_al"'))
        await settle(pilot)
        assert "problems 1" in text_of(app)
        assert "5 runs flip to error" in text_of(app)
        await pilot.press("f4")
        await settle(pilot)
        assert editor.text == good
        assert "problems 0" in text_of(app)


async def test_a_file_that_changed_meanwhile_is_not_overwritten_without_asking(tmp_path: Path) -> None:
    suites = copy_samples(tmp_path)
    db = tmp_path / "history.db"
    await asyncio.to_thread(run_samples, suites, db, tests=("kunden-deutschland",))
    file = suites / "shop-sql.suite.yaml"
    app = app_on(suites, db)
    async with app.run_test(size=(150, 45)) as pilot:
        await settle(pilot)
        await go_to(pilot, "kunden-deutschland")
        await pilot.press("e")
        await settle(pilot)
        editor = app.screen.query_one("#config", ConfigEditor)
        editor.replace_all(editor.text.replace("country = '{{country}}'", "country"))
        file.write_text("# somebody was here\n" + file.read_text(encoding="utf-8"), encoding="utf-8")
        await settle(pilot)
        await pilot.press("ctrl+s")
        await settle(pilot)
        assert "was changed on disk" in text_of(app)
        assert "+# somebody was here" in text_of(app)
        assert "{{country}}" in file.read_text(encoding="utf-8")
        await pilot.press("y")
        await settle(pilot)
        text = file.read_text(encoding="utf-8")
        assert text.startswith("# somebody was here\n")
        assert "'{{country}}'" not in text.split("contains_all")[1].splitlines()[0]


async def test_the_history_lists_opens_searches_and_filters(fresh: tuple[Path, Path]) -> None:
    app = app_on(*fresh)
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        await pilot.press("5")
        await settle(pilot)
        assert "1 execution" in text_of(app)
        await pilot.press("enter")
        await settle(pilot)
        assert "kunden-deutschland" in text_of(app)
        await pilot.press("f")
        await settle(pilot)
        rows = app.screen.query_one("#list", VirtualList).count
        store = Store.open(fresh[1], read_only=True)
        try:
            execution = store.execution("last")
            assert rows == execution.failed + execution.errors
        finally:
            store.close()
        await pilot.press("f", "escape", "slash", *"customs")
        await settle(pilot)
        shown = text_of(app)
        assert "order-status" in shown
        assert "kunden-deutschland" not in shown
        await pilot.press("enter", "enter")
        await settle(pilot)
        assert isinstance(app.screen, InspectScreen)
        assert "order-status" in text_of(app)


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
        shown = text_of(app)
        assert "order-status" in shown
        await pilot.press("5")
        await settle(pilot)
        assert "order-status" in text_of(app)
    store = Store.open(db, read_only=True)
    try:
        assert [run.status for run in store.runs_of_execution(store.execution("last").id)] == ["failed"] * 3
    finally:
        store.close()


async def test_keys_faster_than_the_history_are_no_bug(fresh: tuple[Path, Path]) -> None:
    app = app_on(*fresh)
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        await pilot.press("5")
        for _ in range(20):
            app.screen.action_only_failed()  # type: ignore[attr-defined]
            await asyncio.sleep(0)
        await settle(pilot)
        assert "bug" not in " ".join(note.message for note in app._notifications)
        assert "1 execution" in text_of(app)


async def test_enter_before_the_runs_are_read_opens_the_run(fresh: tuple[Path, Path]) -> None:
    app = app_on(*fresh)
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        screen = app.screen
        await go_to(pilot, "order-status")
        screen._runs.clear()  # type: ignore[attr-defined]
        screen.action_inspect()  # type: ignore[attr-defined]
        await settle(pilot)
        assert isinstance(app.screen, InspectScreen)


async def open_editor(pilot: object, app: object) -> ConfigEditor:
    """Inspect on kunden-deutschland, in the editor."""
    await go_to(pilot, "kunden-deutschland")
    await pilot.press("e")  # type: ignore[attr-defined]
    await settle(pilot)  # type: ignore[arg-type]
    editor: ConfigEditor = app.screen.query_one("#config", ConfigEditor)  # type: ignore[attr-defined]
    await until(pilot, lambda: editor.has_focus)  # type: ignore[arg-type]
    return editor


async def test_a_draft_follows_its_criterion_through_runs_and_criteria(fresh: tuple[Path, Path]) -> None:
    app = app_on(*fresh)
    async with app.run_test(size=(150, 45)) as pilot:
        await settle(pilot)
        editor = await open_editor(pilot, app)
        saved = editor.text
        edited = saved.replace("country = '{{country}}'", "country")
        editor.replace_all(edited)
        # Gone elsewhere before the message of the edit arrived: it belongs to the criterion it was made in.
        app.screen.action_next_criterion()  # type: ignore[attr-defined]
        await settle(pilot)
        assert editor.text != edited
        assert "edited" not in text_of(app)
        app.screen.action_previous_criterion()  # type: ignore[attr-defined]
        await settle(pilot)
        assert editor.text == edited
        app.screen.action_next_run()  # type: ignore[attr-defined]
        await settle(pilot)
        assert editor.text == edited
        assert "edited" in text_of(app)
        await pilot.press("f6")
        await settle(pilot)
        assert editor.text == saved


async def test_an_edit_goes_to_its_criterion_although_the_file_was_rearranged(tmp_path: Path) -> None:
    suites = copy_samples(tmp_path)
    db = tmp_path / "history.db"
    await asyncio.to_thread(run_samples, suites, db, tests=("kunden-deutschland",))
    file = suites / "shop-sql.suite.yaml"
    app = app_on(suites, db)
    async with app.run_test(size=(150, 45)) as pilot:
        await settle(pilot)
        editor = await open_editor(pilot, app)
        editor.replace_all(editor.text.replace("country = '{{country}}'", "country"))
        await settle(pilot)
        before = file.read_text(encoding="utf-8")
        first = "      - name: Der richtige Filter"
        assert before.count(first) >= 1
        other = (
            "      - name: Somebody's new one\n        prototype_class: TextResponse\n"
            "        config_uxon: '{\"metrics\": []}'\n"
        )
        changed = before.replace(first, other + first, 1)
        file.write_text(changed, encoding="utf-8")
        await pilot.press("ctrl+s")
        await settle(pilot)
        await pilot.press("y")
        await settle(pilot)
        assert file.read_text(encoding="utf-8") == changed.replace("\"country = '{{country}}'\"", '"country"', 1)
        # And when the criterion is gone, nothing is written and the edit is kept.
        editor.replace_all(editor.text + "// more")
        await settle(pilot)
        gone = file.read_text(encoding="utf-8").replace("name: Der richtige Filter", "name: Another name")
        file.write_text(gone, encoding="utf-8")
        await pilot.press("ctrl+s")
        await settle(pilot)
        await pilot.press("y")
        await settle(pilot)
        assert file.read_text(encoding="utf-8") == gone
        assert editor.text.endswith("// more")
        assert any("is not in the file any more" in note.message for note in app._notifications)


async def test_a_save_keeps_the_cursor_and_what_was_typed_meanwhile(tmp_path: Path) -> None:
    suites = copy_samples(tmp_path)
    db = tmp_path / "history.db"
    await asyncio.to_thread(run_samples, suites, db, tests=("kunden-deutschland",))
    file = suites / "shop-sql.suite.yaml"
    app = app_on(suites, db)
    async with app.run_test(size=(150, 45)) as pilot:
        await settle(pilot)
        editor = await open_editor(pilot, app)
        edited = editor.text.replace("country = '{{country}}'", "country")
        editor.replace_all(edited)
        await settle(pilot)
        editor.go_to(30)
        await pilot.press("ctrl+s")
        await settle(pilot)
        assert editor.cursor_offset == 30
        assert "saved" in text_of(app)
        editor.replace_all(edited + "// one")
        await settle(pilot)
        app.screen.action_save()  # type: ignore[attr-defined]
        editor.replace_all(edited + "// one, two")
        await settle(pilot)
        assert editor.text == edited + "// one, two"
        assert "edited" in text_of(app)
        assert "// one" in file.read_text(encoding="utf-8")
        assert ", two" not in file.read_text(encoding="utf-8")


async def test_evidence_that_is_nowhere_is_said_in_the_transcript_too(fresh: tuple[Path, Path]) -> None:
    app = app_on(*fresh)
    async with app.run_test(size=(150, 45)) as pilot:
        await settle(pilot)
        await go_to(pilot, "kunden-deutschland")
        await pilot.press("enter")
        await settle(pilot)
        from agenteval_tui.tui.widgets.transcript_view import TranscriptView

        view = app.screen.query_one("#transcript", TranscriptView)
        assert view.has_focus
        view.set_marks(())
        await pilot.press("full_stop")
        await settle(pilot)
        assert any("points at nothing" in note.message for note in app._notifications)


async def test_going_somewhere_takes_the_sheet_away_first(fresh: tuple[Path, Path]) -> None:
    app = app_on(*fresh)
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        await pilot.press("question_mark")
        await settle(pilot)
        app.go("history")
        await settle(pilot)
        assert isinstance(app.screen, HistoryScreen)
        assert len(app.screen_stack) == 2
        await pilot.press("1")
        await settle(pilot)
        assert isinstance(app.screen, SuitesScreen)


@pytest.mark.parametrize("theme", ["contrast", "dusk", "moss", "paper", "sixteen"])
async def test_every_theme_can_be_lived_in(
    theme: str, fresh: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = app_on(*fresh)
    async with app.run_test(size=(150, 45)) as pilot:
        app.theme = theme
        await settle(pilot)
        await go_to(pilot, "kunden-deutschland")
        await pilot.press("enter")
        await settle(pilot)
        assert "looked at" in text_of(app)
    again = app_on(*fresh)
    assert again.theme == theme  # kept for the next start


@pytest.mark.parametrize(("size", "screen"), [((80, 24), "suites"), ((40, 12), "suites"), ((20, 5), "history")])
async def test_small_windows_are_survived(size: tuple[int, int], screen: str, fresh: tuple[Path, Path]) -> None:
    app = app_on(*fresh, screen=screen)
    async with app.run_test(size=size) as pilot:
        await settle(pilot)
        await pilot.press("j", "enter")
        await settle(pilot)
        await pilot.resize_terminal(30, 8)
        await settle(pilot)
        await pilot.press("tab", "tab", "escape", "3", "4", "5", "1")
        await settle(pilot)
        assert isinstance(app.screen, SuitesScreen)


async def test_the_smallest_edits_that_pass_are_one_key_away(fresh: tuple[Path, Path]) -> None:
    app = app_on(*fresh)
    async with app.run_test(size=(150, 45)) as pilot:
        await settle(pilot)
        await go_to(pilot, "order-status")
        await pilot.press("e")
        await settle(pilot)
        editor = app.screen.query_one("#config", ConfigEditor)
        await until(pilot, lambda: editor.has_focus)
        await pilot.press("f7")
        await until(pilot, lambda: "runs flip to passed" in text_of(app) and "counted" not in text_of(app))
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, InspectScreen))
        await settle(pilot)
        assert "the criteria as shown say passed" in text_of(app)
        assert "problems 0" in text_of(app)


async def test_an_agent_that_cannot_be_reached_is_an_error_with_its_remedy_and_no_verdict(tmp_path: Path) -> None:
    suites = tmp_path / "suites"
    suites.mkdir()
    (suites / "net.suite.yaml").write_text(
        "name: Net\nagent: a\nagents:\n"
        '  a: {kind: openai, base_url: "http://127.0.0.1:9/v1", model: x, max_attempts: 1}\n'
        "tests:\n  - id: t\n    prompt: hi\n    criteria:\n      - name: c\n        prototype_class: TextResponse\n"
        '        config_uxon: \'{"metrics": [{"type": "TextMatch", "contains": "x"}]}\'\n'
    )
    await asyncio.to_thread(run_samples, suites, tmp_path / "history.db")
    app = app_on(suites, tmp_path / "history.db")
    async with app.run_test(size=(150, 45)) as pilot:
        await settle(pilot)
        await go_to(pilot, "t")
        await pilot.press("enter")
        await settle(pilot)
        shown = text_of(app)
        assert "nobody listens there" in shown
        assert "is the server running?" in shown
        assert "The agent failed on this run" in shown
        assert "✗" not in shown


async def test_more_and_fewer_at_once_count_from_what_was_asked_for(
    fresh: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    from test_snapshots import an_execution

    app = app_on(*fresh)
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
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
