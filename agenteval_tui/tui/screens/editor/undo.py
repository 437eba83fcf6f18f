"""What is typed in the Editor goes into the open test, into its steps of undo, and into its draft."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from typing import Any

from agenteval_tui.analysis.lint import CUT
from agenteval_tui.suites.unquoted_hash import cut_texts
from agenteval_tui.tui.presenters.test_form import DATASET, YAMLS
from agenteval_tui.tui.screens.editor.document import SuiteDocument
from agenteval_tui.tui.screens.editor.fields import criterion_rows, rows_of
from agenteval_tui.tui.screens.editor.validation import EditorChecking
from agenteval_tui.tui.screens.select_dialog import ChooseScreen
from agenteval_tui.tui.widgets.config_editor import ConfigEditor
from agenteval_tui.tui.widgets.form import ChoiceField, Form
from agenteval_tui.tui.workers import start_worker

KEEP_S = 0.5
"""So long after a change its draft is written."""


class EditorChanging(EditorChecking):
    """Takes edits of fields and configs; undoes them; keeps them through a crash."""

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

    def on_form_submitted(self, event: Form.Submitted) -> None:
        """Enter: choose from a list, or the next field."""
        field = event.form.query_one(f"#field-{event.name}") if event.name else None
        if not isinstance(field, ChoiceField):
            self.focus_next()
            return

        def chosen(value: str | None) -> None:
            if value is not None:
                field.choose(value, tell=True)

        choices = [(value, words, "") for value, words in field.choices]
        self.app.push_screen(ChooseScreen(event.name.replace("_", " "), choices, field.value), chosen)

    def _take_in(self, doc: SuiteDocument) -> None:
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

    def _take_pending(self) -> None:
        """An edit whose word is still on its way: the fields are about to be filled anew, and it would be lost."""
        doc = self._doc
        if doc is None or self._filling:
            return
        before = doc.form.copy()
        self._take_in(doc)
        if doc.form != before:
            doc.form, now = before, doc.form
            doc.step("")
            doc.form = now
            self._changed()

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

    # Edited or not

    def _changed(self) -> None:
        self._check()
        self._changed_state()

    def _changed_state(self) -> None:
        """Edited or not: the lists, the titles, and the draft a moment later."""
        self._list_criteria()
        self._retitle_panes()
        self.retitle()
        self._list_tests()
        if self._keep_timer is not None:
            self._keep_timer.stop()
        if self._doc is not None:
            self._keep_timer = self.set_timer(KEEP_S, partial(self._keep_soon, self._doc))

    def _keep_soon(self, doc: SuiteDocument) -> None:
        edited, data = doc.edited, doc.as_data()
        # A copy: the form goes on changing.

        frozen = json.loads(json.dumps(data))
        self.run_worker(
            partial(self._write_draft, doc, frozen if edited else None),
            thread=True, group="draft", exit_on_error=False,
        )  # fmt: skip

    def _keep(self, doc: SuiteDocument) -> None:
        if doc.edited:
            self._write_draft(doc, doc.as_data())

    def _write_draft(self, doc: SuiteDocument, data: Mapping[str, Any] | None) -> None:
        # Beside an older draft that nobody has decided about, not over it.
        part = "newer" if doc.key in self._kept else ""
        if data is None:
            self._drafts.drop("test", doc.loaded.key, doc.test_id, part)
        else:
            self._drafts.keep("test", doc.loaded.key, doc.test_id, part, data)

    # The config

    def on_config_editor_asked(self, event: ConfigEditor.Asked) -> None:
        """What can be written at the cursor?"""
        doc = self._doc
        if doc is None or doc.chosen is None:
            return
        kind, store = doc.chosen.values["prototype_class"], self.agenteval.session.store
        answer = partial(self._assist.answer, event, kind, store, doc.loaded.key, doc.test_id)
        start_worker(self, answer, group="assist", name="completing")

    async def action_explain(self) -> None:
        doc, editor = self._doc, self.query_one("#config", ConfigEditor)
        if doc is None or doc.chosen is None:
            return
        if not await self._assist.explain(editor, doc.chosen.values["prototype_class"]):
            self.agenteval.say("Nothing is known of what stands at the cursor.")

    def action_apply_fix(self) -> None:
        if self._quote_cut_text():
            return
        editor = self.query_one("#config", ConfigEditor)
        here = editor.diagnostic_at_cursor()
        chosen = here if here is not None and here.fix is not None else None
        chosen = chosen or next((one for one in self._diagnostics if one.fix is not None), None)
        if chosen is None or chosen.fix is None:
            self.agenteval.say("There is no problem in this config that can be mended by itself.")
            return
        editor.apply_fix(chosen.fix)

    def _quote_cut_text(self) -> bool:
        """In a field whose text a `#` cuts short: put it into quotes in the file. Is it such a field?"""

        doc, (number, field) = self._doc, self._place_of_focus()
        if doc is None or not any(
            one.problem.code == CUT and (one.criterion, one.field) == (number, field) for one in doc.problems
        ):
            return False
        if doc.edited:
            self.agenteval.say("This mends the file itself: ^s saves your edits first, then F4.")
            return True
        values = doc.base.values if number is None else doc.base.criteria[number].values
        cuts = cut_texts(doc.loaded, doc.loaded.node(doc.test_id))
        start = next((one.start for one in cuts if (one.key, one.read) == (field, values[field])), None)
        session, loaded = self.agenteval.session, doc.loaded
        if start is not None:
            self.ask(lambda: session.quote_cut_text(loaded, start), lambda _: self.reload(), group="save")
        return True
