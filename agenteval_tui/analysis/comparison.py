"""Two sides compared, by test and criterion, and all together; what got worse first.

A *case* is a test, or a row of its dataset (what it is, wherever it stands), in one variation. The k-th repetition of
a case on the left goes with the k-th on the right: repetitions are interchangeable, so any pairing that does not look
at outcomes is as good. Where one side is another variation or another agent, variations are not told apart. Errors are
not verdicts, and are left out.

Suites whose keys differ belong together where that is without doubt: a file that was moved, or imports of two files.
The key of an import is `import:FORMAT:FILE`. Two imports of one eval have other files, so their suites are told by
their tests: the ids that both have, and what was asked in them.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import product
from typing import Any

from msgspec.structs import replace

from agenteval_tui.analysis.code_changes import FileChange, file_changes
from agenteval_tui.analysis.comparison_model import (
    LEAST_CHANGE,
    ORDER,
    Comparison,
    CriterionChange,
    MetricChange,
    Overall,
    PairedSuites,
    RowChange,
    Side,
    State,
    SummaryMetric,
    Tally,
    TestChange,
    TestKey,
    state_of,
)
from agenteval_tui.analysis.permutation_test import detectable, difference_interval, sign_flip
from agenteval_tui.analysis.power import detectable_paired, detectable_unpaired
from agenteval_tui.analysis.setup_changes import JUDGING, Pair, SetupChange, setup_changes
from agenteval_tui.analysis.statistics import (
    FEW,
    Z95,
    Interval,
    PairedCounts,
    clustered_standard_error,
    consistent_interval,
    fisher_exact,
    mcnemar_exact,
    mean,
    newcombe,
    normal_below,
    paired_bootstrap,
    paired_counts,
    spread_out,
)
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.groups import grouped
from agenteval_tui.core.outcomes import DECIDED
from agenteval_tui.grading.results import MetricResult, Outcome
from agenteval_tui.history.comparison_queries import (
    ComparedCriterion,
    ComparedRun,
    criteria_of,
    questions_of,
    variables_of,
)
from agenteval_tui.history.quarantines import ActiveQuarantines
from agenteval_tui.history.records import IMPORTED, is_imported
from agenteval_tui.history.store import Store
from agenteval_tui.suites.row_keys import ID, row_label

Case = tuple[str, str, str, str]
"""Suite key, test id, variation, and what tells its row from others ("" without a dataset)."""
RunsByCase = Mapping[Case, Sequence[ComparedRun]]
RunLists = dict[Case, list[ComparedRun]]
Rows = Mapping[str, Sequence[ComparedRun]]
"""The runs of one side by what tells their row from others."""
Results = Mapping[int, Sequence[ComparedCriterion]]
"""What the criteria said, by the run's row number."""
Variables = Mapping[int, Mapping[str, Any]]
"""Of plans (by number): the variables of their runs."""
Questions = Mapping[int, tuple[str, str]]
"""By plan: the beginning of the prompt, and the variables as JSON."""
Setups = Callable[[Mapping[TestKey, Sequence[Pair]]], Mapping[TestKey, tuple[SetupChange, ...]]]
MOST_RUNS = 20
"""Runs of each side whose evidence is read: the first ones."""
MOST_PAIRS = 50
"""Pairs of runs that flipped which a test keeps, for attribution."""
_NOT_ASKED = ("", "{}")
_DRAWS = 400_000  # of the bootstrap of what was measured, at most
_MANY = 400
"""Cases from which on the normal distribution of the mean, and of flipped signs, is taken: drawing gives the same then,
seconds later."""


def compare(
    store: Store, a: Side, b: Side, *, quarantined: ActiveQuarantines | None = None, seed: int = 0
) -> Comparison:
    """Compare two sides of the history; `seed` is that of the bootstrap. No transcript is read."""
    results = [_read(store, side) for side in (a, b)]
    variables = store.read(lambda connection: variables_of(connection, _edited_plans(a, b)))
    plans = [sorted({run.plan for runs in side.values() for run in runs}) for side in unpaired_imports(a, b)]
    questions = store.read(lambda connection: questions_of(connection, plans[0] + plans[1])) if all(plans) else None
    comparison = compare_runs(
        a,
        b,
        results[0],
        results[1],
        quarantined=quarantined,
        seed=seed,
        variables=variables,
        questions=questions,
        setups=partial(setup_changes, store),
    )
    return replace(comparison, files=_changed_files(store, a, b))


def compare_runs(
    a: Side,
    b: Side,
    results_a: Results,
    results_b: Results,
    *,
    quarantined: ActiveQuarantines | None = None,
    seed: int = 0,
    variables: Variables | None = None,
    questions: Questions | None = None,
    setups: Setups | None = None,
) -> Comparison:
    """The same of what was read already. `variables`: of plans, by number, where rows may have been edited;
    `questions`: of those of imports of different files; `setups` finds out what was set up differently."""
    by_variation = not _other_variations(a, b)
    paired = (*a.moved, *paired_suites(a, b, questions))
    renamed = {pair.was: pair.now for pair in paired}
    sides: tuple[RunLists, RunLists] = (_by_case(a.runs, by_variation, renamed), _by_case(b.runs, by_variation, {}))
    cases_of: dict[TestKey, list[Case]] = {}
    # The right side first: tests are shown in its order, and what only the left has comes behind.
    for case in (*sides[1], *sides[0]):
        cases = cases_of.setdefault(case[:3], [])
        # A case of both sides is met twice. The doubles that this leaves go below.
        if case not in cases[-1:]:
            cases.append(case)
    pairs = {key: _first_pairs(cases, sides) for key, cases in cases_of.items()}
    # Of two agents, variations or versions it is known what was set up differently: that is what is compared.
    setup = setups(pairs) if setups is not None and by_variation and "version" not in (a.kind, b.kind) else {}
    tests = [
        _test_change(
            key,
            list(dict.fromkeys(cases)),
            sides=sides,
            results=(results_a, results_b),
            quarantined=quarantined,
            seed=seed,
            variables=variables or {},
            setup=setup.get(key, ()),
        )
        for key, cases in cases_of.items()
    ]
    # Within a state what changed most comes first, then as the tests were run.
    ranked = sorted(tests, key=lambda change: (ORDER.index(change.state), -_weight(change)))
    checks = (_checks_not_made(a, results_a), _checks_not_made(b, results_b))
    runs_by_id = {run.id: run for side in (a, b) for run in side.runs}
    return Comparison(
        a,
        b=b,
        overall=overall(sides, seed=seed),
        tests=tuple(ranked),
        by_variation=by_variation,
        checks_not_made=checks,
        runs=runs_by_id,
        paired=paired,
    )


def _changed_files(store: Store, a: Side, b: Side) -> tuple[FileChange, ...]:
    """The files of the agents' projects that differ between two executions, as far as that is known."""
    # Of several executions on a side it is not known whose files a test ran with.
    if a.executions == b.executions or not len(a.executions) == len(b.executions) == 1:
        return ()
    programs = store.programs_of((*a.executions, *b.executions))
    was, now = (programs.get(side.executions[0], {}) for side in (a, b))
    pairs = {(was[agent], now[agent]) for agent in was.keys() & now.keys() if was[agent] != now[agent]}
    changes = {change for pair in pairs for change in file_changes(*map(store.program_files, pair))}
    return tuple(sorted(changes, key=lambda change: change.name))


def _read(store: Store, side: Side) -> Results:
    rowids = [run.rowid for run in side.runs]
    criteria = store.read(lambda connection: list(criteria_of(connection, rowids)))
    return grouped((criterion.run, criterion) for criterion in criteria)


def _edited_plans(a: Side, b: Side) -> list[int]:
    """The plans of rows with an id that were planned otherwise on the other side."""
    # By the suite's name, as its file may have moved. Two suites may have one name: then the plans of both.
    was, now = (
        grouped(
            ((run.suite_name, run.test_id, run.variation, run.row_key), run.plan)
            for run in side.runs
            if run.row_key.startswith(ID)
        )
        for side in (a, b)
    )
    edited = [{*was[key], *now[key]} for key in was.keys() & now.keys() if {*was[key]} != {*now[key]}]
    return sorted(set[int]().union(*edited))


def _other_variations(a: Side, b: Side) -> bool:
    """Whether the sides are told apart by agent or variation, so that variations can't be matched by their names."""
    # Then one side is one variation, and the other another: their names differ on purpose.
    if {"agent", "variation"} & {a.kind, b.kind}:
        return True
    names = [{run.variation for run in side.runs} for side in (a, b)]
    return bool(names[0] and names[1]) and not names[0] & names[1]


def _by_case(runs: Iterable[ComparedRun], by_variation: bool, renamed: Mapping[str, str]) -> RunLists:
    by_case: RunLists = {}
    for run in runs:
        variation = run.variation if by_variation else ""
        key = (renamed.get(run.suite_key, run.suite_key), run.test_id, variation, run.row_case)
        by_case.setdefault(key, []).append(run)
    for listed in by_case.values():
        # In one order on both sides, so that repetitions are paired with their like.
        listed.sort(key=lambda run: (run.variation, run.repetition, run.rowid))
    return by_case


def _checks_not_made(side: Side, results: Results) -> int:
    """How many checks of a side could not run although its runs have a verdict."""
    decided = (run.rowid for run in side.runs if run.status in DECIDED)
    return sum(result.outcome == "error" for run in decided for result in results.get(run, ()))


def _weight(change: TestChange) -> float:
    return abs(change.difference or 0.0) or abs(change.score or 0.0)


def _test_change(
    key: TestKey,
    cases: Sequence[Case],
    sides: tuple[RunLists, RunLists],
    results: tuple[Results, Results],
    quarantined: ActiveQuarantines | None,
    seed: int,
    variables: Variables,
    setup: tuple[SetupChange, ...],
) -> TestChange:
    both = [case for case in cases if case in sides[0] and case in sides[1]]
    # Rows that only one side has are not a change of the test; if no row is shared, all of them are shown.
    runs = [[run for case in (both or cases) for run in side.get(case, ())] for side in sides]
    first = (runs[1] or runs[0])[0]
    # How often it passed is said of all its rows: a row that was edited until it fails is a new one.
    whole = [[run for case in cases for run in side.get(case, ())] for side in sides]
    tallies = [tally(side) if side else None for side in whole]
    differences = _differences(both, sides, lambda run: float(run.status == "passed"))
    difference = mean(differences)
    scores = _differences(both, sides, lambda run: run.score)
    criteria = _criterion_changes(runs, results)
    rows = _rows_of_test(cases, sides, variables) if any(case[3] for case in cases) else ()
    judged = any(change.kind in JUDGING for change in setup)
    state = _state(tallies, difference, mean(scores), criteria, rows, judged)
    flipped = _flipped(both, sides, worse=state != "better") if state in ("worse", "better", "mixed") else ()
    return TestChange(
        suite_key=key[0],
        suite=first.suite_name,
        test=first.test_id,
        name=first.test_name,
        variation=key[2],
        state=state,
        cases=len(both) or len(cases),
        was=tallies[0],
        now=tallies[1],
        difference=difference,
        score=mean(scores),
        p_value=_p_value(both, sides, differences, seed),
        criteria=criteria,
        pair=flipped[0] if flipped else _any_pair(both, sides),
        pairs=flipped,
        quarantine=quarantined.reason(*key[:2]) if quarantined is not None else "",
        was_runs=tuple(run.id for run in runs[0]),
        now_runs=tuple(run.id for run in runs[1]),
        rows=rows,
        setup=setup,
    )


def _first_pairs(cases: Iterable[Case], sides: tuple[RunLists, RunLists]) -> list[Pair]:
    """Of each case that both sides have, the first run of each."""
    return [(sides[0][case][0], sides[1][case][0]) for case in cases if case in sides[0] and case in sides[1]]


def tally(runs: Sequence[ComparedRun]) -> Tally:
    """The figures of some runs."""
    decided = [run for run in runs if run.status in DECIDED]
    # An answer from the history took what it took another time.
    paid = [run for run in runs if not run.cached]
    return Tally(
        runs=len(runs),
        n=len(decided),
        passed=sum(run.status == "passed" for run in decided),
        errors=sum(run.status == "error" for run in runs),
        score=mean([run.score for run in decided if run.score is not None]),
        latency_ms=mean([run.duration_ms for run in paid if run.duration_ms is not None]),
        tokens=mean([run.tokens for run in paid if run.tokens is not None]),
        cost=mean([run.cost for run in paid if run.cost is not None]),
    )


def _state(
    tallies: Sequence[Tally | None],
    difference: float | None,
    score: float | None,
    criteria: Sequence[CriterionChange],
    rows: Sequence[RowChange],
    judged_differently: bool,
) -> State:
    was, now = tallies
    if was is None or now is None:
        return "added" if was is None else "removed"
    if difference is None:
        return "undecided"
    # A mean of floats that should be 0 may differ from it in its last digits.
    if abs(difference) > 1e-9:
        return "worse" if difference < 0 else "better"
    if any(row.state in ("worse", "better") for row in rows):
        return "mixed"
    # In whole numbers: equal rates are equal.
    if was.rate is not None and now.rate is not None and now.passed * was.n < was.passed * now.n:
        return "worse"  # by rows that only one side has
    if score is not None and abs(score) > LEAST_CHANGE + 1e-12:
        return "score"
    return (
        "criteria"
        if judged_differently or any(change.state != "same" or change.edited for change in criteria)
        else "same"
    )


def _rows_of_test(
    cases: Sequence[Case], sides: tuple[RunLists, RunLists], variables: Variables
) -> tuple[RowChange, ...]:
    was, now = ({case[3]: side[case] for case in cases if case in side} for side in sides)
    tallies = {
        key: (tally(was[key]) if key in was else None, tally(now[key]) if key in now else None) for key in (*now, *was)
    }
    return row_changes(was, now, tallies, variables)


def _value(runs: Sequence[ComparedRun], value: Callable[[ComparedRun], float | None]) -> float | None:
    return mean([number for run in runs if run.status in DECIDED and (number := value(run)) is not None])


def _differences(
    cases: Sequence[Case], sides: tuple[RunLists, RunLists], value: Callable[[ComparedRun], float | None]
) -> list[float]:
    """Now minus was of each case that was decided on both sides."""
    differences = []
    for case in cases:
        was, now = _value(sides[0][case], value), _value(sides[1][case], value)
        if was is not None and now is not None:
            differences.append(now - was)
    return differences


def _p_value(
    cases: Sequence[Case], sides: tuple[RunLists, RunLists], differences: Sequence[float], seed: int
) -> float | None:
    if len(cases) == 1:
        counts = [tally(side[cases[0]]) for side in sides]
        # Repetitions of one case are no pairs: Fisher's test compares the two rates. One run against one says nothing.
        if min(side.n for side in counts) == 0 or max(side.n for side in counts) == 1:
            return None
        return fisher_exact(counts[0].passed, counts[0].n, counts[1].passed, counts[1].n)
    if not differences:
        return None
    # Each case was one run on each side: McNemar's test counts those that flipped.
    if all(difference in (-1.0, 0.0, 1.0) for difference in differences):
        moved = paired_counts((difference < 0, difference > 0) for difference in differences)
        return mcnemar_exact(moved.only_a, moved.only_b)
    return sign_flip(differences, seed=seed)


def _flipped(cases: Sequence[Case], sides: tuple[RunLists, RunLists], *, worse: bool) -> tuple[tuple[str, str], ...]:
    """Pairs of runs that show the change: those that are paired, else any two of the same case."""
    statuses = ("passed", "failed") if worse else ("failed", "passed")
    paired, other = [], []
    for case in cases:
        left = [run for run in sides[0][case] if run.status == statuses[0]]
        right = [run for run in sides[1][case] if run.status == statuses[1]]
        paired += [
            (was.id, now.id)
            for was, now in zip(sides[0][case], sides[1][case], strict=False)
            if (was.status, now.status) == statuses
        ]
        if left and right:
            other.append((left[0].id, right[0].id))
        # Thousands of rows may have flipped; a few pairs are enough to find out who did it.
        if len(paired) >= MOST_PAIRS:
            break
    return tuple((paired or other)[:MOST_PAIRS])


def _any_pair(cases: Sequence[Case], sides: tuple[RunLists, RunLists]) -> tuple[str, str] | None:
    return next(((sides[0][case][0].id, sides[1][case][0].id) for case in cases), None)


def _criterion_changes(
    runs: Sequence[Sequence[ComparedRun]], results: tuple[Results, Results]
) -> tuple[CriterionChange, ...]:
    was, now = (
        grouped((result.name, result) for run in side for result in of_run.get(run.rowid, ()))
        for side, of_run in zip(runs, results, strict=True)
    )
    renamed = _renamed(was, now)
    changes = []
    for name, listed in now.items():
        before = renamed.get(name, name)
        changes.append(_criterion_change(name, was.get(before, ()), listed, before if before != name else ""))
    gone = [name for name in was if name not in now and name not in renamed.values()]
    changes += [_criterion_change(name, was[name], (), "") for name in gone]
    if not runs[0] or not runs[1]:
        # A test that only one side has: its criteria came or went with it.
        return tuple(changes)
    return tuple(sorted(changes, key=lambda change: ORDER.index(change.state)))


def _renamed(
    was: Mapping[str, Sequence[ComparedCriterion]], now: Mapping[str, Sequence[ComparedCriterion]]
) -> dict[str, str]:
    """The new names of criteria that were called otherwise on the left: the same version, and neither name twice."""
    gone = {_versions(listed): name for name, listed in was.items() if name not in now and all(_versions(listed))}
    came = {_versions(listed): name for name, listed in now.items() if name not in was and all(_versions(listed))}
    return {name: gone[versions] for versions, name in came.items() if versions and versions in gone}


def _criterion_change(
    name: str, was: Sequence[ComparedCriterion], now: Sequence[ComparedCriterion], was_name: str
) -> CriterionChange:
    tallies = [criterion_tally(side) if side else None for side in (was, now)]
    return CriterionChange(
        name=name,
        was_name=was_name,
        state=state_of(*tallies),
        was=tallies[0],
        now=tallies[1],
        versions_was=_versions(was),
        versions_now=_versions(now),
    )


def criterion_tally(results: Sequence[ComparedCriterion]) -> Tally:
    """The figures of one criterion's results."""
    decided = [result for result in results if result.outcome in DECIDED]
    return Tally(
        runs=len(results),
        n=len(decided),
        passed=sum(result.outcome == "passed" for result in decided),
        errors=sum(result.outcome == "error" for result in results),
        score=mean([result.score for result in decided if result.score is not None]),
    )


def _versions(results: Iterable[ComparedCriterion]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(result.hash for result in results if result.hash))


def overall(sides: tuple[RunsByCase, RunsByCase], *, seed: int = 0) -> Overall:
    """The figures over all cases. Each case counts once, however often it ran."""
    figures = _overall(sides, seed)
    if figures.rate is None or figures.rate.interval is None or figures.p_value is None:
        return figures
    interval = consistent_interval(figures.rate.interval, figures.p_value)
    return replace(figures, rate=replace(figures.rate, interval=interval))


def _overall(sides: tuple[RunsByCase, RunsByCase], seed: int) -> Overall:
    rates = [_means(side, lambda run: float(run.status == "passed"), DECIDED) for side in sides]
    shared = [case for case in rates[0] if case in rates[1]]
    left_out = len(rates[0].keys() ^ rates[1].keys())
    if not shared:
        return _unpaired(sides, left_out)
    if len(shared) == 1 and (alone := _of_one_case(sides, shared[0], left_out, seed)) is not None:
        return alone
    differences = [rates[1][case] - rates[0][case] for case in shared]
    pairs = _pairs(sides, shared)
    once = all(len(_decided(side[case])) == 1 for case in shared for side in sides) and pairs.n == len(shared)
    interval = difference_interval(differences, seed=seed) if len(shared) >= FEW else None
    rate = SummaryMetric(
        _mean([rates[0][c] for c in shared]),
        _mean([rates[1][c] for c in shared]),
        _mean(differences),
        interval,
        len(shared),
    )
    if once:
        test, p_value = "mcnemar", mcnemar_exact(pairs.only_a, pairs.only_b)
        least = detectable_paired(pairs.n, min(pairs.only_a, pairs.only_b) / pairs.n)
    else:
        test, p_value, least = "sign-flip", _sign_flip(differences, seed=seed), detectable(differences)
        # No pass rate can move so far: then there is nothing to say.
        least = None if least is None or least >= 1 else least
    figures = Overall(
        rate=rate,
        test=test,
        p_value=p_value,
        n=len(shared),
        detectable=least,
        pairs=pairs,
        left_out=left_out,
    )
    return replace(figures, **_measures(sides, seed))


def _of_one_case(sides: tuple[RunsByCase, RunsByCase], case: Case, left_out: int, seed: int) -> Overall | None:
    """The repetitions of a single case: those of one side against those of the other. None: a side has not two."""
    decided = [_decided(side[case]) for side in sides]
    (passed_a, n_a), (passed_b, n_b) = ((sum(run.status == "passed" for run in runs), len(runs)) for runs in decided)
    fewest = min(n_a, n_b)
    if fewest < 2:
        return None
    rates = passed_a / n_a, passed_b / n_b
    interval = newcombe(passed_a, n_a, passed_b, n_b) if fewest >= FEW else None
    figures = Overall(
        rate=SummaryMetric(*rates, rates[1] - rates[0], interval, 1),
        test="fisher",
        p_value=fisher_exact(passed_a, n_a, passed_b, n_b),
        n=fewest,
        detectable=detectable_unpaired(n_a, n_b, rates[0]),
        pairs=_pairs(sides, [case]),
        left_out=left_out,
        one_case=True,
    )
    return replace(figures, **_measures(sides, seed))


def _measures(sides: tuple[RunsByCase, RunsByCase], seed: int) -> dict[str, SummaryMetric | None]:
    """What was measured, by the field of `Overall`."""
    return {
        "score": _measure(sides, lambda run: run.score, seed, DECIDED),
        "latency_ms": _measure(sides, lambda run: None if run.cached else run.duration_ms, seed),
        "tokens": _measure(sides, lambda run: None if run.cached else run.tokens, seed),
        "cost": _measure(sides, lambda run: None if run.cached else run.cost, seed),
    }


def paired_suites(a: Side, b: Side, questions: Questions | None = None) -> tuple[PairedSuites, ...]:
    """The suites that belong together though their keys differ; only where that is without doubt."""
    left, right = ({run.suite_key: run.suite_name for run in side.runs} for side in (a, b))
    paired = []
    for key, name in left.items():
        others = [other for other, called in right.items() if called == name and other not in left]
        alike = [own for own, called in left.items() if called == name]
        if key not in right and len(others) == 1 and len(alike) == 1:
            paired.append(PairedSuites(key, others[0]))
    used = {pair.was for pair in paired} | {pair.now for pair in paired}
    was, now = unpaired_imports(a, b)
    # The surest pairs first: a weaker hint can't take a suite away from them.
    for rank in (2, 1, 0):
        pairs = [
            (own, other)
            for own, other in product(was, now)
            if not {own, other} & used and _rank(was[own], now[other], questions or {}) == rank
        ]
        for own, other in pairs:
            # Neither has another one that it could belong to as surely.
            if sum(own == each for each, _ in pairs) == sum(other == each for _, each in pairs) == 1:
                paired.append(PairedSuites(own, other, "tests", rank > 0))
                used |= {own, other}
    return tuple(paired)


def unpaired_imports(a: Side, b: Side) -> tuple[dict[str, list[ComparedRun]], dict[str, list[ComparedRun]]]:
    """By key, the runs of each side's imports of files that the other side has not got."""
    keys_a, keys_b = ({run.suite_key for run in side.runs} for side in (a, b))
    lacking_a, lacking_b = (set(filter(is_imported, keys)) for keys in (keys_b - keys_a, keys_a - keys_b))
    return (
        grouped((run.suite_key, run) for run in a.runs if run.suite_key in lacking_b),
        grouped((run.suite_key, run) for run in b.runs if run.suite_key in lacking_a),
    )


def _rank(was: Sequence[ComparedRun], now: Sequence[ComparedRun], questions: Questions) -> int:
    """How surely two imports are of one eval. 2: of one format, and a test was asked the same; 1: the latter; 0: of
    one format, and a test has the same id; -1: nothing says so."""
    cases, others = _plans_by_case(was), _plans_by_case(now)
    if not cases.keys() & others.keys():
        return -1
    of_one_format = _import_format(was[0].suite_key) == _import_format(now[0].suite_key)
    for case in cases.keys() & others.keys():
        if any(_asked_alike(plan, other, questions) for plan, other in product(cases[case], others[case])):
            return 2 if of_one_format else 1
    return 0 if of_one_format else -1


def _plans_by_case(runs: Sequence[ComparedRun]) -> dict[tuple[str, str], set[int]]:
    plans: dict[tuple[str, str], set[int]] = {}
    for run in runs:
        plans.setdefault((run.test_id, run.row_case), set()).add(run.plan)
    return plans


def _asked_alike(plan: int, other: int, questions: Questions) -> bool:
    if plan == other:
        return True
    pairs = zip(questions.get(plan, ()), questions.get(other, ()), strict=False)
    return any(was == now and was not in _NOT_ASKED for was, now in pairs)


def _import_format(key: str) -> str:
    return key.removeprefix(IMPORTED).partition(":")[0]


def _unpaired(sides: tuple[RunsByCase, RunsByCase], left_out: int) -> Overall:
    """No case in common: the runs of one side against those of the other, of the tests that both decided (their rows
    are others)."""
    # Of tests that only one side decided nothing is said: that would be two different things side by side.
    tests = [{case[:3] for case, runs in side.items() if _decided(runs)} for side in sides]
    both = tests[0] & tests[1]
    decided = [[run for case, runs in side.items() if case[:3] in both for run in _decided(runs)] for side in sides]
    counts = [(sum(run.status == "passed" for run in runs), len(runs)) for runs in decided]
    (passed_a, n_a), (passed_b, n_b) = counts
    cases = [sum(bool(case[:3] in both and _decided(runs)) for case, runs in side.items()) for side in sides]
    interval = newcombe(passed_a, n_a, passed_b, n_b) if min(cases) >= FEW else None
    unpaired = PairedCounts(0, 0, 0, 0)
    if not n_a or not n_b:
        return Overall(
            rate=None, test="fisher", n=min(n_a, n_b), p_value=None, detectable=None, pairs=unpaired, left_out=left_out
        )
    rates = passed_a / n_a, passed_b / n_b
    return Overall(
        rate=SummaryMetric(*rates, rates[1] - rates[0], interval, min(n_a, n_b)),
        test="fisher",
        p_value=fisher_exact(passed_a, n_a, passed_b, n_b),
        n=min(n_a, n_b),
        detectable=detectable_unpaired(n_a, n_b, rates[0]),
        pairs=unpaired,
        left_out=left_out,
    )


def _decided(runs: Sequence[ComparedRun]) -> list[ComparedRun]:
    return [run for run in runs if run.status in DECIDED]


def _pairs(sides: tuple[RunsByCase, RunsByCase], shared: Sequence[Case]) -> PairedCounts:
    return paired_counts(
        (own.status == "passed", other.status == "passed")
        for case in shared
        for own, other in zip(sides[0][case], sides[1][case], strict=False)
        if own.status in DECIDED and other.status in DECIDED
    )


def _means(
    side: RunsByCase, value: Callable[[ComparedRun], float | None], statuses: Sequence[str] = ()
) -> dict[Case, float]:
    means = {}
    for case, runs in side.items():
        middle = mean(
            [number for run in runs if (not statuses or run.status in statuses) and (number := value(run)) is not None]
        )
        if middle is not None:
            means[case] = middle
    return means


def _measure(
    sides: tuple[RunsByCase, RunsByCase],
    value: Callable[[ComparedRun], float | None],
    seed: int,
    statuses: Sequence[str] = (),
) -> SummaryMetric | None:
    """How the mean over the cases changed that were measured on both sides; None when none was."""
    means = [_means(side, value, statuses) for side in sides]
    shared = [case for case in means[0] if case in means[1]]
    if not shared:
        return None
    differences = [means[1][case] - means[0][case] for case in shared]
    return SummaryMetric(
        _mean([means[0][case] for case in shared]),
        _mean([means[1][case] for case in shared]),
        _mean(differences),
        _interval(differences, seed=seed),
        len(shared),
    )


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


def _interval(differences: Sequence[float], seed: int) -> Interval | None:
    """The 95 % interval of a mean: the paired bootstrap's; of very many cases the normal distribution's. None
    of few cases, and where no two cases differ by more than rounding: a point would promise certainty."""
    n = len(differences)
    if n < FEW:
        return None
    if n >= _MANY:
        return _normal(differences) if spread_out(differences) else None
    return paired_bootstrap(differences, seed=seed, draws=_DRAWS)


def _normal(differences: Sequence[float]) -> Interval:
    middle, error = _mean(differences), clustered_standard_error(differences)
    assert error is not None
    return middle - Z95 * error, middle + Z95 * error


def _sign_flip(differences: Sequence[float], seed: int) -> float:
    """`sign_flip`; of very many cases by the sum's normal distribution, which flipped signs have then."""
    moved = [difference for difference in differences if difference]
    if len(moved) < _MANY:
        return sign_flip(differences, seed=seed)
    return 2 * normal_below(-abs(math.fsum(moved)) / math.hypot(*moved))


def row_changes(
    was: Rows, now: Rows, tallies: Mapping[str, tuple[Tally | None, Tally | None]], variables: Variables
) -> tuple[RowChange, ...]:
    """Each row of both sides in the order of the right side's file; those that are only on the left come last.

    A row moved when it left the order of the others: rows between which one was inserted did not.
    """
    places = [{key: runs[-1].row for key, runs in side.items()} for side in (was, now)]
    moved = _moved(places[0], places[1])
    ordered = sorted(places[1], key=places[1].__getitem__)
    ordered += sorted((key for key in places[0] if key not in places[1]), key=places[0].__getitem__)
    changes = []
    for key in ordered:
        left, right = was.get(key, ()), now.get(key, ())
        last = (right or left)[-1]
        changes.append(
            RowChange(
                key=last.row_key,
                label=row_label(last.row, last.row_key),
                state=state_of(*tallies[key]),
                was=tallies[key][0],
                now=tallies[key][1],
                place_was=places[0].get(key),
                place_now=places[1].get(key),
                moved=key in moved,
                content=_edited(left, right, variables),
                pair=_pair_of_row(left, right),
            )
        )
    return tuple(changes)


def _moved(was: Mapping[str, int], now: Mapping[str, int]) -> set[str]:
    """The fewest rows to remove so that the others are in the same order (longest increasing
    subsequence, by patience sorting)."""
    shared = sorted((key for key in was if key in now), key=was.__getitem__)
    ends: list[int] = []
    last: list[int] = []
    before: list[int] = []
    for number, key in enumerate(shared):
        at = bisect_left(ends, now[key])
        before.append(last[at - 1] if at else -1)
        if at == len(ends):
            ends.append(now[key])
            last.append(number)
        else:
            ends[at], last[at] = now[key], number
    stays = set()
    number = last[-1] if last else -1
    while number >= 0:
        stays.add(shared[number])
        number = before[number]
    return set(shared) - stays


def _edited(left: Sequence[ComparedRun], right: Sequence[ComparedRun], variables: Variables) -> tuple[str, ...]:
    """The variables that are others now; none where both sides were planned alike."""
    if not left or not right or left[-1].plan == right[-1].plan:
        return ()
    was, now = variables.get(left[-1].plan), variables.get(right[-1].plan)
    if was is None or now is None:
        return ()
    missing = object()
    names = dict.fromkeys((*now, *was))
    return tuple(name for name in names if was.get(name, missing) != now.get(name, missing))


def _pair_of_row(left: Sequence[ComparedRun], right: Sequence[ComparedRun]) -> tuple[str, str] | None:
    """Two runs that show the change, the first of each where none does."""
    if not left or not right:
        return None
    for was, now in zip(left, right, strict=False):
        if was.status != now.status:
            return was.id, now.id
    other = next((now for now in right if now.status != left[0].status), right[0])
    return left[0].id, other.id


def metric_changes(store: Store, change: TestChange, *, most: int = MOST_RUNS) -> dict[str, tuple[MetricChange, ...]]:
    """By criterion: its metrics as they were and are, over the first runs of each side; unchanged ones too."""
    was = _metrics_by_criterion(store, change.was_runs[:most])
    now = _metrics_by_criterion(store, change.now_runs[:most])
    before = {criterion.name: criterion.was_name or criterion.name for criterion in change.criteria}
    changes = {}
    for name in dict.fromkeys([*now, *was]):
        if name not in now and name in before.values():
            continue  # it goes by another name now
        left, right = was.get(before.get(name, name), {}), now.get(name, {})
        changes[name] = tuple(
            MetricChange(key[0], key[1], _metric_tally(left.get(key)), _metric_tally(right.get(key)))
            for key in dict.fromkeys([*right, *left])
        )
    return changes


def _metrics_by_criterion(store: Store, runs: Sequence[str]) -> dict[str, dict[tuple[str, str], list[MetricResult]]]:
    by_criterion: dict[str, dict[tuple[str, str], list[MetricResult]]] = {}
    for run in runs:
        try:
            results = store.results(run)
        except AgentevalError:
            continue  # deleted in the meantime
        for result in results:
            metrics = by_criterion.setdefault(result.criterion, {})
            for metric in result.metrics:
                metrics.setdefault((metric.name, metric.type), []).append(metric)
    return by_criterion


def _metric_tally(results: Sequence[MetricResult] | None) -> Tally | None:
    if not results:
        return None
    decided = [result for result in results if result.outcome in DECIDED and not result.neutral]
    return Tally(
        runs=len(results),
        n=len(decided),
        passed=sum(result.outcome is Outcome.PASSED for result in decided),
        errors=sum(result.outcome is Outcome.ERROR for result in results),
        score=mean([result.score for result in decided if result.score is not None]),
    )
