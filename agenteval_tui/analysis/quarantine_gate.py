"""Which runs of an execution gate: those of quarantined tests, and what quarantined criteria say, do not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from agenteval_tui.analysis.summary import execution_stats
from agenteval_tui.grading import sentences
from agenteval_tui.grading.grade import verdict_of
from agenteval_tui.grading.results import CriterionResult
from agenteval_tui.history import quarantines
from agenteval_tui.history.quarantines import ActiveQuarantines, Quarantine
from agenteval_tui.history.records import RunRow
from agenteval_tui.history.store import Store

# What a criterion can have brought about. A run that was cancelled, or whose agent failed, is what it is.
_JUDGED = ("failed", "error", "needs_review")
_NO_FAILURE = ("passed", "skipped", "cancelled")


class QuarantineEffect(Struct, frozen=True):
    """A quarantine that kept something from gating: of `runs` runs, `not_passed` would have counted against it."""

    quarantine: Quarantine
    runs: int
    not_passed: int


class GatedRuns(Struct, frozen=True):
    """The runs that gate, each with the outcome that it has without quarantined criteria, and what was left out.

    `excused`: the ids of runs that did not pass and do not gate. `whys`: why a run did not pass where it still gates,
    without what its quarantined criteria say. `held`: the quarantines by test (suite key and id); that of a
    whole test stands alone, since it says all that those of its criteria could.
    """

    runs: tuple[RunRow, ...] = ()
    left_out: tuple[QuarantineEffect, ...] = ()
    excused: frozenset[str] = frozenset()
    whys: dict[str, str] = field(default_factory=dict)
    held: dict[tuple[str, str], tuple[Quarantine, ...]] = field(default_factory=dict)

    def of_run(self, run: RunRow) -> tuple[Quarantine, ...]:
        """The quarantines that hold for its test."""
        return self.held.get((run.suite_key, run.test_id), ())

    @property
    def counts(self) -> dict[str, int]:
        """How many runs ended in each way."""
        return dict(Counter(run.status for run in self.runs))

    @property
    def pass_rate(self) -> float | None:
        """The mean of their tests' pass rates; None when none is decided."""
        return execution_stats(self.runs).overall.pass_rate


def gating(store: Store, runs: Iterable[RunRow], quarantined: ActiveQuarantines) -> GatedRuns:
    """Take out of runs what is in quarantine. Reads the results of those runs only that have a quarantined criterion. A
    run of which every criterion is in quarantine does not gate, even if it passed: nothing is left that it shows."""
    rows: list[RunRow] = []
    out: dict[tuple[str, str, str], QuarantineEffect] = {}
    excused: set[str] = set()
    whys: dict[str, str] = {}
    held = _by_test(quarantined)

    def leave_out(quarantine: Quarantine, against: bool) -> None:
        before = out.get(quarantine.key, QuarantineEffect(quarantine, 0, 0))
        out[quarantine.key] = QuarantineEffect(quarantine, before.runs + 1, before.not_passed + against)

    thresholds: dict[str, dict[str, float | None]] = {}
    for run in runs:
        of_test = held.get((run.suite_key, run.test_id), ())
        if of_test and not of_test[0].criterion:
            leave_out(of_test[0], run.status in _JUDGED)
            if run.status not in _NO_FAILURE:
                excused.add(run.id)
            continue
        now = run
        if of_test and run.status in (*_JUDGED, "passed") and not run.error_kind:
            results = store.results(run.id)
            remaining = [
                result for result in results if all(result.criterion != quarantine.criterion for quarantine in of_test)
            ]
            if results and not remaining:
                for quarantine in sorted(of_test, key=lambda entry: entry.criterion):
                    leave_out(quarantine, run.status != "passed")
                if run.status != "passed":
                    excused.add(run.id)
                continue
            # What passed is not judged again: a quarantine excuses failures, and makes none.
            if len(remaining) < len(results) and run.status != "passed":
                # The tasks of an execution are read once, and only where one is needed.
                if run.execution_id not in thresholds:
                    thresholds[run.execution_id] = _thresholds(store, run.execution_id)
                now = _judged_by(remaining, run, thresholds[run.execution_id].get(run.id))
            if now.status == "passed":
                if run.status != "passed":
                    excused.add(run.id)
            elif now.why != run.why:
                whys[run.id] = now.why
        for quarantine in sorted(of_test, key=lambda entry: entry.criterion):
            leave_out(quarantine, now.status != run.status)
        rows.append(now)
    return GatedRuns(tuple(rows), tuple(out.values()), frozenset(excused), whys, held)


def gating_now(store: Store, runs: Sequence[RunRow]) -> GatedRuns:
    """The same by what is in quarantine now, as reports do: also a test that was put there after its run."""
    return gating(store, runs, quarantines.active(store))


def _by_test(quarantined: ActiveQuarantines) -> dict[tuple[str, str], tuple[Quarantine, ...]]:
    by_test: dict[tuple[str, str], tuple[Quarantine, ...]] = {}
    for quarantine in quarantined:
        test = quarantine.key[:2]
        whole = quarantined.test(*test)
        by_test[test] = (whole,) if whole is not None else (*by_test.get(test, ()), quarantine)
    return by_test


def _judged_by(criterion_results: Sequence[CriterionResult], run: RunRow, pass_threshold: float | None) -> RunRow:
    """The run with the outcome and score that it has by these results alone."""
    verdict = verdict_of(criterion_results, pass_threshold)
    return replace(run, status=str(verdict.outcome), score=verdict.score, why=sentences.verdict_sentence(verdict))


def _thresholds(store: Store, execution_id: str) -> dict[str, float | None]:
    return {run: stored.task.get("pass_threshold") for run, stored in store.tasks_of(execution_id).items()}
