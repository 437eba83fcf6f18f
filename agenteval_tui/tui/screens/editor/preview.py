"""What a criterion, as it is edited, says of a recorded run of its test, and which stored runs would flip."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

from agenteval_tui.analysis.criterion_preview import Trial, open_trial, spec_from
from agenteval_tui.analysis.workbench import Impact, Workbench
from agenteval_tui.grading.results import CriterionResult
from agenteval_tui.grading.spec import CriterionSpec
from agenteval_tui.history.store import Store
from agenteval_tui.tui.screens.editor.document import SuiteDocument
from agenteval_tui.tui.workbench_worker import WorkbenchWorker

DRAW_SECONDS = 0.05  # between two pictures while runs are judged


class CriterionPreview:
    """Judges the criterion that is edited, in a thread, never two at a time; whoever calls it ends the call before.

    `result` is the verdict on the run of `trial`, `impact` what is counted so far over all stored runs, `spec` the
    criterion that both are about; `edited`: it judges in another way than the one in the file.
    """

    def __init__(self) -> None:
        self.alone = WorkbenchWorker()
        self.run_wanted = ""  # the id of the run to judge next; "": the one that is shown, or else the newest
        self._opened: SuiteDocument | None = None  # the test whose runs were read
        self._place = -1  # of the criterion, in the form
        self._forget(None)

    def _forget(self, trial: Trial | None) -> None:
        self.trial = trial
        self.source: int | None = None
        self.spec: CriterionSpec | None = None
        self.result: CriterionResult | None = None
        self.impact: Impact | None = None
        self.has_edit: bool | None = None  # whether a small edit makes the run pass; None: it is not known
        self.edited = False

    def read_again(self) -> None:
        """New runs may have come: read them before the next verdict. The run that is looked at stays."""
        if self.trial is not None and self.trial.at and not self.run_wanted:
            self.run_wanted = self.trial.bench.run.id
        self._opened = None

    async def judge(
        self,
        store: Store,
        doc: SuiteDocument | None,
        show: Callable[[bool], None],
        show_impact: Callable[[], None],
    ) -> None:
        """Judge the chosen criterion of `doc` on the run, then on all stored ones.

        `show` is called with the verdict (True: of the same criterion as before), `show_impact` whenever more runs are
        counted. Raises `AgentevalError` where the history can't be read.
        """
        chosen = doc.chosen if doc is not None else None
        if doc is None or chosen is None:
            self._forget(self.trial)
            show(False)
            return
        source, place, spec = chosen.source, doc.criterion, spec_from(chosen.values)
        trial = await self._turn(store, doc)
        if trial is None:
            show(False)
            return
        number = trial.number(source)
        # Criteria that are in no file yet have no source to tell them by.
        same = (self.source, self._place) == (source, place) and self.spec is not None
        # The run's verdict first: it is what the eye rests on.
        self.result = await self.alone(partial(trial.bench.judge, number, spec))
        self.source, self._place, self.spec = source, place, spec
        self.edited = await self.alone(partial(trial.edited, source, spec))
        if not same:
            self.impact = self.has_edit = None
        show(same)
        await self._count(trial.bench, number, spec, show_impact)
        relaxable = self.to_relax()
        if not isinstance(relaxable, str):
            self.has_edit = await self.alone.smallest_edit(*relaxable, spec.config_text) is not None
            show(True)

    async def _turn(self, store: Store, doc: SuiteDocument) -> Trial | None:
        """The trial of this test, on the run that is wanted."""
        run = self.run_wanted
        if self._opened is not doc:
            saved = [spec_from(criterion.values) for criterion in doc.base.criteria]
            self._forget(await self.alone(partial(open_trial, store, doc.loaded, doc.test_id, saved, run)))
            self._opened = doc
        elif run and self.trial is not None:
            self.trial = await self.alone(partial(self.trial.on, run))
        self.run_wanted = ""
        return self.trial

    async def _count(self, bench: Workbench, number: int, spec: CriterionSpec, show_impact: Callable[[], None]) -> None:
        drawn = 0.0
        async for impact in self.alone.impact(bench, number, spec):
            self.impact = impact
            now = time.monotonic()
            if now - drawn > DRAW_SECONDS:
                drawn = now
                show_impact()
        show_impact()

    def step(self, by: int) -> str:
        """Ask for the run that is `by` older. What is to be said where there is none, else ""."""
        if self.trial is None:
            return "This test has no recorded run yet."
        at = self.trial.at + by
        if not 0 <= at < len(self.trial.runs):
            return "This is the oldest stored run." if by > 0 else "This is the newest run."
        self.run_wanted = self.trial.runs[at].id
        return ""

    def to_relax(self) -> tuple[Workbench, int] | str:
        """The workbench and the criterion's number in it, where the criterion fails on this run; else why not."""
        trial, spec = self.trial, self.spec
        if trial is None or self.result is None or spec is None:
            return "There is no recorded run to relax this criterion on."
        if self.result.outcome != "failed":
            return f"{spec.name} does not fail on this run."
        number = trial.number(self.source)
        saved = trial.bench.spec(number)
        alike = (saved.prototype, saved.expected_value, saved.negate, saved.pass_threshold) == (
            spec.prototype,
            spec.expected_value,
            spec.negate,
            spec.pass_threshold,
        )
        # With another field edited too, what flips is counted against the criterion as it is edited.
        return (trial.bench if alike else trial.as_edited(self.source, spec)), number
