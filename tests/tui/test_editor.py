"""The Editor: fields, criteria, checks while typing, saving in place, drafts; and changes of tests on Suites."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
import yaml
from attacks import ATTACKS
from shop import app_on, copy_samples, run_samples, settle, text_of, until
from textual import events
from textual.pilot import Pilot
from textual.widgets import Input, TextArea

from agenteval_tui.core.display import displayable
from agenteval_tui.suites.load import load_suite
from agenteval_tui.tui.app import AgentevalApp
from agenteval_tui.tui.draft_store import Drafts
from agenteval_tui.tui.screens.confirm_dialog import ConfirmScreen
from agenteval_tui.tui.screens.editor.screen import EditorScreen
from agenteval_tui.tui.screens.file_conflict_dialog import FileConflictScreen
from agenteval_tui.tui.screens.select_dialog import SelectScreen
from agenteval_tui.tui.screens.suites.screen import SuitesScreen
from agenteval_tui.tui.widgets.config_editor import ConfigEditor
from agenteval_tui.tui.widgets.form import ChoiceField
from agenteval_tui.tui.widgets.transcript_view import TranscriptView
from agenteval_tui.tui.widgets.virtual_list import VirtualList

SUITE = """\
name: Shop
agent: shop/a   # the default
agents:
  shop/a: {kind: demo, pace: 0}
  shop/b: {kind: demo, pace: 0}
tests:
  # the first
  - id: one
    name: First
    prompt: Say hello.  # politely
    criteria:
      - name: Greets
        prototype_class: TextResponse
        config_uxon: |
          {"metrics": [{"type": "TextMatch", "contains": "hello"}]}
      - name: Calls
        prototype_class: ToolResponse
        config_uxon: '{"metrics": [{"type": "ToolCheck", "tools": [{"name": "a"}]}]}'

  - id: two
    name: Second
    prompt: "{{input}}"
    dataset: {file: rows.csv}
    criteria: [{name: A, prototype_class: TextResponse, config_uxon: '{"metrics": [{"type": "Json"}]}'}]
"""


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """No waiting for a person who types."""
    monkeypatch.setattr("agenteval_tui.tui.screens.editor.controller.QUIET_S", 0.0)
    monkeypatch.setattr("agenteval_tui.tui.draft_store.WRITE_AFTER_S", 0.01)


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    folder = tmp_path / "suites"
    folder.mkdir()
    (folder / "rows.csv").write_text("input,expected\nfirst row,1\nsecond row,2\n", encoding="utf-8")
    (folder / "shop.suite.yaml").write_text(SUITE, encoding="utf-8")
    return folder


def app_for(shop: Path) -> AgentevalApp:
    return app_on(shop, shop.parent / "history.db")


@pytest.mark.sweep
@pytest.mark.parametrize("size", [(200, 50), (140, 45), (80, 24)])
async def test_while_no_test_is_open_only_the_list_of_tests_takes_keys(tmp_path: Path, size: tuple[int, int]) -> None:
    folder = tmp_path / "nothing"
    folder.mkdir()
    app = app_on(folder, tmp_path / "h.db")
    async with app.run_test(size=size) as pilot:
        await settle(pilot)
        await pilot.press("2")
        await settle(pilot)
        screen = app.screen
        assert isinstance(screen, EditorScreen)
        tests = screen.query_one("#tests", VirtualList)
        assert screen.focused is tests
        for key in ("tab", "ctrl+n", "ctrl+n", "ctrl+n", "ctrl+n", "tab", "shift+tab"):
            await pilot.press(key)
            await settle(pilot)
            assert screen.focused in (tests, None), key
        for x in range(5, size[0], 30):
            await pilot.click(offset=(x, 5))
            await settle(pilot)
            assert screen.focused in (tests, None), x
        await pilot.press("x")
        assert not any(field.value for field in screen.query(Input))


async def opened(pilot: Pilot[int], test: str = "one") -> EditorScreen:
    app = pilot.app
    assert isinstance(app, AgentevalApp)
    await settle(pilot)
    file = next(iter(app.session.paths_looked_in)) / "shop.suite.yaml"
    app.edit_test(str(file.resolve()), test)
    await until(pilot, lambda: isinstance(app.screen, EditorScreen) and open_test(app.screen) == test)
    await settle(pilot)
    screen = app.screen
    assert isinstance(screen, EditorScreen)
    return screen


def open_test(screen: EditorScreen) -> str:
    """The id of the test in the form."""
    return screen.controller.doc.test_id if screen.controller.doc is not None else ""


def shown_by(pilot: Pilot[int]) -> str:
    assert isinstance(pilot.app, AgentevalApp)
    return text_of(pilot.app)


def field(screen: EditorScreen, name: str, form: str = "fields") -> Input:
    return screen.query_one(f"#{form} #field-{name}", Input)


async def test_a_form_is_filled_checked_undone_and_saved_in_its_places(shop: Path) -> None:
    """One app: each step leaves the form as its file says."""
    app, file = app_for(shop), shop / "shop.suite.yaml"
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await opened(pilot)
        await at_eighty_columns_there_is_one_pane_at_a_time(pilot, screen)
        await a_burst_behind_the_slash_goes_into_the_filter(pilot, screen)
        await pilot.resize_terminal(140, 45)
        await settle(pilot)
        await every_kind_of_field_says_what_is_wrong_with_it(pilot, screen)
        await pilot.press("f6")
        await settle(pilot)
        assert screen.controller.doc is not None
        assert not screen.controller.doc.edited
        await the_agent_is_chosen_from_all_known_ones_and_undone(pilot, screen)
        assert file.read_text() == SUITE
        await a_field_is_checked_while_typing_and_saved_in_its_place(pilot, screen, file)
        await the_config_of_a_criterion_is_edited_with_its_problems(pilot, screen, file)
        await criteria_are_added_copied_moved_and_deleted(pilot, screen, file)
        await a_dataset_shows_its_first_rows(pilot, shop / "rows.csv")


async def a_burst_behind_the_slash_goes_into_the_filter(pilot: Pilot[int], screen: EditorScreen) -> None:
    screen._focus_pane("live")
    await settle(pilot)
    for key, char in (("slash", "/"), ("t", "t"), ("w", "w")):
        pilot.app.post_message(events.Key(key, char))
    box = screen.query_one("#filter", Input)
    await until(pilot, lambda: box.value == "tw" and box.has_focus)
    await pilot.press("escape", "g", "j", "enter")
    await until(pilot, lambda: open_test(screen) == "one")
    await settle(pilot)


async def at_eighty_columns_there_is_one_pane_at_a_time(pilot: Pilot[int], screen: EditorScreen) -> None:
    assert "[test]" in shown_by(pilot)
    assert "Say hello." in shown_by(pilot)
    await pilot.press("ctrl+n")
    await settle(pilot)
    assert "[criteria]" in shown_by(pilot)
    assert "config_uxon" in shown_by(pilot)
    await pilot.press("escape")
    await settle(pilot)
    assert "[tests]" in shown_by(pilot)
    assert screen.query_one("#tests", VirtualList).has_focus


async def every_kind_of_field_says_what_is_wrong_with_it(pilot: Pilot[int], screen: EditorScreen) -> None:
    screen.query_one("#field-variables", TextArea).text = "a: [1"
    screen.query_one("#field-context", TextArea).text = "sample_toolz: {}"
    field(screen, "id").value = "two"
    await settle(pilot)
    shown = shown_by(pilot)
    assert "sample_toolz" in shown
    assert 'there is another test with the id "two"' in shown
    assert screen.controller.doc is not None
    assert "variables" in screen.controller.doc.bad_yaml
    await pilot.press("f8")
    await settle(pilot)
    assert screen.focused is not None
    assert (screen.focused.id or "").startswith("field-")


async def the_agent_is_chosen_from_all_known_ones_and_undone(pilot: Pilot[int], screen: EditorScreen) -> None:
    choice = screen.query_one("#field-agent", ChoiceField)
    assert [value for value, _ in choice.choices] == ["", "shop/a", "shop/b"]
    choice.focus()
    await pilot.press("enter")
    await settle(pilot)
    assert isinstance(pilot.app.screen, SelectScreen)
    await pilot.press(*"shop/b", "enter")
    await settle(pilot)
    assert screen.controller.doc is not None
    assert screen.controller.doc.form.values["agent"] == "shop/b"
    await pilot.press("ctrl+z")
    await settle(pilot)
    assert screen.controller.doc.form.values["agent"] == ""
    assert choice.value == ""


async def a_field_is_checked_while_typing_and_saved_in_its_place(
    pilot: Pilot[int], screen: EditorScreen, file: Path
) -> None:
    box = field(screen, "repeat")
    box.focus()
    await pilot.press("x")
    await settle(pilot)
    assert "repeat must be a whole number" in shown_by(pilot)
    assert "not saved" in shown_by(pilot)
    await pilot.press("ctrl+s")
    await settle(pilot)
    assert file.read_text() == SUITE
    await pilot.press("backspace", "3")
    screen.query_one("#field-prompt", TextArea).text = "Say goodbye."
    await settle(pilot)
    assert "whole number" not in shown_by(pilot).partition("Saved")[0].splitlines()[-2]
    await pilot.press("ctrl+s")
    await settle(pilot)
    assert screen.controller.doc is not None
    assert not screen.controller.doc.edited
    wanted = SUITE.replace("Say hello.", "Say goodbye.").replace("politely\n", "politely\n    repeat: 3\n", 1)
    assert file.read_text() == wanted


async def the_config_of_a_criterion_is_edited_with_its_problems(
    pilot: Pilot[int], screen: EditorScreen, file: Path
) -> None:
    before = file.read_text()
    editor = screen.query_one("#config", ConfigEditor)
    editor.focus()
    editor.replace_all(editor.text.replace("contains", "contanes"))
    await settle(pilot)
    assert len(editor.diagnostics) == 1
    assert "contanes" in "".join(shown_by(pilot).splitlines()[-4:-1])
    # Before an edit is checked there is no fix: those of the text before it are for other places.
    bad = editor.text
    editor.insert("    ", (0, 0))
    screen.action_apply_fix()
    assert editor.text == "    " + bad
    editor.replace_all(bad)
    await settle(pilot)
    await pilot.press("f4")
    await settle(pilot)
    assert not editor.diagnostics
    editor.replace_all(editor.text.replace("hello", "bye"))
    await pilot.press("ctrl+s")
    await settle(pilot)
    assert file.read_text() == before.replace('"hello"', '"bye"') != before


async def criteria_are_added_copied_moved_and_deleted(pilot: Pilot[int], screen: EditorScreen, file: Path) -> None:
    before = file.read_text()
    screen.query_one("#criteria", VirtualList).focus()
    await pilot.press("a")
    await settle(pilot)
    assert isinstance(pilot.app.screen, SelectScreen)
    await pilot.press(*"latency", "enter")
    await settle(pilot)
    screen.query_one("#criteria", VirtualList).focus()
    await pilot.press("K", "D", "j", "j", "x")
    await settle(pilot)
    assert screen.controller.doc is not None
    names = [one.values["name"] for one in screen.controller.doc.form.criteria]
    assert names == ["Fast enough", "Fast enough (copy)", "Greets"]
    await pilot.press("ctrl+s")
    await settle(pilot)
    saved = load_suite(file)
    assert saved.ok
    assert saved.suite is not None
    assert [one.name for one in saved.suite.tests[0].criteria] == names
    assert saved.text.startswith(before[: before.index("      - name: Greets")])
    assert saved.text.endswith(SUITE[SUITE.index("\n  - id: two") :])


async def a_dataset_shows_its_first_rows(pilot: Pilot[int], rows: Path) -> None:
    screen = await opened(pilot, "two")
    assert "second row" in shown_by(pilot)
    rows.write_text(rows.read_text().replace("second row", "another row"))
    screen.reload()
    await settle(pilot)
    assert "another row" in shown_by(pilot)
    field(screen, "dataset_file").value = "other.csv"
    await settle(pilot)
    assert "there is no such dataset" in shown_by(pilot)


async def test_an_edit_that_was_not_saved_is_offered_and_a_file_that_changed_is_shown(shop: Path) -> None:
    app, file = app_for(shop), shop / "shop.suite.yaml"
    async with app.run_test(size=(140, 45)) as pilot:
        screen = await opened(pilot)
        field(screen, "name").value = "Another name"
        await until(pilot, lambda: bool(Drafts().listed("test")))  # written without leaving
    # Meanwhile somebody else edits the same file: what differs there stays.
    file.write_text(SUITE.replace("Say hello.", "Say hi."), encoding="utf-8")
    again = app_for(shop)
    async with again.run_test(size=(140, 45)) as pilot:
        # The Editor was the last screen, so it is the first now, and it asks.
        await until(pilot, lambda: isinstance(again.screen, ConfirmScreen))
        await settle(pilot)
        assert "+name: Another name" in text_of(again)
        await pilot.press("r")
        await settle(pilot)
        await pilot.press("ctrl+s")
        await settle(pilot)
        wanted = SUITE.replace("Say hello.", "Say hi.").replace("name: First", "name: Another name")
        assert file.read_text() == wanted
        assert not Drafts().listed("test")
        assert isinstance(again.screen, EditorScreen)
        await a_file_that_changed_is_shown_before_the_edit_goes_into_it(pilot, again.screen, file)


async def test_two_tests_that_are_edited_one_right_after_the_other_have_both_a_draft(
    shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agenteval_tui.tui.draft_store.WRITE_AFTER_S", 0.4)
    app = app_for(shop)
    async with app.run_test(size=(140, 45)) as pilot:
        screen = await opened(pilot)
        field(screen, "name").value = "Mine"
        await until(pilot, lambda: len(screen.controller.edited_keys()) == 1)
        await opened(pilot, "two")
        field(screen, "name").value = "Mine as well"
        await until(pilot, lambda: len(screen.controller.edited_keys()) == 2)
        await until(pilot, lambda: bool(Drafts().find("test", str(shop / "shop.suite.yaml"), "two")))
        assert {one.test for one in Drafts().listed("test")} == {"one", "two"}


async def a_file_that_changed_is_shown_before_the_edit_goes_into_it(
    pilot: Pilot[int], screen: EditorScreen, file: Path
) -> None:
    field(screen, "name").value = "Mine"
    field(screen, "weight", "criterion").value = "3"
    await settle(pilot)
    new = "    criteria:\n      - {name: New, prototype_class: TextResponse, config_uxon: '{}'}\n"
    theirs = file.read_text().replace("    criteria:\n", new, 1)
    file.write_text(theirs, encoding="utf-8")
    await pilot.press("ctrl+s")
    await until(pilot, lambda: isinstance(pilot.app.screen, FileConflictScreen))
    assert file.read_text() == theirs
    await pilot.press("y")
    await settle(pilot)
    saved = load_suite(file).suite
    assert saved is not None
    assert saved.tests[0].name == "Mine"
    assert [(one.name, one.weight) for one in saved.tests[0].criteria] == [("New", 1), ("Greets", 3), ("Calls", 1)]


async def test_tests_are_made_marked_tagged_moved_and_deleted_on_suites_and_never_over_a_changed_file(
    shop: Path,
) -> None:
    app, file = app_for(shop), shop / "shop.suite.yaml"
    async with app.run_test(size=(140, 45)) as pilot:
        await settle(pilot)

        def tests() -> list[str]:
            suite = load_suite(file).suite
            return [one.id for one in suite.tests] if suite is not None else []

        await pilot.press("space", "space", "number_sign")
        await settle(pilot)
        await pilot.press(*"smoke", "enter")
        await settle(pilot)
        suite = load_suite(file).suite
        assert suite is not None
        assert [one.tags for one in suite.tests] == [["smoke"], ["smoke"]]
        await pilot.press("U", "g", "j", "D")
        await settle(pilot)
        assert tests() == ["one", "one-2", "two"]
        await pilot.press("J")
        await settle(pilot)
        assert tests() == ["one-2", "one", "two"]
        await pilot.press("x")
        await settle(pilot)
        assert isinstance(app.screen, ConfirmScreen)
        await pilot.press("y")
        await settle(pilot)
        assert tests() == ["one-2", "two"]
        await pilot.press("a")
        await settle(pilot)
        await pilot.press(*"New one", "enter", *"Hi", "enter")
        await until(pilot, lambda: isinstance(app.screen, EditorScreen))
        await settle(pilot)
        assert tests() == ["one-2", "two", "new-one"]
        assert "new-one" in text_of(app)
        await pilot.press("escape", "escape", "1")
        await settle(pilot)
        # A range of marks; how it is sorted; a filter that is not understood.
        await pilot.press("g", "j", "space", "G", "M")
        await settle(pilot)
        assert "3 marked" in text_of(app)
        await pilot.press("escape")
        await settle(pilot)
        assert "marked" not in text_of(app).splitlines()[1]
        await pilot.press("slash", *"tga:x")
        await settle(pilot)
        assert "did you mean tag:?" in text_of(app)
        await pilot.press("escape", "s")
        await settle(pilot)
        assert "worst first" in text_of(app).splitlines()[1]
        await pilot.press("s", "g", "j")
        # Another program writes the file, and its watcher has not told yet: the change is not made over it.
        suites = app.screen
        assert isinstance(suites, SuitesScreen)
        await settle(pilot)
        suites.workers.cancel_group(suites, "files")
        theirs = file.read_text().replace("Say hello.", "Say hi.")
        file.write_text(theirs, encoding="utf-8")
        await pilot.press("number_sign")
        await settle(pilot)
        await pilot.press(*"new", "enter")
        await until(pilot, lambda: isinstance(app.screen, FileConflictScreen))
        await settle(pilot)
        assert "+    prompt: Say hi.  # politely" in text_of(app)
        assert "tag one-2 in the new version" in text_of(app)
        assert file.read_text() == theirs
        await pilot.press("y")
        await settle(pilot)
        saved = load_suite(file).suite
        assert saved is not None
        assert (saved.tests[0].prompt, saved.tests[0].tags) == ("Say hi.", ["smoke", "new"])


async def test_what_is_changed_on_inspect_goes_to_the_editor_and_outlives_the_program(tmp_path: Path) -> None:
    suites, db = copy_samples(tmp_path), tmp_path / "history.db"
    await asyncio.to_thread(run_samples, suites, db, tests=("order-status",))
    app = app_on(suites, db)
    async with app.run_test(size=(140, 45)) as pilot:
        await a_tool_call_becomes_a_criterion(pilot, app)
        editor = await inspected(pilot, app)
        editor.replace_all(editor.text + "// not saved\n")
        await settle(pilot)
        await until(pilot, lambda: bool(Drafts().listed("config")))
        edited = editor.text
    app = app_on(suites, db)
    async with app.run_test(size=(140, 45)) as pilot:
        assert (await inspected(pilot, app)).text == edited
    assert edited.endswith("// not saved\n")


async def inspected(pilot: Pilot[int], app: AgentevalApp) -> ConfigEditor:
    """The config on Inspect, which shows the first run of the only execution."""
    await settle(pilot)
    run = app.session.store.runs_of_execution(app.session.store.executions()[0].id)[0]
    app.inspect(run.id)
    await settle(pilot)
    return app.screen.query_one("#config", ConfigEditor)


async def a_tool_call_becomes_a_criterion(pilot: Pilot[int], app: AgentevalApp) -> None:
    await inspected(pilot, app)
    view = app.screen.query_one("#transcript", TranscriptView)
    calls = [place for place, block in enumerate(view.document.blocks) if block.key[0] == "call"]
    view.cursor = calls[0]
    await pilot.press("m")
    await until(pilot, lambda: isinstance(app.screen, EditorScreen))
    await settle(pilot)
    screen = app.screen
    assert isinstance(screen, EditorScreen)
    assert screen.controller.doc is not None
    made = screen.controller.doc.form.criteria[-1]
    assert made.source is None
    call = view.transcript.tool_calls[0]
    wanted = {"type": "ToolCheck", "tools": [{"name": call.name, "arguments": call.arguments}]}
    assert json.loads(made.values["config_uxon"])["metrics"] == [wanted]
    assert f"Calls {call.name}" in text_of(app)
    await pilot.press("ctrl+s")
    await settle(pilot)
    run = app.session.store.runs_of_execution(app.session.store.executions()[0].id)[0]
    saved = load_suite(Path(run.suite_key)).suite
    assert saved is not None
    test = saved.test("order-status")
    assert test is not None
    assert test.criteria[-1].name == f"Calls {call.name}"


async def test_hostile_words_in_every_field_are_shown_and_stay_as_they_are(shop: Path) -> None:
    words = "".join(attack.encode("utf-8", "ignore").decode() for attack in ATTACKS.values())
    file, written = shop / "shop.suite.yaml", json.dumps(words)
    criterion = {"name": words, "description": words, "expected_value": words, "prototype_class": "TextResponse"}
    test = {
        "id": "one", "name": words, "prompt": words, "description": words, "tags": [words], "agent": words,
        "variables": {words: words}, "variations": [{"name": words, "agent": words}], "dataset": {"file": words},
        "context": {"sample_system_prompt": words}, "criteria": [{**criterion, "config_uxon": written}],
    }  # fmt: skip
    file.write_text(yaml.safe_dump({"name": words, "agent": words, "tests": [test]}), encoding="utf-8")
    before = file.read_bytes()
    app = app_for(shop)
    async with app.run_test(size=(140, 45)) as pilot:
        screen = await opened(pilot)
        assert screen.controller.doc is not None
        assert not screen.controller.doc.edited
        for key in ("ctrl+n", "ctrl+n", "f8", "f8", "escape"):
            await pilot.press(key)
            await settle(pilot)
            shown = text_of(app).replace("\n", "")
            assert displayable(shown) == shown
        field(screen, "repeat").value = "2"
        await settle(pilot)
        await pilot.press("ctrl+s")
        await until(pilot, lambda: isinstance(app.screen, ConfirmScreen))  # its agent is not known
        await pilot.press("y")
        await settle(pilot)
    assert file.read_bytes() != before
    assert yaml.safe_load(file.read_bytes())["tests"][0] == {**test, "repeat": 2}


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        (("D",), "one copied to shop.suite.yaml. Press u to undo."),
        (("J",), "one moved in shop.suite.yaml. Press u to undo."),
        (("j", "K"), "two moved in shop.suite.yaml. Press u to undo."),
        (("x", "y"), "one deleted from shop.suite.yaml. Press u to undo."),
        (("number_sign", *"new", "enter"), "one tagged in shop.suite.yaml. Press u to undo."),
    ],
)
async def test_what_is_changed_on_suites_can_be_undone(shop: Path, keys: tuple[str, ...], said: str) -> None:
    app, file = app_for(shop), shop / "shop.suite.yaml"
    before = file.read_bytes()
    async with app.run_test(size=(140, 45), notifications=True) as pilot:
        await settle(pilot)
        await pilot.press("u")
        await settle(pilot)
        assert file.read_bytes() == before
        assert any("There is nothing to undo here" in note.message for note in app._notifications)
        for key in keys:  # a first start begins at the first test
            await pilot.press(key)
            await settle(pilot)
        assert file.read_bytes() != before
        assert any(note.message == said for note in app._notifications)
        await pilot.press("u")
        await settle(pilot)
        assert file.read_bytes() == before
        assert any(note.message == f"Undone: {said.removesuffix('. Press u to undo.')}." for note in app._notifications)


async def test_several_changes_are_undone_one_after_the_other_and_none_over_what_another_program_wrote(
    shop: Path,
) -> None:
    app, file = app_for(shop), shop / "shop.suite.yaml"
    states = [file.read_bytes()]
    async with app.run_test(size=(140, 45), notifications=True) as pilot:
        await settle(pilot)
        await pilot.press("j")
        for key in ("D", "J", "K", "D"):
            await pilot.press(key)
            await settle(pilot)
            states.append(file.read_bytes())
        assert len(set(states)) >= 4
        states.pop()
        while states:
            await pilot.press("u")
            await settle(pilot)
            assert file.read_bytes() == states.pop()
        await pilot.press("D")
        await settle(pilot)
        theirs = file.read_bytes() + b"# theirs\n"
        file.write_bytes(theirs)
        await pilot.press("u")
        await settle(pilot)
        assert file.read_bytes() == theirs
        assert any("has changed since" in note.message for note in app._notifications)


async def test_a_change_that_could_not_be_undone_can_be_undone_later(shop: Path) -> None:
    app, file = app_for(shop), shop / "shop.suite.yaml"
    async with app.run_test(size=(140, 45), notifications=True) as pilot:
        await settle(pilot)
        states = [file.read_bytes()]
        for _ in range(2):
            await pilot.press("D")
            await settle(pilot)
            states.append(file.read_bytes())
        assert len(set(states)) == 3
        file.rename(shop / "away")
        await pilot.press("u")
        await settle(pilot)
        (shop / "away").rename(file)
        await pilot.press("u")
        await settle(pilot)
        assert file.read_bytes() == states[1]
        # Somebody else writes the file, and takes that back.
        file.write_bytes(states[1] + b"# theirs\n")
        await pilot.press("u")
        await settle(pilot)
        assert any("has changed since" in note.message for note in app._notifications)
        file.write_bytes(states[1])
        await pilot.press("u")
        await settle(pilot)
        assert file.read_bytes() == states[0]


async def test_a_test_that_was_deleted_comes_back_and_an_edit_follows_a_renamed_one(shop: Path) -> None:
    app, file = app_for(shop), shop / "shop.suite.yaml"
    before = file.read_bytes()
    async with app.run_test(size=(140, 45), notifications=True) as pilot:
        screen = await opened(pilot)
        screen._focus_pane("tests")
        await settle(pilot)
        for key in ("x", "y"):
            await pilot.press(key)
            await settle(pilot)
        assert b"id: one" not in file.read_bytes()
        assert any("one deleted in shop.suite.yaml. Press ^z to undo." in note.message for note in app._notifications)
        screen._focus_pane("tests")
        await settle(pilot)
        await pilot.press("ctrl+z")
        await settle(pilot)
        assert file.read_bytes() == before
        assert screen.controller.doc is not None
        assert screen.controller.doc.test_id == "one"
        # Another program gives the test another id while it is edited here.
        field(screen, "name").value = "Mine"
        await settle(pilot)
        theirs = SUITE.replace("id: one", "id: uno")
        file.write_text(theirs, encoding="utf-8")
        await pilot.press("ctrl+s")
        await until(pilot, lambda: isinstance(app.screen, FileConflictScreen))
        await pilot.press("y")
        await settle(pilot)
        assert file.read_text() == theirs.replace("name: First", "name: Mine")
        assert screen.controller.doc.test_id == "uno"
        assert not screen.controller.doc.edited


@pytest.mark.parametrize("key", ["escape", "f4", "y"])
async def test_saving_asks_where_the_suite_could_not_be_run_then(shop: Path, key: str) -> None:
    file = shop / "shop.suite.yaml"
    before = file.read_text()
    app = app_on(shop, shop.parent / "history.db")
    async with app.run_test(size=(140, 45)) as pilot:
        screen = await opened(pilot)
        config = screen.query_one("#config", ConfigEditor)
        good = config.text
        config.replace_all(good.replace('"contains"', '"contans"'))
        await settle(pilot)
        await pilot.press("ctrl+s")
        await until(pilot, lambda: isinstance(app.screen, ConfirmScreen))
        shown = text_of(app)
        assert "error: the suite can't run" in shown or "errors: the suite can't run" in shown
        assert "y save anyway" in shown
        assert "F4 fix" in shown
        await pilot.press(key)
        await settle(pilot)
        assert app.screen is screen
        assert (file.read_text() != before) == (key == "y")
        assert (config.text == good) == (key == "f4")


async def test_pasted_line_ends_of_any_kind_end_lines_in_a_field(shop: Path) -> None:
    async with app_for(shop).run_test(size=(140, 45)) as pilot:
        screen = await opened(pilot)
        prompt = screen.query_one("#field-prompt", TextArea)
        for end in ("\r", "\r\n", "\x85", "\u2028", "\u2029"):
            prompt.text = ""
            prompt.focus()
            await settle(pilot)
            pilot.app.post_message(events.Paste(f"one{end}two"))
            await settle(pilot)
            assert prompt.text == "one\ntwo", repr(end)
            assert screen.controller.doc is not None
            assert screen.controller.doc.form.values["prompt"] == "one\ntwo", repr(end)


async def test_what_an_empty_field_has_no_room_for_is_cut_with_a_sign(shop: Path) -> None:
    app = app_on(shop, shop / "history.db")
    async with app.run_test(size=(80, 24)) as pilot:
        await opened(pilot)
        area = app.screen.query_one("#field-turns", TextArea)
        assert area.placeholder == "e.g. [first message, second message]"
        await pilot.resize_terminal(40, 24)
        await settle(pilot)
        assert str(area.placeholder).startswith("e.g. [first")
        assert str(area.placeholder).endswith("…")
        await pilot.resize_terminal(80, 24)
        await settle(pilot)
        assert area.placeholder == "e.g. [first message, second message]"
