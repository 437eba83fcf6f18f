"""From a run to others: failures, repetitions, criteria, the difference with another run, the branches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agenteval_tui.tui.presenters.highlights import marks_of
from agenteval_tui.tui.screens.criterion_versions import show_versions
from agenteval_tui.tui.screens.difference import NO_OTHER, run_beside
from agenteval_tui.tui.screens.inspect.loader import InspectOpening
from agenteval_tui.tui.screens.run_picker import choose_other_run
from agenteval_tui.tui.widgets.lines_view import LinesView

if TYPE_CHECKING:
    from agenteval_tui.grading.results import Evidence


class InspectRuns(InspectOpening):
    """Goes between runs and criteria."""

    def _step_run(self, step: int, *, failures: bool) -> None:
        bench = self._bench
        if bench is None:
            return
        among = self._around.failures() if failures else self._around.runs
        order = {run: place for place, run in enumerate(self._around.runs)}
        here = order.get(bench.run.id, -1)
        ahead = [run for run in among if (order[run] - here) * step > 0]
        if not ahead:
            what = "failure" if failures else "run"
            self.agenteval.say(f"There is no {what} {'after' if step > 0 else 'before'} this one.")
            return
        self.open_run(ahead[0] if step > 0 else ahead[-1], criterion="" if failures else self._criterion_name())

    def action_next_failure(self) -> None:
        self._step_run(1, failures=True)

    def action_previous_failure(self) -> None:
        self._step_run(-1, failures=True)

    def action_next_run(self) -> None:
        self._step_run(1, failures=False)

    def action_previous_run(self) -> None:
        self._step_run(-1, failures=False)

    def _step_criterion(self, step: int) -> None:
        if self._bench is None:
            return
        if len(self._bench.criteria) == 1:
            self.agenteval.say("This is the only criterion of the test.")
            return
        self._keep_draft()
        self._choose((self._criterion + step) % len(self._bench.criteria))

    def action_next_criterion(self) -> None:
        self._step_criterion(1)

    def action_previous_criterion(self) -> None:
        self._step_criterion(-1)

    # Other runs of the test

    def action_difference(self) -> None:
        """Beside the run of the test that says most."""
        bench, session = self._bench, self.agenteval.session
        if bench is None:
            return

        def show(other: str) -> None:
            if not other:
                self.agenteval.say(NO_OTHER)
            elif self.is_current:
                self.agenteval.show_difference(bench.run.id, other)

        self.ask(lambda: run_beside(session, bench.run.id), show, group="choose")

    def action_choose_difference(self) -> None:
        """Beside a run that is chosen from a list."""
        if self._bench is not None:
            run = self._bench.run.id
            choose_other_run(self, run, lambda other: self.agenteval.show_difference(run, other))

    def action_versions(self) -> None:
        """The versions of the criterion that is open; one can be restored."""
        bench = self._bench
        if bench is not None and bench.criteria:
            run, name = bench.run, self._criterion_name()
            show_versions(self, run.suite_key, run.test_id, name, lambda: self.open_run(run.id, criterion=name))

    def action_branches(self) -> None:
        """The repetitions of the test as a tree."""
        if self._bench is not None:
            self.agenteval.show_divergence(self._bench.run.id)

    # Clicks in the pane of what was looked at

    def on_lines_view_row_clicked(self, event: LinesView.RowClicked) -> None:
        """A criterion is chosen, a piece of evidence is shown in the transcript."""
        if event.view.id != "looked" or self._show_tools or self._bench is None:
            return
        target = self._targets.get(event.row)
        if isinstance(target, int):
            if target != self._criterion and target < len(self._bench.criteria):
                self._keep_draft()
                self._choose(target)
        elif target is not None:
            self._show_evidence(target)

    def _show_evidence(self, evidence: Evidence) -> None:
        spans = {*evidence.near, *evidence.spans}
        own = [one for one in marks_of([self._result] if self._result else []) if one.span in spans]
        # A broken piece before a near one, that before one that held.
        if not any(self.transcript.view.show_mark(one) for one in sorted(own, key=lambda one: -one.weight)):
            self.agenteval.say("This evidence points at nothing in the transcript.")
        elif self.has_class("narrow"):
            self._focus_pane("transcript")
