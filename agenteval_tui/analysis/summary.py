"""The figures of an execution: by test and overall, as `agenteval stats --json` prints them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from typing import Annotated

from msgspec import Meta, Struct

from agenteval_tui.analysis.statistics import (
    FEW,
    Spread,
    clustered_standard_error,
    counted,
    interval_over,
    mean,
    pass_at_k,
    pass_hat_k,
    pass_rate,
    spread,
    wilson,
)
from agenteval_tui.core.document import Count, Document, RowKey, Share
from agenteval_tui.core.groups import grouped
from agenteval_tui.history.records import RunRow, checks_not_made
from agenteval_tui.runs.confidence_sequence import confidence_sequence
from agenteval_tui.suites.row_keys import row_label
from agenteval_tui.suites.suite_names import path_ends


class TestKey(Struct, frozen=True):
    """The key of one test: the runs of one suite, test, variation and row are repetitions of each other."""

    __test__ = False  # not a test class, whatever its name says to pytest

    suite_key: str
    test_id: str
    variation: str
    row: int
    row_key: str = ""


def key_of(row: RunRow) -> TestKey:
    """The test that a run is a repetition of."""
    return TestKey(row.suite_key, row.test_id, row.variation, row.row, row.row_key)


class RateFigures(Document, frozen=True, kw_only=True):
    """How often runs passed, and what they took."""

    n: Annotated[Count, Meta(description="runs that passed or failed")]
    passed: Count
    errors: Annotated[Count, Meta(description="runs that ended in an error; not in n unless asked for")]
    undecided: Count
    checks_not_made: Annotated[Count, Meta(description="criteria in error, in runs that passed or failed")]
    pass_rate: Share | None
    interval: Annotated[
        tuple[Share, Share] | None,
        Meta(
            description="95 %: Wilson's for a test, the confidence sequence where it was stopped early; overall by "
            "test. null: fewer than five cases, or repetitions of a single one"
        ),
    ]
    pass_at_k: dict[str, Share]
    pass_hat_k: dict[str, Share]
    latency_ms: Spread
    tokens: Spread
    cost: Spread
    steps: Annotated[Spread, Meta(description="tool calls of a run")]


class TestFigures(RateFigures, frozen=True, kw_only=True):
    """A test, or a row or variation of one."""

    __test__ = False  # not a test class, whatever its name says to pytest

    id: str
    name: str
    suite: str
    test: str
    variation: str
    row: Count
    row_key: RowKey
    flaky: bool
    stopped_early: Annotated[
        bool,
        Meta(description="repetitions were left out once the rate was decided: pass@k and pass^k lean"),
    ]


class OverallFigures(RateFigures, frozen=True, kw_only=True):
    """All tests."""

    tests: Count
    standard_error: float | None
    tests_at_k: dict[str, Count]
    flaky: Count
    stopped_early: Annotated[Count, Meta(description="tests whose repetitions were stopped early")]


class ExecutionFigures(Struct, frozen=True):
    """The tests of an execution in the order of its plan, and their sum. `keys`: which test each one is."""

    tests: tuple[TestFigures, ...]
    overall: OverallFigures
    keys: tuple[TestKey, ...] = ()


def execution_stats(
    rows: Iterable[RunRow],
    *,
    count_errors: bool = False,
    steps: Mapping[str, int] | None = None,
    imported: bool = False,
) -> ExecutionFigures:
    """The figures of the runs of an execution.

    `n` counts the runs that passed or failed. Errors are counted separately and are not in `n`; with `count_errors`,
    they are in `n` and count as not passed. Runs without a verdict (queued, cancelled, skipped, waiting for a person)
    are in `undecided`. `checks_not_made` counts the criteria in error of the runs that have a verdict. A rate or a mean
    of no runs is null. Overall figures are means over the tests that have a decided run; pass@k and pass^k are means
    over the tests with at least k decided runs, and `tests_at_k` is the number of these tests. `steps` is the number of
    tool calls of each run by its id; without it, the figures of steps are null.

    Early stopping leaves repetitions out as `skipped`. Such a test is `stopped_early`, and its interval is the
    confidence sequence (`runs.confidence_sequence`), because Wilson's interval is too narrow if the answers decide when
    to stop.
    `imported`: the execution was imported, and its skipped runs are not graded yet.
    """
    groups = grouped((key_of(row), row) for row in rows)
    ids = _ids(list(groups))
    tests = tuple([_of_test(ids[key], key, runs, count_errors, steps or {}, imported) for key, runs in groups.items()])
    every = [row for runs in groups.values() for row in runs]
    return ExecutionFigures(tests, _overall(tests, every, steps or {}), tuple(groups))


def _ids(keys: Sequence[TestKey]) -> dict[TestKey, str]:
    """What tells each test from the others: its id; with variation, row and suite only where there are several.

    A suite is named by its file, and by as many of its folders as tell it from the others. Ids of imports may hold
    anything: what is still alike is numbered.
    """
    rows = {(key.suite_key, key.test_id) for key in keys if key.row > 0}
    names = {}
    for key in keys:
        name = key.test_id
        if (key.suite_key, key.test_id) in rows:
            name += f"#{row_label(key.row, key.row_key)}"
        if key.variation:
            name += f" [{key.variation}]"
        names[key] = name
    if len(set(names.values())) < len(keys):
        suites = path_ends({key.suite_key for key in keys})
        if len(suites) > 1:
            names = {key: f"{suites[key.suite_key]}: {name}" for key, name in names.items()}
    alike, by_name = set(names.values()), dict[str, TestKey]()
    for key, name in names.items():
        unique, number = name, 1
        # A number must not make a name that another test has by itself.
        while unique in by_name or (number > 1 and unique in alike):
            number += 1
            unique = f"{name} ({number})"
        by_name[unique] = key
    return {key: name for name, key in by_name.items()}


def _of_test(
    name: str,
    key: TestKey,
    runs: Sequence[RunRow],
    count_errors: bool,
    steps: Mapping[str, int],
    imported: bool,
) -> TestFigures:
    count = counted((run.status for run in runs), count_errors=count_errors)
    passed, n = count.passed, count.n
    # An import skips what has no verdict: that is no early stopping.
    stopped = not imported and any(run.status == "skipped" for run in runs)
    return TestFigures(
        id=name,
        name=runs[0].test_name,
        suite=runs[0].suite_name,
        test=key.test_id,
        variation=key.variation,
        row=key.row,
        row_key=key.row_key,
        n=n,
        passed=passed,
        errors=count.errors,
        undecided=count.undecided,
        checks_not_made=checks_not_made(runs),
        pass_rate=pass_rate(passed, n),
        interval=None if n < FEW else confidence_sequence(passed, n) if stopped else wilson(passed, n),
        pass_at_k={str(k): pass_at_k(passed, n, k) for k in range(1, n + 1)},
        pass_hat_k={str(k): pass_hat_k(passed, n, k) for k in range(1, n + 1)},
        flaky=count.flaky,
        stopped_early=stopped,
        **_measured(runs, steps),
    )


def _overall(tests: Sequence[TestFigures], runs: Sequence[RunRow], steps: Mapping[str, int]) -> OverallFigures:
    decided = [test for test in tests if test.n]
    rates = [test.passed / test.n for test in decided]
    ks = range(1, max((test.n for test in decided), default=0) + 1)
    at_k = {str(k): [test for test in decided if test.n >= k] for k in ks}
    return OverallFigures(
        tests=len(tests),
        n=sum(test.n for test in tests),
        passed=sum(test.passed for test in tests),
        errors=sum(test.errors for test in tests),
        undecided=sum(test.undecided for test in tests),
        checks_not_made=checks_not_made(runs),
        pass_rate=mean(rates),
        # A single test has one interval, also where it stopped early.
        interval=decided[0].interval
        if len(decided) == 1
        else interval_over([(test.passed, test.n) for test in decided]),
        standard_error=clustered_standard_error(rates),
        pass_at_k={k: fmean([test.pass_at_k[k] for test in enough]) for k, enough in at_k.items()},
        pass_hat_k={k: fmean([test.pass_hat_k[k] for test in enough]) for k, enough in at_k.items()},
        tests_at_k={k: len(enough) for k, enough in at_k.items()},
        flaky=sum(test.flaky for test in tests),
        stopped_early=sum(test.stopped_early for test in tests),
        **_measured(runs, steps),
    )


def _measured(runs: Sequence[RunRow], steps: Mapping[str, int]) -> dict[str, Spread]:
    """Medians and 95 % points of what was measured of the runs."""
    return {
        "latency_ms": spread([run.duration_ms for run in runs]),
        "tokens": spread([run.tokens for run in runs]),
        "cost": spread([run.cost for run in runs]),
        "steps": spread([steps.get(run.id) for run in runs]),
    }
