"""What the Editor edits: the open test, its steps and drafts, what is wrong with it, and what is written into its file.

Nothing here knows a widget. Methods that read or write files say so: call them in a thread.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from msgspec import Struct, field
from msgspec.structs import replace

from agenteval_tui.analysis.criterion_preview import spec_from
from agenteval_tui.analysis.edit_validation import FieldProblem, check_edit, errors_once_saved
from agenteval_tui.analysis.lint import CUT, user_agents
from agenteval_tui.analysis.overview import Overview
from agenteval_tui.core.errors import AgentevalError, Problem
from agenteval_tui.core.ids import criterion_names
from agenteval_tui.core.numbers import typed_whole
from agenteval_tui.grading.config.diagnostics import diagnose
from agenteval_tui.grading.criterion_templates import Starter
from agenteval_tui.grading.spec import CriterionSpec
from agenteval_tui.suites.datasets import read_rows
from agenteval_tui.suites.editing import TestEdit, WrittenFile, id_now, rebase
from agenteval_tui.suites.load import LoadedSuite, load_suite
from agenteval_tui.suites.model import AgentConfig, Dataset
from agenteval_tui.suites.unquoted_hash import cut_texts
from agenteval_tui.tui.analysis_context import Session
from agenteval_tui.tui.draft_store import Drafts, StoredDraft
from agenteval_tui.tui.inspect_target import InspectTarget
from agenteval_tui.tui.presenters.editor_rows import in_order
from agenteval_tui.tui.presenters.test_form import (
    CriterionForm,
    TestForm,
    edit_of,
    new_criterion,
    read_form,
    rebased_dataset,
    yaml_problems,
)
from agenteval_tui.tui.screens.editor.document import SuiteDocument, carried_on, changed_by_both
from agenteval_tui.tui.screens.editor.preview import CriterionPreview
from agenteval_tui.uxon.diagnostics import Diagnostic
from agenteval_tui.uxon.merge import merge

QUIET_S = 0.12
"""How long typing must pause before the test is checked."""
MOST_UNDONE = 20
"""How many changes of files can be undone, one after the other."""
DATASET_ROWS = 4
"""How many rows of a dataset are shown."""

FieldPlace = tuple[int | None, str]
"""A field: the number of its criterion (None: it is the test's own), and its key in the file ("": all of it)."""


class OpenRequest(Struct, frozen=True):
    """A test to open: its suite's key and its id. `criterion` names the one to choose, `starter` is added as an edit
    that is not saved yet, `run` is the id of the recorded run to judge (else the newest). `focus`: go to the form."""

    suite: str
    test: str
    criterion: str = ""
    starter: Starter | None = None
    run: str = ""
    focus: bool = True

    @property
    def key(self) -> str:
        """Suite and test, as documents and rows are named."""
        return f"{self.suite}\x1f{self.test}"

    @classmethod
    def of(cls, key: str, *, focus: bool = True) -> OpenRequest:
        """The test with this key."""
        suite, _, test = key.partition("\x1f")
        return cls(suite, test, focus=focus)


class Contents(NamedTuple):
    """The suites as they are now, the agents of the user by name, and the drafts, the newest first."""

    overview: Overview
    agents: Mapping[str, AgentConfig]
    drafts: Sequence[StoredDraft]


class ShownFields(NamedTuple):
    """The content of the fields of the test, of those of the chosen criterion, and of its config."""

    fields: Mapping[str, str]
    criterion: Mapping[str, str]
    config: str


class DatasetFile(NamedTuple):
    """A dataset as the form names it: the suite's folder, the file ("": none), how many rows of it ("": all), and the
    split of a folder ("": its only one)."""

    folder: Path
    file: str
    limit: str
    split: str = ""

    def first_rows(self) -> tuple[list[Mapping[str, Any]], str]:
        """Read its first rows, and say what is wrong with it ("": nothing)."""
        number = typed_whole(self.limit) or None
        rows: list[Mapping[str, Any]] = []
        try:
            dataset = Dataset(file=self.file, limit=number, split=self.split or None)
            for row in islice(read_rows(dataset, self.folder), DATASET_ROWS):
                rows.append(row.variables)
        except AgentevalError as error:
            return rows, f"{error.where}: {error.what}" if error.where and rows else error.what
        return rows, ""


class Validation(Struct, frozen=True):
    """What is wrong: by field; at all (it could not be saved); in fields of YAML; in the chosen config."""

    problems: list[FieldProblem] = field(default_factory=list)
    error: str = ""
    bad_yaml: Mapping[str, str] = field(default_factory=dict)
    diagnostics: tuple[Diagnostic, ...] = ()


class FileChange(Struct, frozen=True):
    """A change of a suite's file that can be undone: in words, of which test, and what undoing it needs."""

    words: str
    test: OpenRequest
    written: list[WrittenFile]


class EditorController:
    """The state of the Editor. `doc` is the open test; None before the first one is read, and where there is none."""

    def __init__(self) -> None:
        self.overview: Overview | None = None
        self.agents: Mapping[str, AgentConfig] = {}
        self.doc: SuiteDocument | None = None
        self.diagnostics: tuple[Diagnostic, ...] = ()
        self.preview = CriterionPreview()
        self.drafts = Drafts()
        self._docs: dict[str, SuiteDocument] = {}
        self._kept: dict[str, StoredDraft] = {}  # undecided drafts
        self._request: OpenRequest | None = None
        self._last_open = ""  # the key of the test that the last start left open
        self._lent: CriterionSpec | None = None  # the new criterion that is tried in Inspect, as it was given away
        self._changes: list[FileChange] = []
        self._check_again = False
        self._checking = False
        self._typing = False  # whether more of the open test's text may follow

    # Which test is open

    def request(self, test: OpenRequest) -> None:
        """Open this test when the suites are read the next time."""
        self._request = test

    def restore(self, key: str) -> None:
        """The test that the last start left open: opened first, where nothing else is asked for."""
        self._last_open = key

    def read(self, session: Session) -> Contents:
        """Read the suites, the user's agents and the drafts. Raises `AgentevalError` where that is not possible."""
        return Contents(session.overview(), user_agents(), self.drafts.listed("test"))

    def take(self, contents: Contents) -> OpenRequest | None:
        """Take what was read: edits stay, all else is as the files say now. The test to open, if there is one."""
        self.overview, self.agents = contents.overview, contents.agents
        keys = [f"{suite.loaded.key}\x1f{test}" for suite in self.overview.suites for test in _test_ids(suite.loaded)]
        known_keys = set(keys)
        self._kept = {}
        for draft in contents.drafts:  # the newest first
            key = f"{draft.suite}\x1f{draft.test}"
            if key in known_keys and key not in self._docs:
                self._kept.setdefault(key, draft)
        # What is not edited is read anew; what is keeps what it was made from: saving says if the file changed.
        self._docs = {key: doc for key, doc in self._docs.items() if doc.edited and not self._is_saved(doc)}
        request, self._request = self._request, None
        if request is not None:
            self.preview.run_wanted = request.run
            return request
        if self.doc is not None:
            return OpenRequest.of(self.doc.key, focus=False)
        # A test with a draft comes first: opening it is what offers the draft.
        first = next(iter(self._kept), self._last_open if self._last_open in known_keys else next(iter(keys), ""))
        return OpenRequest.of(first, focus=False) if first else None

    def _is_saved(self, doc: SuiteDocument) -> bool:
        """Does the file say by now what the form says? (It was saved by Inspect, or by somebody else.)"""
        for suite in self.overview.suites if self.overview is not None else ():
            if suite.loaded.key == doc.loaded.key and suite.loaded.digest != doc.loaded.digest:
                try:
                    now = read_form(suite.loaded, doc.test_id)
                except AgentevalError:
                    return False
                alike = [criterion.values for criterion in now.criteria] == [
                    criterion.values for criterion in doc.form.criteria
                ]
                if alike and now.values == doc.form.values:
                    self.drafts.drop("test", doc.loaded.key, doc.test_id)
                    return True
        return False

    def open(self, request: OpenRequest) -> SuiteDocument:
        """Open a test, with its edits where it has some. Raises `AgentevalError` when there is no such test."""
        doc = self._docs.get(request.key)
        if doc is None:
            suites = self.overview.suites if self.overview is not None else ()
            loaded = next((suite.loaded for suite in suites if suite.loaded.key == request.suite), None)
            if loaded is None:
                raise AgentevalError("this suite is not open", where=request.suite)
            base = read_form(loaded, request.test)
            doc = SuiteDocument(loaded, request.test, base, base.copy())
            # The same test, read anew: its chosen criterion stays chosen.
            if self.doc is not None and self.doc.key == request.key:
                doc.criterion = min(self.doc.criterion, max(len(base.criteria) - 1, 0))
            self._docs[request.key] = doc
        self.doc = doc
        names = criterion_names(criterion.values["name"] for criterion in doc.form.criteria)
        if request.criterion in names:
            doc.criterion = names.index(request.criterion)
        if request.starter is not None:
            self.add_criterion(request.starter)
        return doc

    def edited_keys(self) -> set[str]:
        """The tests with an edit that is not saved, or with an undecided draft."""
        return {key for key, doc in self._docs.items() if doc.edited} | set(self._kept)

    def suite_for_new_test(self) -> LoadedSuite | None:
        """The suite that a new test goes into: the open test's, else the first."""
        if self.doc is not None:
            return self.doc.loaded
        return next((suite.loaded for suite in self.overview.suites), None) if self.overview is not None else None

    # Edits

    def edit(self, name: str, value: str, *, of_criterion: bool) -> bool:
        """Field `name` of the test, or of the chosen criterion, says `value`. False: it did before."""
        doc, test = self.doc, self.doc.chosen if self.doc is not None else None
        if doc is None or (of_criterion and test is None):
            return False
        values, step = (test.values, f"{doc.criterion}.{name}") if of_criterion and test else (doc.form.values, name)
        before = values.get(name, "")
        # The widgets take white space away; a text for which only that differs is not edited.
        if before == value or (name != "config_uxon" and before.strip() == value):
            return False
        doc.step(step)
        values[name] = value
        return True

    def take_in(self, shown: ShownFields) -> None:
        """Read the fields: a key that saves may arrive before the message about the last letter."""
        doc = self.doc
        if doc is None:
            return
        test = doc.chosen
        for values, target in ((shown.fields, doc.form.values), (shown.criterion, test.values if test else {})):
            for name, value in values.items():
                if name in target and target[name].strip() != value and target[name] != value:
                    target[name] = value
        if test is not None and shown.config != test.values["config_uxon"].replace("\r\n", "\n"):
            test.values["config_uxon"] = shown.config

    def take_pending(self, shown: ShownFields) -> bool:
        """Take an edit whose word is still on its way, as a step of its own. False: there is none."""
        doc = self.doc
        if doc is None:
            return False
        before = doc.form.copy()
        self.take_in(shown)
        if doc.form == before:
            return False
        # `step` keeps the form as it is then: so the one before the edit is put back for it.
        doc.form, now = before, doc.form
        doc.step("")
        doc.form = now
        return True

    def undo(self) -> bool:
        """Back by a step in the form. False: there is none."""
        return self.doc is not None and self.doc.undo()

    def revert(self) -> bool:
        """Back to what the file says, as a step that can be undone. False: nothing is edited."""
        doc = self.doc
        if doc is None or not doc.edited:
            return False
        doc.step("")
        doc.form = doc.base.copy()
        doc.criterion = min(doc.criterion, max(len(doc.form.criteria) - 1, 0))
        return True

    # Criteria: nothing of it is in the file before it is saved

    def choose_criterion(self, index: int) -> bool:
        """Choose a criterion. False: there is no such one, or it is chosen already."""
        doc = self.doc
        if doc is None or index == doc.criterion or not 0 <= index < len(doc.form.criteria):
            return False
        doc.criterion = index
        return True

    def add_criterion(self, starter: Starter) -> None:
        """Add a new criterion behind the chosen one (one that is made of a run: as the last), and choose it."""
        doc = self.doc
        if doc is None:
            return
        criterion = new_criterion(starter.name, starter.prototype_class, starter.config, starter.expected_value)
        last = not doc.form.criteria or starter.about.startswith("made of")
        self._insert(doc, len(doc.form.criteria) if last else doc.criterion + 1, criterion)

    def copy_criterion(self) -> None:
        """Add a copy of the chosen criterion behind it, and choose it."""
        doc = self.doc
        if doc is not None and doc.chosen is not None:
            copy = doc.chosen.copy()
            copy.values["name"] += " (copy)"
            self._insert(doc, doc.criterion + 1, copy)

    @staticmethod
    def _insert(doc: SuiteDocument, place: int, criterion: CriterionForm) -> None:
        doc.step("")
        doc.form.criteria.insert(place, criterion)
        doc.criterion = place

    def delete_criterion(self) -> str:
        """Take the chosen criterion out of the form; its name."""
        doc = self.doc
        if doc is None or doc.chosen is None:
            return ""
        doc.step("")
        name = doc.form.criteria.pop(doc.criterion).values["name"]
        doc.criterion = min(doc.criterion, max(len(doc.form.criteria) - 1, 0))
        return name

    def move_criterion(self, by: int) -> bool:
        """Move the chosen criterion `by` places down. False: there is no room."""
        doc = self.doc
        if doc is None or not 0 <= doc.criterion + by < len(doc.form.criteria):
            return False
        doc.step("")
        moved = doc.form.criteria.pop(doc.criterion)
        doc.criterion += by
        doc.form.criteria.insert(doc.criterion, moved)
        return True

    # Drafts

    def put_draft(self, doc: SuiteDocument) -> bool:
        """The test was edited: its draft waits to be written. True: `drafts.write` must be called in a moment."""
        # Beside an older undecided draft, not over it.
        part = "newer" if doc.key in self._kept else ""
        return self.drafts.put("test", doc.loaded.key, doc.test_id, part, doc.as_data() if doc.edited else None)

    def write_drafts(self) -> None:
        """Write a draft of each test that is edited. Writes files."""
        for doc in self._docs.values():
            if doc.edited:
                self.put_draft(doc)
        self.drafts.write()

    def draft_to_offer(self) -> StoredDraft | None:
        """The open test's draft, if it has one that was not offered since the test was opened."""
        doc = self.doc
        draft = self._kept.get(doc.key) if doc is not None else None
        if doc is None or draft is None or doc.draft_checked:
            return None
        doc.draft_checked = True
        return draft

    def decide_draft(self, doc: SuiteDocument, kept: StoredDraft, answer: str | None) -> None:
        """Put a draft into the form ("restore"), or forget it ("discard"); else it is offered again when the test is
        opened again. Writes a file."""
        if answer == "restore":
            doc.restore(kept.data)
            self._kept.pop(doc.key, None)
            self.drafts.drop("test", kept.suite, kept.test, "newer")  # it is in the form, with the older one
        elif answer == "discard":
            self._kept.pop(doc.key, None)
            self.drafts.drop("test", kept.suite, kept.test, kept.part)
        elif self._kept.get(doc.key) is kept:
            doc.draft_checked = False

    # What is wrong

    def want_check(self, *, typing: bool = True) -> bool:
        """The open test, or its text, has changed. `typing`: more may follow, so check in the next pause. True: no
        check is running, so call `check`."""
        self._check_again = True
        self._typing = self._typing or typing
        # One check at a time; the one that runs sees `_check_again`, and checks the newest text.
        begin, self._checking = not self._checking, True
        return begin

    async def check(self, show: Callable[[str], None]) -> None:
        """Check the newest text until there is none newer; `show` is called with the config that was checked."""
        try:
            while self._check_again:
                if self._typing:
                    await asyncio.sleep(QUIET_S)
                self._check_again = self._typing = False
                doc = self.doc
                if doc is None:
                    return
                await self._check_once(doc, show)
        finally:
            self._checking = False

    async def _check_once(self, doc: SuiteDocument, show: Callable[[str], None]) -> None:
        test = doc.chosen
        config, kind = (test.values["config_uxon"], test.values["prototype_class"]) if test is not None else ("", "")
        check = partial(validate_form, doc.loaded, doc.test_id, doc.base.copy(), doc.form.copy(), self.agents)
        problems = await asyncio.to_thread(check, config, kind)
        # What was found is of a text that is gone.
        if self._check_again or doc is not self.doc:
            return
        doc.problems, doc.error, doc.bad_yaml = problems.problems, problems.error, problems.bad_yaml
        self.diagnostics = problems.diagnostics
        show(config)

    def complaints(self) -> tuple[dict[str, str], dict[str, str]]:
        """What is wrong with the fields of the test, and with those of the chosen criterion, by the fields' names."""
        of_test: dict[str, str] = {}
        of_criterion: dict[str, str] = {}
        doc = self.doc
        if doc is None:
            return of_test, of_criterion
        for problem in reversed(in_order(doc.problems)):  # of several the worst is said
            if problem.problem.severity == "info":
                continue
            if problem.criterion is None:
                of_test["dataset_file" if problem.field == "dataset" else problem.field] = problem.problem.message
            elif problem.criterion == doc.criterion:
                of_criterion[problem.field] = problem.problem.message
        of_test.update(doc.bad_yaml)
        return of_test, of_criterion

    def problem_places(self) -> list[FieldPlace]:
        """The fields that something is wrong with, in the order in which the problems are listed."""
        return (
            [(problem.criterion, problem.field) for problem in in_order(self.doc.problems)]
            if self.doc is not None
            else []
        )

    def problem_at(self, here: FieldPlace) -> int:
        """The number, in that order, of the first problem of a field; of the first of all where it has none."""
        places = self.problem_places()
        return places.index(here) if here in places else 0

    def next_problem(self, here: FieldPlace) -> FieldPlace | None:
        """The field of the next problem behind the field `here`, the first one behind the last."""
        places = self.problem_places()
        at = places.index(here) + 1 if here in places else 0
        while at < len(places) and places[at] == here:
            at += 1
        return places[at % len(places)] if places else None

    def is_cut(self, place: FieldPlace) -> bool:
        """Is this a field whose text a `#` cuts short?"""
        problems = self.doc.problems if self.doc is not None else ()
        return any(problem.problem.code == CUT and (problem.criterion, problem.field) == place for problem in problems)

    def cut_start(self, place: FieldPlace) -> int | None:
        """Where in the file the text of this field begins, which a `#` cuts short."""
        doc, (number, name) = self.doc, place
        if doc is None:
            return None
        values = doc.base.values if number is None else doc.base.criteria[number].values
        cuts = cut_texts(doc.loaded, doc.loaded.node(doc.test_id))
        return next((cut.start for cut in cuts if (cut.key, cut.read) == (name, values[name])), None)

    def dataset(self) -> DatasetFile | None:
        """The dataset that the form names."""
        doc = self.doc
        if doc is None:
            return None
        values = doc.form.values
        file, limit = values["dataset_file"].strip(), values["dataset_limit"].strip()
        return DatasetFile(doc.loaded.path.parent, file, limit, doc.base.dataset_more.get("split", ""))

    # The file

    def edit_to_save(self) -> TestEdit | None:
        """What saving writes; None: nothing is changed. Raises `AgentevalError` where a field can't be read."""
        doc = self.doc
        edit = doc.edit if doc is not None else None
        if doc is None or not edit:
            return None
        for name, why in doc.bad_yaml.items():
            raise AgentevalError(f"{name} can't be read: {why}", fix="fix it, then save again")
        return edit

    def errors_to_save(self) -> tuple[list[str], bool]:
        """What would keep the suite from running if the test were saved as it is, each in a sentence; is one of it in
        the chosen config, with a fix? Takes as long as a check: call it in a thread."""
        doc = self.doc
        if doc is None:
            return [], False
        errors = errors_once_saved(doc.loaded, doc.test_id, doc.edit, self.agents)
        values = doc.chosen.values if doc.chosen is not None else {}
        diagnostics = diagnose(values["config_uxon"], values["prototype_class"]) if errors and values else ()
        return errors, any(problem.severity == "error" and problem.fix is not None for problem in diagnostics)

    @staticmethod
    def rebased(doc: SuiteDocument) -> tuple[LoadedSuite, TestEdit, str]:
        """The file as it is now, the edit for it, and the test's id in it, if that is different. Reads the file."""
        fresh = load_suite(doc.loaded.path)
        now = id_now(doc.loaded, fresh, doc.test_id)
        renamed = now if now.casefold() != doc.test_id.casefold() else ""
        edit = rebase(doc.edit, doc.loaded, fresh, doc.test_id, lambda *texts: merge(*texts).text)
        if "dataset" in edit.changes:  # several fields of the form are one key of the file
            dataset = rebased_dataset(doc.base, doc.form, read_form(fresh, now))
            edit = replace(edit, changes={**edit.changes, "dataset": dataset})
        return fresh, edit, renamed

    @staticmethod
    def changed_by_both(doc: SuiteDocument) -> list[tuple[str, str, str]]:
        """(what it is, mine, the file's) of each value that I and somebody else changed. Reads the file."""
        try:
            fresh = load_suite(doc.loaded.path)
            return changed_by_both(doc.base, doc.form, read_form(fresh, id_now(doc.loaded, fresh, doc.test_id)))
        except AgentevalError:
            return []  # what is wrong is said when the edit is made again

    def saved(self, doc: SuiteDocument, form: TestForm, renamed: str, written: LoadedSuite) -> SuiteDocument:
        """`form` was saved, and its file is `written` now. The test as it is open from now on: who went on typing
        meanwhile has an edit of what was saved. `renamed`: the id that somebody else gave the test."""
        new_id = form.values["id"] or doc.test_id
        # The file has another id, and I have not changed it: theirs stays.
        if renamed and form.values["id"] == doc.base.values["id"]:
            new_id = renamed
            doc.form.values["id"] = form.values["id"] = renamed
        for part in ("", "newer"):
            self.drafts.drop("test", doc.loaded.key, doc.test_id, part)
        self._docs.pop(doc.key, None)
        base = read_form(written, new_id)
        now = carried_on(form, doc.form, base)
        again = SuiteDocument(written, new_id, base, now, doc.criterion, draft_checked=True)
        self._docs[again.key] = again
        if self.doc is doc:
            self.doc = again
        return again

    def files_changed(
        self, doc: SuiteDocument, what: str, written: Sequence[LoadedSuite], undo: list[WrittenFile]
    ) -> str:
        """The open test was copied, moved or deleted (`what`) in its file; `undo` is what undoing needs. In words what
        was done; "": nothing was."""
        self._docs.pop(doc.key, None)
        if not written:
            return ""
        self.doc = None if what == "deleted" else doc
        words = f"{doc.test_id} {what} in {written[0].path.name}"
        if undo:
            change = FileChange(words, OpenRequest.of(doc.key), undo)
            self._changes = [*self._changes[1 - MOST_UNDONE :], change]
        return words

    def undoes_file(self, *, in_tests: bool) -> bool:
        """Is the last change of a file what undo takes back? It is in the list of tests, and where the form has no
        step."""
        return bool(self._changes) and (in_tests or self.doc is None or not self.doc.can_undo)

    def take_file_change(self) -> FileChange:
        """The last change of a file, which is about to be undone."""
        return self._changes.pop()

    def keep_file_change(self, change: FileChange, *, last: bool) -> None:
        """It could not be undone: it is again the `last` one, or those before it come first."""
        self._changes.insert(len(self._changes) if last else 0, change)

    # On a run, in Inspect

    def inspect_target(self) -> InspectTarget:
        """What Inspect shows: the chosen criterion, unsaved as it is. One that is in no file yet is lent to it."""
        doc, trial = self.doc, self.preview.trial
        runs = [run.id for run in trial.runs] if trial is not None else []
        name, config, new = "", None, None
        chosen = doc.chosen if doc is not None else None
        if (
            doc is not None
            and chosen is not None
            and chosen.source is not None
            and chosen.source < len(doc.base.criteria)
        ):
            saved = doc.base.criteria[chosen.source].values
            name = saved["name"]  # as the file names it: Inspect reads the file
            config = chosen.values["config_uxon"]
            config = None if config == saved["config_uxon"] else config
        elif chosen is not None:
            new = self._lent = spec_from(chosen.values)
        edit = config is not None or new is not None
        return InspectTarget(criterion=name, runs=runs, edit=edit, config=config, new=new)

    def take_tried_config(self, tried: Callable[[], CriterionSpec | None]) -> bool:
        """A new criterion was lent to Inspect: what was edited of its config there is an edit here. False: nothing."""
        lent, self._lent = self._lent, None
        impact = tried() if lent is not None else None
        doc = self.doc
        if lent is None or impact is None or doc is None or doc.chosen is None:
            return False
        values = doc.chosen.values
        same = doc.chosen.source is None and values["name"] == lent.name == impact.name
        if not same or impact.config == lent.config or values["config_uxon"] != lent.config_text:
            return False
        doc.step("")
        values["config_uxon"] = impact.config_text
        return True


def _test_ids(loaded: LoadedSuite) -> list[str]:
    """The ids of all tests of a file, also of those that are not right."""
    right = {test.id.casefold(): test.id for test in loaded.suite.tests} if loaded.suite is not None else {}
    return [right.get(folded, folded) for folded in loaded.test_nodes]


def validate_form(
    loaded: LoadedSuite,
    test_id: str,
    base: TestForm,
    form: TestForm,
    agents: Mapping[str, AgentConfig],
    config: str,
    prototype_class: str,
) -> Validation:
    """Check a form as `validate` checks what would be saved; what can't be read as YAML stays as it was in the file.

    `config` and `prototype_class` are the chosen criterion's, "" where none is chosen. Changes `form`.
    """
    bad = yaml_problems(form)
    for key in bad:
        form.values[key] = base.values[key]
    diagnostics = tuple(diagnose(config, prototype_class)) if prototype_class else ()
    try:
        problems = check_edit(loaded, test_id, edit_of(base, form), agents)
    except AgentevalError as error:
        sentence = f"{error.what} ({error.fix})" if error.fix else error.what
        return Validation([], sentence, bad, diagnostics)
    problems += [FieldProblem(Problem.at(loaded.path, (1, 1), "syntax", text), key) for key, text in bad.items()]
    return Validation(problems, "", bad, diagnostics)
