"""The Editor: a test as a form, its criteria, and each one's config; checked while one types, saved in its place."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.events import DescendantFocus, Resize, ScreenResume
from textual.timer import Timer
from textual.widgets import Input

from agenteval_tui.text.display import one_line
from agenteval_tui.text.problems import AgentevalError
from agenteval_tui.tui.actions import BY_ID, bindings, key_word
from agenteval_tui.tui.drafts import Drafts
from agenteval_tui.tui.lines import Cell, Line, fit
from agenteval_tui.tui.presenters.editor_rows import (
    EDITED,
    CriterionRows,
    TestRows,
    dataset_lines,
    in_order,
    problem_rows,
)
from agenteval_tui.tui.presenters.figures import count
from agenteval_tui.tui.presenters.inspect_heading import pane_title
from agenteval_tui.tui.presenters.test_form import DATASET, YAMLS, CriterionForm, new_criterion, read_form
from agenteval_tui.tui.screens.assist import Assist
from agenteval_tui.tui.screens.editor_docs import Doc
from agenteval_tui.tui.screens.editor_fields import (
    criterion_fields,
    criterion_rows,
    refine_choices,
    rows_of,
    test_fields,
)
from agenteval_tui.tui.screens.frame import FrameScreen
from agenteval_tui.tui.widgets.config_editor import ConfigEditor
from agenteval_tui.tui.widgets.form import ChoiceField, Form
from agenteval_tui.tui.widgets.line_block import LineBlock
from agenteval_tui.tui.widgets.virtual_list import VirtualList

if TYPE_CHECKING:
    from agenteval_tui.analysis.check_edit import FieldProblem
    from agenteval_tui.analysis.overview import Overview
    from agenteval_tui.grading.starters import Starter
    from agenteval_tui.suites.edit_test import TestEdit
    from agenteval_tui.suites.load import LoadedSuite
    from agenteval_tui.suites.model import AgentConfig
    from agenteval_tui.tui.drafts import Kept
    from agenteval_tui.uxon.diagnostics import Diagnostic

PANES = ("tests", "test", "criteria")
QUIET_S = 0.12
"""So long nothing is typed before the test is checked."""
KEEP_S = 0.5
"""So long after a change its draft is written."""
PREVIEW_ROWS = 4


class EditorScreen(FrameScreen):
    """The tests; the chosen one as a form; its criteria. Where it is narrow one of the three at a time."""

    SCOPE = "edit"
    CSS_PATH = "editor.tcss"
    BINDINGS: ClassVar[list[BindingType]] = list(bindings("edit"))

    def __init__(self) -> None:
        super().__init__()
        self._overview: Overview | None = None
        self._agents: Mapping[str, AgentConfig] = {}
        self._docs: dict[str, Doc] = {}
        self._kept: dict[str, Kept] = {}
        self._doc: Doc | None = None
        self._pane = "tests"
        self._wanted: tuple[str, str, str, Starter | None] | None = None
        self._drafts = Drafts()
        self._keep_timer: Timer | None = None
        self._check_again = False
        self._checking = False
        self._diagnostics: tuple[Diagnostic, ...] = ()
        self._assist = Assist()
        self._filter = ""
        self._filling = False
        self._previewed: tuple[str, ...] = ()

    def compose(self) -> ComposeResult:
        yield self.title_bar()
        yield LineBlock(self._tab_lines, id="tabs")
        with Horizontal(id="body"):
            with Vertical(id="tests-pane", classes="pane"):
                yield LineBlock(self._tests_title, id="tests-title", classes="pane-title")
                yield Input(placeholder="filter the tests", id="filter", classes="filter")
                yield VirtualList(id="tests")
            with Vertical(id="test-pane", classes="pane"):
                yield LineBlock(self._test_title, id="test-title", classes="pane-title")
                with VerticalScroll(id="scroll", can_focus=False):
                    yield Form(test_fields(), below=True, id="fields")
                    yield LineBlock(id="dataset")
            with Vertical(id="criteria-pane", classes="pane"):
                yield LineBlock(self._criteria_title, id="criteria-title", classes="pane-title")
                yield VirtualList(id="criteria")
                yield Form(criterion_fields(), below=True, id="criterion")
                yield LineBlock(self._config_title, id="config-title")
                yield ConfigEditor(id="config")
        yield LineBlock(id="problems")
        yield self.key_bar()

    def on_mount(self) -> None:
        self.query_one("#filter", Input).display = False
        tests = self.query_one("#tests", VirtualList)
        tests.set_empty([(("  Reading the suites …", "dim"),)])
        self._set_pane("tests")
        tests.focus()
        self.query_one("#test-pane").disabled = self.query_one("#criteria-pane").disabled = True
        self.reload()

    def on_resize(self, event: Resize) -> None:
        self.set_class(event.size.width < self.NARROW, "narrow")
        self._draw_problems()

    def on_screen_resume(self, event: ScreenResume) -> None:
        if self._overview is not None:
            self._assist.forget()
            self.reload()

    def on_unmount(self) -> None:
        for doc in self._docs.values():
            self._keep(doc)

    # The tests

    def open_test(self, suite: str, test: str, *, criterion: str = "", starter: Starter | None = None) -> None:
        """Open a test; `criterion` names the one to choose; `starter`: add this one, as an edit to be saved."""
        self._wanted = (suite, test, criterion, starter)
        if self._overview is not None:
            self.reload()

    def reload(self) -> None:
        """Read the suites again. Edits stay."""

        def work() -> tuple[Overview, Mapping[str, AgentConfig], list[Kept], list[str]]:
            from agenteval_tui.analysis.lint import user_agents

            session = self.agenteval.session
            mine = user_agents()
            return session.overview(), mine, self._drafts.listed("test"), sorted(mine)

        self.ask(work, self._show_overview, group="overview")

    def _show_overview(self, found: tuple[Overview, Mapping[str, AgentConfig], list[Kept], list[str]]) -> None:
        self._overview, self._agents, kept, _ = found
        known = {f"{one.loaded.key}\x1f{test}" for one in self._overview.suites for test in self._ids(one.loaded)}
        self._kept = {}
        for one in kept:  # the newest first
            key = f"{one.suite}\x1f{one.test}"
            if key in known and key not in self._docs:
                self._kept.setdefault(key, one)
        # What is not edited is read anew; what is keeps what it was made from: saving says if the file changed.
        self._docs = {key: doc for key, doc in self._docs.items() if doc.edited}
        self._list_tests()
        wanted = self._wanted
        self._wanted = None
        if wanted is None and self._doc is not None:
            self._open(self._doc.loaded.key, self._doc.test_id, focus=False)
        elif wanted is not None:
            self._open(wanted[0], wanted[1], criterion=wanted[2], starter=wanted[3])
        elif self._kept:
            first = next(iter(self._kept.values()))
            self._open(first.suite, first.test, focus=False)
        else:
            loaded = next((one.loaded for one in self._overview.suites if self._ids(one.loaded)), None)
            if loaded is not None:
                self._open(loaded.key, self._ids(loaded)[0], focus=False)
        self.retitle()

    @staticmethod
    def _ids(loaded: LoadedSuite) -> list[str]:
        """The ids of all tests of a file, also of those that are not right."""
        right = {test.id.casefold(): test.id for test in loaded.suite.tests} if loaded.suite is not None else {}
        return [right.get(folded, folded) for folded in loaded.test_nodes]

    def _list_tests(self) -> None:
        if self._overview is None:
            return
        edited = {key for key, doc in self._docs.items() if doc.edited} | set(self._kept)
        view = self.query_one("#tests", VirtualList)
        view.set_empty(
            [
                (),
                (("  No tests here.", ""),),
                (("  1 suites, n makes one.", "dim"),),
            ]
        )
        keep = view.cursor_key
        view.set_source(TestRows(self._overview, edited, self._filter), keep_key=keep)
        self.query_one("#tests-title", LineBlock).show(self._tests_title)

    def _open(
        self, suite: str, test: str, *, criterion: str = "", starter: Starter | None = None, focus: bool = True
    ) -> None:
        key = f"{suite}\x1f{test}"
        doc = self._docs.get(key)
        if doc is None:
            loaded = next((one.loaded for one in self._overview.suites if one.loaded.key == suite), None) if (
                self._overview is not None
            ) else None  # fmt: skip
            try:
                if loaded is None:
                    raise AgentevalError("this suite is not among those that were opened", where=suite)
                base = read_form(loaded, test)
            except AgentevalError as error:
                self.agenteval.say_error(error)
                return
            before = self._doc
            doc = Doc(loaded, test, base, base.copy())
            if before is not None and before.key == key:
                doc.criterion = min(before.criterion, max(len(base.criteria) - 1, 0))
            self._docs[key] = doc
        self._doc = doc
        names = [one.values["name"] for one in doc.form.criteria]
        if criterion in names:
            doc.criterion = names.index(criterion)
        self.query_one("#test-pane").disabled = self.query_one("#criteria-pane").disabled = False
        refine_choices(self.query_one("#fields", Form), doc.loaded, self._agents)
        if starter is not None:
            self._add(starter)
        self._fill()
        self.query_one("#tests", VirtualList).move_to_key(key)
        self._check()
        if focus:
            self._focus_pane("criteria" if criterion or starter is not None else "test")
        kept = self._kept.get(key)
        if kept is not None and not doc.draft_checked:
            doc.draft_checked = True
            self._offer_draft(doc, kept)

    def _offer_draft(self, doc: Doc, kept: Kept) -> None:
        from agenteval_tui.tui.screens.editor_questions import draft_question

        def answered(answer: str | None) -> None:
            if answer == "restore":
                doc.restore(kept.data)
                self._kept.pop(doc.key, None)
                self._drafts.drop("test", kept.suite, kept.test, "newer")  # it is in the form, with the older one
                if self._doc is doc:
                    self._fill()
                    self._check()
                self._changed_state()
            elif answer == "discard":
                self._kept.pop(doc.key, None)
                self._drafts.drop("test", kept.suite, kept.test, kept.part)
                self._list_tests()
            elif self._kept.get(doc.key) is kept:
                doc.draft_checked = False  # it is offered again when the test is opened again

        self.app.push_screen(draft_question(doc, kept), answered)

    def on_virtual_list_highlighted(self, event: VirtualList.Highlighted) -> None:
        """Another test, or another criterion."""
        doc = self._doc
        if event.list.id == "criteria" and doc is not None and event.index != doc.criterion and not self._filling:
            doc.criterion = event.index
            self._fill_criterion()
            self._check()
        elif event.list.id == "tests" and event.list.has_focus and (doc is None or doc.key != event.key):
            suite, _, test = event.key.partition("\x1f")
            if test:
                self._open(suite, test, focus=False)

    def on_virtual_list_selected(self, event: VirtualList.Selected) -> None:
        """Enter: to the fields of what is chosen."""
        if event.list.id == "criteria":
            self.query_one("#criterion", Form).focus_first()
        elif "\x1f" in event.key:
            suite, _, test = event.key.partition("\x1f")
            self._open(suite, test)

    # What the form shows

    def _fill(self) -> None:
        doc = self._doc
        if doc is None:
            return
        self._filling = True
        form = self.query_one("#fields", Form)
        form.fill(doc.form.values)
        rows_of(form, doc.form.values)
        self._list_criteria()
        self._filling = False
        self._fill_criterion()
        self._retitle_panes()
        self._preview()

    def _list_criteria(self) -> None:
        doc = self._doc
        if doc is None:
            return
        bad: dict[int, str] = {}
        for one in doc.problems:
            if one.criterion is not None and one.problem.severity == "error":
                bad[one.criterion] = "error"
        view = self.query_one("#criteria", VirtualList)
        view.set_empty([(("  No criteria: a adds one.", "dim"),)])
        view.styles.height = max(len(doc.form.criteria), 1)
        view.set_source(CriterionRows(doc.form.criteria, bad, doc.changed_criteria()), keep_key=str(doc.criterion))

    def _fill_criterion(self) -> None:
        doc = self._doc
        one = doc.chosen if doc is not None else None
        form, editor = self.query_one("#criterion", Form), self.query_one("#config", ConfigEditor)
        form.display = editor.display = one is not None
        if one is None:
            return
        form.fill({key: value for key, value in one.values.items() if key != "config_uxon"})
        criterion_rows(form, one.values)
        if editor.text != one.values["config_uxon"]:
            editor.load(one.values["config_uxon"])
        self._retitle_panes()

    def _retitle_panes(self) -> None:
        for name, make in (
            ("tests-title", self._tests_title), ("test-title", self._test_title),
            ("criteria-title", self._criteria_title), ("config-title", self._config_title), ("tabs", self._tab_lines),
        ):  # fmt: skip
            self.query_one(f"#{name}", LineBlock).show(make)

    # Changes

    def on_form_changed(self, event: Form.Changed) -> None:
        """A field was edited."""
        doc = self._doc
        if doc is None or self._filling:
            return
        values = event.form.values()
        if event.form.id == "fields":
            target, where = doc.form.values, ""
        else:
            one = doc.chosen
            if one is None:
                return
            target, where = one.values, f"{doc.criterion}."
        value = values.get(event.name, "")
        if target.get(event.name, "") == value or target.get(event.name, "").strip() == value:
            return
        doc.step(where + event.name)
        target[event.name] = value
        if event.name in YAMLS:
            rows_of(self.query_one("#fields", Form), doc.form.values)
        if event.name == "expected_value":
            criterion_rows(event.form, target)
        if event.name in DATASET:
            self._preview()
        self._changed()

    def on_config_editor_changed(self, event: ConfigEditor.Changed) -> None:
        """The config was edited."""
        doc = self._doc
        one = doc.chosen if doc is not None else None
        if doc is None or one is None or event.text != self.query_one("#config", ConfigEditor).text:
            return
        if one.values["config_uxon"] != event.text:
            doc.step(f"{doc.criterion}.config_uxon")
            one.values["config_uxon"] = event.text
            self._changed()

    def _changed(self) -> None:
        self._check()
        self._changed_state()

    def _changed_state(self) -> None:
        """Edited or not: the lists, the titles, and the draft a moment later."""
        self._list_criteria()
        self._retitle_panes()
        self.retitle()
        view = self.query_one("#tests", VirtualList)
        if self._overview is not None:
            edited = {key for key, doc in self._docs.items() if doc.edited} | set(self._kept)
            view.set_source(TestRows(self._overview, edited, self._filter), keep_key=view.cursor_key)
        if self._keep_timer is not None:
            self._keep_timer.stop()
        if self._doc is not None:
            self._keep_timer = self.set_timer(KEEP_S, partial(self._keep_soon, self._doc))

    def _keep_soon(self, doc: Doc) -> None:
        edited, data = doc.edited, doc.as_data()
        # A copy: the form goes on changing.
        import json

        frozen = json.loads(json.dumps(data))
        self.run_worker(
            partial(self._write_draft, doc, frozen if edited else None),
            thread=True, group="draft", exit_on_error=False,
        )  # fmt: skip

    def _keep(self, doc: Doc) -> None:
        if doc.edited:
            self._write_draft(doc, doc.as_data())

    def _write_draft(self, doc: Doc, data: Mapping[str, Any] | None) -> None:
        # Beside an older draft that nobody has decided about, not over it.
        part = "newer" if doc.key in self._kept else ""
        if data is None:
            self._drafts.drop("test", doc.loaded.key, doc.test_id, part)
        else:
            self._drafts.keep("test", doc.loaded.key, doc.test_id, part, data)

    def action_undo(self) -> None:
        doc = self._doc
        if doc is None or not doc.undo():
            self.agenteval.say("There is nothing to undo.")
            return
        self._fill()
        self._changed()

    def action_revert(self) -> None:
        doc = self._doc
        if doc is None or not doc.edited:
            return
        doc.step("")
        doc.form = doc.base.copy()
        doc.criterion = min(doc.criterion, max(len(doc.form.criteria) - 1, 0))
        self._fill()
        self._changed()
        self.agenteval.say("Back to what the file says; ^z brings your edits again.")

    # Checks: the newest wins, and no two at a time

    def _check(self) -> None:
        self._check_again = True
        if not self._checking:
            self._checking = True
            self.run_worker(self._check_all(), group="check", exit_on_error=False, name="checking")

    async def _check_all(self) -> None:
        try:
            while self._check_again:
                await asyncio.sleep(QUIET_S)
                self._check_again = False
                doc = self._doc
                if doc is None:
                    return
                await self._check_one(doc)
        finally:
            self._checking = False

    async def _check_one(self, doc: Doc) -> None:
        from agenteval_tui.tui.screens.editor_checks import checked

        one = doc.chosen
        config, kind = (one.values["config_uxon"], one.values["prototype_class"]) if one is not None else ("", "")
        found = await asyncio.to_thread(
            checked, doc.loaded, doc.test_id, doc.base.copy(), doc.form.copy(), self._agents, config, kind
        )
        if self._check_again or doc is not self._doc:
            return
        doc.problems, doc.error, doc.bad_yaml = found.problems, found.error, found.bad_yaml
        self._diagnostics = found.diagnostics
        editor = self.query_one("#config", ConfigEditor)
        if editor.text == config:
            editor.set_diagnostics(found.diagnostics)
        self._draw_problems()
        self._list_criteria()

    def _draw_problems(self) -> None:
        doc = self._doc
        if doc is None:
            return
        said: dict[str, str] = {}
        of_criterion: dict[str, str] = {}
        for one in reversed(in_order(doc.problems)):
            if one.problem.severity == "info":
                continue
            if one.criterion is None:
                for field in ("dataset_file",) if one.field == "dataset" else (one.field,):
                    said[field] = one.problem.message
            elif one.criterion == doc.criterion:
                of_criterion[one.field] = one.problem.message
        said.update(doc.bad_yaml)
        self.query_one("#fields", Form).complain(said)
        self.query_one("#criterion", Form).complain(of_criterion)
        names = [one.values["name"] for one in doc.form.criteria]
        most = 3 if self.size.height < 30 else 6
        problems, error = doc.problems, doc.error
        self.query_one("#problems", LineBlock).show(lambda width: problem_rows(problems, error, names, width, most))
        self._retitle_panes()

    def action_next_problem(self) -> None:
        """Go to the field of the next problem."""
        doc = self._doc
        if doc is None or not doc.problems:
            self.agenteval.say("There are no problems here.")
            return
        places = [(one.criterion, one.field) for one in in_order(doc.problems)]
        here = self._place_of_focus()
        at = places.index(here) + 1 if here in places else 0
        while at < len(places) and places[at] == here:
            at += 1
        self._go_to(*places[at % len(places)])

    def _place_of_focus(self) -> tuple[int | None, str]:
        focused = self.focused
        name = (focused.id or "").removeprefix("field-") if focused is not None else ""
        if name == "config":
            return (self._doc.criterion if self._doc else None, "config_uxon")
        inside = focused is not None and any(one.id == "criterion" for one in focused.ancestors)
        field = "dataset" if name in DATASET else name
        return (self._doc.criterion if self._doc is not None and inside else None, field)

    def _go_to(self, criterion: int | None, field: str) -> None:
        doc = self._doc
        if doc is None:
            return
        if criterion is not None and criterion < len(doc.form.criteria):
            if criterion != doc.criterion:
                doc.criterion = criterion
                self._list_criteria()
                self._fill_criterion()
                self._check()
            self._set_pane("criteria")
            target = "#config" if field == "config_uxon" else f"#criterion #field-{field}" if field else "#criteria"
        else:
            field = "dataset_file" if field == "dataset" else field
            self._set_pane("criteria" if field == "criteria" else "test")
            target = "#criteria" if field == "criteria" else f"#fields #field-{field or 'name'}"
        found = self.query(target)
        if found:
            self.call_after_refresh(found.first().focus)

    def on_line_block_clicked(self, event: LineBlock.Clicked) -> None:
        """A click on a problem goes to its field."""
        doc = self._doc
        if event.block.id == "problems" and doc is not None and event.y < len(doc.problems):
            one: FieldProblem = in_order(doc.problems)[event.y]
            self._go_to(one.criterion, one.field)
            return
        if event.block.id == "tabs":
            column = 1
            for pane, word in self._tabs():
                if column <= event.x < column + len(word) + 2:
                    self._focus_pane(pane)
                column += len(word) + 4
            return
        super().on_line_block_clicked(event)

    # The dataset

    def _preview(self) -> None:
        doc = self._doc
        wanted = (doc.loaded.key, *(doc.form.values[key] for key in DATASET)) if doc is not None else ()
        if wanted == self._previewed or doc is None:
            return
        self._previewed = wanted
        file, limit = doc.form.values["dataset_file"].strip(), doc.form.values["dataset_limit"].strip()
        block = self.query_one("#dataset", LineBlock)
        if not file:
            block.show(lambda width: [])
            return
        folder = doc.loaded.path.parent

        def work() -> tuple[list[Mapping[str, Any]], str]:
            from agenteval_tui.tui.screens.editor_checks import first_rows

            return first_rows(folder, file, limit, PREVIEW_ROWS)

        def then(found: tuple[list[Mapping[str, Any]], str]) -> None:
            block.show(lambda width: dataset_lines(found[0], found[1], width))

        self.ask(work, then, group="dataset")

    # Criteria

    def action_new(self) -> None:
        """Add a criterion, or make a new test: whichever list is at hand."""
        if self._pane == "tests":
            self._new_test()
        elif self._doc is not None:
            self._choose_starter()

    def _choose_starter(self) -> None:
        from agenteval_tui.grading.starters import starters
        from agenteval_tui.tui.screens.choose import ChooseScreen

        def offer(found: list[Starter]) -> None:
            by_name = {one.metric: one for one in found}
            choices = [(one.metric, f"{one.metric} · {one.prototype_class}", one.about) for one in found]

            def chosen(name: str | None) -> None:
                if name is not None and self._doc is not None:
                    self._add(by_name[name])
                    self._fill()
                    self._changed()
                    self.query_one("#criterion", Form).focus_first()

            self.app.push_screen(ChooseScreen("A new criterion", choices), chosen)

        self.ask(starters, offer, group="starters")

    def _add(self, starter: Starter) -> None:
        doc = self._doc
        if doc is None:
            return
        doc.step("")
        made = new_criterion(starter.name, starter.prototype_class, starter.config, starter.expected_value)
        place = doc.criterion + 1 if doc.form.criteria else 0
        if starter.about.startswith("made of"):
            place = len(doc.form.criteria)
        doc.form.criteria.insert(place, made)
        doc.criterion = place
        self._changed_state()

    def _with_criterion(self, what: str) -> Doc | None:
        """The open test, if its criteria list has the keys; else say where they work."""
        doc = self._doc
        if doc is None or doc.chosen is None or self._pane != "criteria":
            self.agenteval.say(f"Choose a test or a criterion in its list to {what} it.")
            return None
        return doc

    def action_duplicate(self) -> None:
        if self._pane == "tests":
            self._change_tests(lambda session, loaded, test: session.duplicate_tests(loaded, [test]), "copied")
            return
        doc = self._with_criterion("copy")
        if doc is None or doc.chosen is None:
            return
        doc.step("")
        copy: CriterionForm = doc.chosen.copy()
        copy.values["name"] += " (copy)"
        doc.form.criteria.insert(doc.criterion + 1, copy)
        doc.criterion += 1
        self._fill()
        self._changed()

    def action_delete(self) -> None:
        from agenteval_tui.tui.screens.editor_questions import delete_question

        if self._pane == "tests":
            doc = self._doc
            if doc is None:
                return
            question = delete_question([doc.test_id], doc.loaded.path.name)

            def answered(answer: str | None) -> None:
                if answer:
                    self._change_tests(lambda session, loaded, test: session.delete_tests(loaded, [test]), "deleted")

            self.app.push_screen(question, answered)
            return
        found = self._with_criterion("delete")
        if found is None:
            return
        found.step("")
        name = found.form.criteria.pop(found.criterion).values["name"]
        found.criterion = min(found.criterion, max(len(found.form.criteria) - 1, 0))
        self._fill()
        self._changed()
        self.agenteval.say(f"{one_line(name, 60)} is taken out when you save; ^z brings it back.")

    def action_move(self, by: int) -> None:
        if self._pane == "tests":
            self._change_tests(lambda session, loaded, test: session.move_test(loaded, test, by), "moved")
            return
        doc = self._with_criterion("move")
        if doc is None or not 0 <= doc.criterion + by < len(doc.form.criteria):
            return
        doc.step("")
        criteria = doc.form.criteria
        criteria.insert(doc.criterion + by, criteria.pop(doc.criterion))
        doc.criterion += by
        self._fill()
        self._changed()

    # Tests of the file

    def _new_test(self) -> None:
        doc = self._doc
        paths = [one.loaded for one in self._overview.suites] if self._overview is not None else []
        first = doc.loaded if doc is not None else paths[0] if paths else None
        if first is not None:
            self.agenteval.new_test(first)

    def _change_tests(self, change: Callable[[Any, LoadedSuite, str], LoadedSuite], what: str) -> None:
        doc = self._doc
        if doc is None:
            return
        if doc.edited:
            self.agenteval.say("This test has edits that are not saved: ^s saves them, F6 drops them.")
            return
        loaded, test, session = doc.loaded, doc.test_id, self.agenteval.session

        def done(saved: LoadedSuite) -> None:
            self._docs.pop(doc.key, None)
            self._doc = None if what == "deleted" else doc
            self.agenteval.say(f"{test} {what} in {saved.path.name}.")
            self.reload()

        self.ask(lambda: change(session, loaded, test), done, group="save")

    # Saving

    def _take_in(self, doc: Doc) -> None:
        """What stands in the fields now: a key that saves may be faster than the word of the last letter."""
        for form, target in (("fields", doc.form), ("criterion", doc.chosen)):
            if target is None:
                continue
            for name, value in self.query_one(f"#{form}", Form).values().items():
                if target.values[name].strip() != value and target.values[name] != value:
                    target.values[name] = value
        if doc.chosen is not None:
            text = self.query_one("#config", ConfigEditor).text
            if text != doc.chosen.values["config_uxon"].replace("\r\n", "\n"):
                doc.chosen.values["config_uxon"] = text

    def action_save(self) -> None:
        doc = self._doc
        if doc is None:
            return
        self._take_in(doc)
        edit = doc.edit
        if not edit:
            self.agenteval.say("Nothing is changed.")
            return
        if doc.bad_yaml:
            field, why = next(iter(doc.bad_yaml.items()))
            self.agenteval.say_error(AgentevalError(f"{field} can't be read: {why}", mend="mend it, then save again"))
            return
        self._save(doc, doc.loaded, edit)

    def _save(self, doc: Doc, loaded: LoadedSuite, edit: TestEdit) -> None:
        session = self.agenteval.session

        def failed(error: AgentevalError) -> None:
            from agenteval_tui.suites.save import FileChanged

            if isinstance(error, FileChanged):
                self._offer_merge(doc, error.diff)
            else:
                self.agenteval.say_error(error)

        self.ask(
            lambda: session.save_test(loaded, doc.test_id, edit),
            partial(self._saved, doc, doc.form.copy()),
            group="save",
            failed=failed,
        )

    def _saved(self, doc: Doc, form: Any, saved: LoadedSuite) -> None:
        new_id = form.values["id"] or doc.test_id
        for part in ("", "newer"):
            self._drafts.drop("test", doc.loaded.key, doc.test_id, part)
        self._docs.pop(doc.key, None)
        if doc.form == form:
            again = Doc(saved, new_id, base := read_form(saved, new_id), base.copy(), doc.criterion, draft_checked=True)
        else:
            # Who went on typing meanwhile has an edit of what is saved now.
            again = Doc(saved, new_id, read_form(saved, new_id), doc.form, doc.criterion, draft_checked=True)
        self._docs[again.key] = again
        if self._doc is doc:
            self._doc = again
        line = saved.line_of(new_id)
        self.agenteval.say(f"Saved {saved.path.name}:{line}. 1 then r runs the test.")
        if new_id != doc.test_id:
            self.agenteval.say("The history knows the test's earlier runs by its old id.", severity="warning")
        self.reload()

    def _offer_merge(self, doc: Doc, diff: str) -> None:
        from agenteval_tui.tui.screens.changed_file import ChangedFileScreen

        def load() -> tuple[LoadedSuite, TestEdit]:
            from agenteval_tui.suites.load import load_suite
            from agenteval_tui.suites.rebase_edit import rebased

            fresh = load_suite(doc.loaded.path)
            return fresh, rebased(doc.edit, doc.loaded, fresh, doc.test_id)

        def answered(put_in: bool | None) -> None:
            if put_in:
                self.ask(load, lambda found: self._save(doc, *found), group="reload")

        self.app.push_screen(ChangedFileScreen(doc.loaded.path.name, diff), answered)

    # The config editor

    def on_config_editor_asked(self, event: ConfigEditor.Asked) -> None:
        """What can be written at the cursor?"""
        doc = self._doc
        if doc is None or doc.chosen is None:
            return
        kind, store = doc.chosen.values["prototype_class"], self.agenteval.session.store
        answer = self._assist.answer(event, kind, store, doc.loaded.key, doc.test_id)
        self.run_worker(answer, group="assist", exclusive=True, exit_on_error=False, name="completing")

    async def action_explain(self) -> None:
        doc, editor = self._doc, self.query_one("#config", ConfigEditor)
        if doc is None or doc.chosen is None:
            return
        if not await self._assist.explain(editor, doc.chosen.values["prototype_class"]):
            self.agenteval.say("Nothing is known of what stands at the cursor.")

    def action_apply_fix(self) -> None:
        editor = self.query_one("#config", ConfigEditor)
        here = editor.diagnostic_at_cursor()
        chosen = here if here is not None and here.fix is not None else None
        chosen = chosen or next((one for one in self._diagnostics if one.fix is not None), None)
        if chosen is None or chosen.fix is None:
            self.agenteval.say("There is no problem in this config that can be mended by itself.")
            return
        editor.apply_fix(chosen.fix)

    def on_form_submitted(self, event: Form.Submitted) -> None:
        """Enter: choose from a list, or the next field."""
        field = event.form.query_one(f"#field-{event.name}") if event.name else None
        if not isinstance(field, ChoiceField):
            self.focus_next()
            return
        from agenteval_tui.tui.screens.choose import ChooseScreen

        def chosen(value: str | None) -> None:
            if value is not None:
                field.choose(value, tell=True)

        choices = [(value, words, "") for value, words in field.choices]
        self.app.push_screen(ChooseScreen(event.name.replace("_", " "), choices, field.value), chosen)

    def action_open_editor(self) -> None:
        doc = self._doc
        if doc is None:
            return
        place = doc.chosen.source if doc.chosen is not None and self._pane == "criteria" else None
        self.agenteval.open_editor(doc.loaded.path, doc.loaded.line_of(doc.test_id, place))
        self.reload()

    def action_on_a_run(self) -> None:
        """The workbench, on the last run of this test: what the criterion says of it."""
        doc = self._doc
        if doc is None:
            return
        session = self.agenteval.session
        name = doc.chosen.values["name"] if doc.chosen is not None else ""

        def show(rows: Sequence[Any]) -> None:
            if not rows:
                self.agenteval.say(f"{doc.test_id} was not run yet: 1 then r runs it.")
                return
            failing = [run.id for run in rows if run.status in ("failed", "error")]
            self.agenteval.inspect((failing or [rows[0].id])[0], criterion=name, runs=[run.id for run in rows])

        self.ask(lambda: session.store.runs_of_test(doc.loaded.key, doc.test_id, 20), show, group="runs")

    # Panes and lines

    def action_next_pane(self) -> None:
        self._focus_pane(PANES[(PANES.index(self._pane) + 1) % len(PANES)])

    def _focus_pane(self, pane: str) -> None:
        self._set_pane(pane)
        if pane == "test":
            self.call_after_refresh(self.query_one("#fields #field-name").focus)
        else:
            self.call_after_refresh(self.query_one(f"#{pane}").focus)

    def _set_pane(self, pane: str) -> None:
        self._pane = pane
        for one in PANES:
            self.query_one(f"#{one}-pane").set_class(one == pane, "active")
        self._retitle_panes()
        self.query_one("#keys", LineBlock).show(self._key_lines)

    def on_descendant_focus(self, event: DescendantFocus) -> None:
        """Say which pane has the keys now."""
        focused = self.focused
        if focused is None:
            return
        ids = {focused.id, *(one.id for one in focused.ancestors)}
        pane = next((one for one in PANES if f"{one}-pane" in ids), self._pane)
        if pane != self._pane:
            self._set_pane(pane)
        else:
            self.query_one("#keys", LineBlock).show(self._key_lines)

    def action_filter(self) -> None:
        self._set_pane("tests")
        box = self.query_one("#filter", Input)
        box.display = True
        self.call_after_refresh(box.focus)

    def on_input_changed(self, event: Input.Changed) -> None:
        """Every letter filters."""
        if event.input.id == "filter":
            self._filter = event.value
            self._list_tests()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Enter in the filter goes to the list."""
        if event.input.id == "filter":
            self.query_one("#tests", VirtualList).focus()

    def step_back(self) -> bool:
        box = self.query_one("#filter", Input)
        if box.display and self._pane == "tests":
            box.value = ""
            box.display = False
            self.query_one("#tests", VirtualList).focus()
            return True
        focused = self.focused
        if self._pane == "criteria" and focused is not None and focused.id != "criteria":
            self.query_one("#criteria", VirtualList).focus()
            return True
        if self._pane != "tests":
            self._focus_pane("tests")
            return True
        return False

    def keys(self) -> list[tuple[str, str, str]]:
        def key(name: str) -> str:
            return key_word(self.agenteval.keymap.get(f"edit.{name}", BY_ID[f"edit.{name}"].keys))

        focused = self.focused.id if self.focused is not None else ""
        save = (key("save"), "save", "save")
        pane = (key("pane"), "pane", "next_pane")
        if focused in ("tests", "criteria"):
            middle = [(key("new"), "new" if focused == "tests" else "add", "new")]
            middle += [(key("duplicate"), "copy", "duplicate"), (key("delete"), "delete", "delete")]
            middle += [("J K", "move", ""), ("enter", "fields", "")]
        elif focused == "config":
            middle = [
                ("^space", "complete", ""),
                (key("fix"), "fix", "apply_fix"),
                (key("explain"), "what is this", ""),
            ]
            middle += [("esc", "criteria", "app.back")]
        else:
            middle = [(key("undo"), "undo", "undo"), (key("next_problem"), "next problem", "next_problem")]
            middle += [("tab", "field", ""), ("esc", "list", "app.back")]
        return [save, *middle, pane, ("F1", "help", "app.help")]

    def _tests_title(self, width: int) -> list[Line]:
        edited = sum(doc.edited for doc in self._docs.values()) + len(self._kept)
        much = f"{edited} not saved" if edited else count(self._overview.tests, "test") if self._overview else ""
        return pane_title("tests", much, width, self._pane == "tests")

    def _test_title(self, width: int) -> list[Line]:
        doc = self._doc
        state = "" if doc is None else f"not saved {EDITED}" if doc.edited else "saved"
        return pane_title(one_line(doc.test_id, 40) if doc is not None else "test", state, width, self._pane == "test")

    def _criteria_title(self, width: int) -> list[Line]:
        much = count(len(self._doc.form.criteria), "criterion") if self._doc is not None else ""
        return pane_title("criteria", much, width, self._pane == "criteria")

    def _config_title(self, width: int) -> list[Line]:
        if self._doc is None or self._doc.chosen is None:
            return []
        problems = count(len(self._diagnostics), "problem") if self._diagnostics else ""
        focused = self.focused
        return pane_title("config_uxon", problems, width, focused is not None and focused.id == "config")

    def _tabs(self) -> list[tuple[str, str]]:
        words = {"tests": "tests", "test": "test", "criteria": "criteria"}
        return [(pane, words[pane]) for pane in PANES]

    def _tab_lines(self, width: int) -> list[Line]:
        """Narrow screens show one pane at a time; this line says which."""
        cells: list[Cell] = [(" ", "")]
        for pane, word in self._tabs():
            active = pane == self._pane
            cells.append((f"[{word}]" if active else f" {word} ", "bold accent" if active else "dim"))
            cells.append(("  ", ""))
        return [fit(cells, width)]

    def heading(self, width: int) -> tuple[tuple[Cell, ...], tuple[Cell, ...]]:
        doc = self._doc
        if doc is None:
            return (), ()
        state: Cell = (f"not saved {EDITED}", "accent") if doc.edited else ("saved", "dim")
        where = f"{one_line(doc.loaded.path.name, 50)}:{doc.loaded.line_of(doc.test_id)}"
        return ((one_line(doc.test_id, 60), "bold"), ("   ", ""), state), ((where, "dim"),)
