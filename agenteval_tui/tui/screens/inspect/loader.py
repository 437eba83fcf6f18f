"""Opening a run in Inspect."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Unpack

from agenteval_tui.analysis.criterion_preview import with_new
from agenteval_tui.analysis.run_facts import RunFacts, facts_of_run
from agenteval_tui.analysis.run_navigation import AdjacentRuns, first_criterion, runs_around
from agenteval_tui.core.display import one_line
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.history.scope import in_scope
from agenteval_tui.tui.screens.inspect.config import InspectConfig
from agenteval_tui.tui.screens.inspect.layout import PANES
from agenteval_tui.tui.state import text

if TYPE_CHECKING:
    from agenteval_tui.analysis.workbench import Workbench
    from agenteval_tui.grading.results import CriterionResult
    from agenteval_tui.grading.spec import CriterionSpec
    from agenteval_tui.tui.inspect_target import InspectTarget
    from agenteval_tui.tui.presenters.transcript import TranscriptDocument


@dataclass(frozen=True, slots=True)
class LoadedRun:
    """A run as it was read: the verdicts are those of the criteria as they are saved."""

    bench: Workbench
    results: tuple[CriterionResult, ...]
    around: AdjacentRuns
    facts: RunFacts
    document: TranscriptDocument


class InspectOpening(InspectConfig):
    """Shows runs, one at a time."""

    def __init__(self) -> None:
        super().__init__()
        self._composed = False
        self._pending: Callable[[], None] | None = None
        self._restoring = False

    def kept(self) -> dict[str, Any] | None:
        if self._bench is None:
            return None
        return {"run": self._bench.run.id, "criterion": self._criterion_name(), "pane": self._pane}

    def restore(self, kept: Mapping[str, Any]) -> None:
        run, criterion, pane = text(kept, "run"), text(kept, "criterion"), text(kept, "pane")
        if not run:
            return

        def there(_found: object) -> None:
            # Meanwhile another run may have been asked for.
            if self._bench is None and self._restoring:
                self.open_run(run, criterion=criterion)
                if pane in PANES:
                    self._focus_pane(pane)

        def again() -> None:
            # A run that is gone is nothing to speak of: the screen says that none is open.
            self._restoring = True
            self._show_nothing()
            self.ask(lambda: self._of_open_project(run), there, group="restore", failed=lambda _: None)

        self._pending = again

    def _of_open_project(self, run: str) -> None:
        """Raises `AgentevalError` when the run is gone, or of a project that is not open."""
        session = self.agenteval.session
        of = session.store.execution(session.store.run(run).execution_id).project
        if not in_scope(of, session.projects):
            raise AgentevalError("this run is of another project", where=of)

    def _show_nothing(self) -> None:
        """Say that no run is open."""
        raise NotImplementedError

    def open_run(self, run_id: str, **how: Unpack[InspectTarget]) -> None:
        """Show a run."""
        if not self._composed:
            # The screen is being made: an answer that came before its widgets are there would find nothing.
            self._pending = partial(self.open_run, run_id, **how)
            return
        self._restoring = False
        if self._bench is None:
            self._looked.show(lambda width: [(), (("  Reading the run …", "dim"),)])
        session = self.agenteval.session
        runs = list(how.get("runs", ()))
        known = self._around if run_id in self._around.runs and not runs else None
        new = how.get("new") or (self.tried if known is not None else None)
        of_test = self._draft_key()[:2] if self._bench is not None and how.get("new") is None else None

        lay_out = self.transcript.view.lay_out

        def work() -> LoadedRun:
            bench = session.workbench(run_id)
            if new is not None and of_test in (None, (bench.run.suite_key, bench.run.test_id)):
                bench = with_new(bench, new)
            around = known or runs_around(bench, runs)
            facts = facts_of_run(bench.store, bench.run)
            return LoadedRun(bench, bench.judge_all(), around, facts, lay_out(bench.transcript))

        def then(opened: LoadedRun) -> None:
            self._opened(opened, how)
            if (at := how.get("at")) is not None:
                self._focus_pane("transcript")
                self.transcript.view.go_to_key(at)

        def failed(error: AgentevalError) -> None:
            self.agenteval.say_error(error)
            if self._bench is None:
                self._show_nothing()

        self.ask(work, then, group="open", failed=failed)

    @property
    def tried(self) -> CriterionSpec | None:
        """The criterion that stands in no file yet, with its config as it is edited here; None: there is none."""
        last = self._bench.criteria[-1] if self._bench is not None else None
        if last is None or not last.new:
            return None
        draft = self._drafts.get(self._draft_key(-1))
        return last.spec if draft is None else replace(last.spec, config=draft.text)

    def _opened(self, opened: LoadedRun, how: InspectTarget) -> None:
        self._keep_draft()
        self._assist.forget()
        if self._bench is None and self.has_class("narrow"):
            # What said that nothing is open stands in another pane.
            self._focus_pane("transcript")
        bench = self._bench = opened.bench
        self._around = opened.around
        self._facts = opened.facts
        self._saved_results = opened.results
        if bench.note:
            self.agenteval.say(bench.note)
        self.transcript.open(bench.transcript, opened.document)
        if how.get("new") is not None:
            self._drafts.pop(self._draft_key(-1), None)
        criterion, config = how.get("criterion", ""), how.get("config")
        number = first_criterion(bench, opened.results, criterion)
        last = len(bench.criteria) - 1
        if bench.criteria[last].new and (how.get("new") is not None or criterion == bench.criteria[last].name):
            number = last
        judged = any(one.criterion == criterion for one in bench.stored)
        if bench.criteria[number].name != criterion and (config is not None or judged):
            self.agenteval.say(f"{one_line(criterion, 60)} is not in the file any more.")
            config = None
        self._choose(number, config)
        self.retitle()
        if how.get("edit"):
            self.action_edit()
