"""Which cases, tests and executions got worse, and what chance may excuse. The rules are explained in docs/compare.md.

A *case* is a test, or a row of its dataset, in one variation. Only cases with a verdict on both sides take part.

- **Broke**: a case that passed every time and never passes now. Chance excuses that only in a suite whose cases have
  been seen to vary so much that it was to be expected (`_chance_explains_broken`).
- **Fell**: a case, a test (over its rows) or everything together passes less often than chance explains, by an exact
  test over the cases in question (`stratified_exact`).

An execution in which nothing changed is called a regression in at most 5 % of cases, however many tests it has: the
5 % are divided among the three questions (`OVERALL`, `PARTS`, `BROKEN`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Annotated

from msgspec import Meta, Struct
from msgspec.structs import replace

from agenteval_tui.analysis.comparison_model import Comparison, TestKey
from agenteval_tui.analysis.statistics import SIGNIFICANT, normal_below
from agenteval_tui.core.document import Document, RowKey, Share, one_of
from agenteval_tui.core.groups import grouped

_EXACT = 1_500
"""How much the number of passes may vary in all for the exact distribution; the normal one says the same from there
on, and takes no time."""


class PassCounts(Struct, frozen=True):
    """How often one case passed, of how many runs with a verdict: before, and now."""

    was_passed: int
    was_n: int
    now_passed: int
    now_n: int

    @property
    def passed(self) -> int:
        """Passes on both sides together."""
        return self.was_passed + self.now_passed

    @property
    def least(self) -> int:
        """The fewest passes that could be now, with as many on both sides together."""
        return max(0, self.passed - self.was_n)

    @property
    def most(self) -> int:
        """The most passes that could be now."""
        return min(self.now_n, self.passed)

    @property
    def varied(self) -> bool:
        """Whether it was seen to pass and to fail on one side."""
        return 0 < self.was_passed < self.was_n or 0 < self.now_passed < self.now_n

    def chance_of(self, now_passed: int) -> float:
        """The probability of that many passes now, if nothing changed: hypergeometric, since every run of both sides is
        then as likely to be one of those that passed."""
        ways = math.comb(self.now_n, now_passed) * math.comb(self.was_n, self.passed - now_passed)
        return ways / math.comb(self.was_n + self.now_n, self.passed)

    @property
    def least_p_value(self) -> float:
        """The smallest one-sided p-value that these many passes could give, however they fall."""
        return self.chance_of(self.least)


def stratified_exact(cases: Sequence[PassCounts]) -> float | None:
    """The one-sided p-value of "these cases pass less often now"; None where no case varied.

    Each case is a stratum. Given how often it passed on both sides together, its passes now are hypergeometric if
    nothing changed; their sum over the cases is what is tested. With one run on each side it is McNemar's exact test,
    with one case Fisher's.
    Source: J. J. Gart, "Point and interval estimation of the common odds ratio in the combination of 2 x 2 tables with
    fixed marginals", Biometrika 57 (1970); the exact form of the test by Cochran, Mantel and Haenszel.
    """
    varied = [case for case in cases if case.least < case.most]
    if not varied:
        return None
    # Counted from the least that is possible: the distribution begins at 0.
    passes = sum(case.now_passed - case.least for case in varied)
    if sum(case.most - case.least for case in varied) > _EXACT:
        return _normal(varied)
    distribution = [1.0]
    for case in varied:
        chances = [case.chance_of(now) for now in range(case.least, case.most + 1)]
        distribution = convolve(distribution, chances, passes + 1)
    return min(1.0, math.fsum(distribution[: passes + 1]))


def convolve(left: Sequence[float], right: Sequence[float], length: int) -> list[float]:
    """The distribution of the sum of two independent numbers from 0 on, as far as its first `length` values."""
    combined = [0.0] * min(length, len(left) + len(right) - 1)
    for number, share in enumerate(left[:length]):
        for more, chance in enumerate(right[: length - number]):
            combined[number + more] += share * chance
    return combined


def at_least(number: int, chances: Iterable[float]) -> float:
    """The probability that at least this many of independent events happen, of which each has its own chance."""
    fewer = [1.0]
    for chance in chances:
        fewer = convolve(fewer, [1 - chance, chance], number)
    return max(0.0, 1 - math.fsum(fewer[:number]))


def _normal(cases: Sequence[PassCounts]) -> float:
    """The same by the normal distribution, with the continuity correction."""
    expected = variance = 0.0
    for case in cases:
        runs = case.was_n + case.now_n
        expected += case.now_n * case.passed / runs
        variance += case.was_n * case.now_n * case.passed * (runs - case.passed) / (runs**2 * (runs - 1))
    distance = sum(case.now_passed for case in cases) + 0.5 - expected
    return normal_below(distance / math.sqrt(variance))


OVERALL = 0.025
"""The largest one-sided p-value at which everything together fell: what the tests that are shown beside it, which are
two-sided, call a difference."""
PARTS = 0.005
"""The same for single cases and tests, divided by the number of those that can differ from chance at all."""
BROKEN = 0.03
"""How likely it may be that a case breaks by chance before chance can be an excuse."""
_REPETITIONS = 5
"""Runs of a case on each side before chance can be an excuse for it."""
_VARYING = 20
"""Cases that have been seen to vary before chance can be an excuse: a few never excuse the others."""


class Case(Struct, frozen=True):
    """How often a case passed on both sides. `row`: the key of its row; "" for a test without a dataset."""

    test: TestKey
    row: str
    counts: PassCounts

    @property
    def broke(self) -> bool:
        """Whether it passed every time and never does now."""
        return self.counts.was_passed == self.counts.was_n and self.counts.now_passed == 0

    @property
    def fell(self) -> bool:
        """Whether it passes less often than before."""
        counts = self.counts
        return counts.now_passed * counts.was_n < counts.was_passed * counts.now_n


class Regression(Document, frozen=True, kw_only=True):
    """A regression of a case, of a test over its rows, or of everything together."""

    scope: Annotated[
        str, one_of("case", "test", "overall"), Meta(description="a case is a test, or a row of its dataset")
    ]
    cause: Annotated[
        str,
        one_of("broke", "fell"),
        Meta(description="broke: passed every time, and never now; fell: less often than chance explains"),
    ]
    suite_key: Annotated[str, Meta(description='"": everything together')] = ""
    test: str = ""
    variation: str = ""
    row: RowKey = ""
    p_value: Annotated[
        Share | None,
        Meta(description="one-sided for exact: how often chance alone gives a fall as deep; null: it broke"),
    ] = None
    method: Annotated[
        str,
        one_of("", "exact", "sign-flip", "mcnemar", "fisher"),
        Meta(
            description='the test of p_value; all but exact are the two-sided one of the whole comparison; "": it broke'
        ),
    ] = ""

    @property
    def key(self) -> TestKey:
        """The test, as a comparison names it."""
        return self.suite_key, self.test, self.variation


class Regressions(Struct, frozen=True):
    """What regressed, and the cases that passed less often `by_chance`. `p_value`: of everything together, one-sided;
    None where no case varied."""

    found: tuple[Regression, ...] = ()
    by_chance: tuple[Case, ...] = ()
    p_value: float | None = None

    @property
    def tests(self) -> frozenset[TestKey]:
        """The tests that regressed, by themselves or in a case."""
        return frozenset(regression.key for regression in self.found if regression.scope != "overall")

    @property
    def overall(self) -> Regression | None:
        """Everything together, if it fell."""
        return next((regression for regression in self.found if regression.scope == "overall"), None)

    def rows_of(self, test: TestKey) -> frozenset[str]:
        """The rows of a test that regressed."""
        return frozenset(
            regression.row for regression in self.found if regression.key == test and regression.scope == "case"
        )

    def p_value_of(self, test: TestKey) -> float | None:
        """The smallest p-value of what fell in a test; None where it broke, or did not regress."""
        values = [
            regression.p_value for regression in self.found if regression.key == test and regression.p_value is not None
        ]
        return min(values, default=None)


def regressions_of(comparison: Comparison) -> Regressions:
    """What regressed from the left side to the right one. Two agents or variations, or versions of a criterion, are
    not before and after: nothing regressed."""
    if not {comparison.a.kind, comparison.b.kind} <= {"execution", "baseline"}:
        return Regressions()
    overall, overall_fall = comparison.overall, None
    fell = overall.rate is not None and overall.rate.difference < 0
    # Fisher's test over several cases: none of them is on both sides, so nothing is compared with itself.
    if fell and overall.p_value is not None and (overall.one_case or overall.test != "fisher"):
        overall_fall = overall.test, overall.p_value
    return find_regressions(cases_of(comparison), overall_fall)


def cases_of(comparison: Comparison) -> list[Case]:
    """The cases that have a verdict on both sides."""
    cases = []
    for test in comparison.tests:
        sides = [(row.case, row.was, row.now) for row in test.rows] or [("", test.was, test.now)]
        cases += [
            Case(test.key, row, PassCounts(was.passed, was.n, now.passed, now.n))
            for row, was, now in sides
            if was is not None and now is not None and was.n and now.n
        ]
    return cases


def find_regressions(cases: Sequence[Case], overall_fall: tuple[str, float] | None = None) -> Regressions:
    """Decide about cases that have a verdict on both sides. `overall_fall`: the test of the whole comparison
    and its two-sided p-value, where the pass rate fell. It is printed beside the gate: what it shows is a regression,
    too."""
    decided = [case for case in cases if case.counts.was_n and case.counts.now_n]
    broken = [case for case in decided if case.broke]
    excused = bool(broken) and _chance_explains_broken(broken, decided)
    regressions = [] if excused else [_of_case("broke", case) for case in broken]
    flagged = {(regression.key, regression.row) for regression in regressions}
    # What broke is said already, and must not take a part of the 5 %.
    regressions += _fallen_parts([case for case in decided if (case.test, case.row) not in flagged])
    p_value = stratified_exact([case.counts for case in decided])
    if p_value is not None and p_value <= OVERALL:
        regressions.append(Regression(scope="overall", cause="fell", p_value=p_value, method="exact"))
    # What is printed beside the gate as a difference can't be none for the gate.
    elif overall_fall is not None and overall_fall[1] <= SIGNIFICANT:
        regressions.append(Regression(scope="overall", cause="fell", p_value=overall_fall[1], method=overall_fall[0]))
    flagged = {(regression.key, regression.row) for regression in regressions if regression.scope == "case"}
    by_chance = tuple(case for case in decided if case.fell and (case.test, case.row) not in flagged)
    return Regressions(tuple(regressions), by_chance, p_value)


def _of_case(cause: str, case: Case) -> Regression:
    suite_key, test, variation = case.test
    return Regression(scope="case", cause=cause, suite_key=suite_key, test=test, variation=variation, row=case.row)


def _fallen_parts(cases: Sequence[Case]) -> list[Regression]:
    """Cases, and tests over their rows, that fell further than chance explains.

    Bonferroni's bound over those hypotheses only that the runs could have decided (R. E. Tarone, "A modified
    Bonferroni method for discrete data", Biometrics 46, 1990): a hundred stable tests hide nothing of the one that
    varies.
    """
    tests = grouped((case.test, case) for case in cases)
    parts = [(_of_case("fell", case), [case.counts]) for case in cases]
    parts += [
        (
            Regression(scope="test", cause="fell", suite_key=test[0], test=test[1], variation=test[2]),
            [case.counts for case in members],
        )
        for test, members in tests.items()
        if len(members) > 1
    ]
    # What can't reach the limit even at its worst is no hypothesis that was tested.
    least = [math.prod(count.least_p_value for count in counts) for _, counts in parts]
    number = 1
    while sum(value <= PARTS / number for value in least) > number:
        number += 1
    fallen = []
    for value, (part, counts) in zip(least, parts, strict=True):
        p_value = stratified_exact(counts) if value <= PARTS / number else None
        if p_value is not None and p_value <= PARTS / number:
            fallen.append(replace(part, p_value=p_value, method="exact"))
    return fallen


def _chance_explains_broken(broken: Sequence[Case], cases: Sequence[Case]) -> bool:
    """Whether as many cases as these break by chance alone. All of this must hold:

    - each of these ran at least `_REPETITIONS` times on both sides;
    - most of the other cases vary within a side, and at least `_VARYING` do;
    - most of the others that passed every time pass only sometimes now;
    - those that vary make it likely that a case breaks by chance: more often than in `BROKEN` of executions;
    - this many are no more than chance gives (beyond `BROKEN`).

    Where nothing changed, a case that passed as often in all as it ran before is equally likely to have got its passes
    in any of its runs: it broke with probability 1 / C(n_was + n_now, n_was).
    """
    if any(min(case.counts.was_n, case.counts.now_n) < _REPETITIONS for case in broken):
        return False
    # A single run on a side can't vary, and so says nothing of how much cases vary.
    others = [case.counts for case in cases if not case.broke and min(case.counts.was_n, case.counts.now_n) > 1]
    steady = [counts for counts in others if counts.was_passed == counts.was_n]
    varying = sum(counts.varied for counts in others)
    if varying < _VARYING or 2 * varying <= len(others):
        return False
    if 2 * sum(counts.now_passed < counts.now_n for counts in steady) <= len(steady):
        return False
    chances = [_chance_to_break(counts) for counts in others if counts.passed == counts.was_n and counts.varied]
    if 1 - math.prod(1 - chance for chance in chances) <= BROKEN:
        return False
    return at_least(len(broken), [*chances, *(_chance_to_break(case.counts) for case in broken)]) > BROKEN


def _chance_to_break(counts: PassCounts) -> float:
    return 1 / math.comb(counts.was_n + counts.now_n, counts.was_n)
