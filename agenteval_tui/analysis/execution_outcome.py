"""How an execution did, as its gates count it: without what is in quarantine, and what the gates of tests excuse."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from agenteval_tui.analysis.quarantine_gate import GatedRuns, gating_now
from agenteval_tui.analysis.test_gates import TestGates, gates_now
from agenteval_tui.history.records import ExecutionRow, RunRow
from agenteval_tui.history.store import Store


class ExecutionOutcome(Struct, frozen=True):
    """How many runs that gate ended how, and the rate of those that passed (None: none is decided).

    `gating`: which runs gate; `all_left_out`: none does. `gates`: how the tests that have a gate did.
    """

    counts: Mapping[str, int]
    pass_rate: float | None
    gating: GatedRuns
    gates: TestGates

    @property
    def all_left_out(self) -> bool:
        """Whether quarantines leave no run that gates."""
        return bool(self.gating.left_out) and not self.gating.runs


def outcome_now(store: Store, row: ExecutionRow, runs: Sequence[RunRow], pass_rate: float | None) -> ExecutionOutcome:
    """The outcome by the gates and quarantines of now. `pass_rate` is that of all `runs` of the execution."""
    gating = gating_now(store, runs)
    gates = gates_now(store, row, runs, gating)
    if gating.left_out:
        return ExecutionOutcome(gates.without_excused(gating.counts, gating.runs), gating.pass_rate, gating, gates)
    counts = {
        "passed": row.passed,
        "failed": row.failed,
        "error": row.errors,
        "needs_review": row.needs_review,
        "skipped": row.skipped,
        "cancelled": row.cancelled,
    }
    return ExecutionOutcome(gates.without_excused(counts, runs), pass_rate, gating, gates)
