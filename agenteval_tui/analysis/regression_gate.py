"""A new execution against the baseline of its tests: what regressed, what could not be compared, and the gates.

Everything that says how an execution did against its baseline reads this: the exit code, the last lines of a run,
`--json`, JUnit, the comment on a pull request, Compare and the app. Tests in quarantine are compared and shown, and do
not gate.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import Annotated, Literal, get_args

from msgspec import Meta, Struct
from msgspec.structs import replace

from agenteval_tui.analysis.comparison import compare
from agenteval_tui.analysis.comparison_model import Comparison, RowChange, Side, TestChange, fails
from agenteval_tui.analysis.comparison_sides import baseline_side, execution_side, moved_suites, selections_of
from agenteval_tui.analysis.quarantine_gate import gating
from agenteval_tui.analysis.regressions import Regressions, regressions_of
from agenteval_tui.analysis.setup_changes import SetupChange
from agenteval_tui.core.document import Count, Document, one_of
from agenteval_tui.core.groups import grouped
from agenteval_tui.history.baselines import baselines, has_baselines
from agenteval_tui.history.comparison_queries import ComparedRun
from agenteval_tui.history.quarantines import ActiveQuarantines, active
from agenteval_tui.history.records import ExecutionRow
from agenteval_tui.history.store import Store

NoVerdictCause = Literal["errors", "waiting", "stopped", "not_in_baseline"]
_SAMPLES_ROWS = ("sample", "failed_from")


class GateOptions(Struct, frozen=True):
    """What must hold against the baseline.

    `max_drop` (0..1): the most that the pass rate may fall. `no_missing`: what the baseline decided is decided now.
    `no_new_failures`: tests and rows that the baseline does not have pass, too. None and False: not asked for.
    """

    no_regressions: bool = False
    max_drop: float | None = None
    no_missing: bool = False
    no_new_failures: bool = False

    def __bool__(self) -> bool:
        return self.no_regressions or self.max_drop is not None or self.no_missing or self.no_new_failures


class GateNotice(Document, frozen=True, kw_only=True):
    """Why a verdict could not be compared with the baseline, or not as it stands.

    A notice gates only if an option asks for it: `missing` does for `--no-missing`, `new_failure` for
    `--no-new-failures`.
    """

    code: Annotated[
        str,
        one_of(
            "not_run",
            "rows_not_run",
            "no_verdict",
            "new_test_fails",
            "new_rows_fail",
            "judged_differently",
            "asked_differently",
            "fewer_runs",
        ),
    ]
    suite: str
    test: str
    variation: str
    rows: Annotated[tuple[str, ...], Meta(description="of the test's dataset, as people call them")] = ()
    was: Annotated[Count | None, Meta(description="how many runs of the test the baseline has")] = None
    now: Annotated[Count | None, Meta(description="and how many this execution has")] = None
    cause: Annotated[
        str,
        one_of("", *get_args(NoVerdictCause)),
        Meta(description="why there is no verdict: waiting for a person, stopped before it ran or ended"),
    ] = ""
    changes: tuple[SetupChange, ...] = ()
    criteria: Annotated[tuple[str, ...], Meta(description="those that were edited, added or removed")] = ()

    @property
    def label(self) -> str:
        """The test's id, with the variation."""
        return f"{self.test} [{self.variation}]" if self.variation else self.test

    @property
    def missing(self) -> bool:
        """Whether the baseline decided something that this execution did not. Errors have an exit code of their own."""
        return self.code in ("not_run", "rows_not_run") or (
            self.code == "no_verdict" and self.cause in ("waiting", "stopped")
        )

    @property
    def new_failure(self) -> bool:
        """Whether a test or row that the baseline does not have failed."""
        return self.code in ("new_test_fails", "new_rows_fail")


class BaselineResult(Struct, frozen=True):
    """An execution against its baseline. `shown` is of all tests, `gating` without what is in quarantine.

    `regressions`, `regressed` (the tests that did) and `by_chance` (those that passed less often within what chance
    explains) are of what gates. `notices` say what could not be compared, or not as it stands. `selected`: the options
    by which tests were left out on purpose. `from_history`: how many answers of the execution were not asked for anew.
    """

    shown: Comparison
    gating: Comparison
    regressions: Regressions
    regressed: tuple[TestChange, ...]
    by_chance: tuple[TestChange, ...]
    notices: tuple[GateNotice, ...]
    selected: tuple[str, ...] = ()

    @property
    def drop(self) -> float:
        """By how much the pass rate of the tests that gate fell, 0..1."""
        rate = self.gating.overall.rate
        return max(0.0, -rate.difference) if rate is not None else 0.0

    @property
    def without_baseline(self) -> int:
        """How many tests have none."""
        return len(self.gating.in_state("added"))

    @property
    def from_history(self) -> int:
        """How many answers of the execution were taken from the history."""
        return sum(run.cached for run in self.gating.b.runs)

    def keeps_baseline(self) -> tuple[TestChange, ...]:
        """The tests whose baseline must not move to this execution by itself, because that would hide a fall: some case
        passes less often, or was decided then and is not now."""
        return tuple(test for test in self.shown.tests if any(map(is_worse, test.rows or (test,))))


def is_worse(case: TestChange | RowChange) -> bool:
    """Whether a case that had a verdict passes less often, or has none now."""
    was, now = case.was, case.now
    if was is None or not was.n:
        return False
    return now is None or not now.n or now.passed * was.n < was.passed * now.n


_result_now: ContextVar[tuple[str, BaselineResult | None] | None] = ContextVar("known_against", default=None)


@contextmanager
def with_cached_comparison(execution: str, result: BaselineResult | None) -> Iterator[None]:
    """While this lasts, how an execution did against its baseline is known: each of several reports asks again."""
    token = _result_now.set((execution, result))
    try:
        yield
    finally:
        _result_now.reset(token)


def compare_to_baseline(store: Store, execution: ExecutionRow) -> BaselineResult | None:
    """Compare an execution with the baseline of its tests; None where none has one that is older than it.

    None of an A/B execution, too: the runs of two agents together say nothing against those of one.
    """
    cached = _result_now.get()
    if cached is not None and cached[0] == execution.id:
        return cached[1]
    if execution.options.get("ab") or not has_baselines(store):
        return None
    side = execution_side(store, execution)
    selected = selections_of(execution)
    baseline = baseline_side(store, side.runs, whole=not selected)
    if baseline is None:
        return None
    # Set as a baseline itself, or long after it: nothing to be measured against.
    first = min((run.rowid for run in side.runs), default=0)
    runs = tuple(run for run in baseline.runs if run.rowid < first)
    if not {(run.suite_key, run.test_id) for run in runs} or not side.runs:
        return None
    baseline = replace(baseline, runs=runs, executions=tuple(dict.fromkeys(run.execution_id for run in runs)))
    quarantines = active(store)
    comparison = compare(store, baseline, side, quarantined=quarantines)
    gate = comparison
    # A second comparison only where something in quarantine ran.
    if any((run.suite_key, run.test_id) == key[:2] for run in side.runs for key in quarantines.by_key):
        sides = [
            replace(compared_side, runs=tuple(_that_gate(store, compared_side, quarantines)))
            for compared_side in (baseline, side)
        ]
        gate = compare(store, sides[0], sides[1])
    regressions = regressions_of(gate)
    fell = {case.test for case in regressions.by_chance} - regressions.tests
    rows_chosen = any(name in _SAMPLES_ROWS for name in selected)
    return BaselineResult(
        comparison,
        gating=gate,
        regressions=regressions,
        regressed=tuple(test for test in gate.tests if test.key in regressions.tests),
        by_chance=tuple(test for test in gate.tests if test.key in fell),
        notices=tuple(notice for test in gate.tests for notice in _notices(test, gate.runs, rows_chosen=rows_chosen)),
        selected=selected,
    )


def _notices(test: TestChange, runs: Mapping[str, ComparedRun], *, rows_chosen: bool) -> Iterator[GateNotice]:
    """What must be known of a test before its figures are believed."""
    notice = partial(GateNotice, suite=test.suite, test=test.test, variation=test.variation)
    was, now = test.was, test.now
    if now is None:
        yield notice(code="not_run")
        return
    if was is None:
        if fails(now):
            yield notice(code="new_test_fails")
        return
    if was.n and not now.n:
        yield notice(code="no_verdict", cause=_cause(runs[run].status for run in test.now_runs))
    elif now.n and not was.n:
        yield notice(code="no_verdict", cause="not_in_baseline")
    if not rows_chosen and (missing := [row.label for row in test.rows if row.now is None]):
        yield notice(code="rows_not_run", rows=tuple(missing))
    if new := [row.label for row in test.rows if row.was is None and fails(row.now)]:
        yield notice(code="new_rows_fail", rows=tuple(new))
    if was.n and now.n:
        by_cause = grouped(
            (_cause(_statuses(row, test, runs)), row.label)
            for row in test.rows
            if row.was is not None and row.was.n and row.now is not None and not row.now.n
        )
        for cause, rows in by_cause.items():
            yield notice(code="no_verdict", cause=cause, rows=tuple(rows))
        # With a dataset fewer runs are fewer rows, which is said of these.
        if not test.rows and now.runs < was.runs:
            yield notice(code="fewer_runs", was=was.runs, now=now.runs)
    if not test.comparable:
        edited = tuple(change.name for change in test.criteria if not change.comparable)
        yield notice(code="judged_differently", changes=test.judging_changes, criteria=edited)
    if test.asking_changes:
        yield notice(code="asked_differently", changes=test.asking_changes)


def _statuses(row: RowChange, test: TestChange, runs: Mapping[str, ComparedRun]) -> Iterator[str]:
    return (runs[name].status for name in test.now_runs if (runs[name].row_key or row.label) == row.case)


def _cause(statuses: Iterable[str]) -> NoVerdictCause:
    """Why runs with these endings have no verdict: the most frequent ending."""
    counts = Counter(statuses)
    stopped = sum(counts[status] for status in ("skipped", "cancelled", "queued", "running", "grading"))
    causes: dict[NoVerdictCause, int] = {
        "errors": counts["error"],
        "waiting": counts["needs_review"],
        "stopped": stopped,
    }
    return max(causes, key=lambda cause: causes[cause])


def _that_gate(store: Store, side: Side, held: ActiveQuarantines) -> Iterable[ComparedRun]:
    """The runs of a side that gate, with the outcomes that they have without quarantined criteria."""
    tests = {(key, test) for key, test, criterion in held.by_key if criterion}
    judged_again = [run for run in side.runs if (run.suite_key, run.test_id) in tests]
    gated: dict[str, tuple[str, float | None]] = {}
    by_execution = grouped((run.execution_id, run.rowid) for run in judged_again)
    for rowids in by_execution.values():
        for row in gating(store, store.run_rows(rowids), held).runs:
            gated[row.id] = row.status, row.score
    for run in side.runs:
        if held.test(run.suite_key, run.test_id) is not None:
            continue
        if (run.suite_key, run.test_id) in tests and run.id not in gated:
            continue  # all its criteria are in quarantine
        status, score = gated.get(run.id, (run.status, run.score))
        yield run if status == run.status else replace(run, status=status, score=score)


def has_baseline(store: Store, tests: Iterable[tuple[str, str]], suites: Mapping[str, str]) -> bool:
    """Whether any of the tests (suite key, test id) has a baseline. `suites`: names by key."""
    listed = baselines(store)
    moved = moved_suites(listed, suites)
    have = {(moved.get(baseline.suite_key, baseline.suite_key), baseline.test_id) for baseline in listed}
    return not have.isdisjoint(tests)
