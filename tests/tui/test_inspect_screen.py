"""Inspect: labels and replies beside the verdict, a run as a row and as a file, search, clicks, an unsaved config."""

from __future__ import annotations

import json
import re
import shutil
import threading
from pathlib import Path
from typing import Any

import pytest
from shop import app_on, copy_samples, press_at_once, run_samples, settle, text_of, until
from textual.geometry import Offset
from textual.pilot import Pilot
from textual.widgets import Input, TextArea

from agenteval_tui.formats.exporters.export import export_run
from agenteval_tui.grading.remote_requests import RemoteRequest, Reply
from agenteval_tui.history.records import FailedAttempt
from agenteval_tui.history.replies import StoredReply
from agenteval_tui.history.store import Store
from agenteval_tui.history.writer import Operation
from agenteval_tui.tui.app import AgentevalApp
from agenteval_tui.tui.presenters.evidence_pane import PaneLines
from agenteval_tui.tui.screens.add_dataset_row import AddRowScreen
from agenteval_tui.tui.screens.import_export_dialogs import ExportRunScreen
from agenteval_tui.tui.screens.inspect import panes
from agenteval_tui.tui.screens.inspect.screen import InspectScreen
from agenteval_tui.tui.screens.json_viewer import JsonViewerScreen
from agenteval_tui.tui.screens.judge_log import JudgeLogScreen
from agenteval_tui.tui.screens.label import LabelScreen
from agenteval_tui.tui.styled_text import plain
from agenteval_tui.tui.widgets.config_editor import ConfigEditor
from agenteval_tui.tui.widgets.lines_view import LinesView
from agenteval_tui.tui.widgets.transcript_view import TranscriptView
from agenteval_tui.tui.workers import is_busy
from agenteval_tui.uxon.parse import parse

pytestmark = pytest.mark.xdist_group("screens")
NOON = 1_795_262_400_000
ASKED = RemoteRequest(
    "chat", "tone", {"messages": [{"role": "user", "content": "Is it polite? \x1b[2J" + "word " * 30}], "vote": 1}
)
SAID = Reply('{"score": 4, "reason": "polite enough"}', "tiny-judge", "", 312, 28, 0.5, NOON)


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, list[str]]:
    """The suites, a history with three failed runs of a test that people and a judge spoke of, and their ids."""
    folder = tmp_path_factory.mktemp("judged")
    suites = copy_samples(folder)
    db = folder / "history.db"
    run_samples(suites, db, tests=("order-status",))
    store = Store.open(db)
    try:
        rows = store.runs_of_test(str(suites / "support.suite.yaml"), "order-status", 5)
        run = rows[0].id
        criterion = store.results(run)[1].criterion_hash
        store.keep_replies(run, [StoredReply(ASKED, "x", SAID, criterion)]).result()
        failed = FailedAttempt(1, "timeout", "no answer within 30 s", 30_000.0, NOON, 10, None, None)
        store.keep_attempts(run, [failed]).result()
        store.label(run, 5, criterion_hash=criterion, comment="the order is right", who="kim").result()
    finally:
        store.close()
    return suites, db, [row.id for row in rows]


@pytest.fixture
def fresh(judged: tuple[Path, Path, list[str]], tmp_path: Path) -> tuple[Path, Path, list[str]]:
    """The same, of which a test may change everything."""
    suites, db, runs = judged
    mine = tmp_path / "suites"
    shutil.copytree(suites, mine)
    for part in db.parent.glob("history.db*"):
        shutil.copy(part, tmp_path / part.name)
    store = Store.open(tmp_path / "history.db")
    try:
        store.write(_Moved(str(suites), str(mine))).result()
    finally:
        store.close()
    return mine, tmp_path / "history.db", runs


class _Moved(Operation):
    """The suites stand in another folder now."""

    old: str
    new: str

    def apply(self, connection: object, totals: object) -> None:
        """Rename them."""
        execute = connection.execute  # type: ignore[attr-defined]
        execute("UPDATE suites SET key = replace(key, ?, ?)", (self.old, self.new))


async def inspect(pilot: Pilot[int], run: str) -> InspectScreen:
    """The run, opened."""
    app = pilot.app
    assert isinstance(app, AgentevalApp)
    await settle(pilot)
    app.inspect(run)
    await until(pilot, lambda: isinstance(app.screen, InspectScreen) and app.screen.shown_run == run)
    await settle(pilot)
    assert isinstance(app.screen, InspectScreen)
    return app.screen


async def test_what_people_and_judges_said_stands_beside_the_verdict(fresh: tuple[Path, Path, list[str]]) -> None:
    suites, db, runs = fresh
    app = app_on(suites, db)
    async with app.run_test(size=(140, 45)) as pilot:
        screen = await inspect(pilot, runs[0])
        shown = text_of(app)
        assert "5 of 5  kim" in shown
        assert "the order is right" in shown
        assert "▲" in shown, "kim says otherwise than the verdict"
        assert "run 3 of 3" in shown
        assert "labels: 0 of 1 agree" in shown
        assert "1 reply, $0.50; 1 failed attempt" in shown
        await pilot.press("quotation_mark")
        assert isinstance(app.screen, JudgeLogScreen)
        await settle(pilot)
        shown = text_of(app)
        for words in ("judge tone", "Is it polite?", "tiny-judge", "312 tokens in, 28 out", "4  polite enough"):
            assert words in shown
        assert "attempt 1 failed" in shown
        assert "no answer within 30 s" in shown
        await pilot.press("y", "escape")
        assert "polite enough" in app.clipboard
        assert "\x1b" not in app.clipboard
        # The label's sheet knows which criterion it is for; what is kept there is here at once.
        await pilot.press("L")
        await until(pilot, lambda: isinstance(app.screen, LabelScreen))
        await pilot.press("n", "enter")
        await until(pilot, lambda: app.screen is screen)
        await until(pilot, lambda: len(screen.controller.facts.labels) == 2)
        await settle(pilot)
        # A run that nobody asked anything about says so.
        await pilot.press("right_square_bracket")
        await until(pilot, lambda: screen.shown_run != runs[0])
        await settle(pilot)
        await pilot.press("quotation_mark")
        assert app.screen is screen
        assert any("No judge was asked" in note.message for note in app._notifications)


async def test_a_run_becomes_a_row_and_a_file_and_the_row_goes_again(
    fresh: tuple[Path, Path, list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    suites, db, runs = fresh
    monkeypatch.chdir(tmp_path)
    app = app_on(suites, db)
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await inspect(pilot, runs[0])
        await pilot.press("a")
        await until(pilot, lambda: isinstance(app.screen, AddRowScreen) and app.screen._preview is not None)
        app.screen.query_one("#field-expected", TextArea).text = "It is on its way."
        await until(pilot, lambda: '"expected": "It is on its way."' in " ".join(text_of(app).split()))
        shown = text_of(app)
        assert "row 1 of a new file" in shown
        assert runs[0][:10] in shown, "where it comes from is shown before it is written"
        await pilot.press("ctrl+s")
        await until(pilot, lambda: app.screen is screen)
        path = suites / "order-status.rows.jsonl"
        row = json.loads(path.read_text("utf-8"))
        assert row["input"] == "Where is my order #W1042?"
        assert row["expected"] == "It is on its way."
        assert row["provenance"]["run"] == runs[0]
        await pilot.press("u")
        await until(pilot, lambda: not path.exists())
        # Export: a name for each form, and no file is written over without being asked twice.
        await pilot.press("X")
        await until(pilot, lambda: isinstance(app.screen, ExportRunScreen))
        name = app.screen.query_one("#field-file", Input)
        await pilot.press("right")
        await until(pilot, lambda: name.value == "order-status-run3.jsonl")
        await pilot.press("left")
        await until(pilot, lambda: name.value == "order-status-run3.md")
        target = tmp_path / "order-status-run3.md"
        target.write_text("mine", encoding="utf-8")
        await pilot.press("enter")
        await until(pilot, lambda: "press enter again to overwrite it" in text_of(app))
        assert target.read_text("utf-8") == "mine"
        await pilot.press("enter")
        await until(pilot, lambda: app.screen is screen)
        assert "agenteval why " + runs[0] in target.read_text("utf-8")


async def test_search_clicks_copy_and_an_edit_that_is_not_saved(fresh: tuple[Path, Path, list[str]]) -> None:
    suites, db, runs = fresh
    app = app_on(suites, db)
    async with app.run_test(size=(140, 45)) as pilot:
        screen = await inspect(pilot, runs[0])
        view = screen.query_one("#transcript", TranscriptView)
        await pilot.press("slash", *"order", "enter")
        await settle(pilot)
        assert "1 of 5" in text_of(app)
        assert view.has_focus
        await pilot.press("n", "n")
        assert "3 of 5" in text_of(app)
        await pilot.press("p", "O")
        await settle(pilot)
        assert " of " in screen.transcript.hits, "the JSON is searched as well"
        await pilot.press("O", "escape")
        await settle(pilot)
        assert not view.document.matches
        assert screen.shown_run == runs[0], "n and p went from hit to hit, not to other runs"
        # A click on a piece of evidence shows it; on a criterion chooses it.
        looked = screen.query_one("#looked", LinesView)
        rows = [row for row, target in screen.evidence.targets.items() if not isinstance(target, int)]
        await pilot.click(looked, offset=Offset(4, rows[-1]))
        await until(pilot, lambda: view.document.current is not None)
        assert view.cursor_key == ("call", 0)
        first = next(row for row, target in screen.evidence.targets.items() if target == 0)
        await pilot.click(looked, offset=Offset(4, first))
        await until(pilot, lambda: screen.controller.criterion == 0)
        await settle(pilot)
        # The text of a block, and what is selected with the mouse.
        view.go_to_key(("message", 0))
        view.focus()
        await pilot.press("Y")
        assert app.clipboard == "Where is my order #W1042?"
        await pilot.mouse_down(looked, offset=Offset(1, 0))
        await pilot.hover(looked, offset=Offset(12, 0))
        await pilot.mouse_up(looked, offset=Offset(12, 0))
        await pilot.press("Y")
        assert app.clipboard
        assert app.clipboard in "".join(text for text, _ in looked._lines[0])
        # An edit that another screen hands over is judged here, and not saved.
        name = screen.controller.bench.criteria[1].name if screen.controller.bench else ""
        editor = screen.query_one("#config", ConfigEditor)
        file = (suites / "support.suite.yaml").read_bytes()
        app.inspect(runs[0], criterion=name, config=editor.text.replace("TextMatch", "Jsn"))
        await until(pilot, lambda: "Jsn" in editor.text and bool(screen.controller.diagnostics))
        assert (suites / "support.suite.yaml").read_bytes() == file
        await pilot.press("f6")
        await until(
            pilot, lambda: screen.controller.result is not None and screen.controller.result.outcome == "failed"
        )
        # The smallest edit that makes it pass, with one key.
        screen.query_one("#transcript", TranscriptView).focus()
        await pilot.press("A")
        await until(
            pilot, lambda: screen.controller.result is not None and screen.controller.result.outcome == "passed"
        )
        # The difference of two runs as JSON.
        app.show_difference(runs[0], runs[1])
        await settle(pilot)
        await pilot.press("O")
        await until(pilot, lambda: isinstance(app.screen, JsonViewerScreen))
        await settle(pilot)
        assert f'"run": "{runs[0]}"' in text_of(app)


async def test_a_narrow_inspect_shows_in_each_pane_the_run_that_is_open(fresh: tuple[Path, Path, list[str]]) -> None:
    """One pane at a time: what another pane shows changes while it is hidden; an edit is seen; and it is run again."""
    suites, db, runs = fresh
    app = app_on(suites, db)
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await inspect(pilot, runs[0])
        name = screen.controller.criterion_name
        rows = text_of(app).split("\n")
        assert screen.pane == "looked", "a failure opens on its evidence"
        assert 'expected "#W1042"  got "W1042"' in rows[3], "why it failed stands below the names of the panes"
        assert f"✗ {name}" in rows[4]
        await pilot.press("tab", "escape", "greater_than_sign")
        await settle(pilot)
        other = screen.controller.criterion_name
        assert other != name
        await pilot.press("tab")
        await settle(pilot)
        assert f"{other}   " in text_of(app).split("\n")[4], "the pane shows the criterion that was chosen elsewhere"
        press_at_once(pilot, "shift+tab", "slash", *"zzz")
        await settle(pilot)
        assert isinstance(app.focused, Input)
        assert app.focused.value == "zzz", "what follows in one breath goes where it would go later"
        await pilot.press("escape", "tab")
        await settle(pilot)
        for words in ("short", "other"):
            await pilot.press("shift+tab")
            await settle(pilot)
            screen.evidence.view.show(lambda width, words=words: [((words, ""),)])
            await pilot.press("tab")
            await settle(pilot)
            assert text_of(app).split("\n")[4].split() == [words], "a pane shows what came while it was hidden"
        await pilot.press("shift+tab", "less_than_sign", "A")
        await until(pilot, lambda: screen.controller.is_edited)
        await settle(pilot)
        shown = text_of(app)
        assert "[● config_uxon: typing]" in shown, (
            "what was put into the editor is to be seen, and that it is not saved"
        )
        assert re.search(r"then ✓+ .*\+\d+  F9 list", shown)
        await pilot.press("ctrl+t")
        assert any("Press ^s to save, then ^t to run order-status" in note.message for note in app._notifications)
        await pilot.press("ctrl+s")
        await until(pilot, lambda: not screen.controller.is_edited)
        await settle(pilot)
        assert any("Press ^t to run the test again" in note.message for note in app._notifications)
        assert "^t run again" in text_of(app).split("\n")[-1]
        for x, pane in ((20, "looked"), (34, "config"), (3, "transcript"), (34, "config")):
            await pilot.click("#tabs", offset=(x, 0))
            await settle(pilot)
            assert screen.pane == pane
        started: list[tuple[object, ...]] = []
        app.start_run = lambda paths, options: started.append((*paths, options.tests))  # type: ignore[method-assign]
        await pilot.press("ctrl+t", "escape", "r")
        file = suites / "support.suite.yaml"
        assert started == [(file, (f"{file}::order-status",))] * 2


@pytest.mark.parametrize("size", [(80, 24), (140, 45)])
async def test_esc_leads_back_to_the_pane_that_the_difference_was_asked_for_in(
    fresh: tuple[Path, Path, list[str]], size: tuple[int, int]
) -> None:
    suites, db, runs = fresh
    app = app_on(suites, db)
    async with app.run_test(size=size) as pilot:
        screen = await inspect(pilot, runs[0])
        screen.query_one("#looked").focus()
        await pilot.press("d")
        await settle(pilot)
        assert screen.pane == "difference"
        await pilot.press("escape")
        await settle(pilot)
        assert screen.pane == "looked"
        assert screen.view == "transcript"


async def test_a_failure_opens_on_its_evidence_from_a_list_that_says_whether_to_edit(
    fresh: tuple[Path, Path, list[str]],
) -> None:
    suites, db, runs = fresh
    app = app_on(suites, db)
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await inspect(pilot, runs[0])
        await pilot.press("tab")
        assert screen.pane == "config", "the config is looked at"
        app.go("suites")
        app.inspect(runs[1], edit=False)
        await until(pilot, lambda: screen.shown_run == runs[1])
        await settle(pilot)
        assert screen.pane == "looked"
        app.go("suites")
        app.inspect(runs[2], edit=True)
        await until(pilot, lambda: screen.shown_run == runs[2])
        await settle(pilot)
        assert screen.pane == "config"


async def test_a_search_in_a_list_of_runs_goes_on_in_the_transcript(fresh: tuple[Path, Path, list[str]]) -> None:
    suites, db, runs = fresh
    app = app_on(suites, db)
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        app.inspect(runs[0], search="way order")
        await until(pilot, lambda: isinstance(app.screen, InspectScreen) and app.screen.shown_run == runs[0])
        await settle(pilot)
        screen = app.screen
        assert isinstance(screen, InspectScreen)
        assert screen.pane == "transcript"
        assert screen.query_one("#find", Input).value == "order"
        assert "1 of 5" in text_of(app), "the first hit is in view"
        await pilot.press("n")
        assert "2 of 5" in text_of(app)
        await pilot.press("escape")
        await settle(pilot)
        assert screen.transcript.term == ""


async def test_the_step_where_a_run_was_lost_is_marked_and_a_key_goes_there(
    fresh: tuple[Path, Path, list[str]],
) -> None:
    suites, db, runs = fresh
    with Store.open_to_look(db) as store:
        export_run(store, runs[1], "markdown", suites / "bug.md")
    assert "step 2: get" in (suites / "bug.md").read_text("utf-8").partition("noticed at")[2], "the exported report"
    app = app_on(suites, db)
    async with app.run_test(size=(140, 45)) as pilot:
        screen = await inspect(pilot, runs[1])
        view = screen.query_one("#transcript", TranscriptView)
        assert "◇ step 2 (*)   4 messages" in text_of(app)
        await pilot.press("d", "asterisk")
        await until(pilot, lambda: screen.pane == "transcript" and view.has_focus)
        assert view.cursor_key == ("message", 1)
        assert view.render_line(view.document.top(view.cursor)).text.startswith("▌◇")
        assert any(
            "Step 2 stands out, though it may not be the cause: get_order order_id is" in note.message
            for note in app._notifications
        )
        await pilot.resize_terminal(80, 24)
        await settle(pilot)
        assert text_of(app).split("\n")[3].endswith("◇ step 2 (*) "), "titles of panes are not shown here"
        # Whoever called the run good blames the criterion: no step is decisive.
        screen = await inspect(pilot, runs[0])
        assert "◆" not in text_of(app)
        assert text_of(app).split("\n")[3].endswith("◇ step 2 (*) ")
        await pilot.press("asterisk")
        await settle(pilot)
        assert any("Step 2, also suspected: get_order" in note.message for note in app._notifications)


async def test_the_cursor_of_an_edit_is_on_what_failed_until_it_is_moved(fresh: tuple[Path, Path, list[str]]) -> None:
    suites, db, runs = fresh
    app = app_on(suites, db)
    async with app.run_test(size=(140, 45)) as pilot:
        await settle(pilot)
        app.inspect(runs[0])
        await settle(pilot)
        screen = app.screen
        assert isinstance(screen, InspectScreen)
        result, editor = screen.controller.result, screen.config.editor
        assert result is not None
        metric, failing = next(
            (number, one)
            for number, metric in enumerate(result.metrics)
            for one in metric.evidence
            if one.passed is False
        )
        await pilot.press("e")
        await settle(pilot)
        path = parse(editor.text).path_at(editor.cursor_offset)
        assert path[:2] == ("metrics", metric)
        assert len(path) > 2, "it is on the property that the evidence names"
        assert failing.condition.startswith(str(path[2]))
        assert path[-1] == failing.fields["arguments"][0]["argument"]
        await pilot.press("ctrl+end", "escape")
        await settle(pilot)
        await pilot.press("e")
        await settle(pilot)
        assert editor.cursor_offset == len(editor.text)


async def test_who_writes_a_config_has_half_of_the_width(fresh: tuple[Path, Path, list[str]]) -> None:
    suites, db, runs = fresh
    app = app_on(suites, db)
    async with app.run_test(size=(140, 45)) as pilot:
        await settle(pilot)
        app.inspect(runs[0])
        await settle(pilot)
        pane = app.screen.query_one("#config-pane")
        narrow = pane.size.width
        await pilot.press("e")
        await settle(pilot)
        assert pane.size.width >= 69 > narrow
        await pilot.press("escape")
        await settle(pilot)
        assert pane.size.width == narrow


@pytest.mark.parametrize("way", ["e", "enter"])
async def test_at_80_columns_it_is_seen_whether_keys_are_typed_into_the_config(
    fresh: tuple[Path, Path, list[str]], way: str
) -> None:
    suites, db, runs = fresh
    app = app_on(suites, db)
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        app.inspect(runs[0])
        await settle(pilot)
        screen = app.screen
        assert isinstance(screen, InspectScreen)
        while screen.pane != "config":
            await pilot.press("tab")
            await settle(pilot)
        before = screen.config.editor.text
        assert '"type": "ToolCheck"' in text_of(app)
        assert "[config_uxon]" in text_of(app), "who goes through the panes looks at it"
        assert "e edit" in text_of(app)
        await pilot.press("down", "pagedown", "j", "x")
        assert screen.config.editor.text == before
        await pilot.press("5")
        await until(pilot, lambda: app.screen is not screen)
        assert screen.config.editor.text == before, "a number goes to its screen"
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is screen)
        assert screen.pane == "config"
        await pilot.press(way)
        await settle(pilot)
        assert "[config_uxon: typing]" in text_of(app)
        assert "esc stop typing" in text_of(app)
        await pilot.press("5")
        await settle(pilot)
        assert app.screen is screen
        place = screen.config.editor.cursor_offset - 1
        assert screen.config.editor.text == f"{before[:place]}5{before[place:]}"
        await pilot.press("escape")
        await settle(pilot)
        assert "typing" not in text_of(app)


@pytest.mark.sweep
@pytest.mark.parametrize("size", [(80, 24), (140, 45)])
async def test_a_long_config_is_scrolled_by_who_looks_at_it(
    fresh: tuple[Path, Path, list[str]], size: tuple[int, int]
) -> None:
    suites, db, runs = fresh
    app = app_on(suites, db)
    async with app.run_test(size=size) as pilot:
        await settle(pilot)
        app.inspect(runs[0])
        await settle(pilot)
        screen = app.screen
        assert isinstance(screen, InspectScreen)
        editor = screen.config.editor
        editor.load_text("{\n" + "# a line\n" * 200 + "}\n")
        await settle(pilot)
        while screen.pane != "config":
            await pilot.press("tab")
            await settle(pilot)
        for key, down in (("down", 1), ("j", 1), ("k", -1), ("up", -1), ("pagedown", editor.size.height)):
            before = editor.scroll_offset.y
            await pilot.press(key)
            await settle(pilot)
            assert editor.scroll_offset.y == before + down
        await pilot.press("ctrl+u")
        await settle(pilot)
        assert 0 < editor.scroll_offset.y < editor.size.height
        assert not editor.has_focus


@pytest.mark.sweep
@pytest.mark.parametrize("size", [(80, 24), (140, 45)])
async def test_who_comes_back_to_another_run_does_not_type_into_its_config(
    fresh: tuple[Path, Path, list[str]], size: tuple[int, int]
) -> None:
    suites, db, runs = fresh
    app = app_on(suites, db)
    async with app.run_test(size=size) as pilot:
        await settle(pilot)
        app.inspect(runs[0])
        await settle(pilot)
        await pilot.press("e")
        await settle(pilot)
        app.go("suites")
        await settle(pilot)
        app.inspect(runs[1])
        await settle(pilot)
        screen = app.screen
        assert isinstance(screen, InspectScreen)
        before = screen.config.editor.text
        await pilot.press("asterisk", "t")
        await settle(pilot)
        assert screen.config.editor.text == before, "a key of the screen is no letter of the config"
        await pilot.press("e")
        await settle(pilot)
        app.go("suites")
        await settle(pilot)
        app.inspect(runs[1])
        await settle(pilot)
        assert screen.config.editor.text == before
        assert screen.pane != "config", "nor to the same run again"


async def test_a_search_that_is_over_leaves_no_number_of_hits(fresh: tuple[Path, Path, list[str]]) -> None:
    suites, db, runs = fresh
    app = app_on(suites, db)
    async with app.run_test(size=(140, 45)) as pilot:
        await settle(pilot)
        app.inspect(runs[0])
        await settle(pilot)
        title = text_of(app).splitlines()[2]
        await pilot.press("slash", "a", "escape")
        await settle(pilot)
        assert text_of(app).splitlines()[2] == title


@pytest.mark.sweep
@pytest.mark.parametrize("size", [(80, 24), (140, 45)])
async def test_who_left_while_typing_does_not_type_at_the_next_start(
    fresh: tuple[Path, Path, list[str]], size: tuple[int, int]
) -> None:
    suites, db, runs = fresh
    app = app_on(suites, db)
    async with app.run_test(size=size) as pilot:
        await settle(pilot)
        app.inspect(runs[0])
        await settle(pilot)
        await pilot.press("e", "x")
        await settle(pilot)
        assert app.screen.pane == "config"
        await app.action_quit()
    again = app_on(suites, db)
    async with again.run_test(size=size) as pilot:
        await settle(pilot)
        screen = again.screen
        assert isinstance(screen, InspectScreen)
        assert screen.shown_run == runs[0]
        edited = screen.config.editor.text
        assert 'x"#W1042"' in edited
        await pilot.press("5")
        await settle(pilot)
        assert again.screen is not screen, "a number goes to a screen"
        assert screen.config.editor.text == edited


@pytest.mark.parametrize(("height", "typed", "else_"), [(38, 1, 1), (45, 3, 3)])
async def test_problems_have_more_room_on_tall_screens_and_while_nobody_types(
    fresh: tuple[Path, Path, list[str]], height: int, typed: int, else_: int
) -> None:
    suites, db, runs = fresh
    app = app_on(suites, db)

    def seen() -> tuple[int, bool]:
        shown = text_of(app)
        assert "problems 3" in shown
        return sum(f"1:{column} " in shown for column in (23, 38, 53)), "… " in shown.split("problems 3")[1]

    async with app.run_test(size=(140, height)) as pilot:
        await settle(pilot)
        app.inspect(runs[0])
        await settle(pilot)
        screen = app.screen
        assert isinstance(screen, InspectScreen)
        await pilot.press("e")
        screen.config.editor.replace_all('{"metrics": [{"type": "A"}, {"type": "B"}, {"type": "C"}]}')
        await settle(pilot)
        assert seen() == (typed, typed < 3)
        await pilot.press("escape")
        await settle(pilot)
        assert seen() == (else_, else_ < 3)


@pytest.mark.sweep
@pytest.mark.parametrize("size", [(80, 24), (140, 45)])
async def test_who_types_at_the_end_of_a_long_config_sees_what_is_typed(
    fresh: tuple[Path, Path, list[str]], size: tuple[int, int]
) -> None:
    suites, db, runs = fresh
    app = app_on(suites, db)
    async with app.run_test(size=size) as pilot:
        await settle(pilot)
        app.inspect(runs[0])
        await settle(pilot)
        screen = app.screen
        assert isinstance(screen, InspectScreen)
        await pilot.press("e")
        await settle(pilot)
        editor = screen.config.editor
        editor.load_text("\n".join(f"// line {number}" for number in range(100)) + "\n" + editor.text)
        await pilot.press("ctrl+end")
        await settle(pilot)
        # What is below the editor grows with the problem, and takes rows of it.
        await pilot.press("x")
        await settle(pilot)
        assert 0 <= editor.cursor_cell.y - editor.scroll_offset.y < editor.content_size.height
        assert "x" in text_of(app)


async def test_many_conditions_are_shown_in_parts_and_stay_while_a_key_is_judged(
    fresh: tuple[Path, Path, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    suites, db, runs = fresh

    def rows(app: AgentevalApp) -> list[str]:
        return [plain(line) for view in app.screen.query("#looked").results(LinesView) for line in view._lines]

    monkeypatch.setattr(panes, "FIRST_CONDITIONS", 0)
    laid_out = threading.Event()
    lay_out = panes.looked_rows

    def slow(*positional: Any, most: int | None, **named: Any) -> PaneLines:
        assert most is not None or laid_out.wait(250)
        return lay_out(*positional, most=most, **named)

    monkeypatch.setattr(panes, "looked_rows", slow)
    app = app_on(suites, db)
    async with app.run_test(size=(140, 45)) as pilot:
        await settle(pilot)
        app.inspect(runs[0])
        await until(pilot, lambda: any("more condition" in row for row in rows(app)))
        first = len(rows(app))
        laid_out.set()
        await settle(pilot)
        assert len(rows(app)) > first
        assert not any("more condition" in row for row in rows(app))
        laid_out.clear()
        await pilot.press("e")
        await until(pilot, lambda: app.input_queue.is_empty)
        laid_out.set()
        await settle(pilot)
        laid_out.clear()
        before = rows(app)
        editor = app.screen.query_one("#config", ConfigEditor)
        editor.replace_all(editor.text.replace("#W1042", "#W9"))
        await until(pilot, lambda: is_busy(app.screen, "evidence"))
        assert rows(app) == before
        laid_out.set()
        await settle(pilot)
        assert any("#W9" in row for row in rows(app))
        assert not any("more condition" in row for row in rows(app))
