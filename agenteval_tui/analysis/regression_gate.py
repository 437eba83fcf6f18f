"""A new execution against the baseline of its tests: what regressed, and whether the gates are reached.

A test that always passed in the baseline has regressed when a run of it fails now. One that passed only sometimes falls
by chance as well: it has regressed when it passes less often than chance explains (p up to 0.05, Fisher's exact test
over repetitions, a paired one over the rows of a dataset). Tests in quarantine are compared and shown, and do not gate.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

from msgspec import Struct
from msgspec.structs import replace

from agenteval_tui.analysis.comparison import compare
from agenteval_tui.analysis.comparison_model import Comparison, Side, TestChange
from agenteval_tui.analysis.comparison_sides import baseline_side, execution_side
from agenteval_tui.analysis.quarantine_gate import gating
from agenteval_tui.history.baselines import baselines_of, has_baselines
from agenteval_tui.history.comparison_queries import ComparedRun
from agenteval_tui.history.quarantines import ActiveQuarantines, active
from agenteval_tui.history.records import ExecutionRow
from agenteval_tui.history.store import Store

SIGNIFICANT = 0.05


class GateOptions(Struct, frozen=True):
    """What must hold against the baseline: `no_regressions`; `max_drop` (0..1): the most that the pass rate may fall.

    None and False: not asked for.
    """

    no_regressions: bool = False
    max_drop: float | None = None

    def __bool__(self) -> bool:
        return self.no_regressions or self.max_drop is not None


class BaselineResult(Struct, frozen=True):
    """An execution against its baseline. `shown` is of all tests, `gating` without what is in quarantine.

    `regressed` are the tests that gate, `by_chance` those that passed less often within what chance explains.
    `without_baseline` counts tests that have none, `undecided` those that ended in errors on one side.
    """

    shown: Comparison
    gating: Comparison
    regressed: tuple[TestChange, ...]
    by_chance: tuple[TestChange, ...]
    without_baseline: int
    undecided: int

    @property
    def drop(self) -> float:
        """By how much the pass rate of the tests that gate fell, 0..1."""
        rate = self.gating.overall.rate
        return max(0.0, -rate.difference) if rate is not None else 0.0


def has_regressed(change: TestChange) -> bool:
    """Whether a test that passes less often than before has regressed, or may have fallen by chance."""
    if change.state != "worse" or change.was is None:
        return False
    if change.was.passed == change.was.n:
        return True
    return change.p_value is not None and change.p_value <= SIGNIFICANT


_known: ContextVar[tuple[str, BaselineResult | None] | None] = ContextVar("known_against", default=None)


@contextmanager
def with_cached_comparison(execution: str, result: BaselineResult | None) -> Iterator[None]:
    """While this lasts, how an execution did against its baseline is known: each of several reports asks again."""
    token = _known.set((execution, result))
    try:
        yield
    finally:
        _known.reset(token)


def compare_to_baseline(
    store: Store, execution: ExecutionRow, *, quarantined: ActiveQuarantines | None = None
) -> BaselineResult | None:
    """Compare an execution with the baseline of its tests; None where none has one that is older than it.

    None of an A/B execution, too: the runs of two agents together say nothing against those of one.
    """
    known = _known.get()
    if known is not None and known[0] == execution.id and quarantined is None:
        return known[1]
    if execution.options.get("ab") or not has_baselines(store):
        return None
    side = execution_side(store, execution)
    baseline = baseline_side(store, side.runs)
    if baseline is None:
        return None
    # Set as a baseline itself, or long after it: nothing to be measured against.
    first = min(run.rowid for run in side.runs)
    runs = tuple(run for run in baseline.runs if run.rowid < first)
    if not runs:
        return None
    baseline = replace(baseline, runs=runs, executions=tuple(dict.fromkeys(run.execution_id for run in runs)))
    held = active(store) if quarantined is None else quarantined
    shown = compare(store, baseline, side, quarantined=held)
    gate = shown
    if any((run.suite_key, run.test_id) == key[:2] for run in side.runs for key in held.by_key):
        sides = [replace(one, runs=tuple(_that_gate(store, one, held))) for one in (baseline, side)]
        gate = compare(store, sides[0], sides[1])
    fell = gate.in_state("worse")
    return BaselineResult(
        shown,
        gate,
        tuple(one for one in fell if has_regressed(one)),
        tuple(one for one in fell if not has_regressed(one)),
        len(gate.in_state("added")),
        len(gate.in_state("undecided")),
    )


def _that_gate(store: Store, side: Side, held: ActiveQuarantines) -> Iterable[ComparedRun]:
    """The runs of a side that gate, with the outcomes that they have without quarantined criteria."""
    tests = {(key, test) for key, test, criterion in held.by_key if criterion}
    judged_again = [run for run in side.runs if (run.suite_key, run.test_id) in tests]
    said: dict[str, tuple[str, float | None]] = {}
    by_execution: dict[str, list[int]] = {}
    for run in judged_again:
        by_execution.setdefault(run.execution_id, []).append(run.rowid)
    for rowids in by_execution.values():
        for row in gating(store, store.run_rows(rowids), held).runs:
            said[row.id] = row.status, row.score
    for run in side.runs:
        if held.test(run.suite_key, run.test_id) is not None:
            continue
        status, score = said.get(run.id, (run.status, run.score))
        yield run if status == run.status else replace(run, status=status, score=score)


def tests_without_baseline(store: Store, tests: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """Those of the tests (suite key, test id) that have no baseline."""
    known = baselines_of(store, tests)
    return [one for one in dict.fromkeys(tests) if one not in known]
