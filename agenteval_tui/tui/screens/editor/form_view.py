"""What the Editor's panes show of the open test: its fields, its criteria, the first rows of its dataset."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from textual.widgets import Input

from agenteval_tui.suites.load import LoadedSuite
from agenteval_tui.tui.presenters.editor_rows import CriterionRows, TestRows, dataset_lines
from agenteval_tui.tui.presenters.test_form import DATASET
from agenteval_tui.tui.screens.editor.fields import criterion_rows, rows_of
from agenteval_tui.tui.screens.editor.layout import EditorFrame
from agenteval_tui.tui.widgets.config_editor import ConfigEditor
from agenteval_tui.tui.widgets.form import Form
from agenteval_tui.tui.widgets.line_block import LineBlock
from agenteval_tui.tui.widgets.virtual_list import VirtualList

if TYPE_CHECKING:
    from agenteval_tui.analysis.overview import Overview

PREVIEW_ROWS = 4


class EditorFilling(EditorFrame):
    """Puts the open test into the panes, and the list of tests beside it."""

    _tests_shown: tuple[Overview, set[str], str] | None = None

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
                (("  n makes one.", "dim"),),
            ]
        )
        shown = (self._overview, edited, self._filter)
        if shown != self._tests_shown:  # each list that is shown anew is sent anew, also in answer to a letter
            self._tests_shown = shown
            view.set_source(TestRows(*shown), keep_key=view.cursor_key)
        self.query_one("#tests-title", LineBlock).show(self._tests_title)

    def action_filter(self) -> None:
        self._set_pane("tests")
        box = self.query_one("#filter", Input)
        box.display = True
        # Its pane may have been hidden: seen at once, it has the focus at once, and the next key.
        self.app.stylesheet.update(self.query_one("#body"))
        box.focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Every letter filters."""
        if event.input.id == "filter":
            self._filter = event.value
            self._list_tests()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Enter in the filter goes to the list."""
        if event.input.id == "filter":
            self.query_one("#tests", VirtualList).focus()

    # The open test

    def _fill(self) -> None:
        doc = self._doc
        if doc is None:
            return
        self._filling = True
        form = self.query_one("#fields", Form)
        form.display = True
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
        rows = CriterionRows([one.copy() for one in doc.form.criteria], bad, doc.changed_criteria())
        if rows == view.source and view.cursor == doc.criterion:
            return
        view.set_empty([(("  No criteria: a adds one.", "dim"),)])
        view.styles.height = max(len(doc.form.criteria), 1)
        view.set_source(rows, keep_key=str(doc.criterion))

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
            from agenteval_tui.tui.screens.editor.validation import first_rows

            return first_rows(folder, file, limit, PREVIEW_ROWS)

        def then(found: tuple[list[Mapping[str, Any]], str]) -> None:
            block.show(lambda width: dataset_lines(found[0], found[1], width))

        self.ask(work, then, group="dataset")
