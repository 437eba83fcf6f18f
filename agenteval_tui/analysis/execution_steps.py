"""Whether the repetitions of a test vary, or step from one execution to the next.

Runs of one execution that differ are chance: the test is flaky. If no execution has such a difference, and one
always passes and the next one always fails, something changed in between: a regression, which a quarantine would hide.
Executions with a single run each only have their order: a single change of the outcome is a step, going back and forth
is chance.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from agenteval_tui.analysis.statistics import fisher_exact

Counts = tuple[int, int]
"""How many runs passed, of how many with a verdict."""
StepKind = Literal["regression", "improvement", "changed"]
"""`changed`: the test passed and failed by turns, each time in all runs of an execution."""
MOST = 200
"""Executions in which a step is looked for: the newest."""
LIKELY = 0.05
"""The p-value up to which a step is shown beside runs that vary anyhow."""


class Step(Struct, frozen=True):
    """A test steps from one execution to another. `parts`: its runs before and after (`changed`: in each execution, and
    those in a row that are alike together).

    `p_value`: how often executions differ as sharply if all runs pass by the same chance.
    """

    kind: StepKind
    parts: tuple[Counts, ...]
    p_value: float


def varies(executions: Sequence[Counts]) -> bool:
    """Whether runs vary that should not: within an execution, or back and forth between executions of a single run.
    `executions`: oldest first."""
    decided = [execution for execution in executions if execution[1]]
    if _varies_within(decided):
        return True
    return _turns(decided) > 1 and step_of(decided) is None


def step_of(executions: Sequence[Counts]) -> Step | None:
    """Where a test steps; None: nothing shows that it does. `executions`: oldest first.

    Runs before and after each execution are compared by Fisher's exact test; the sharpest one counts, its p-value times
    the number of places (Bonferroni). If runs vary within executions, the step is one up to p = 0.05.
    Source: R. A. Fisher, "Statistical methods for research workers" (1934), section 21.02; for the sharpest of all
    places K. J. Worsley, "The power of likelihood ratio and cumulative sum tests for a change in a binomial
    probability", Biometrika 70 (1983), which bounds it likewise.
    """
    decided = [execution for execution in executions if execution[1]][-MOST:]
    if len(decided) < 2:
        return None
    alike = not _varies_within(decided)
    turns = _turns(decided)
    if alike and turns == 0:
        return None
    if alike and turns > 1:
        p_value = homogeneity(decided)
        # With several runs in each, runs that are all alike are no chance; single ones may go back and forth by it.
        if p_value <= LIKELY or min(n for _, n in decided) > 1:
            return Step("changed", _in_a_row(decided), p_value)
    at = _sharpest(decided)
    if at is None:
        return None
    step = step_between(_sum(decided[:at]), _sum(decided[at:]), steady=True)
    if step is None:
        return None
    step = replace(step, p_value=min(1.0, (len(decided) - 1) * step.p_value))
    return step if step.p_value <= LIKELY or (alike and turns == 1) else None


def _sharpest(executions: Sequence[Counts]) -> int | None:
    """The number of the execution before which rates differ most, by the chi-square of the 2 x 2 table: Fisher's test
    of every place would take long, and finds the same place. None: they differ at none."""
    passed, n = _sum(executions)
    best, place = 0.0, None
    before = runs = 0
    for at, (more, of) in enumerate(executions[:-1], 1):
        before, runs = before + more, runs + of
        difference = before * (n - runs) - (passed - before) * runs
        sharp = difference * difference / (runs * (n - runs))
        if sharp > best:
            best, place = sharp, at
    return place


def step_between(before: Counts, after: Counts, *, steady: bool) -> Step | None:
    """The step from one configuration to the next. `steady`: no runs of either vary, so that any difference is one."""
    if not before[1] or not after[1] or before[0] * after[1] == after[0] * before[1]:
        return None
    p_value = fisher_exact(*before, *after)
    if not steady and p_value > LIKELY:
        return None
    worse = after[0] * before[1] < before[0] * after[1]
    return Step("regression" if worse else "improvement", (before, after), p_value)


def homogeneity(executions: Sequence[Counts]) -> float:
    """How often the runs of each execution are all alike if the passed and failed runs fall into executions at random.

    Exact: the ways to fill whole executions with the passed runs, of all ways to choose these runs.
    Source: G. H. Freeman and J. H. Halton, "Note on an exact treatment of contingency, goodness of fit and other
    problems of significance", Biometrika 38 (1951): runs by execution, with both margins fixed.
    """
    passed, n = _sum(executions)
    ways = [1] + [0] * passed
    for _, size in executions:
        # From above, so that no execution is taken twice.
        for filled in range(passed, size - 1, -1):
            ways[filled] += ways[filled - size]
    return float(Fraction(ways[passed], math.comb(n, passed)))


def _varies_within(executions: Sequence[Counts]) -> bool:
    return any(0 < passed < n for passed, n in executions)


def _turns(executions: Sequence[Counts]) -> int:
    """How often the outcome is another than in the execution before; of executions whose runs are all alike."""
    return sum((earlier[0] > 0) != (other[0] > 0) for earlier, other in pairwise(executions))


def _in_a_row(executions: Sequence[Counts]) -> tuple[Counts, ...]:
    rows: list[Counts] = []
    for passed, n in executions:
        if rows and (rows[-1][0] > 0) == (passed > 0):
            rows[-1] = rows[-1][0] + passed, rows[-1][1] + n
        else:
            rows.append((passed, n))
    return tuple(rows)


def _sum(executions: Sequence[Counts]) -> Counts:
    return sum(passed for passed, _ in executions), sum(n for _, n in executions)
