"""What the parts of the Inspect screen share: the open run, the chosen criterion and its live verdict, the widgets."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.binding import BindingType

from agenteval_tui.analysis.run_facts import RunFacts
from agenteval_tui.analysis.run_navigation import AdjacentRuns
from agenteval_tui.tui.actions import bindings
from agenteval_tui.tui.screens.base_screen import FrameScreen
from agenteval_tui.tui.screens.inspect.drafts import Draft, DraftKey
from agenteval_tui.tui.screens.inspect.transcript_pane import TranscriptPane
from agenteval_tui.tui.widgets.config_editor import ConfigEditor
from agenteval_tui.tui.widgets.lines_view import LinesView

if TYPE_CHECKING:
    from agenteval_tui.analysis.workbench import Agreement, Impact, Workbench
    from agenteval_tui.grading.results import CriterionResult
    from agenteval_tui.tui.presenters.evidence_pane import Target
    from agenteval_tui.uxon.diagnostics import Diagnostic


class InspectBase(FrameScreen):
    """The state of the screen. What is done with it is in subclasses of one subject each; `InspectScreen` is all of
    them."""

    SCOPE = "inspect"
    BINDINGS: ClassVar[list[BindingType]] = list(bindings("inspect"))

    def __init__(self) -> None:
        super().__init__()
        self._bench: Workbench | None = None
        self._around = AdjacentRuns([], {})
        self._facts = RunFacts()
        self._criterion = 0
        self._result: CriterionResult | None = None
        self._saved_results: tuple[CriterionResult, ...] = ()
        self._diagnostics: tuple[Diagnostic, ...] = ()
        self._impact: Impact | None = None
        self._agreement: Agreement | None = None
        self._drafts: dict[DraftKey, Draft] = {}
        self._show_tools = False
        self._targets: dict[int, Target] = {}
        self.transcript = TranscriptPane()
        self._pane = "transcript"

    @property
    def shown_run(self) -> str:
        """The id of the run that is open; "" while there is none."""
        return self._bench.run.id if self._bench is not None else ""

    @property
    def _looked(self) -> LinesView:
        return self.query_one("#looked", LinesView)

    @property
    def _editor(self) -> ConfigEditor:
        return self.query_one("#config", ConfigEditor)

    def _draft_key(self, number: int | None = None) -> DraftKey:
        """Of the chosen criterion, or of another; -1: the last."""
        bench = self._bench
        assert bench is not None
        number = (self._criterion if number is None else number) % len(bench.criteria)
        names = [criterion.name for criterion in bench.criteria[: number + 1]]
        return bench.run.suite_key, bench.run.test_id, names[-1], names.count(names[-1])

    @property
    def _edited(self) -> bool:
        return self._bench is not None and self._draft_key() in self._drafts

    @property
    def _is_new(self) -> bool:
        """Does the chosen criterion stand in no file yet?"""
        return self._bench is not None and self._bench.criteria[self._criterion].new

    def _criterion_name(self) -> str:
        return self._bench.criteria[self._criterion].name if self._bench else ""

    def _results_now(self) -> tuple[CriterionResult, ...]:
        """The verdicts as they are saved, with the edited criterion's live one in its place."""
        results = list(self._saved_results)
        if self._result is not None and self._criterion < len(results):
            results[self._criterion] = self._result
        return tuple(results)
