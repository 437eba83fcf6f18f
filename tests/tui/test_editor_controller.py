"""The Editor's controller without an app: which test is open, edits and the way back, criteria, drafts, checks, saving,
changes of files, the preview on recorded runs, and what goes to Inspect and comes back."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from msgspec.structs import replace
from shop import run_samples

from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.grading.criterion_templates import Starter, starters
from agenteval_tui.suites.editing import WrittenFile, change_record
from agenteval_tui.suites.load import LoadedSuite, load_suite
from agenteval_tui.suites.yaml.save import FileChanged, bytes_of
from agenteval_tui.tui.analysis_context import Session
from agenteval_tui.tui.draft_store import Drafts
from agenteval_tui.tui.presenters.test_form import TestForm
from agenteval_tui.tui.screens.editor import controller as module
from agenteval_tui.tui.screens.editor.controller import QUIET_S, DatasetFile, EditorController, OpenRequest, ShownFields
from agenteval_tui.tui.screens.editor.document import SuiteDocument

SUITE = """\
name: Shop
agent: shop/a   # the default
agents:
  shop/a: {kind: demo, pace: 0}
tests:
  - id: one
    name: First
    prompt: Where is order W1001 #now?
    repeat: 2
    criteria:
      - name: Answers
        prototype_class: TextResponse
        config_uxon: '{"metrics": [{"type": "TextMatch", "contains": "e"}]}'
      - name: Never
        prototype_class: TextResponse
        config_uxon: '{"metrics": [{"type": "TextMatch", "contains": "zzz9"}]}'
  - id: two
    name: Second
    prompt: "{{input}}"
    dataset: {file: rows.csv}
    criteria: [{name: A, prototype_class: TextResponse, config_uxon: '{"metrics": [{"type": "Json"}]}'}]
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    folder = tmp_path / "suites"
    folder.mkdir()
    (folder / "rows.csv").write_text("input\nfirst\nsecond\n", encoding="utf-8")
    path = folder / "shop.suite.yaml"
    path.write_text(SUITE, encoding="utf-8")
    return path.resolve()


@pytest.fixture
def session(file: Path) -> Session:
    return Session((file.parent,), file.parent.parent / "history.db")


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """No waiting for a person who types."""
    monkeypatch.setattr(module, "QUIET_S", 0.0)


def opened(session: Session, test: str = "one") -> tuple[EditorController, SuiteDocument]:
    made = EditorController()
    made.request(OpenRequest(str(next(iter(session.paths_looked_in)) / "shop.suite.yaml"), test))
    return made, reread(made, session)


def reread(editor: EditorController, session: Session) -> SuiteDocument:
    """Read the suites again, and open what is to be opened."""
    request = editor.take(editor.read(session))
    assert request is not None
    return editor.open(request)


def names(doc: SuiteDocument) -> list[str]:
    return [one.values["name"] for one in doc.form.criteria]


def starter(metric: str) -> Starter:
    return next(one for one in starters() if one.metric == metric)


async def check(editor: EditorController) -> list[str]:
    """Check what is open; the configs that were shown as checked."""
    shown: list[str] = []
    assert editor.want_check()
    await editor.check(shown.append)
    return shown


def test_the_controller_knows_no_textual() -> None:
    code = f"import sys, {module.__name__}; sys.exit(any(one.startswith('textual') for one in sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_what_is_asked_for_is_opened_then_a_draft_then_the_last_start_s_test_then_the_first(
    session: Session, file: Path
) -> None:
    editor, doc = opened(session, "two")
    assert doc.test_id == "two"
    assert reread(editor, session).test_id == "two"  # it stays open
    with pytest.raises(AgentevalError, match="this suite is not open"):
        editor.open(OpenRequest("elsewhere", "one"))
    with pytest.raises(AgentevalError):
        editor.open(OpenRequest(str(file), "three"))
    assert reread(EditorController(), session).test_id == "one"
    later = EditorController()
    later.restore(f"{file}\x1ftwo")
    assert reread(later, session).test_id == "two"
    later = EditorController()
    later.restore("gone\x1ftest")
    assert reread(later, session).test_id == "one"
    editor.edit("name", "Mine", of_criterion=False)
    editor.write_drafts()
    later = EditorController()
    later.restore(f"{file}\x1fone")
    assert reread(later, session).test_id == "two"
    request = OpenRequest(str(file), "one", criterion="Never", starter=starter("Latency"))
    doc = editor.open(request)
    assert (names(doc), doc.criterion) == (["Answers", "Never", "Fast enough"], 2)


def test_fields_are_edited_undone_and_reverted(session: Session) -> None:
    editor, doc = opened(session)
    for text in ("F", "Fi"):
        assert editor.edit("name", text, of_criterion=False)
    assert not editor.edit("name", "Fi", of_criterion=False)
    assert editor.edit("weight", "3", of_criterion=True)
    assert editor.edit("config_uxon", "{} ", of_criterion=True)
    assert editor.edit("config_uxon", "{}", of_criterion=True)  # in a config white space counts
    assert editor.edited_keys() == {doc.key}
    assert reread(editor, session) is doc  # an edit stays when the suites are read again
    assert editor.revert()
    assert not doc.edited
    assert not editor.revert()
    for _ in range(4):
        assert editor.undo()
    assert not doc.edited
    assert not editor.undo()


def test_what_stands_in_the_fields_is_taken_before_its_word_has_come(session: Session) -> None:
    editor, doc = opened(session)
    one = doc.form.criteria[0].values
    shown = ShownFields({**doc.form.values}, {key: value for key, value in one.items() if key != "config_uxon"}, "{}")
    assert editor.take_pending(shown)
    assert one["config_uxon"] == "{}"
    assert not editor.take_pending(shown)
    assert editor.undo()
    assert not doc.edited


def test_criteria_are_added_copied_moved_and_deleted(session: Session) -> None:
    editor, doc = opened(session)
    editor.add_criterion(starter("Latency"))
    assert (names(doc), doc.criterion) == (["Answers", "Fast enough", "Never"], 1)
    editor.add_criterion(replace(starter("Json"), name="Made", about="made of a run"))
    assert (names(doc)[-1], doc.criterion) == ("Made", 3)
    assert not editor.move_criterion(1)
    assert editor.move_criterion(-1)
    editor.copy_criterion()
    assert names(doc) == ["Answers", "Fast enough", "Made", "Made (copy)", "Never"]
    assert editor.choose_criterion(4)
    assert not editor.choose_criterion(4)
    assert not editor.choose_criterion(5)
    assert editor.delete_criterion() == "Never"
    assert doc.criterion == 3
    for _ in range(5):
        assert editor.undo()
    assert not doc.edited


def test_a_draft_is_offered_until_it_is_decided_about(session: Session) -> None:
    editor, doc = opened(session)
    editor.edit("name", "Mine", of_criterion=False)
    assert editor.put_draft(doc)
    editor.drafts.write()
    later = EditorController()
    again = reread(later, session)
    draft = later.draft_to_offer()
    assert draft is not None
    assert later.draft_to_offer() is None  # once, while the test is open
    later.decide_draft(again, draft, None)
    assert later.draft_to_offer() == draft
    # An edit meanwhile is kept beside the draft, not over it.
    later.edit("repeat", "7", of_criterion=False)
    later.write_drafts()
    assert len(Drafts().listed("test")) == 2
    later.decide_draft(again, draft, "restore")
    assert (again.form.values["name"], again.form.values["repeat"]) == ("Mine", "7")
    assert later.draft_to_offer() is None
    assert len(Drafts().listed("test")) == 1
    later = EditorController()
    again = reread(later, session)
    draft = later.draft_to_offer()
    assert draft is not None
    later.decide_draft(again, draft, "discard")
    assert not Drafts().listed("test")
    assert later.edited_keys() == set()


async def test_the_newest_text_is_checked_and_no_two_checks_run_at_a_time(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    editor, doc = opened(session)
    begun, go, real = threading.Event(), threading.Event(), module.validate_form
    running: list[str] = []

    def held(*arguments: object) -> module.Validation:
        form = arguments[3]
        assert isinstance(form, TestForm)
        running.append(form.values["repeat"])
        begun.set()
        assert go.wait(100)
        return real(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(module, "validate_form", held)
    editor.edit("repeat", "often", of_criterion=False)
    shown: list[str] = []
    assert editor.want_check()
    checking = asyncio.ensure_future(editor.check(shown.append))
    assert await asyncio.to_thread(begun.wait, 10)
    editor.edit("repeat", "oftener", of_criterion=False)
    assert not editor.want_check()
    go.set()
    await checking
    assert running == ["often", "oftener"]
    assert shown == [doc.form.criteria[0].values["config_uxon"]]  # what was not the newest is never shown
    of_test, of_criterion = editor.complaints()
    assert "whole number" in of_test["repeat"]
    assert of_criterion == {}


async def test_a_test_that_was_opened_is_checked_at_once_and_one_that_is_typed_in_a_pause(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    editor, _ = opened(session)
    paused = asyncio.Event()
    sleep = asyncio.sleep

    async def pause(seconds: float) -> None:
        if seconds == QUIET_S:
            paused.set()
        await sleep(0)

    monkeypatch.setattr("agenteval_tui.tui.screens.editor.controller.QUIET_S", QUIET_S)
    monkeypatch.setattr("agenteval_tui.tui.screens.editor.controller.asyncio.sleep", pause)
    shown: list[str] = []
    assert editor.want_check(typing=False)
    await editor.check(shown.append)
    assert shown
    assert not paused.is_set()
    editor.edit("repeat", "often", of_criterion=False)
    assert editor.want_check()
    assert not editor.want_check(typing=False)
    await editor.check(shown.append)
    assert len(shown) == 2
    assert paused.is_set()


async def test_what_is_wrong_is_said_beside_its_field_and_found_one_after_the_other(session: Session) -> None:
    editor, doc = opened(session)
    editor.choose_criterion(1)
    editor.edit("config_uxon", '{"metrics": [{"type": "TextMatch", "contanes": "x"}]}', of_criterion=True)
    assert await check(editor) == [doc.form.criteria[1].values["config_uxon"]]
    assert "contanes" in editor.complaints()[1]["config_uxon"]
    assert any(one.fix is not None for one in editor.diagnostics)
    editor.choose_criterion(0)
    assert editor.complaints()[1] == {}  # it is another criterion's
    editor.edit("repeat", "often", of_criterion=False)
    editor.edit("variables", "a: [1", of_criterion=False)
    await check(editor)
    assert set(editor.complaints()[0]) >= {"repeat", "variables"}
    places = editor.problem_places()
    assert editor.next_problem((None, "nowhere")) == places[0]
    assert editor.next_problem(places[-1]) == places[0]
    assert {editor.next_problem(place) for place in places} == set(places)
    with pytest.raises(AgentevalError, match="variables can't be read"):
        editor.edit_to_save()
    # Another test is opened while one is checked: what was found is not shown for it.
    assert editor.want_check()
    shown: list[str] = []
    checking = asyncio.ensure_future(editor.check(shown.append))
    await asyncio.sleep(0.001)
    editor.open(OpenRequest(doc.loaded.key, "two"))
    await checking
    assert editor.complaints() == ({}, {})


async def test_a_text_that_a_hash_cuts_is_found_in_the_file(session: Session, file: Path) -> None:
    editor, doc = opened(session)
    await check(editor)
    assert editor.is_cut((None, "prompt"))
    assert not editor.is_cut((None, "name"))
    start = editor.cut_start((None, "prompt"))
    assert start is not None
    session.workspace.quote_cut_text(doc.loaded, start)
    assert file.read_text() == SUITE.replace("Where is order W1001 #now?", '"Where is order W1001 #now?"')


def test_a_dataset_is_read_as_the_form_names_it(session: Session, file: Path) -> None:
    editor, _ = opened(session, "two")
    named = editor.dataset()
    assert named == DatasetFile(file.parent, "rows.csv", "")
    assert named.first_rows() == ([{"input": "first"}, {"input": "second"}], "")
    assert named._replace(limit="1").first_rows() == ([{"input": "first"}], "")
    rows, error = named._replace(file="other.csv").first_rows()
    assert rows == []
    assert "there is no such dataset" in error


def save(editor: EditorController, session: Session) -> SuiteDocument:
    doc, edit = editor.doc, editor.edit_to_save()
    assert doc is not None
    assert edit is not None
    form = doc.form.copy()
    return editor.saved(doc, form, "", session.workspace.save_test(doc.loaded, doc.test_id, edit))


def test_only_what_was_edited_changes_in_the_file(session: Session, file: Path) -> None:
    editor, doc = opened(session)
    assert editor.edit_to_save() is None
    editor.edit("name", "Mine", of_criterion=False)
    editor.write_drafts()
    again = save(editor, session)
    assert editor.doc is again is not doc
    assert not again.edited
    assert file.read_bytes() == SUITE.replace("name: First", "name: Mine").encode()
    assert not Drafts().listed("test")
    # Another id; and who types on while it is saved has an edit of what was saved.
    editor.edit("id", "uno", of_criterion=False)
    edit, form = editor.edit_to_save(), again.form.copy()
    assert edit is not None
    saved = session.workspace.save_test(again.loaded, again.test_id, edit)
    editor.edit("name", "Mine too", of_criterion=False)
    last = editor.saved(again, form, "", saved)
    assert last.test_id == "uno"
    assert last.base.values["name"] == "Mine"
    assert last.edit.changes == {"name": "Mine too"}


def test_an_edit_goes_into_a_file_that_somebody_else_changed(session: Session, file: Path) -> None:
    editor, doc = opened(session)
    editor.edit("name", "Mine", of_criterion=False)
    theirs = SUITE.replace("id: one", "id: uno").replace("repeat: 2", "repeat: 3")
    file.write_text(theirs, encoding="utf-8")
    with pytest.raises(FileChanged):
        save(editor, session)
    assert file.read_text() == theirs
    fresh, edit, renamed = editor.rebased(doc)
    assert renamed == "uno"
    form = doc.form.copy()
    again = editor.saved(doc, form, renamed, session.workspace.save_test(fresh, renamed, edit))
    assert file.read_text() == theirs.replace("name: First", "name: Mine")
    assert (again.test_id, again.edited, again.form.values["id"]) == ("uno", False, "uno")
    # What is saved elsewhere with the same words is no edit here any more.
    editor.edit("name", "Ours", of_criterion=False)
    file.write_text(file.read_text().replace("name: Mine", "name: Ours"), encoding="utf-8")
    assert not reread(editor, session).edited
    assert editor.edited_keys() == set()


def test_changes_of_the_file_are_undone_one_after_the_other(session: Session, file: Path) -> None:
    editor, doc = opened(session)
    states = [file.read_bytes()]
    for what in ("copied", "deleted"):
        loaded, taken = load_suite(file), list[WrittenFile]()
        before = bytes_of(loaded)
        change = session.workspace.duplicate_tests if what == "copied" else session.workspace.delete_tests
        now: LoadedSuite = change(loaded, [doc.test_id])
        remembered = change_record(loaded, now, before)
        assert remembered is not None
        taken.append(remembered)
        assert editor.files_changed(doc, what, [now], taken) == f"one {what} in shop.suite.yaml"
        assert (editor.doc is None) == (what == "deleted")
        states.append(file.read_bytes())
    assert editor.files_changed(doc, "moved", [], []) == ""
    assert reread(editor, session).test_id == "one-2"
    # In the list of tests, and where the form has no step, undo means the file.
    editor.edit("name", "Mine", of_criterion=False)
    assert editor.undoes_file(in_tests=True)
    assert not editor.undoes_file(in_tests=False)
    assert editor.undo()
    while editor.undoes_file(in_tests=False):
        assert file.read_bytes() == states.pop()
        change_back = editor.take_file_change()
        for one in change_back.written:
            session.workspace.undo(one)
        editor.request(change_back.test)
        assert reread(editor, session).test_id == "one"
    assert [file.read_bytes()] == states == [SUITE.encode()]


async def test_a_criterion_is_judged_on_recorded_runs_and_lent_to_inspect(session: Session, file: Path) -> None:
    editor, doc = opened(session)
    preview = editor.preview
    shown: list[bool] = []

    async def judge() -> None:
        await preview.judge(session.store, editor.doc, shown.append, lambda: None)

    assert preview.step(1) == "This test has no recorded run yet."
    assert isinstance(preview.to_relax(), str)
    await judge()
    assert (preview.trial, shown) == (None, [False])
    await asyncio.to_thread(run_samples, file.parent, session.db, tests=("one",))
    preview.read_again()
    editor.choose_criterion(1)
    await judge()
    assert preview.trial is not None
    assert preview.result is not None
    assert preview.result.outcome == "failed"
    assert not preview.edited
    assert not isinstance(preview.to_relax(), str)
    # An edit flips both runs; the older one is looked at, and stays when the runs are read again.
    editor.edit("config_uxon", doc.form.criteria[1].values["config_uxon"].replace("zzz9", "e"), of_criterion=True)
    await judge()
    assert shown[-1]
    assert preview.edited
    assert preview.result.outcome == "passed"
    assert preview.impact is not None
    assert len(preview.impact.flips) == 2
    assert preview.step(1) == ""
    await judge()
    assert preview.trial.at == 1
    assert preview.step(1) == "This is the oldest stored run."
    preview.read_again()
    await judge()
    assert preview.trial.at == 1
    target = editor.inspect_target()
    assert (target["criterion"], target["edit"], target["new"]) == ("Never", True, None)
    assert target["config"] == doc.form.criteria[1].values["config_uxon"]
    assert len(target["runs"]) == 2
    # A new criterion is lent to Inspect, and what is edited of it there is an edit here.
    editor.add_criterion(starter("Latency"))
    lent = editor.inspect_target()["new"]
    assert lent is not None
    assert editor.take_tried_config(lambda: replace(lent, config="{}"))
    assert doc.chosen is not None
    assert doc.chosen.values["config_uxon"] == "{}"
    assert not editor.take_tried_config(lambda: replace(lent, config="[]"))  # it was taken back already
    # Another one that is in no file yet is not the one before.
    await judge()
    editor.add_criterion(starter("Latency"))
    await judge()
    assert not shown[-1]
    await judge()
    assert shown[-1]
    # Without a criterion only the run stays.
    doc.form.criteria.clear()
    await judge()
    assert (preview.result, preview.impact, shown[-1]) == (None, None, False)
