"""What Inspect knows, without a terminal: runs and criteria in order, edits judged and counted, saves, drafts."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace
from shop import copy_samples, run_samples

from agenteval_tui.analysis import workbench
from agenteval_tui.analysis.workbench import Workbench
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.grading.results import CriterionResult
from agenteval_tui.grading.spec import CriterionSpec
from agenteval_tui.history.store import Store
from agenteval_tui.suites.load import load_suite
from agenteval_tui.suites.yaml.save import FileChanged, save_config
from agenteval_tui.transcripts.model import Message, ToolCall, Transcript
from agenteval_tui.tui.analysis_context import Session
from agenteval_tui.tui.inspect_target import InspectTarget
from agenteval_tui.tui.screens.inspect.controller import (
    ConfigToEdit,
    InspectController,
    check_project,
    on_fresh_file,
    term_in,
    write,
)
from agenteval_tui.tui.screens.verdict_changes import listed_flips
from agenteval_tui.uxon.edit import set_value
from agenteval_tui.uxon.parse import parse

TEST = "kunden-deutschland"
BROKEN = '"contains_al"'


class Person:
    """Who uses Inspect: what is in the editor, and what was said."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.said: list[str] = []
        self.state = InspectController(self._hear)
        self.editor = ""

    def _hear(self, message: str, *, severity: str = "information") -> None:
        self.said.append(message)

    def open(self, run: str, **how: object) -> ConfigToEdit:
        """Open a run."""
        target: InspectTarget = how  # type: ignore[assignment]
        self.state.edit(self.editor)
        return self.show(self.state.open(self.state.reader(self.session, run, target)(), target))

    def choose(self, number: int) -> ConfigToEdit:
        """Choose a criterion."""
        self.state.edit(self.editor)
        return self.show(self.state.choose(number))

    def show(self, config: ConfigToEdit) -> ConfigToEdit:
        """As the editor does."""
        self.editor, self.state.saved_text = config.text, config.saved
        return config

    async def write(self, text: str) -> None:
        """Write in the editor, and see what comes of it."""
        self.editor = text
        self.state.edit(text)
        await self.state.judge(text)
        async for _ in self.state.count_impact(text):
            pass


class Shop:
    """The sample suites in a folder of their own, and a history in which one test ran; `runs` newest first."""

    def __init__(self, folder: Path) -> None:
        self.suites, self.db = copy_samples(folder), folder / "history.db"
        self.file = self.suites / "tabellen.suite.yaml"
        run_samples(self.suites, self.db, tests=(TEST,))
        with Store.open(self.db) as store:
            self.runs = [row.id for row in store.runs_of_test(str(self.file), TEST, 9)]


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Shop:
    """Nobody may write into its files."""
    return Shop(tmp_path_factory.mktemp("shop"))


@pytest.fixture
def own_shop(tmp_path: Path) -> Shop:
    """One whose files a test may change."""
    return Shop(tmp_path)


@pytest.fixture
def runs(shop: Shop) -> list[str]:
    return shop.runs


@pytest.fixture
def person(shop: Shop) -> Iterator[Person]:
    session = Session((shop.suites,), shop.db)
    yield Person(session)
    session.store.close()


async def test_a_run_with_a_long_config_is_shown_before_it_is_judged(
    person: Person, runs: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    judged: list[int] = []
    judge = Workbench.judge

    def counted(bench: Workbench, criterion: int, text: str | CriterionSpec | None = None) -> CriterionResult:
        judged.append(criterion)
        return judge(bench, criterion, text)

    monkeypatch.setattr(Workbench, "judge", counted)
    assert person.open(runs[0]).judged
    assert not person.state.is_judged_later
    every, due = len(person.state.bench.criteria) if person.state.bench is not None else 0, person.state.result
    assert len(judged) == every > 0
    await person.state.judge(person.editor)
    assert len(judged) == every, "it was judged when it was opened"
    assert person.state.result == due

    monkeypatch.setattr(workbench, "LONG_CONFIG", 1)
    judged.clear()
    assert not person.open(runs[0]).judged
    assert judged == []
    assert person.state.is_judged_later
    assert len(person.state.results) == every, "what is stored is shown beside the run"
    await person.state.judge(person.editor)
    assert judged == [person.state.criterion]
    assert person.state.result == due
    assert not person.state.is_judged_later


def test_it_does_not_load_the_toolkit() -> None:
    code = "import sys, agenteval_tui.tui.screens.inspect.controller; print('textual' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=250, check=True)
    assert done.stdout.strip() == "False"


def test_a_run_is_opened_on_the_criterion_that_failed(person: Person, runs: list[str]) -> None:
    state = person.state
    assert (state.run_id, state.criterion_name, state.address()) == ("", "", "")
    failures = [run for run in runs if person.session.store.run(run).status == "failed"]
    config = person.open(failures[0])
    assert state.run_id == failures[0]
    assert state.around.runs == runs
    assert state.around.failures() == failures
    assert state.result is not None
    assert state.result.outcome == "failed"
    assert state.result is state.results[state.criterion]
    assert state.bench is not None
    assert (config.saved, config.text) == (state.bench.criteria[state.criterion].text,) * 2
    assert config.other
    assert config.judged
    assert state.was_graded
    assert state.criterion_name in state.address()
    assert state.criterion_name in state.names_by_hash().values()
    assert not person.open(failures[0], criterion=state.criterion_name).other, "the editor keeps cursor and undo"


def test_runs_and_failures_are_gone_through_in_order(person: Person, runs: list[str]) -> None:
    state = person.state
    person.open(runs[0])
    for run in runs[1:]:
        assert state.run_beside(1, failures=False) == run
        person.open(run, criterion=state.criterion_name)
    assert state.run_beside(1, failures=False) == ""
    assert person.said[-1] == "There is no run after this one."
    failures = state.around.failures()
    assert state.run_beside(-1, failures=True) == [run for run in failures if run != runs[-1]][-1]
    person.open(failures[0])
    assert state.run_beside(-1, failures=True) == ""
    assert person.said[-1] == "There is no failure before this one."
    # A list from elsewhere is gone through in its own order.
    person.open(failures[0], runs=[failures[1], failures[0]])
    assert state.run_beside(-1, failures=True) == failures[1]


def test_what_is_special_about_the_runs_of_an_execution_is_said_once(own_shop: Shop) -> None:
    own_shop.file.unlink()
    session = Session((own_shop.suites,), own_shop.db)
    person = Person(session)
    for run in own_shop.runs:
        person.open(run)
    assert person.state.bench is not None
    assert person.said == [person.state.bench.note]
    session.store.close()


def test_criteria_are_gone_through_round_and_round(person: Person, runs: list[str]) -> None:
    state = person.state
    person.open(runs[0])
    assert state.bench is not None
    last = len(state.bench.criteria) - 1
    assert last > 0
    person.choose(last)
    assert state.criterion_beside(1) == 0
    assert state.criterion_beside(-1) == last - 1
    person.open(runs[0], criterion="one that is gone", config="{}")
    assert person.said == ["one that is gone is no longer in the file."]
    assert not state.is_edited, "a config for another criterion is nobody's draft"


async def test_an_edit_is_judged_here_and_counted_over_all_stored_runs(person: Person, runs: list[str]) -> None:
    state = person.state
    person.open(runs[0])
    failures = state.around.failures()
    saved = person.open(failures[0]).saved
    await person.write(saved.replace('"contains_all"', BROKEN))
    assert state.is_edited
    assert state.is_unsaved
    assert state.has_drafts()
    assert state.result is not None
    assert state.result.outcome == "error"
    assert any(one.fix is not None for one in state.diagnostics)
    assert state.impact is not None
    assert state.impact.done == state.impact.total == len(runs)
    assert len(state.impact.flips) == len(runs)
    assert {row[0] for row in listed_flips(person.session.store, state.impact.flips)} == set(runs)
    # The smallest edit that passes; and back to what is saved, which is no edit any more.
    await person.write(saved)
    assert not state.is_edited
    assert not state.impact.flips
    assert state.bench is not None
    edit = await state.alone.smallest_edit(state.bench, state.criterion, saved)
    assert edit is not None
    await person.write(edit.new_text)
    assert state.result.outcome == "passed"
    assert await state.alone.smallest_edit(state.bench, state.criterion, edit.new_text) is None


async def test_whether_a_small_edit_passes_is_found_out_where_a_criterion_fails(
    person: Person, runs: list[str]
) -> None:
    state = person.state
    person.open(runs[0])
    saved = person.open(state.around.failures()[0]).saved
    await state.look_for_edit(saved)
    assert state.has_edit
    forbidden = '{"metrics": [{"type": "TextMatch", "not_contains_any": ["SELECT"]}]}'
    await person.write(forbidden)
    assert state.result is not None
    assert state.result.outcome == "failed"
    await state.look_for_edit(forbidden)
    assert state.has_edit is False, "what would be left checks nothing"
    await person.write(forbidden + "}")
    await state.look_for_edit(person.editor)
    assert state.has_edit is None, "of a config that can't be read nothing is known"
    person.choose(state.criterion)
    assert state.has_edit is None


async def test_while_a_config_is_broken_the_evidence_is_that_under_what_could_be_read_last(
    person: Person, runs: list[str]
) -> None:
    state = person.state
    person.open(runs[0])
    before = state.result
    assert state.looked_at is before is not None
    await person.write(person.editor + "}")
    assert state.is_unreadable
    assert state.result is not None
    assert state.result.outcome == "error", "the verdict is that of the config as it is"
    assert state.looked_at is before
    await person.write(person.editor[:-1] + "\n")
    assert state.looked_at is state.result is not before
    await person.write("{")
    person.open(runs[1])
    assert state.looked_at is state.result, "that of another run tells nothing"
    person.choose(0)


async def test_a_draft_stays_with_its_criterion(person: Person, runs: list[str]) -> None:
    state = person.state
    saved = person.open(runs[0]).saved
    first, edited = state.criterion, saved + "// mine\n"
    person.editor = edited  # typed, and gone elsewhere before anybody heard of it
    other = person.choose((first + 1) % len(state.bench.criteria if state.bench else ()))
    assert other.text == other.saved
    assert not state.is_edited
    back = person.choose(first)
    assert (back.text, back.saved, back.judged) == (edited, saved, False)
    assert person.open(runs[1], criterion=state.criterion_name).text == edited
    # What is handed over by another screen is a draft as well.
    assert person.open(runs[1], criterion=state.criterion_name, config="{}").text == "{}"
    # An edit that is not saved outlives this start, and is found once.
    state.keep_drafts()
    again = Person(person.session)
    assert again.open(runs[0], criterion=state.criterion_name).text == "{}"
    assert "Your unsaved edit of" in again.said[-1]
    again.editor = saved
    again.state.edit(saved)
    assert again.state.put_draft()
    again.choose((first + 1) % len(state.bench.criteria if state.bench else ()))
    again.state.edit("{}")
    assert not again.state.put_draft(), "one write is enough for both"
    again.state.drafts.write()
    third = Person(person.session)
    assert third.open(runs[0], criterion=state.criterion_name).text == saved
    assert third.said == []


async def test_a_save_is_refused_when_the_file_changed_and_the_draft_is_kept(own_shop: Shop) -> None:
    shop = own_shop
    runs, file = shop.runs, shop.file
    person = Person(Session((shop.suites,), shop.db))
    state = person.state
    person.open(runs[0])
    assert state.saving(person.editor) is None
    assert person.said == ["Nothing is changed."]
    edited = person.editor + "// mine\n"
    await person.write(edited)
    saving = state.saving(edited)
    assert saving is not None
    theirs = "# somebody was here\n" + file.read_text(encoding="utf-8")
    file.write_text(theirs, encoding="utf-8")
    with pytest.raises(FileChanged, match="changed"):
        write(person.session, saving)
    assert file.read_text(encoding="utf-8") == theirs
    # What this app wrote elsewhere in the file meanwhile, as where a fork is kept, is no reason to ask.
    person.session.note_own_write(file)
    write(person.session, replace(saving, text=saving.text + "// own\n"))
    assert "# somebody was here" in file.read_text(encoding="utf-8")
    assert "// own" in file.read_text(encoding="utf-8")
    with pytest.raises(FileChanged, match="changed"):
        write(person.session, saving)  # the same criterion was written
    file.write_text(theirs, encoding="utf-8")
    assert state.is_edited
    # Put into the file as it is now, it is saved there, and what was typed meanwhile is an edit of that.
    fresh = on_fresh_file(saving)
    loaded = write(person.session, fresh)
    await person.write(edited + "// more")
    line = state.saved(fresh, loaded)
    assert line == loaded.line_of(TEST, saving.index)
    text = file.read_text(encoding="utf-8")
    assert text.startswith("# somebody was here\n")
    assert "// mine" in text
    assert "// more" not in text
    assert state.is_edited
    config = person.open(runs[0], criterion=state.criterion_name)
    assert (config.saved, config.text) == (edited, edited + "// more")
    # Without anything typed the edit is over; and a criterion that is gone from the file is not guessed at.
    again = state.saving(person.editor)
    assert again is not None
    state.saved(again, write(person.session, again))
    assert not state.is_edited
    gone = file.read_text(encoding="utf-8").replace(f"name: {state.criterion_name}", "name: Another")
    file.write_text(gone, encoding="utf-8")
    with pytest.raises(AgentevalError, match="is no longer in the file"):
        on_fresh_file(again)
    person.session.store.close()


@pytest.mark.parametrize("reopened", [False, True])
async def test_a_config_that_others_edited_keeps_both_edits(own_shop: Shop, reopened: bool) -> None:
    """Whether the file is read again for the question of a save, or because the run is opened again before it."""
    person = Person(Session((own_shop.suites,), own_shop.db))
    state, run = person.state, own_shop.runs[0]
    person.open(run)
    config = person.editor
    mine = set_value(parse(config), ("metrics", 0, "ignore_case"), True)
    theirs = set_value(parse(config), ("metrics", 0, "weight"), 2)
    assert mine is not None
    assert theirs is not None
    await person.write(mine.apply(config))
    saving = state.saving(person.editor)
    assert saving is not None
    save_config(load_suite(own_shop.file), TEST, saving.index, theirs.apply(config))
    if reopened:
        shown = person.open(run, criterion=state.criterion_name)
        assert shown.text != mine.apply(config)
        assert any("Your edit is in it now" in words for words in person.said)
        saving = state.saving(shown.text)
        assert saving is not None
    else:
        with pytest.raises(FileChanged):
            write(person.session, saving)
        saving = on_fresh_file(saving)
        assert saving.both == ()
    state.saved(saving, write(person.session, saving))
    metric = parse(load_suite(own_shop.file).config_source(TEST, saving.index).text).value["metrics"][0]
    assert (metric["ignore_case"], metric["weight"]) == (True, 2)
    person.session.store.close()


async def test_a_new_criterion_goes_along_to_other_runs_and_is_never_saved_here(
    person: Person, runs: list[str]
) -> None:
    state = person.state
    spec = CriterionSpec("Mine", "TextResponse", '{"metrics": [{"type": "TextMatch", "contains": "SELECT"}]}')
    person.open(runs[0], new=spec, criterion="Mine")
    assert state.is_new
    assert state.is_unsaved
    assert not state.was_graded
    assert not state.put_draft(), "the Editor keeps it"
    await person.write(person.editor.replace("SELECT", "FROM"))
    assert state.impact is not None
    assert state.impact.now == {}
    person.open(runs[1], criterion="Mine")
    assert state.is_new
    assert state.new_criterion is not None
    assert "FROM" in str(state.new_criterion.config)
    with pytest.raises(AgentevalError, match="not in a suite file"):
        state.saving(person.editor)


def test_a_criterion_that_is_lent_is_tried_whichever_test_was_open(person: Person, runs: list[str]) -> None:
    person.open(runs[0])
    assert person.state.bench is not None
    person.state.bench.run = replace(person.state.bench.run, test_id="another")
    spec = CriterionSpec("Mine", "TextResponse", '{"metrics": [{"type": "TextMatch", "contains": "SELECT"}]}')
    person.open(runs[1], new=spec)
    assert person.state.is_new


def test_a_run_of_another_project_or_none_is_not_gone_back_to(person: Person, runs: list[str]) -> None:
    check_project(person.session, runs[0])
    with pytest.raises(AgentevalError):
        check_project(person.session, "no such run")


def test_what_found_a_run_in_a_list_is_searched_for_in_its_transcript() -> None:
    transcript = Transcript(
        (Message("user", "Where is my Order?"), Message("assistant", "It ships tomorrow.")),
        (ToolCall("a", "get_order", {"order_id": "#W1042"}, '{"carrier": "Österreichische Post"}'),),
    )
    assert term_in(transcript, "ships tomorrow") == "ships tomorrow"
    assert term_in(transcript, " order  tomorrow ") == "tomorrow", "the longest word of those that are there"
    assert term_in(transcript, "#w1042 nowhere-to-be-found") == "#w1042"
    assert term_in(transcript, "österreichische") == "österreichische"
    assert term_in(transcript, "nowhere") == "nowhere"
    assert term_in(transcript, "  ") == ""
