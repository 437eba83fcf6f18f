"""Which test is open in the Editor: chosen from the list, asked for by another screen, or with a draft."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from textual.events import ScreenResume

from agenteval_tui.analysis.lint import user_agents
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.ids import criterion_names
from agenteval_tui.tui.presenters.test_form import read_form
from agenteval_tui.tui.presenters.text_layout import error_lines
from agenteval_tui.tui.screens.editor.criteria import EditorCriteria
from agenteval_tui.tui.screens.editor.dialogs import draft_question
from agenteval_tui.tui.screens.editor.document import SuiteDocument
from agenteval_tui.tui.screens.editor.fields import refine_choices
from agenteval_tui.tui.state import text
from agenteval_tui.tui.widgets.form import Form
from agenteval_tui.tui.widgets.virtual_list import VirtualList

if TYPE_CHECKING:
    from agenteval_tui.analysis.overview import Overview
    from agenteval_tui.grading.criterion_templates import Starter
    from agenteval_tui.grading.spec import CriterionSpec
    from agenteval_tui.suites.model import AgentConfig
    from agenteval_tui.tui.draft_store import Kept


class EditorTests(EditorCriteria):
    """Reads the suites, opens a test of them, and offers what was not saved."""

    _restored = ""  # the test that the last start left open
    _first_run = ""  # the run to judge in the test that is wanted
    _lent: CriterionSpec | None = None  # the new criterion that is tried in Inspect, as it was given away

    def open_test(
        self, suite: str, test: str, *, criterion: str = "", starter: Starter | None = None, run: str = ""
    ) -> None:
        """Open a test; `criterion` names the one to choose; `starter`: add this one, as an edit to be saved; `run`: the
        recorded run to judge (else the newest)."""
        self._first_run = run
        self._wanted = (suite, test, criterion, starter)
        if self._overview is not None:
            self.reload()

    def kept(self) -> dict[str, Any] | None:
        return None if self._doc is None else {"test": self._doc.key}

    def restore(self, kept: Mapping[str, Any]) -> None:
        self._restored = text(kept, "test")

    def reload(self) -> None:
        """Read the suites again. Edits stay."""

        def work() -> tuple[Overview, Mapping[str, AgentConfig], list[Kept], list[str]]:
            session = self.agenteval.session
            mine = user_agents()
            return session.overview(), mine, self._drafts.listed("test"), sorted(mine)

        self.ask(work, self._show_overview, group="overview", failed=self._show_failure)

    def _show_failure(self, error: AgentevalError) -> None:
        """The suites or the history can't be read: say so where the list would be."""
        if self._overview is not None:
            self.agenteval.say_error(error)
            return
        view = self.query_one("#tests", VirtualList)
        lines = error_lines(error, max(view.size.width - 2, 20))
        view.set_empty([(), *(((" ", ""), *line) for line in lines)])

    def _take_back(self) -> None:
        """A new criterion was tried in Inspect: what was edited of its config there is an edit here."""
        lent, self._lent = self._lent, None
        tried = self.agenteval.tried_criterion() if lent is not None else None
        doc = self._doc
        if lent is None or tried is None or doc is None or doc.chosen is None:
            return
        chosen = doc.chosen
        same = chosen.source is None and chosen.values["name"] == lent.name == tried.name
        if same and tried.config != lent.config and chosen.values["config_uxon"] == lent.config_text:
            doc.step("")
            chosen.values["config_uxon"] = tried.config_text
            self._fill()
            self._changed()

    def on_screen_resume(self, event: ScreenResume) -> None:
        self._take_back()
        if self._overview is not None:
            self._assist.forget()
            self._read_runs_again()
            self.reload()

    def _show_overview(self, found: tuple[Overview, Mapping[str, AgentConfig], list[Kept], list[str]]) -> None:
        self._overview, self._agents, kept, _ = found
        known = {f"{one.loaded.key}\x1f{test}" for one in self._overview.suites for test in self._ids(one.loaded)}
        self._kept = {}
        for one in kept:  # the newest first
            key = f"{one.suite}\x1f{one.test}"
            if key in known and key not in self._docs:
                self._kept.setdefault(key, one)
        self._take_pending()
        # What is not edited is read anew; what is keeps what it was made from: saving says if the file changed.
        self._docs = {key: doc for key, doc in self._docs.items() if doc.edited and not self._is_saved(doc)}
        self._list_tests()
        wanted = self._wanted
        self._wanted = None
        if wanted is None and self._doc is not None:
            self._open(self._doc.loaded.key, self._doc.test_id, focus=False)
        elif wanted is not None:
            self._run_wanted, self._first_run = self._first_run, ""
            self._open(wanted[0], wanted[1], criterion=wanted[2], starter=wanted[3])
        elif self._kept:
            first = next(iter(self._kept.values()))
            self._open(first.suite, first.test, focus=False)
        elif (last := self._restored) in known:
            self._open(last.partition("\x1f")[0], last.partition("\x1f")[2], focus=False)
        else:
            loaded = next((one.loaded for one in self._overview.suites if self._ids(one.loaded)), None)
            if loaded is not None:
                self._open(loaded.key, self._ids(loaded)[0], focus=False)
        self.retitle()

    def _is_saved(self, doc: SuiteDocument) -> bool:
        """Does the file say by now what the form says? (It was saved by Inspect, or by somebody else.)"""
        for suite in self._overview.suites if self._overview is not None else ():
            if suite.loaded.key == doc.loaded.key and suite.loaded.digest != doc.loaded.digest:
                try:
                    now = read_form(suite.loaded, doc.test_id)
                except AgentevalError:
                    return False
                alike = [one.values for one in now.criteria] == [one.values for one in doc.form.criteria]
                if alike and now.values == doc.form.values:
                    self._drafts.drop("test", doc.loaded.key, doc.test_id)
                    return True
        return False

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
            doc = SuiteDocument(loaded, test, base, base.copy())
            if before is not None and before.key == key:
                doc.criterion = min(before.criterion, max(len(base.criteria) - 1, 0))
            self._docs[key] = doc
        self._doc = doc
        names = criterion_names(one.values["name"] for one in doc.form.criteria)
        if criterion in names:
            doc.criterion = names.index(criterion)
        self.query_one("#test-pane").disabled = self.query_one("#criteria-pane").disabled = False
        self.query_one("#live-pane").disabled = False
        refine_choices(self.query_one("#fields", Form), doc.loaded, self._agents)
        if starter is not None:
            self._add(starter)
        self._fill()
        self.retitle()
        self.query_one("#tests", VirtualList).move_to_key(key)
        self._check()
        if focus:
            self._focus_pane("criteria" if criterion or starter is not None else "test")
        kept = self._kept.get(key)
        if kept is not None and not doc.draft_checked:
            doc.draft_checked = True
            self._offer_draft(doc, kept)

    def _offer_draft(self, doc: SuiteDocument, kept: Kept) -> None:
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
            self.soon(self._follow_criterion)
        elif event.list.id == "tests" and event.list.has_focus and (doc is None or doc.key != event.key):
            self.soon(self._follow_test)

    def _follow_criterion(self) -> None:
        doc, index = self._doc, self.query_one("#criteria", VirtualList).cursor
        if doc is not None and 0 <= index < len(doc.form.criteria) and index != doc.criterion:
            doc.criterion = index
            self._fill_criterion()
            self._check()

    def _follow_test(self) -> None:
        key = self.query_one("#tests", VirtualList).cursor_key or ""
        suite, _, test = key.partition("\x1f")
        if test and (self._doc is None or self._doc.key != key):
            self._open(suite, test, focus=False)

    def on_virtual_list_selected(self, event: VirtualList.Selected) -> None:
        """Enter: to the fields of what is chosen."""
        if event.list.id == "criteria":
            self.query_one("#criterion", Form).focus_first()
        elif "\x1f" in event.key:
            suite, _, test = event.key.partition("\x1f")
            self._open(suite, test)
