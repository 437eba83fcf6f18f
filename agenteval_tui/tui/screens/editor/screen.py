"""The Editor: a test as a form, its criteria, and each one's config; checked while one types, saved in its place."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar

from msgspec.structs import replace
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal
from textual.events import DescendantFocus, Resize, ScreenResume, ScreenSuspend
from textual.widget import Widget

from agenteval_tui.core.display import one_line
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.grading.criterion_templates import Starter, starters
from agenteval_tui.suites.editing import TestEdit, WrittenFile
from agenteval_tui.suites.load import LoadedSuite
from agenteval_tui.suites.yaml.save import FileChanged
from agenteval_tui.tui import draft_store
from agenteval_tui.tui.actions import bindings, key_of, typing_key
from agenteval_tui.tui.draft_store import StoredDraft
from agenteval_tui.tui.presenters.editor_rows import problem_height, problem_rows
from agenteval_tui.tui.presenters.status_style import DOT
from agenteval_tui.tui.presenters.test_form import DATASET, TestForm
from agenteval_tui.tui.screens.base_screen import FrameScreen
from agenteval_tui.tui.screens.confirm_dialog import ask_and_save
from agenteval_tui.tui.screens.editor.controller import (
    Contents,
    DatasetFile,
    EditorController,
    FieldPlace,
    OpenRequest,
    ShownFields,
)
from agenteval_tui.tui.screens.editor.dialogs import delete_question, draft_question
from agenteval_tui.tui.screens.editor.document import SuiteDocument
from agenteval_tui.tui.screens.editor.panes import CriteriaPane, PreviewPane, TestEdited, TestFormPane, TestListPane
from agenteval_tui.tui.screens.file_conflict_dialog import FileConflictScreen
from agenteval_tui.tui.screens.rerun import again_key, run_again
from agenteval_tui.tui.screens.select_dialog import SelectScreen
from agenteval_tui.tui.screens.suites.file_changes import Change, change_files, undo_files
from agenteval_tui.tui.state import text
from agenteval_tui.tui.styled_text import Cell, Line, error_state, fit
from agenteval_tui.tui.terminal.sheet import if_answered
from agenteval_tui.tui.widgets.form import ChoiceField, Form
from agenteval_tui.tui.widgets.line_block import LineBlock
from agenteval_tui.tui.widgets.titled_pane import TitledPane
from agenteval_tui.tui.widgets.virtual_list import VirtualList
from agenteval_tui.tui.workers import call_after, start_worker

WIDE = 190
"""From this many columns on, a test's fields and its criteria's verdicts on a run are side by side."""
LOW = 30
"""On a screen of fewer rows problems have two rows, else three; where they need more, twice as many and more."""
PANES = ("tests", "test", "criteria", "live")
"""In the order in which a key goes through them."""


class EditorScreen(FrameScreen):
    """The tests; the chosen one as a form; its criteria; what they say of a run. Where it is narrow one at a time.

    The controller has the state. The screen tells it what is asked for, and shows in the panes what it has then.
    """

    SCOPE = "edit"
    BINDINGS: ClassVar[list[BindingType]] = bindings("edit")

    def __init__(self) -> None:
        super().__init__()
        self.controller = EditorController()
        self._panes: dict[str, TitledPane[EditorController]] = {}
        self._pane = "tests"  # which of them has the keys
        self._left = False  # whether another screen was shown since this one was
        self._dataset: DatasetFile | None = None  # the one that is shown
        self._problems: list[int] = []  # which problem each line under the panes is of
        self._problem_rows = 0

    def compose(self) -> ComposeResult:
        self.reload()  # while the parts are made: the first picture shows the test
        self.set_class(self.app.size.width < self.NARROW, "narrow", update=False)  # before the parts get their styles
        self.tests_pane = TestListPane(self.controller)
        self.form_pane = TestFormPane(self.controller)
        self.preview_pane = PreviewPane(self.controller)
        self.criteria_pane = CriteriaPane(self.controller)
        panes = (self.tests_pane, self.form_pane, self.preview_pane, self.criteria_pane)
        self._panes = {pane.NAME: pane for pane in panes}
        yield self.title_bar()
        yield LineBlock(self._tab_lines, id="tabs")
        yield Horizontal(*panes, id="body")
        yield LineBlock(id="problems")
        yield self.key_bar()

    def on_mount(self) -> None:
        self._show_no_fields()
        self._set_pane("tests")
        self.tests_pane.focus_first()

    def on_resize(self, event: Resize) -> None:
        narrow = event.size.width < self.NARROW
        if narrow != self.has_class("narrow"):
            self.set_class(narrow, "narrow", update=False)
            # Only what looks different then: a form has a lot of parts.
            self.app.stylesheet.update_nodes(self.query("#tabs, .pane, .pane-title, #criteria, #config-title"))
        self._show_panes()
        self._show_problems()

    def on_unmount(self) -> None:
        self.controller.write_drafts()

    # Which test is open

    def open_test(
        self, suite: str, test: str, *, criterion: str = "", starter: Starter | None = None, run: str = ""
    ) -> None:
        """Open a test; `criterion` names the one to choose; `starter`: add this one, as an edit to be saved; `run`: the
        recorded run to judge (else the newest)."""
        self.controller.request(OpenRequest(suite, test, criterion, starter, run))
        if self.controller.overview is not None:
            self.reload()

    def kept(self) -> dict[str, Any] | None:
        doc = self.controller.doc
        return None if doc is None else {"test": doc.key}

    def restore(self, stored: Mapping[str, Any]) -> None:
        self.controller.restore(text(stored, "test"))

    def on_screen_suspend(self, event: ScreenSuspend) -> None:
        self._left = True

    def on_screen_resume(self, event: ScreenResume) -> None:
        if self.controller.take_tried_config(self.agenteval.tried_criterion):
            self._refill()
        # Another screen may have changed the files, or run the test.
        if self._left and self.controller.overview is not None:
            self.criteria_pane.assistant.forget()
            self.controller.preview.read_again()
            self.reload()

    def reload(self) -> None:
        """Read the suites again. Edits stay."""
        read = partial(self.controller.read, self.agenteval.session)
        self.ask(read, self._show_contents, group="overview", failed=self._show_failure)

    def _show_no_fields(self) -> None:
        """While no test is open, its panes are empty, and nothing in them takes keys."""
        # Not disabled: that would give each of their parts its styles anew.
        if self.controller.doc is None:
            self.form_pane.fill()
            self.criteria_pane.fill()
            self.preview_pane.fill()

    def _show_failure(self, error: AgentevalError) -> None:
        """The suites or the history can't be read: say so where the list would be."""
        self._show_no_fields()
        if self.controller.overview is not None:
            self.agenteval.say_error(error)
            return
        view = self.tests_pane.tests
        view.set_empty(error_state(error, view.size.width))

    def _show_contents(self, contents: Contents) -> None:
        # The fields are about to be filled anew: an edit whose word is still on its way would be lost.
        if self.controller.take_pending(self._shown()):
            self._changed()
        request, self._dataset = self.controller.take(contents), None  # the rows may be others in the same file
        self.tests_pane.show_tests()
        if request is not None:
            self._open(request)
        self.retitle()
        self._show_no_fields()

    def _open(self, request: OpenRequest) -> None:
        try:
            doc = self.controller.open(request)
        except AgentevalError as error:
            self.agenteval.say_error(error)
            return
        self.preview_pane.fill()
        self.form_pane.offer_agents(doc.loaded, self.controller.agents)
        self._fill()
        # It is an edit already, which the titles and the draft have to say.
        if request.starter is not None:
            self._show_state()
        self.retitle()
        self.tests_pane.tests.move_to_key(doc.key)
        self._check(typing=False)
        if request.focus:
            self._focus_pane("criteria" if request.criterion or request.starter is not None else "test")
        draft = self.controller.draft_to_offer()
        if draft is not None:
            self._offer_draft(doc, draft)

    def _offer_draft(self, doc: SuiteDocument, draft: StoredDraft) -> None:
        def answered(answer: str | None) -> None:
            self.controller.decide_draft(doc, draft, answer)
            if answer == "restore":
                # Another test may be open by now: this one has its draft back all the same.
                if self.controller.doc is doc:
                    self._fill()
                    self._check(typing=False)
                self._show_state()
            elif answer == "discard":
                self.tests_pane.show_tests()

        self.app.push_screen(draft_question(doc, draft), answered)

    def on_virtual_list_highlighted(self, event: VirtualList.Highlighted) -> None:
        """Another test, or another criterion."""
        doc = self.controller.doc
        if event.list.id == "criteria" and doc is not None and event.index != doc.criterion:
            self.show_soon(self._follow_criterion)
        # Only where somebody moves: a list that is read again keeps the test that is open.
        elif event.list.id == "tests" and event.list.has_focus and (doc is None or doc.key != event.key):
            self.show_soon(self._follow_test)

    def _follow_criterion(self) -> None:
        if self.controller.choose_criterion(self.criteria_pane.criteria.cursor):
            self._fill_criterion()
            self._check(typing=False)

    def _follow_test(self) -> None:
        key, doc = self.tests_pane.tests.cursor_key or "", self.controller.doc
        if "\x1f" in key and (doc is None or doc.key != key):
            self._open(OpenRequest.of(key, focus=False))

    def on_virtual_list_selected(self, event: VirtualList.Selected) -> None:
        """Enter: to the fields of what is chosen."""
        if event.list.id == "criteria":
            self.criteria_pane.form.focus_first()
        elif "\x1f" in event.key:
            self._open(OpenRequest.of(event.key))

    # What the panes show

    def _fill(self) -> None:
        """Show the open test again."""
        self.form_pane.fill()
        self.criteria_pane.show_criteria()
        self._fill_criterion()
        self._show_dataset()

    def _fill_criterion(self) -> None:
        self.criteria_pane.fill()
        self._retitle_panes()

    def _refill(self) -> None:
        """The open test was edited, and not in its fields: show it again."""
        self._fill()
        self._changed()

    def _changed(self) -> None:
        """The open test was edited."""
        self._check()
        self._show_state()

    def _show_state(self) -> None:
        """Edited or not: the lists, the titles, and the draft a moment later."""
        self.criteria_pane.show_criteria()
        self._retitle_panes()
        self.retitle()
        self.tests_pane.show_tests()
        if self.controller.doc is not None and self.controller.put_draft(self.controller.doc):
            write = self.controller.drafts.write
            begin = partial(self.run_worker, write, thread=True, group="draft", exit_on_error=False)
            call_after(self, draft_store.WRITE_AFTER_S, begin)

    def _show_dataset(self) -> None:
        dataset = self.controller.dataset()
        if dataset is None or dataset == self._dataset:
            return
        self._dataset = dataset
        if dataset.file:
            self.ask(dataset.first_rows, lambda rows: self.form_pane.show_dataset(*rows), group="dataset")
        else:
            self.form_pane.show_dataset([], "")

    def heading(self, width: int) -> tuple[tuple[Cell, ...], tuple[Cell, ...]]:
        doc = self.controller.doc
        if doc is None:
            return (), ()
        state: Cell = (f"{DOT} edited", "accent") if doc.edited else ("saved", "dim")
        where = f"{one_line(doc.loaded.path.name, 50)}:{doc.loaded.line_of(doc.test_id)}"
        return ((one_line(doc.test_id, 60), "bold"), ("   ", ""), state), ((where, "dim"),)

    def _retitle_panes(self) -> None:
        for pane in self._panes.values():
            pane.retitle()
        self.query_one("#tabs", LineBlock).retell()

    # Panes and keys

    def focus_next(self, selector: Any = "*") -> Widget | None:
        """Tab goes to the next field; where one pane is shown and has no other, to the next pane."""
        focused = self.focused
        if self.has_class("narrow") and focused is not None and focused.id in ("tests", "live"):
            self.action_next_pane()
            return self.focused
        return super().focus_next(selector)

    def action_next_pane(self) -> None:
        self._focus_pane(PANES[(PANES.index(self._pane) + 1) % len(PANES)])

    def _focus_pane(self, pane: str) -> None:
        self._set_pane(pane)
        if pane == "tests" or self.controller.doc is not None:
            self._panes[pane].focus_first()

    def _set_pane(self, pane: str) -> None:
        self._pane = pane
        self._show_panes()
        self._retitle_panes()
        self.rekey()

    def _show_panes(self) -> None:
        """Show those there is room for. Without a class on the screen, which would style each widget of it anew."""
        alone, wide = self.has_class("narrow") or self.pane_focus.zoomed, self.app.size.width >= WIDE
        # The criteria's verdicts on a run are beside them; beside the fields there is no room.
        hidden = "test" if self._pane in ("criteria", "live") else "live"
        for name, pane in self._panes.items():
            pane.display = name == self._pane if alone else wide or name != hidden

    def zoom_changed(self) -> None:
        self._show_panes()

    def on_descendant_focus(self, event: DescendantFocus) -> None:
        """Say which pane has the keys now."""
        focused = self.focused
        if focused is None:
            return
        self.criteria_pane.make_room(focused is self.criteria_pane.config)
        pane = next((name for name, widget in self._panes.items() if widget in focused.ancestors), self._pane)
        if pane != self._pane:
            self._set_pane(pane)
        else:
            self.rekey()
        if self.controller.doc is not None and len(self.controller.doc.problems) > 1:
            self._show_problems()  # the one of the field with the focus is whole

    def step_back(self) -> bool:
        if self._pane == "tests":
            return self.tests_pane.close_filter()
        self.leave_text()
        return True

    def leave_text(self) -> None:
        if self._pane == "tests":
            self.tests_pane.tests.focus()
        elif self._pane == "criteria" and self.focused is not None and self.focused.id != "criteria":
            self.criteria_pane.focus_first()
        else:
            self._focus_pane("tests")

    def action_filter(self) -> None:
        self._set_pane("tests")
        self.tests_pane.open_filter()

    def keys(self) -> list[tuple[str, str, str]]:
        keymap = self.agenteval.keymap

        def key(name: str) -> str:
            return key_of(f"edit.{name}", keymap)

        focused = self.focused.id if self.focused is not None else ""
        save = (key("save"), "save", "save")
        pane = (key("pane"), "pane", "next_pane")
        if focused == "live":
            middle = [(key("next_run"), "older run", "step_run(1)"), (key("previous_run"), "newer", "step_run(-1)")]
            middle += [(key("flips"), "flips", "flips"), (key("relax"), "smallest edits", "relax")]
            middle += [(key("run"), "in Inspect", "on_a_run")]
        elif focused in ("tests", "criteria"):
            middle = [(key("new"), "new" if focused == "tests" else "add", "new")]
            middle += [(key("duplicate"), "duplicate", "duplicate"), (key("delete"), "delete", "delete")]
            moves = f"{key('down')} {key('up')}"
            middle += [(moves, "move", "move(1)|move(-1)"), ("enter", "fields", "focused.select")]
        elif focused == "config":
            middle = [
                (key_of("config.complete", keymap), "complete", "focused.complete"),
                (key("fix"), "fix", "apply_fix"),
                (key("explain"), "explain", "explain"),
            ]
            middle += [(key("relax"), "smallest edits", "relax"), (key_of("back", keymap), "criteria", "app.back")]
        else:
            middle = [(key("undo"), "undo", "undo"), (key("next_problem"), "next problem", "next_problem")]
            middle += [("tab", "field", "app.focus_next"), (key_of("back", keymap), "list", "app.back")]
        return [save, *middle, pane, (typing_key("help", keymap), "help", "app.help")]

    def _tab_lines(self, width: int) -> list[Line]:
        """Narrow screens show one pane at a time; this line says which."""
        cells: list[Cell] = [(" ", "")]
        for name in PANES:
            active, word = name == self._pane, self._panes[name].WORDS
            cells.append((f"[{word}]" if active else f" {word} ", "bold accent" if active else "dim"))
            cells.append(("  ", ""))
        return [fit(cells, width)]

    def on_line_block_clicked(self, event: LineBlock.Clicked) -> None:
        """A click on a problem goes to its field."""
        if event.block.id == "problems":
            number = self._problems[event.y] if event.y < len(self._problems) else -1
            if number >= 0:
                self._go_to(self.controller.problem_places()[number])
            else:
                self.action_next_problem()
        elif event.block.id == "verdict":
            self._focus_pane("live")
        elif event.block.id == "tabs":
            column = 1
            for name in PANES:
                wide = len(self._panes[name].WORDS) + 2
                if column <= event.x < column + wide:
                    self._focus_pane(name)
                column += wide + 2

    # Edits

    def _shown(self) -> ShownFields:
        pane = self.criteria_pane
        return ShownFields(self.form_pane.form.values(), pane.form.values(), pane.config.text)

    def on_test_edited(self, event: TestEdited) -> None:
        """A field or the config was edited."""
        self._show_dataset()
        self._changed()

    def on_form_submitted(self, event: Form.Submitted) -> None:
        """Enter: choose from a list, or the next field."""
        field = event.form.query_one(f"#field-{event.name}") if event.name else None
        if not isinstance(field, ChoiceField):
            self.focus_next()
            return

        choices = [(value, words, "") for value, words in field.choices]
        self.app.push_screen(
            SelectScreen(event.name.replace("_", " "), choices, field.value),
            if_answered(partial(field.choose, tell=True)),
        )

    def action_undo(self) -> None:
        """The last step in the form; in the list of tests, or where there is none, the last change of the file."""
        if self.controller.undoes_file(in_tests=self._pane == "tests"):
            self._undo_file()
        elif self.controller.undo():
            self._refill()
        else:
            self.agenteval.say("There is nothing to undo.")

    def _undo_file(self) -> None:
        if self.still_writes("change"):
            return
        change = self.controller.take_file_change()

        def done() -> None:
            self.agenteval.say(f"Undone: {change.words}.")
            self.controller.request(change.test)
            self.reload()

        def kept(left: list[WrittenFile], changed_since: bool) -> None:
            # A file that somebody has changed since is not in the way of the changes before.
            self.controller.keep_file_change(replace(change, written=left), last=not changed_since)
            self.reload()

        undo_files(self, change.written, done, kept)

    def action_revert(self) -> None:
        if self.controller.revert():
            self._refill()
            self.agenteval.say("Reverted to the saved test. Press {edit.undo} to get your edits back.")
        else:
            self.agenteval.say("Nothing is changed.")

    # Tests and criteria: made, copied, moved, deleted, whichever list is at hand

    def action_new(self) -> None:
        """Add a criterion, or make a new test: whichever list is at hand."""
        if self._pane != "tests":
            self._choose_starter()
        elif (suite := self.controller.suite_for_new_test()) is not None:
            self.agenteval.new_test(suite)
        elif self.controller.overview is not None:
            self.agenteval.new_suite()

    def _choose_starter(self) -> None:
        if self.controller.doc is None:
            return

        def offer(offered: list[Starter]) -> None:
            by_name = {starter.metric: starter for starter in offered}
            choices = [
                (starter.metric, f"{starter.metric} · {starter.prototype_class}", starter.about) for starter in offered
            ]

            def chosen(name: str | None) -> None:
                if name is not None and self.controller.doc is not None:
                    self.controller.add_criterion(by_name[name])
                    self._refill()
                    self.criteria_pane.form.focus_first()

            self.app.push_screen(SelectScreen("A new criterion", choices), chosen)

        self.ask(starters, offer, group="starters")

    def action_duplicate(self) -> None:
        session = self.agenteval.session
        if self._pane == "tests":
            self._change_test("copy", "copied", session.workspace.duplicate_tests)
        elif self._has_criterion("copy"):
            self.controller.copy_criterion()
            self._refill()

    def action_delete(self) -> None:
        doc, session = self.controller.doc, self.agenteval.session
        if self._pane == "tests" and doc is not None:

            def answered(_: str) -> None:
                self._change_test("delete", "deleted", session.workspace.delete_tests)

            self.app.push_screen(delete_question([doc.test_id], doc.loaded.path.name), if_answered(answered))
        elif self._pane != "tests" and self._has_criterion("delete"):
            name = self.controller.delete_criterion()
            self._refill()
            self.agenteval.say(f"{one_line(name, 60)} is removed when you save. Press {{edit.undo}} to keep it.")

    def action_move(self, by: int) -> None:
        session = self.agenteval.session
        if self._pane == "tests":
            self._change_test("move", "moved", lambda loaded, tests: session.workspace.move_test(loaded, tests[0], by))
        elif self._has_criterion("move") and self.controller.move_criterion(by):
            self._refill()

    def _has_criterion(self, what: str) -> bool:
        """Has the list of criteria the keys, and a criterion is chosen? Else say where they work."""
        doc = self.controller.doc
        there = doc is not None and doc.chosen is not None and self._pane == "criteria"
        if not there:
            self.agenteval.say(f"Choose a test or a criterion to {what} it.")
        return there

    def _change_test(self, verb: str, what: str, change: Change) -> None:
        """Copy, move or delete the open test in its file. `verb` and `what` say which: "copy", "copied"."""
        doc = self.controller.doc
        if doc is None:
            return
        if doc.edited:
            self.agenteval.say("This test has unsaved edits: press {edit.save} to save, {edit.revert} to drop them.")
            return
        written_files: list[WrittenFile] = []

        def done(written: list[LoadedSuite]) -> None:
            words = self.controller.files_changed(doc, what, written, written_files)
            if words:
                self.agenteval.say(f"{words}. Press {key_of('edit.undo', self.agenteval.keymap)} to undo.")
            self.reload()

        change_files(
            self, [(doc.loaded, [doc.test_id])], change, f"{verb} {doc.test_id}", done, written_files=written_files
        )

    # Saving

    def action_save(self) -> None:
        doc = self.controller.doc
        if doc is None:
            return
        self.controller.take_in(self._shown())
        try:
            edit = self.controller.edit_to_save()
        except AgentevalError as error:
            self.agenteval.say_error(error)
            return
        if edit is None:
            self.agenteval.say("Nothing is changed.")
        else:
            ask = partial(self._ask_and_save, doc)
            self.ask(self.controller.errors_to_save, lambda errors: ask(*errors), group="save-check")

    def _ask_and_save(self, doc: SuiteDocument, errors: list[str], fixable: bool) -> None:
        # As it is when that is answered.
        fix = self.criteria_pane.apply_fix if fixable else None
        ask_and_save(self, errors, lambda: self._save(doc, doc.loaded, doc.edit), fix)

    def _save(self, doc: SuiteDocument, loaded: LoadedSuite, edit: TestEdit, renamed: str = "") -> None:
        """`renamed`: the id that the test has in the file now, if it was changed."""
        if self.still_writes("save"):
            return
        session = self.agenteval.session

        def failed(error: AgentevalError) -> None:
            if isinstance(error, FileChanged):
                self._offer_merge(doc, error.diff)
            else:
                self.agenteval.say_error(error)

        self.ask(
            lambda: session.workspace.save_test(loaded, renamed or doc.test_id, edit),
            partial(self._saved, doc, doc.form.copy(), renamed),
            group="save",
            failed=failed,
        )

    def _saved(self, doc: SuiteDocument, form: TestForm, renamed: str, written: LoadedSuite) -> None:
        if self.controller.doc is doc:
            self.controller.take_in(self._shown())  # who types on while it is saved
        shown_form = doc.form.copy()
        again = self.controller.saved(doc, form, renamed, written)
        if self.controller.doc is again and again.form != shown_form:
            self._fill()  # what others wrote into the file; the next save would take it back
        where = f"{written.path.name}:{written.line_of(again.test_id)}"
        self.agenteval.say(f"Saved {where}. Press {again_key(self)} to run the test.")
        if again.test_id != doc.test_id:
            self.agenteval.say("The history keeps its earlier runs under the old id.", severity="warning")
        self.reload()

    def _offer_merge(self, doc: SuiteDocument, diff: str) -> None:
        def answered(put_in: bool) -> None:
            rebased = partial(self.controller.rebased, doc)
            self.ask(rebased, lambda rebased_edit: self._save(doc, *rebased_edit), group="reload")

        def ask(both: list[tuple[str, str, str]]) -> None:
            self.app.push_screen(FileConflictScreen(doc.loaded.path.name, diff, both=both), if_answered(answered))

        self.ask(partial(self.controller.changed_by_both, doc), ask, group="reload")

    # What is wrong

    def _check(self, *, typing: bool = True) -> None:
        """A different test or criterion is chosen, or its text has changed (`typing`): judge and check it."""
        self.preview_pane.judge()
        if self.controller.want_check(typing=typing):
            check = partial(self.controller.check, self._show_checked)
            start_worker(self, check, group="check", exclusive=False, name="checking")

    def _show_checked(self, config: str) -> None:
        self.criteria_pane.show_diagnostics(config)
        self._show_problems()
        self.criteria_pane.show_criteria()

    def _show_problems(self) -> None:
        block, least = self.query_one("#problems", LineBlock), 2 if self.size.height < LOW else 3
        doc = self.controller.doc
        if doc is None:
            block.styles.height = least
            return
        of_test, of_criterion = self.controller.complaints()
        self.form_pane.form.complain(of_test)
        self.criteria_pane.form.complain(of_criterion)
        names = [criterion.values["name"] for criterion in doc.form.criteria]
        problems, error = doc.problems, doc.error
        height = problem_height(problems, error, names, self.size.width)
        # Where there are many the panes give them room, until there is none: nothing moves with each letter.
        self._problem_rows = least if not problems else max(self._problem_rows, least, min(height, 2 * least + 1))
        most = min(self._problem_rows, 2 * least + 1)
        block.styles.height = most
        selected = self.controller.problem_at(self._place_of_focus())

        next_key = key_of("edit.next_problem", self.agenteval.keymap)

        def lines(width: int) -> list[Line]:
            rows = problem_rows(
                problems, error, names=names, width=width, most=most, selected=selected, next_key=next_key
            )
            self._problems = rows.owners
            return rows.lines

        block.show(lines)
        self._retitle_panes()

    def action_next_problem(self) -> None:
        """Go to the field of the next problem."""
        place = self.controller.next_problem(self._place_of_focus())
        if place is None:
            self.agenteval.say("There are no problems here.")
        else:
            self._go_to(place)

    def _place_of_focus(self) -> FieldPlace:
        focused, doc = self.focused, self.controller.doc
        name = (focused.id or "").removeprefix("field-") if focused is not None else ""
        number = doc.criterion if doc is not None else None
        if name == "config":
            return number, "config_uxon"
        inside = focused is not None and self.criteria_pane.form in focused.ancestors
        return number if inside else None, "dataset" if name in DATASET else name

    def _go_to(self, place: FieldPlace) -> None:
        doc, (criterion, field) = self.controller.doc, place
        if doc is None:
            return
        if criterion is not None and criterion < len(doc.form.criteria):
            if self.controller.choose_criterion(criterion):
                self.criteria_pane.show_criteria()
                self._fill_criterion()
                self._check(typing=False)
            self._set_pane("criteria")
            target = "#config" if field == "config_uxon" else f"#criterion #field-{field}" if field else "#criteria"
        else:
            field = "dataset_file" if field == "dataset" else field
            self._set_pane("criteria" if field == "criteria" else "test")
            target = "#criteria" if field == "criteria" else f"#fields #field-{field or 'name'}"
        widgets = self.query(target)
        if widgets:
            widgets.first().focus()

    # The config

    async def action_explain(self) -> None:
        await self.criteria_pane.explain()

    def action_apply_fix(self) -> None:
        place = self._place_of_focus()
        if self.controller.is_cut(place):
            self._quote_cut_text(place)
        else:
            self.criteria_pane.apply_fix()

    def _quote_cut_text(self, place: FieldPlace) -> None:
        """Put a text that a `#` cuts short into quotes, in the file."""
        doc, session = self.controller.doc, self.agenteval.session
        if doc is None:
            return
        if doc.edited:
            self.agenteval.say("This fix changes the file. Press {edit.save} to save your edits, then {edit.fix}.")
            return
        if self.still_writes("save"):
            return
        loaded, start = doc.loaded, self.controller.cut_start(place)
        if start is not None:
            self.ask(lambda: session.workspace.quote_cut_text(loaded, start), lambda _: self.reload(), group="save")

    # On a run

    def on_preview_pane_judged(self, event: PreviewPane.Judged) -> None:
        """More is known of the chosen criterion: say it below its config, too."""
        self.criteria_pane.show_verdict()

    def action_step_run(self, by: int) -> None:
        self.preview_pane.step_run(by)
        if not self._panes["live"].display:
            # What the run says is in a pane that there is no room for now.
            self._focus_pane("live")

    def action_flips(self) -> None:
        self.preview_pane.list_flips()

    def action_relax(self) -> None:
        self.preview_pane.choose_relaxation(self.criteria_pane.config)

    def action_relax_now(self) -> None:
        self.preview_pane.relax(self.criteria_pane.config)

    def add_criterion(self, starter: Starter) -> None:
        """Add a criterion to the form of the test, and go to it."""
        self.controller.add_criterion(starter)
        self._refill()
        self._focus_pane("criteria")

    def action_run_test(self) -> None:
        """The test that is open, as it is saved."""
        doc = self.controller.doc
        if doc is not None:
            run_again(self, doc.loaded, doc.test_id, edited=bool(doc.edited))

    # Elsewhere

    def action_open_editor(self) -> None:
        doc = self.controller.doc
        if doc is None:
            return
        place = doc.chosen.source if doc.chosen is not None and self._pane == "criteria" else None
        self.agenteval.open_editor(doc.loaded.path, doc.loaded.line_of(doc.test_id, place))
        # The app has waited for the other editor: the file may be another now.
        self.reload()

    def action_on_a_run(self) -> None:
        """The run that is looked at, in Inspect; what is edited of the config goes along, unsaved as it is."""
        doc, trial = self.controller.doc, self.controller.preview.trial
        if doc is None:
            return
        if trial is None:
            self.agenteval.say(f"{doc.test_id} has not run yet. Press {again_key(self)} to run it.")
            return
        if doc.chosen is not None:
            self.controller.take_in(self._shown())
        self.agenteval.inspect(trial.bench.run.id, **self.controller.inspect_target())
