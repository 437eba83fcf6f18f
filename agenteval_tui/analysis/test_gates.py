"""Which tests of an execution reached their gates, and which failed runs are excused because theirs did.

A gate is measured over all decided runs of a test in one variation: its repetitions and the rows of its dataset. Errors
are not verdicts and are left out, as in every rate. What is in quarantine does not gate.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from msgspec import Struct, field

from agenteval_tui.analysis.quarantine_gate import GatedRuns, gating_now
from agenteval_tui.analysis.statistics import FEW, ROUNDING, Z95, Interval, counted, rate_over_rows, reaches
from agenteval_tui.core.document import extended
from agenteval_tui.core.groups import grouped
from agenteval_tui.history.records import ExecutionRow, RunRow
from agenteval_tui.history.store import Store
from agenteval_tui.runs.confidence_sequence import confidence_sequence
from agenteval_tui.runs.plan.gates import Gate, StoredGates

GateOutcome = Literal["reached", "missed", "undecided"]
_EXCUSED = ("failed", "needs_review")


class GateVerdict(Struct, frozen=True):
    """How a test did against its gate: of `n` decided runs `passed` did.

    `waiting`: runs that wait for a person. `interval`: the 95 % interval of its pass rate (Wilson's; clustered by row
    where rows were repeated; the confidence sequence where repetitions stopped early).
    """

    suite_key: str
    suite_name: str
    test_id: str
    test_name: str
    variation: str
    gate: Gate
    passed: int
    n: int
    errors: int
    waiting: int
    interval: Interval
    stopped_early: bool = False

    @property
    def key(self) -> tuple[str, str, str]:
        """What it is the verdict of: the suite's key, the test, the variation."""
        return self.suite_key, self.test_id, self.variation

    @property
    def rate(self) -> float | None:
        """The share of the decided runs that passed; None when none was decided."""
        return self.passed / self.n if self.n else None

    @property
    def outcome(self) -> GateOutcome:
        """Whether its pass rate reaches the gate; "undecided" when no run was decided."""
        if self.rate is None:
            return "undecided"
        return "reached" if reaches(self.rate, self.gate.pass_rate) else "missed"

    @property
    def fails(self) -> bool:
        """Whether the exit code says that something failed: it was missed, or no one has judged any of its runs yet."""
        return self.outcome == "missed" or (self.outcome == "undecided" and self.waiting > 0)

    @property
    def shown_interval(self) -> Interval | None:
        """The interval of its rate; None: there are too few runs for one."""
        return self.interval if self.n >= FEW else None

    @property
    def sure(self) -> bool:
        """Whether n is large enough to decide: the interval lies on one side of the gate. Where all runs must pass, or
        none has to, there is nothing to estimate."""
        if self.n == 0:
            return False
        low, high = self.interval
        pass_rate = self.gate.pass_rate
        return pass_rate in (0, 1) or reaches(low, pass_rate) or high < pass_rate

    @property
    def needed(self) -> int | None:
        """How many runs would decide it if they passed as often as these; None: these do, or no number would."""
        pass_rate, rate = self.gate.pass_rate, self.rate
        if rate is None or self.sure or abs(rate - pass_rate) <= ROUNDING:
            return None
        # Wilson's interval holds exactly those shares from which the rate is not further than this.
        return max(math.ceil(Z95**2 * pass_rate * (1 - pass_rate) / (rate - pass_rate) ** 2), self.n + 1)


class TestGates(Struct, frozen=True):
    """The verdicts on the gates of an execution in the order of its plan, and what follows from them.

    `excused`: the ids of runs that did not pass, of tests that reached their gates.
    """

    __test__ = False  # not a test class, whatever its name says to pytest

    verdicts: tuple[GateVerdict, ...] = ()
    excused: frozenset[str] = frozenset()
    by_test: Mapping[tuple[str, str, str], GateVerdict] = field(default_factory=dict)

    @property
    def fails(self) -> bool:
        """Whether a gate was missed."""
        return any(verdict.fails for verdict in self.verdicts)

    def without_excused(self, counts: Mapping[str, int], runs: Iterable[RunRow]) -> dict[str, int]:
        """How many runs ended how (`counts`, of `runs`), without those that a gate excuses."""
        out = Counter(run.status for run in runs if run.id in self.excused) if self.excused else {}
        return {status: number - out.get(status, 0) for status, number in counts.items()}

    def of_run(self, run: RunRow) -> GateVerdict | None:
        """The verdict on the gate of its test; None: it has none, or is in quarantine."""
        return self.by_test.get((run.suite_key, run.test_id, run.variation))

    def missed_by(self, run: RunRow) -> GateVerdict | None:
        """The same, where the gate was missed."""
        gate_verdict = self.of_run(run)
        return gate_verdict if gate_verdict is not None and gate_verdict.fails else None


def judge_gates(gates: StoredGates, runs: Iterable[RunRow]) -> TestGates:
    """Measure runs against these gates. `runs`: those that gate, with their outcomes then (`GatedRuns.runs`)."""
    if not gates:
        return TestGates()
    groups = grouped(((run.suite_key, run.test_id, run.variation), run) for run in runs)
    verdicts, excused = [], set()
    for (suite_key, test_id, _), alike in groups.items():
        gate = gates.of(suite_key, test_id)
        if gate is None:
            continue
        verdict = _verdict(gate, alike)
        verdicts.append(verdict)
        if verdict.outcome == "reached":
            excused |= {run.id for run in alike if run.status in _EXCUSED}
    return TestGates(tuple(verdicts), frozenset(excused), {verdict.key: verdict for verdict in verdicts})


def gates_now(
    store: Store, execution: ExecutionRow, runs: Iterable[RunRow], held: GatedRuns | None = None
) -> TestGates:
    """How an execution did against its gates. `held`: what of `runs` is in quarantine, if it is known already."""
    gates = StoredGates(execution.options)
    if not gates:
        return TestGates()
    return judge_gates(gates, (held or gating_now(store, list(runs))).runs)


def gates_of_test(store: Store, last: Sequence[RunRow]) -> tuple[GateVerdict, ...]:
    """The verdicts on one test, a variation each, in the newest execution of its last runs (newest first)."""
    if not last:
        return ()
    execution = store.execution(last[0].execution_id)
    if not StoredGates(execution.options):
        return ()
    runs = [run for run in last if run.execution_id == execution.id]
    if len(runs) == len(last):  # there may be more of them
        key = last[0].suite_key, last[0].test_id
        runs = [run for run in store.runs_of_execution(execution.id) if (run.suite_key, run.test_id) == key]
    else:
        runs.sort(key=lambda run: run.position)
    return gates_now(store, execution, runs).verdicts


def _verdict(gate: Gate, runs: list[RunRow]) -> GateVerdict:
    rows = grouped(((run.row, run.row_key), run.status) for run in runs)
    whole = counted(run.status for run in runs)
    stopped = any(run.status == "skipped" for run in runs)
    # The answers decided when to stop: any other interval would be too narrow.
    if stopped and len(rows) == 1:
        interval = confidence_sequence(whole.passed, whole.n)
    else:
        interval = rate_over_rows([(tally.passed, tally.n) for tally in map(counted, rows.values())])
    first = runs[0]
    return extended(
        GateVerdict,
        first,
        gate=gate,
        passed=whole.passed,
        n=whole.n,
        errors=whole.errors,
        waiting=sum(run.status == "needs_review" for run in runs),
        interval=interval,
        stopped_early=stopped,
    )


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
    # Only then: the execution's own counts are of all of its runs.
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
