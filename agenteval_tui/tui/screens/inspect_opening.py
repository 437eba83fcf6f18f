"""Opening a run in Inspect."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from agenteval_tui.analysis.neighbours import Around, first_criterion, runs_around
from agenteval_tui.tui.screens.inspect_config import InspectConfig

if TYPE_CHECKING:
    from agenteval_tui.analysis.workbench import Workbench
    from agenteval_tui.grading.results import CriterionResult
    from agenteval_tui.tui.presenters.transcript_blocks import BlockKey


class InspectOpening(InspectConfig):
    """Shows runs, one at a time."""

    def __init__(self) -> None:
        super().__init__()
        self._composed = False
        self._pending: Callable[[], None] | None = None

    def open_run(
        self,
        run_id: str,
        *,
        criterion: str = "",
        runs: Sequence[str] = (),
        edit: bool = False,
        at: BlockKey | None = None,
    ) -> None:
        """Show a run; `criterion` names the one to begin with, else the first that failed; `at` a place in its
        transcript."""
        if not self._composed:
            # The screen is being made: an answer that came before its widgets are there would find nothing.
            self._pending = partial(self.open_run, run_id, criterion=criterion, runs=runs, edit=edit, at=at)
            return
        session = self.agenteval.session
        known = self._around if run_id in self._around.runs and not runs else None

        def work() -> tuple[Workbench, tuple[CriterionResult, ...], Around]:
            bench = session.workbench(run_id)
            around = known or runs_around(bench, list(runs))
            return bench, bench.judge_all(), around

        def then(answer: tuple[Workbench, tuple[CriterionResult, ...], Around]) -> None:
            self._opened(*answer, criterion=criterion, edit=edit)
            if at is not None:
                self._focus_pane("transcript")
                self._view.go_to_key(at)

        self.ask(work, then, group="open")

    def _opened(
        self,
        bench: Workbench,
        results: tuple[CriterionResult, ...],
        around: Around,
        *,
        criterion: str,
        edit: bool,
    ) -> None:
        self._keep_draft()
        self._assist.forget()
        self._bench = bench
        self._around = around
        self._saved_results = results
        if bench.note:
            self.agenteval.say(bench.note)
        view = self._view
        view.show_transcript(bench.transcript)
        self._choose(first_criterion(bench, results, criterion))
        self.retitle()
        if edit:
            self.action_edit()
