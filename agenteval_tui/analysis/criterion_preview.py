"""A criterion that is being written, tried on the recorded runs of its test.

The Editor knows criteria as the texts of a form: those of the file, edited ones, and new ones. Here they meet the
workbench, also where the rest of the suite's file is not right.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from agenteval_tui.analysis.workbench import Workbench, WorkCriterion
from agenteval_tui.core.outcomes import COMPLETED
from agenteval_tui.grading.spec import CriterionSpec
from agenteval_tui.history.records import RunRow
from agenteval_tui.history.store import Store
from agenteval_tui.suites.load import LoadedSuite

MOST_RUNS = 200
"""How many of a test's runs can be stepped through; flips are counted over more."""


class Trial(Struct, frozen=True):
    """The workbench, on run number `at` of `runs` (newest first). Its last criterion is used for any new one."""

    bench: Workbench
    runs: tuple[RunRow, ...]
    at: int

    def number(self, source: int | None) -> int:
        """Which of the workbench's criteria is number `source` of the file; None: one that is not in it yet."""
        last = len(self.bench.criteria) - 1
        return source if source is not None and source < last else last

    def edited(self, source: int | None, spec: CriterionSpec) -> bool:
        """Does the edited criterion judge in another way than the one in the file?"""
        number = self.number(source)
        return self.bench.criteria[number].new or self.bench.spec(number).hash != spec.hash

    def on(self, run_id: str) -> Trial:
        """The same on this run, which may be none of those that are stepped through."""
        at = next((place for place, run in enumerate(self.runs) if run.id == run_id), self.at)
        return replace(self, bench=self.bench.with_changes(run_id=run_id), at=at)

    def as_edited(self, source: int | None, spec: CriterionSpec) -> Workbench:
        """A workbench in which the edit is what is saved: what comes next is compared with the edit."""
        number = self.number(source)
        work_criterion = self.bench.criteria[number]
        criteria = list(self.bench.criteria)
        criteria[number] = replace(work_criterion, spec=spec, text=spec.config_text, new=False)
        return self.bench.with_changes(criteria=tuple(criteria))


def open_trial(
    store: Store, loaded: LoadedSuite, test_id: str, saved: Sequence[CriterionSpec], run_id: str = ""
) -> Trial | None:
    """Read the test's runs; `saved` are its criteria as they are in the file. `run_id`: the run to be on, else the
    newest. None when the test has no run that could be judged."""
    rows = store.runs_of_test(loaded.key, test_id, MOST_RUNS)
    ended = tuple(row for row in rows if row.status in COMPLETED and not row.error_kind)
    if not ended:
        return None
    at = next((place for place, row in enumerate(ended) if row.id == run_id), 0)
    criteria = [WorkCriterion(spec, spec.config_text, index) for index, spec in enumerate(saved)]
    criteria.append(WorkCriterion(CriterionSpec("", "", ""), "", None, new=True))
    run = ended[at]
    bench = Workbench(
        store,
        run=run,
        transcript=store.transcript(run.id),
        stored=store.results(run.id),
        criteria=tuple(criteria),
        loaded=loaded,
        note="",
    )
    return Trial(bench, ended, at)


def with_new(bench: Workbench, spec: CriterionSpec) -> Workbench:
    """The workbench with one more criterion at the end, which is not in a file yet."""
    existing = tuple(criterion for criterion in bench.criteria if not criterion.new and not criterion.scratch)
    return bench.with_changes(criteria=(*existing, WorkCriterion(spec, spec.config_text, None, new=True)))


def spec_from(values: Mapping[str, str]) -> CriterionSpec:
    """The criterion that a form's texts make. A text that is not a number counts as not given: the form reports it."""
    return CriterionSpec(
        name=values.get("name", ""),
        prototype_class=values.get("prototype_class", ""),
        config=values.get("config_uxon", ""),
        description=values.get("description", ""),
        expected_value=values.get("expected_value") or None,
        weight=_number(values.get("weight", ""), 1.0) or 0.0,
        severity=values.get("severity") or "error",
        negate=bool(values.get("negate")),
        pass_threshold=_number(values.get("pass_threshold", ""), None),
    )


def _number(text: str, otherwise: float | None) -> float | None:
    try:
        return float(text)
    except ValueError:
        return otherwise
