"""Which runs of an execution gate: those of quarantined tests, and what quarantined criteria say, do not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from agenteval_tui.analysis.summary import execution_stats
from agenteval_tui.grading import sentences
from agenteval_tui.grading.grade import verdict_of

if TYPE_CHECKING:
    from agenteval_tui.history.quarantines import Quarantine, Quarantined
    from agenteval_tui.history.records import RunRow
    from agenteval_tui.history.store import Store

# What a criterion can have brought about. A run that was cancelled, or whose agent failed, is what it is.
_JUDGED = ("failed", "error", "needs_review")


class LeftOut(Struct, frozen=True):
    """A quarantine that kept something from gating: of `runs` runs, `not_passed` would have counted against it."""

    quarantine: Quarantine
    runs: int
    not_passed: int


class Gating(Struct, frozen=True):
    """The runs that gate, each with the outcome that it has without quarantined criteria, and what was left out."""

    runs: tuple[RunRow, ...]
    left_out: tuple[LeftOut, ...]

    @property
    def counts(self) -> dict[str, int]:
        """How many of them ended how."""
        return dict(Counter(run.status for run in self.runs))

    @property
    def pass_rate(self) -> float | None:
        """The mean of their tests' pass rates; None when none is decided."""
        rate: float | None = execution_stats(self.runs)["overall"]["pass_rate"]
        return rate


def gating(store: Store, runs: Iterable[RunRow], quarantined: Quarantined) -> Gating:
    """Take out of runs what is in quarantine. Reads the results of those runs only that did not
    pass and have a quarantined criterion."""
    kept: list[RunRow] = []
    out: dict[tuple[str, str, str], LeftOut] = {}

    def leave_out(quarantine: Quarantine, against: bool) -> None:
        before = out.get(quarantine.key, LeftOut(quarantine, 0, 0))
        out[quarantine.key] = LeftOut(quarantine, before.runs + 1, before.not_passed + against)

    thresholds: dict[str, dict[str, float | None]] = {}
    for run in runs:
        whole = quarantined.test(run.suite_key, run.test_id)
        if whole is not None:
            leave_out(whole, run.status in _JUDGED)
            continue
        names = quarantined.criteria_of(run.suite_key, run.test_id)
        if not names:
            kept.append(run)
            continue
        if run.status not in _JUDGED or run.error_kind:
            kept.append(run)
            for name in sorted(names):
                leave_out(quarantined.by_key[run.suite_key, run.test_id, name], False)
            continue
        if run.execution_id not in thresholds:
            thresholds[run.execution_id] = _thresholds(store, run.execution_id)
        now = exclude_quarantined(store, run, names, thresholds[run.execution_id].get(run.id))
        for name in sorted(names):
            leave_out(quarantined.by_key[run.suite_key, run.test_id, name], now.status != run.status)
        kept.append(now)
    return Gating(tuple(kept), tuple(out.values()))


def exclude_quarantined(store: Store, run: RunRow, names: frozenset[str], pass_threshold: float | None) -> RunRow:
    """The run with the outcome and score that it has without these criteria."""
    results = store.results(run.id)
    left = [one for one in results if one.criterion not in names]
    if len(left) == len(results):
        return run
    verdict = verdict_of(left, pass_threshold)
    return replace(run, status=str(verdict.outcome), score=verdict.score, why=sentences.of_verdict(verdict))


def _thresholds(store: Store, execution_id: str) -> dict[str, float | None]:
    return {run: stored.task.get("pass_threshold") for run, stored in store.tasks_of(execution_id).items()}
