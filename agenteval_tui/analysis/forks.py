"""The forks of a run: what was changed in each branch, and how its continuations ended, beside the run itself."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from agenteval_tui.analysis import statistics
from agenteval_tui.analysis.repetitions import repetitions
from agenteval_tui.analysis.statistics import Interval, wilson
from agenteval_tui.core.outcomes import COMPLETED, DECIDED
from agenteval_tui.history.records import RunRow
from agenteval_tui.history.store import Store
from agenteval_tui.runs.fork.continuations import Outcomes, answers_of
from agenteval_tui.runs.fork.model import ForkOrigin, read_origin

AT_WORK = ("queued", "running", "grading")
"""How a continuation stands that has not ended."""


class Forks(Struct, frozen=True):
    """A run and its branches. `passed` of `decided` repetitions of the run passed, in its execution.

    `execution` holds what was asked just now ("": nothing was), `asked` says how much that was, `cost` (US dollars,
    judges included; None: not measured) what it took.
    """

    run: RunRow
    passed: int
    decided: int
    branches: tuple[Outcomes, ...]
    execution: str = ""
    asked: int = 0
    cost: float | None = None

    @property
    def interval(self) -> Interval | None:
        """The 95 % interval of the pass rate of the run's repetitions; None: too few were decided."""
        return statistics.interval_of(self.passed, self.decided)


def interval_of(branch: Outcomes) -> Interval | None:
    """The 95 % interval of a branch's pass rate; None: too few were decided."""
    return statistics.interval_of(branch.passed, branch.decided)


def forks_asked(store: Store, run: RunRow, outcomes: Sequence[Outcomes], *, execution: str, sent: int) -> Forks:
    """What was asked of an oracle just now."""
    costs = [cost.cost for cost in store.costs(execution) if cost.cost is not None] if execution else []
    return Forks(run, *_repeated(store, run), tuple(outcomes), execution, sent, sum(costs) if costs else None)


def ranked(branches: Sequence[Outcomes]) -> tuple[Outcomes, ...]:
    """The branches that helped most first: by pass rate, then by how sure that is (the interval's lower end); those of
    which nothing was decided last."""

    def place(branch: Outcomes) -> tuple[float, float]:
        interval = wilson(branch.passed, branch.decided) if branch.decided else None
        return (1.0, 0.0) if interval is None else (-branch.passed / branch.decided, -interval[0])

    return tuple(sorted(branches, key=place))


def stored_forks(store: Store, run: RunRow, *, at_work: bool = False) -> Forks:
    """All forks of a run that ended, in the order in which they were asked for first. `at_work`: also branches of which
    nothing has ended yet."""
    by_question: dict[str, tuple[ForkOrigin, list[RunRow]]] = {}
    for row in store.forks_of(run.id):
        origin = read_origin(row.fork_of, row.fork)
        ended = row.status in COMPLETED
        if origin is not None and (ended or (at_work and row.status in AT_WORK)):
            rows = by_question.setdefault(origin.question or row.id, (origin, []))[1]
            rows += [row] if ended else []
    branches = tuple(
        Outcomes(
            origin.step,
            origin.edits,
            tuple(answers_of(store, rows, stored=True)),
            label=origin.label,
            purpose=origin.purpose,
        )
        for origin, rows in by_question.values()
    )
    return Forks(run, *_repeated(store, run), branches)


def _repeated(store: Store, run: RunRow) -> tuple[int, int]:
    """How many repetitions of the run passed, and how many were decided: those of its execution."""
    # A fork has no repetitions of its own: those of its test were not continued from there.
    rows = [run] if run.fork_of else repetitions(store, run, everywhere=False)
    decided = [row for row in rows if row.status in DECIDED]
    return sum(row.status == "passed" for row in decided), len(decided)
