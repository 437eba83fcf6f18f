"""A/B: the same tests and rows under two agents or configurations, and what may be said of the difference.

A case is a test, or a row of its dataset; its repetitions are not independent, so each case counts once: with the
difference of its pass rates. Errors are not verdicts, and are counted apart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Annotated

from msgspec import Meta
from msgspec.structs import replace

from agenteval_tui.analysis.permutation_test import detectable, difference_interval, sign_flip
from agenteval_tui.analysis.power import detectable_unpaired
from agenteval_tui.analysis.statistics import (
    FEW,
    SIGNIFICANT,
    Interval,
    PairedCounts,
    consistent_interval,
    counted,
    fisher_exact,
    interval_over,
    mcnemar_exact,
    mean,
    newcombe,
    paired_bootstrap,
    paired_counts,
)
from agenteval_tui.core import numbers
from agenteval_tui.core.document import Count, Document, one_of
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.groups import grouped
from agenteval_tui.core.outcomes import DECIDED
from agenteval_tui.history.records import RunRow
from agenteval_tui.runs.plan.model import ARMS, arm_label, arm_of

Case = tuple[str, str, int]
"""Suite key, test id, row."""
BothArms = tuple[Mapping[Case, Sequence[RunRow]], Mapping[Case, Sequence[RunRow]]]
"""The runs of each case under A, and those under B."""


class Arm(Document, frozen=True, kw_only=True):
    """One side. `n` runs were decided; `pass_rate` is the mean over cases with its 95 % interval, clustered by case
    (Wilson's, of the repetitions of a single case); None where there are too few.

    `tokens`, `cost` (US dollars) and `latency_ms` are means a run of what was measured; None: nothing was.
    """

    name: str
    cases: Count
    runs: Count
    n: Count
    passed: Count
    errors: Count
    undecided: Count
    pass_rate: float | None
    interval: Annotated[Interval | None, Meta(description="95 %; null for fewer than five cases")]
    tokens: float | None
    cost: float | None
    latency_ms: float | None


class MetricDelta(Document, frozen=True):
    """How much more a run takes under B than under A: the mean over `n` cases, with its 95 % interval."""

    difference: float
    interval: Interval | None  # None for few cases, and where all differ by the same: there is no spread
    n: Count


class TestDifference(Document, frozen=True, kw_only=True):
    """One test under both arms: decided runs, passed ones, and the mean difference over its `cases` (B minus A)."""

    __test__ = False  # not a test class, whatever its name says to pytest

    suite: str
    test: str
    name: str
    cases: Count
    n_a: Count
    passed_a: Count
    n_b: Count
    passed_b: Count
    difference: float


class ABResult(Document, frozen=True, kw_only=True):
    """Two arms and their difference, B minus A, over the `cases` that were decided under both.

    `difference` is the mean of the cases' differences of pass rates. `p_value` is McNemar's exact one where every case
    ran once (`test`: mcnemar), else that of flipped signs (sign-flip). Where the repetitions of a single case are
    compared (`test`: fisher), that speaks of this case alone and recommends nothing. `pairs` counts runs of the same
    test, row and repetition. `detectable`: the smallest difference that this many cases show four times in five.
    `recommended` is A or B only where the interval excludes 0 and chance is unlikely (p up to 0.05); else "".
    `conclusion` says it in a sentence. `unpaired`: cases decided under one arm only.
    """

    a: Arm
    b: Arm
    cases: Annotated[Count, Meta(description="tests and rows that were decided under both")]
    unpaired: Count
    difference: Annotated[float | None, Meta(description="B minus A, of pass rates, over cases")]
    interval: Annotated[Interval | None, Meta(description="95 %; null for fewer than five cases")]
    test: Annotated[
        str,
        one_of("mcnemar", "sign-flip", "fisher"),
        Meta(description="fisher: the repetitions of a single case"),
    ]
    one_case: Annotated[bool, Meta(description="the repetitions of one case are compared; others may differ")]
    p_value: float | None
    pairs: PairedCounts
    detectable: float | None
    recommended: Annotated[str, one_of("", "A", "B"), Meta(description="only where the interval excludes 0")]
    conclusion: str
    tokens: MetricDelta | None
    cost: MetricDelta | None
    latency_ms: MetricDelta | None
    tests: tuple[TestDifference, ...]


def compare_ab(rows: Iterable[RunRow], *, count_errors: bool = False) -> ABResult:
    """Compare the arms of one A/B execution (`PlanOptions.ab`). Raises `AgentevalError` when it has no two arms."""
    arms = grouped((arm_of(row.variation), row) for row in rows)
    sides = [arms.get(arm) for arm in ARMS]
    if not sides[0] or not sides[1]:
        raise AgentevalError("this execution does not compare two arms", fix="run with --ab NAME NAME")
    names = [arm[0].variation.partition(": ")[2] for arm in sides if arm]
    return compare_arms(sides[0], sides[1], names=(names[0], names[1]), count_errors=count_errors)


def compare_arms(
    a: Iterable[RunRow],
    b: Iterable[RunRow],
    *,
    names: tuple[str, str] = ARMS,
    count_errors: bool = False,
    seed: int = 0,
) -> ABResult:
    """Compare any runs with others of the same tests and rows. `count_errors`: an error counts as not passed."""
    by_case = (_by_case(a), _by_case(b))
    rates = [_rates(cases, count_errors) for cases in by_case]
    shared = [case for case in rates[0] if case in rates[1]]
    differences = [rates[1][case] - rates[0][case] for case in shared]
    # McNemar's test takes pairs of single runs: where a case was repeated, its runs are not independent.
    pairs, single = _pairs(by_case, shared, count_errors)
    alone = _counts_of_one_case(by_case, shared, count_errors)
    test, p_value, interval = "mcnemar" if single else "sign-flip", None, None
    least = detectable(differences)
    if alone is not None:
        (passed_a, n_a), (passed_b, n_b) = alone
        test, p_value = "fisher", fisher_exact(passed_a, n_a, passed_b, n_b)
        interval = newcombe(passed_a, n_a, passed_b, n_b) if min(n_a, n_b) >= FEW else None
        least = detectable_unpaired(n_a, n_b, max(passed_a / n_a, passed_b / n_b))
    elif differences:
        p_value = mcnemar_exact(pairs.only_a, pairs.only_b) if single else sign_flip(differences, seed=seed)
        interval = difference_interval(differences, seed=seed) if len(shared) >= FEW else None
    if interval is not None and p_value is not None:
        interval = consistent_interval(interval, p_value)
    arms = [_arm(name, cases, count_errors) for name, cases in zip(names, by_case, strict=True)]
    recommended = _recommended(interval, p_value) if alone is None else ""
    result = ABResult(
        a=arms[0],
        b=arms[1],
        cases=len(shared),
        unpaired=len(rates[0].keys() ^ rates[1].keys()),
        difference=mean(differences),
        interval=interval,
        test=test,
        p_value=p_value,
        pairs=pairs,
        detectable=least,
        recommended=recommended,
        conclusion="",
        tokens=_measure(by_case, lambda run: run.tokens, seed),
        cost=_measure(by_case, lambda run: run.cost, seed),
        latency_ms=_measure(by_case, lambda run: run.duration_ms, seed),
        tests=_tests(by_case, shared, rates, count_errors),
        one_case=alone is not None,
    )
    return replace(result, conclusion=_conclusion(names, result))


def _counts_of_one_case(
    by_case: BothArms,
    shared: Sequence[Case],
    count_errors: bool,
) -> tuple[tuple[int, int], tuple[int, int]] | None:
    """(passed, n) of the repetitions under each arm; None where there are several cases, or not two repetitions."""
    if len(shared) != 1:
        return None
    decided = [_decided(cases[shared[0]], count_errors) for cases in by_case]
    counts = [(sum(run.status == "passed" for run in runs), len(runs)) for runs in decided]
    return (counts[0], counts[1]) if min(n for _, n in counts) > 1 else None


def _by_case(rows: Iterable[RunRow]) -> dict[Case, list[RunRow]]:
    return grouped(((row.suite_key, row.test_id, row.row), row) for row in rows)


def _decided(runs: Sequence[RunRow], count_errors: bool) -> list[RunRow]:
    statuses = (*DECIDED, "error") if count_errors else DECIDED
    return [run for run in runs if run.status in statuses]


def _rates(cases: Mapping[Case, Sequence[RunRow]], count_errors: bool) -> dict[Case, float]:
    decided = {case: _decided(runs, count_errors) for case, runs in cases.items()}
    return {case: sum(run.status == "passed" for run in runs) / len(runs) for case, runs in decided.items() if runs}


def _pairs(
    by_case: BothArms,
    shared: Sequence[Case],
    count_errors: bool,
) -> tuple[PairedCounts, bool]:
    """The pairs by repetition, and whether every case is one pair."""
    outcomes: list[tuple[bool, bool]] = []
    for case in shared:
        sides = [{run.repetition: run for run in _decided(cases[case], count_errors)} for cases in by_case]
        both = sides[0].keys() & sides[1].keys()
        outcomes.extend((sides[0][n].status == "passed", sides[1][n].status == "passed") for n in sorted(both))
    once = all(len(_decided(cases[case], count_errors)) == 1 for case in shared for cases in by_case)
    return paired_counts(outcomes), once and len(outcomes) == len(shared)


def _arm(name: str, cases: Mapping[Case, Sequence[RunRow]], count_errors: bool) -> Arm:
    runs = [run for listed in cases.values() for run in listed]
    count = counted((run.status for run in runs), count_errors=count_errors)
    each = [counted((run.status for run in listed), count_errors=count_errors) for listed in cases.values()]
    tallies = [(entry.passed, entry.n) for entry in each if entry.n]
    return Arm(
        name=name,
        cases=len(cases),
        runs=len(runs),
        n=count.n,
        passed=count.passed,
        errors=count.errors,
        undecided=count.undecided,
        pass_rate=mean([passed / n for passed, n in tallies]),
        interval=interval_over(tallies),
        tokens=_mean_of(runs, lambda run: run.tokens),
        cost=_mean_of(runs, lambda run: run.cost),
        latency_ms=_mean_of(runs, lambda run: run.duration_ms),
    )


def _mean_of(runs: Iterable[RunRow], value: Callable[[RunRow], float | None]) -> float | None:
    # An answer from the history took nothing now.
    return mean([amount for run in runs if (amount := value(run)) is not None and not run.cached])


def _measure(
    by_case: BothArms,
    value: Callable[[RunRow], float | None],
    seed: int,
) -> MetricDelta | None:
    """Of the cases that were measured under both arms; None when fewer than two were."""
    differences = []
    for case in by_case[0].keys() & by_case[1].keys():
        a, b = (_mean_of(cases[case], value) for cases in by_case)
        if a is not None and b is not None:
            differences.append((case, b - a))
    listed = [difference for _, difference in sorted(differences)]  # a set has no order, and the draws must be the same
    middle = mean(listed)
    if middle is None or len(listed) < 2:
        return None
    return MetricDelta(middle, paired_bootstrap(listed, seed=seed) if len(listed) >= FEW else None, len(listed))


def _tests(
    by_case: BothArms,
    shared: Sequence[Case],
    rates: Sequence[Mapping[Case, float]],
    count_errors: bool,
) -> tuple[TestDifference, ...]:
    tests = []
    for cases in grouped((case[:2], case) for case in shared).values():
        sides = [_decided([run for case in cases for run in side_cases[case]], count_errors) for side_cases in by_case]
        first = by_case[0][cases[0]][0]
        (n_a, passed_a), (n_b, passed_b) = [(len(side), sum(run.status == "passed" for run in side)) for side in sides]
        difference = mean([rates[1][case] - rates[0][case] for case in cases])
        assert difference is not None
        tests.append(
            TestDifference(
                suite=first.suite_name,
                test=first.test_id,
                name=first.test_name,
                cases=len(cases),
                n_a=n_a,
                passed_a=passed_a,
                n_b=n_b,
                passed_b=passed_b,
                difference=difference,
            )
        )
    return tuple(tests)


def _recommended(interval: Interval | None, p_value: float | None) -> str:
    if interval is None or p_value is None or p_value > SIGNIFICANT or interval[0] <= 0 <= interval[1]:
        return ""
    return ARMS[interval[0] > 0]


def _conclusion(names: tuple[str, str], result: ABResult) -> str:
    difference, interval = result.difference, result.interval
    if difference is None:
        return "No conclusion: no case has a verdict in both arms."
    points = f"{100 * difference:+.1f} points"
    if interval is None:
        few = numbers.count(result.cases, "case")
        if result.one_case:
            few = f"{numbers.count(min(result.tests[0].n_a, result.tests[0].n_b), 'repetition')} of one case"
        return (
            f"No difference is shown: {points}; {few} {'is' if few == '1 case' else 'are'} too few and can't show any."
        )
    labels = [arm_label(arm, name) if arm != name else name for arm, name in zip(ARMS, names, strict=True)]
    low, high = numbers.points_interval(*interval)
    range_ = f"95 % interval {low} to {high}, {numbers.count(result.cases, 'case')}"
    sentence = f"No difference is shown: {points} ({range_})"
    is_shown = bool(_recommended(interval, result.p_value))
    if is_shown:
        better, other = (labels[1], labels[0]) if difference > 0 else (labels[0], labels[1])
        sentence = f"{better} passes {100 * abs(difference):.1f} points more often than {other} (B minus A: {range_})"
    if result.one_case:
        return f"{sentence}. This speaks of this case alone: other cases may differ."
    if is_shown:
        return f"{sentence}."
    if result.detectable is None or result.detectable >= 1:
        return f"{sentence}; so few cases can't show any."
    return f"{sentence}; this many cases can show {numbers.least_points(result.detectable)} or more."
