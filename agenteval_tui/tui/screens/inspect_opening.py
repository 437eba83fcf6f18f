"""Opening a run in Inspect."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from agenteval_tui.analysis.neighbours import Around, first_criterion, runs_around
from agenteval_tui.analysis.run_facts import RunFacts, facts_of_run
from agenteval_tui.text.display import one_line
from agenteval_tui.text.problems import AgentevalError
from agenteval_tui.tui.screens.inspect_config import InspectConfig
from agenteval_tui.tui.screens.inspect_panes import PANES
from agenteval_tui.tui.screens.inspect_search import InspectSearch
from agenteval_tui.tui.state import text

if TYPE_CHECKING:
    from agenteval_tui.analysis.workbench import Workbench
    from agenteval_tui.grading.results import CriterionResult
    from agenteval_tui.tui.presenters.transcript import TranscriptDocument
    from agenteval_tui.tui.presenters.transcript_blocks import BlockKey


@dataclass(frozen=True, slots=True)
class Opened:
    """A run as it was read: the verdicts are those of the criteria as they are saved."""

    bench: Workbench
    results: tuple[CriterionResult, ...]
    around: Around
    facts: RunFacts
    document: TranscriptDocument


class InspectOpening(InspectConfig, InspectSearch):
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
            self.ask(lambda: self.agenteval.session.store.run(run), there, group="restore", failed=lambda _: None)

        self._pending = again

    def _show_nothing(self) -> None:
        """Say that no run is open."""
        raise NotImplementedError

    def open_run(
        self,
        run_id: str,
        *,
        criterion: str = "",
        runs: Sequence[str] = (),
        edit: bool = False,
        at: BlockKey | None = None,
        config: str | None = None,
    ) -> None:
        """Show a run; `criterion` names the one to begin with, else the first that failed; `at` a place in its
        transcript. `config`: what that criterion's config is to be, as an edit that is not saved."""
        if not self._composed:
            # The screen is being made: an answer that came before its widgets are there would find nothing.
            again = partial(self.open_run, run_id, criterion=criterion, runs=runs, edit=edit, at=at, config=config)
            self._pending = again
            return
        self._restoring = False
        if self._bench is None:
            self._looked.show(lambda width: [(), (("  Reading the run …", "dim"),)])
        session = self.agenteval.session
        known = self._around if run_id in self._around.runs and not runs else None

        lay_out = self._view.lay_out

        def work() -> Opened:
            bench = session.workbench(run_id)
            around = known or runs_around(bench, list(runs))
            facts = facts_of_run(bench.store, bench.run)
            return Opened(bench, bench.judge_all(), around, facts, lay_out(bench.transcript))

        def then(opened: Opened) -> None:
            self._opened(opened, criterion=criterion, edit=edit, config=config)
            if at is not None:
                self._focus_pane("transcript")
                self._view.go_to_key(at)

        def failed(error: AgentevalError) -> None:
            self.agenteval.say_error(error)
            if self._bench is None:
                self._show_nothing()

        self.ask(work, then, group="open", failed=failed)

    def _opened(self, opened: Opened, *, criterion: str, edit: bool, config: str | None) -> None:
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
        view = self._view
        view.show_transcript(bench.transcript, document=opened.document)
        self._search_again()
        number = first_criterion(bench, opened.results, criterion)
        if config is not None and bench.criteria[number].name != criterion:
            self.agenteval.say(f"{one_line(criterion, 60)} is not in the file yet: save it, then look at it here.")
            config = None
        self._choose(number, config)
        self.retitle()
        if edit:
            self.action_edit()
