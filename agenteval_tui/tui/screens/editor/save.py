"""The Editor writes into the suite's file: an edited test, and tests made, copied, moved, deleted."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.suites.editing import id_now, rebase
from agenteval_tui.suites.load import load_suite
from agenteval_tui.suites.yaml.save import FileChanged
from agenteval_tui.tui.actions import key_of
from agenteval_tui.tui.presenters.test_form import read_form
from agenteval_tui.tui.screens.editor.document import SuiteDocument
from agenteval_tui.tui.screens.editor.tests import EditorTests
from agenteval_tui.tui.screens.file_conflict_dialog import ChangedFileScreen
from agenteval_tui.tui.screens.rerun import again_key, run_again
from agenteval_tui.tui.screens.suites.file_changes import change_files

MOST_UNDONE = 20  # changes of files that can be undone, one after the other

if TYPE_CHECKING:
    from agenteval_tui.suites.editing import TestEdit, Written
    from agenteval_tui.suites.load import LoadedSuite


class EditorSaving(EditorTests):
    """Saves in its place, and never over what others wrote meanwhile."""

    def __init__(self) -> None:
        super().__init__()
        self._taken: list[tuple[str, tuple[str, str], list[Written]]] = []
        """Changes of files that can be undone: in words, of which test (suite's key, id), and what undoing needs."""

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

    def action_run_test(self) -> None:
        """The test that is open, as it is saved."""
        doc = self._doc
        if doc is not None:
            run_again(self, doc.loaded, doc.test_id, edited=bool(doc.edited))

    def action_undo(self) -> None:
        """The last step in the form; in the list of tests, or where there is none, the last change of the file."""
        doc = self._doc
        if not self._taken or (self._pane != "tests" and doc is not None and doc.can_undo):
            super().action_undo()
            return
        if self.still_writes("change"):
            return
        said, place, taken = self._taken.pop()
        session = self.agenteval.session

        def done(_: list[LoadedSuite]) -> None:
            self.agenteval.say(f"Undone: {said}.")
            self._wanted = (*place, "", None)
            self.reload()

        def failed(error: AgentevalError) -> None:
            self.agenteval.say_error(error)
            self.reload()

        self.ask(lambda: session.take_back(taken), done, group="change", failed=failed)

    def _save(self, doc: SuiteDocument, loaded: LoadedSuite, edit: TestEdit, renamed: str = "") -> None:
        """`renamed`: the id that the test has in the file now, where somebody gave it another one."""
        if self.still_writes("save"):
            return
        session = self.agenteval.session

        def failed(error: AgentevalError) -> None:
            if isinstance(error, FileChanged):
                self._offer_merge(doc, error.diff)
            else:
                self.agenteval.say_error(error)

        self.ask(
            lambda: session.save_test(loaded, renamed or doc.test_id, edit),
            partial(self._saved, doc, doc.form.copy(), renamed),
            group="save",
            failed=failed,
        )

    def _saved(self, doc: SuiteDocument, form: Any, renamed: str, saved: LoadedSuite) -> None:
        new_id = form.values["id"] or doc.test_id
        if renamed and form.values["id"] == doc.base.values["id"]:
            new_id = renamed
            doc.form.values["id"] = form.values["id"] = renamed
        for part in ("", "newer"):
            self._drafts.drop("test", doc.loaded.key, doc.test_id, part)
        self._docs.pop(doc.key, None)
        if doc.form == form:
            again = SuiteDocument(
                saved, new_id, base := read_form(saved, new_id), base.copy(), doc.criterion, draft_checked=True
            )
        else:
            # Who went on typing meanwhile has an edit of what is saved now.
            again = SuiteDocument(saved, new_id, read_form(saved, new_id), doc.form, doc.criterion, draft_checked=True)
        self._docs[again.key] = again
        if self._doc is doc:
            self._doc = again
            if renamed:
                self._fill()  # its id stands in the form, too
        line = saved.line_of(new_id)
        self.agenteval.say(f"Saved {saved.path.name}:{line}. {again_key(self)} runs the test.")
        if new_id != doc.test_id:
            self.agenteval.say("The history knows the test's earlier runs by its old id.", severity="warning")
        self.reload()

    def _offer_merge(self, doc: SuiteDocument, diff: str) -> None:
        def load() -> tuple[LoadedSuite, TestEdit, str]:

            fresh = load_suite(doc.loaded.path)
            now = id_now(doc.loaded, fresh, doc.test_id)
            renamed = now if now.casefold() != doc.test_id.casefold() else ""
            return fresh, rebase(doc.edit, doc.loaded, fresh, doc.test_id), renamed

        def answered(put_in: bool | None) -> None:
            if put_in:
                self.ask(load, lambda found: self._save(doc, *found), group="reload")

        self.app.push_screen(ChangedFileScreen(doc.loaded.path.name, diff), answered)

    # Tests of the file

    def _new_test(self) -> None:
        doc = self._doc
        paths = [one.loaded for one in self._overview.suites] if self._overview is not None else []
        first = doc.loaded if doc is not None else paths[0] if paths else None
        if first is not None:
            self.agenteval.new_test(first)
        elif self._overview is not None:
            self.agenteval.new_suite()

    def _change_tests(self, change: Callable[[Any, LoadedSuite, str], LoadedSuite], what: str) -> None:
        doc = self._doc
        if doc is None:
            return
        if doc.edited:
            self.agenteval.say("This test has edits that are not saved: ^s saves them, F6 drops them.")
            return
        loaded, test, session = doc.loaded, doc.test_id, self.agenteval.session

        taken: list[Written] = []

        def done(written: list[LoadedSuite]) -> None:
            self._docs.pop(doc.key, None)
            if written:
                self._doc = None if what == "deleted" else doc
                said = f"{test} {what} in {written[0].path.name}"
                if taken:
                    self._taken = [*self._taken[1 - MOST_UNDONE :], (said, (loaded.key, test), taken)]
                self.agenteval.say(f"{said}, {key_of('edit.undo', self.agenteval.keymap)} undoes.")
            self.reload()

        doing = {"copied": "copy", "deleted": "delete", "moved": "move"}[what]
        change_files(
            self, [(loaded, [test])], lambda now, _: change(session, now, test), f"{doing} {test}", done, taken=taken
        )
