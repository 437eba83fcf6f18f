"""The Editor: a test as a form, its criteria, and each one's config; checked while one types, saved in its place."""

from __future__ import annotations

from typing import ClassVar

from textual.binding import BindingType
from textual.events import Resize
from textual.widgets import Input

from agenteval_tui.analysis.criterion_preview import spec_from
from agenteval_tui.core.display import one_line
from agenteval_tui.tui.actions import bindings
from agenteval_tui.tui.presenters.test_form import CriterionForm
from agenteval_tui.tui.screens.editor.dialogs import delete_question
from agenteval_tui.tui.screens.editor.save import EditorSaving
from agenteval_tui.tui.screens.editor.validation import LOW
from agenteval_tui.tui.widgets.virtual_list import VirtualList

WIDE = 190
"""From so many columns on a test's fields and what its criteria say of a run stand side by side."""


class EditorScreen(EditorSaving):
    """Each subject is a class of its own, one upon the other: frame, filling, checking, changing, criteria, tests,
    saving.

    What is here are the keys that mean another thing in each list, and the way to other screens.
    """

    CSS_PATH = "screen.tcss"
    BINDINGS: ClassVar[list[BindingType]] = list(bindings("edit"))

    def on_mount(self) -> None:
        self.set_class(self.app.size.width < self.NARROW, "narrow")  # already for the first frame
        self.query_one("#filter", Input).display = False
        tests = self.query_one("#tests", VirtualList)
        tests.set_empty([(("  Reading the suites …", "dim"),)])
        # Nothing is in them yet.
        for part in ("fields", "criterion", "config"):
            self.query_one(f"#{part}").display = False
        self._set_pane("tests")
        tests.focus()
        self.reload()

    def on_resize(self, event: Resize) -> None:
        before = self.classes
        self.set_class(event.size.width < self.NARROW, "narrow", update=False)
        self.set_class(event.size.width >= WIDE, "wide", update=False)
        self.set_class(event.size.height < LOW, "low", update=False)
        if self.classes != before:
            self.update_node_styles()  # once: a form has a lot of parts
        self._draw_problems()

    def on_unmount(self) -> None:
        for doc in self._docs.values():
            self._keep(doc)

    # What is chosen in the list that has the keys

    def action_new(self) -> None:
        """Add a criterion, or make a new test: whichever list is at hand."""
        if self._pane == "tests":
            self._new_test()
        elif self._doc is not None:
            self._choose_starter()

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

    # Elsewhere

    def action_open_editor(self) -> None:
        doc = self._doc
        if doc is None:
            return
        place = doc.chosen.source if doc.chosen is not None and self._pane == "criteria" else None
        self.agenteval.open_editor(doc.loaded.path, doc.loaded.line_of(doc.test_id, place))
        self.reload()

    def action_on_a_run(self) -> None:
        """The run that is looked at, in Inspect; what is edited of the config goes along, unsaved as it is."""
        doc, trial = self._doc, self._live.trial
        if doc is None:
            return
        if trial is None:
            self.agenteval.say(f"{doc.test_id} was not run yet: ^t runs it.")
            return
        name, config, new = "", None, None
        chosen = doc.chosen
        if chosen is not None and chosen.source is not None and chosen.source < len(doc.base.criteria):
            self._take_in(doc)
            saved = doc.base.criteria[chosen.source].values
            name = saved["name"]  # as the file names it: Inspect reads the file
            config = chosen.values["config_uxon"]
            config = None if config == saved["config_uxon"] else config
        elif chosen is not None:
            self._take_in(doc)
            new = self._lent = spec_from(chosen.values)
        runs = [run.id for run in trial.runs]
        edit = config is not None or new is not None
        self.agenteval.inspect(trial.bench.run.id, criterion=name, runs=runs, edit=edit, config=config, new=new)
