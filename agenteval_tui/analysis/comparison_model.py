"""What a comparison of two sides says: overall, by test, by criterion. Plain data; differences are now minus was."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from msgspec import Struct, field

from agenteval_tui.analysis.setup_changes import JUDGING, SetupChange
from agenteval_tui.analysis.statistics import Interval, PairedCounts
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.grading.results import CriterionResult, MetricResult, Outcome
from agenteval_tui.history.comparison_queries import ComparedRun
from agenteval_tui.history.quarantines import ActiveQuarantines
from agenteval_tui.history.records import ENDED
from agenteval_tui.suites.commits import Commit

State = Literal["worse", "better", "mixed", "score", "criteria", "undecided", "added", "removed", "same"]
"""`worse`: passes less often; `better`: more often; `mixed`: as often, but other rows of its dataset; `score`: as
often, with another score; `criteria`: its criteria are others, and nothing else changed; `undecided`: on one side no
run was decided; `added`, `removed`: there is none on the left, or on the right."""
ORDER: tuple[State, ...] = (
    "worse", "better", "mixed", "score", "criteria", "undecided", "added", "removed", "same",
)  # fmt: skip
TestKey = tuple[str, str, str]
"""Suite key, test id, variation ("" where variations are not told apart)."""
Flip = Literal["worse", "better", "same"]
LEAST_CHANGE = 0.001
"""Differences of scores up to this are none."""


class Side(Struct, frozen=True):
    """One of the two sides. `kind`: execution, baseline, agent, variation, version (of a criterion).

    `name` is what people read, `reference` what names it on the command line. `executions` are those that the runs come
    from, `started_ms` when the newest one started. `moved`: suites of a baseline whose file lies elsewhere now; their
    runs have the new key. `commits` and `meta`: of its execution, where it is of one only.
    """

    kind: str
    name: str
    reference: str
    runs: tuple[ComparedRun, ...]
    executions: tuple[str, ...] = ()
    started_ms: int = 0
    moved: tuple[PairedSuites, ...] = ()
    commits: tuple[Commit, ...] = ()
    meta: Mapping[str, str] = field(default_factory=dict)

    @property
    def waiting(self) -> int:
        """How many of its runs have not ended."""
        return sum(run.status not in ENDED for run in self.runs)


class Tally(Struct, frozen=True):
    """Runs of a test (or results of one criterion): `n` were decided. `score` is the mean of the decided ones.

    `latency_ms`, `tokens` and `cost` are means of what was measured; None: nothing was, or it is a criterion.
    """

    runs: int
    n: int
    passed: int
    errors: int
    score: float | None
    latency_ms: float | None = None
    tokens: float | None = None
    cost: float | None = None

    @property
    def rate(self) -> float | None:
        """The share that passed; None when none was decided."""
        return self.passed / self.n if self.n else None


class MetricChange(Struct, frozen=True):
    """A metric of a criterion: on each side how many results, how many passed, the mean score."""

    name: str
    type: str
    was: Tally | None
    now: Tally | None

    @property
    def changed(self) -> bool:
        """Whether it passes more or less often, or scores otherwise, or is there on one side only."""
        return self.was is None or self.now is None or differs(self.was, self.now)


class CriterionChange(Struct, frozen=True):
    """A criterion of a test on both sides; None where it is not there. `versions_*`: the hashes that judged.

    `was_name` is what it was called on the left, where that is another name.
    """

    name: str
    state: State
    was: Tally | None
    now: Tally | None
    versions_was: tuple[str, ...] = ()
    versions_now: tuple[str, ...] = ()
    was_name: str = ""

    @property
    def edited(self) -> bool:
        """Whether another version of it judges now."""
        return bool(self.versions_was and self.versions_now) and set(self.versions_was) != set(self.versions_now)

    @property
    def comparable(self) -> bool:
        """Whether both sides were judged by the same version of it; under another name it is the same one."""
        return self.was is not None and self.now is not None and not self.edited


class RowChange(Struct, frozen=True):
    """A row of a test's dataset on both sides. `key` is what it is, `label` what people call it.

    `place_was` and `place_now` are where it stood in the file (None: it was not there); `moved`: out of the order of
    the others. `content`: the variables that are others now, of a row that has an id. `pair`: runs that show it.
    """

    key: str
    label: str
    state: State
    was: Tally | None
    now: Tally | None
    place_was: int | None
    place_now: int | None
    moved: bool = False
    content: tuple[str, ...] = ()
    pair: tuple[str, str] | None = None

    @property
    def case(self) -> str:
        """What tells it from the other rows of its test."""
        return self.key or self.label

    @property
    def changed(self) -> bool:
        """Whether there is anything to say of it."""
        return self.state != "same" or self.moved or bool(self.content)


class TestChange(Struct, frozen=True):
    """A test on both sides. `difference` is the mean change of the pass rate over its `cases` (rows), `score` that of
    the score; None where nothing can be told.

    `p_value` is Fisher's exact one for a test that ran several times, McNemar's (or of flipped signs) for one with
    several rows; None where a single run is compared with a single run. `pair`: a run of the left and one of the right
    that show the change, and `pairs` those that flipped. `quarantine` says why it does not gate ("": it does).
    `was_runs` and `now_runs` are the ids of its runs. `rows`: those of its dataset, on both sides. `setup`: what it was
    asked and judged with, as far as that is different now.
    """

    __test__ = False  # not a test class, whatever its name says to pytest

    suite_key: str
    suite: str
    test: str
    name: str
    variation: str
    state: State
    cases: int
    was: Tally | None
    now: Tally | None
    difference: float | None
    score: float | None
    p_value: float | None
    criteria: tuple[CriterionChange, ...]
    pair: tuple[str, str] | None = None
    pairs: tuple[tuple[str, str], ...] = ()
    quarantine: str = ""
    was_runs: tuple[str, ...] = ()
    now_runs: tuple[str, ...] = ()
    rows: tuple[RowChange, ...] = ()
    setup: tuple[SetupChange, ...] = ()

    @property
    def key(self) -> TestKey:
        """What tells it from other tests."""
        return self.suite_key, self.test, self.variation

    @property
    def comparable(self) -> bool:
        """Whether its runs were judged alike on both sides: by the same versions of the same criteria, which count as
        much, against the same thresholds. Where one side does not have the test, or judged none of its runs, there is
        nothing to compare."""
        sides = ([one.was for one in self.criteria], [one.now for one in self.criteria])
        return not all(map(any, sides)) or (all(one.comparable for one in self.criteria) and not self.judging_changes)

    @property
    def judging_changes(self) -> tuple[SetupChange, ...]:
        """What its verdict is made from differently now, beside the versions of its criteria."""
        return tuple(change for change in self.setup if change.kind in JUDGING)

    @property
    def asking_changes(self) -> tuple[SetupChange, ...]:
        """What was asked, and of whom, as far as that is different now."""
        return tuple(change for change in self.setup if change.kind not in JUDGING)

    @property
    def label(self) -> str:
        """Its id, with the variation."""
        return f"{self.test} [{self.variation}]" if self.variation else self.test


class SummaryMetric(Struct, frozen=True):
    """How a mean changed: `was` and `now` over `n` cases that both sides have, the difference with its 95 % interval.

    `interval` None: of fewer than `statistics.FEW` cases; of what was measured also where all differ by the same.
    """

    was: float
    now: float
    difference: float
    interval: Interval | None
    n: int


class Overall(Struct, frozen=True):
    """All tests together. `rate` is of pass rates: the mean over the cases (rows of tests) decided on both sides.

    `test` is what `p_value` comes from: mcnemar (every case ran once), sign-flip (repetitions: each case counts once),
    fisher (the sides share no case; then `rate` compares what they have; or they share one, and its repetitions are
    compared: `one_case`). `n` is what the test counts: pairs, cases, or
    runs of the smaller side. `detectable`: the smallest drop that this many would have shown four times in five, None:
    not even one of 100 %. `pairs` counts pairs of runs; `left_out` cases that were decided on one side only.
    """

    rate: SummaryMetric | None
    test: str
    p_value: float | None
    n: int
    detectable: float | None
    pairs: PairedCounts
    left_out: int
    score: SummaryMetric | None = None
    latency_ms: SummaryMetric | None = None
    tokens: SummaryMetric | None = None
    cost: SummaryMetric | None = None
    one_case: bool = False

    @property
    def few(self) -> bool:
        """Whether there is too little to say how sure the difference is."""
        return self.rate is not None and self.rate.interval is None


class PairedSuites(Struct, frozen=True):
    """The left side's suite `was` is the right side's `now` (keys), which is called `name` there.

    `by` "name": a file that lies elsewhere. `by` "tests": imports of two files whose tests have the same ids.
    `asked_alike`: at least one test of both was asked the same.
    """

    was: str
    now: str
    name: str
    by: Literal["name", "tests"] = "name"
    asked_alike: bool = True


class Comparison(Struct, frozen=True):
    """Two sides, all tests (those that say most first), and what may be said of all together.

    `by_variation`: a variation is compared with itself; else the sides are different ones. `checks_not_made` counts,
    for each side, the criteria in error of the runs that have a verdict.
    """

    a: Side
    b: Side
    overall: Overall
    tests: tuple[TestChange, ...]
    by_variation: bool = True
    checks_not_made: tuple[int, int] = (0, 0)
    runs: Mapping[str, ComparedRun] = field(default_factory=dict)
    paired: tuple[PairedSuites, ...] = ()

    def check_in_common(self) -> None:
        """Raises `AgentevalError` where no test is on both sides: there is nothing to compare."""
        if any(one.state not in ("added", "removed") for one in self.tests):
            return
        raise AgentevalError(
            f"there is nothing to compare: {self.a.name} and {self.b.name} have no test in common",
            mend="`agenteval history` lists executions; compare two of the same suite",
        )

    def in_state(self, *states: State) -> list[TestChange]:
        """The tests in one of these states, in order."""
        return [one for one in self.tests if one.state in states]

    def held_by(self, quarantined: ActiveQuarantines) -> bool:
        """Whether these quarantines are those that its tests have."""
        return all(one.quarantine == quarantined.reason(one.suite_key, one.test) for one in self.tests)

    @property
    def not_comparable(self) -> list[TestChange]:
        """The tests that are judged differently on the right: their verdicts say nothing of the agent alone. They are
        counted all the same. Of two versions of a criterion that is what is compared."""
        if "version" in (self.a.kind, self.b.kind):
            return []
        return [one for one in self.tests if not one.comparable]

    def counts(self) -> dict[State, int]:
        """How many tests are in each state; states without any are left out."""
        found: dict[State, int] = {}
        for one in self.tests:
            found[one.state] = found.get(one.state, 0) + 1
        return {state: found[state] for state in ORDER if state in found}


def differs(was: Tally, now: Tally) -> bool:
    """Whether two tallies say something else: the pass rate, or the score by more than 0.001."""
    return _direction(was, now) != 0 or _score_moved(was.score, now.score)


def state_of(was: Tally | None, now: Tally | None) -> State:
    """The state of a criterion or a metric with these figures."""
    if was is None or now is None:
        return "added" if was is None else "removed"
    if not was.n or not now.n:
        return "undecided" if was.n != now.n else "same"
    direction = _direction(was, now)
    if direction:
        return "worse" if direction < 0 else "better"
    return "score" if _score_moved(was.score, now.score) else "same"


def _direction(was: Tally, now: Tally) -> int:
    # In whole numbers: 2/6 is 1/3.
    left, right = was.passed * now.n, now.passed * was.n
    return (right > left) - (right < left)


def _score_moved(was: float | None, now: float | None) -> bool:
    if was is None or now is None:
        return was is not now
    return abs(now - was) > LEAST_CHANGE + 1e-12  # a hair more: 0.501 - 0.5 is a little over 0.001 in binary


def to_json_value(value: Any) -> Any:
    """Tuples as lists, all the way down."""
    if isinstance(value, dict):
        return {key: to_json_value(one) for key, one in value.items()}
    return [to_json_value(one) for one in value] if isinstance(value, list | tuple) else value


def flip(before: str, after: str) -> Flip:
    """Of two statuses of a test. `worse`: it passed in the baseline and does not now; `better`: the reverse."""
    if (before == Outcome.PASSED) == (after == Outcome.PASSED):
        return "same"
    return "worse" if before == Outcome.PASSED else "better"


def changed(before: CriterionResult | MetricResult, after: CriterionResult | MetricResult) -> bool:
    """Whether a criterion or metric changed: passed differs, or the score differs by more than LEAST_CHANGE. A score on
    one side only is a change, too.
    """
    if (before.outcome is Outcome.PASSED) != (after.outcome is Outcome.PASSED):
        return True
    if before.score is None or after.score is None:
        return before.score is not after.score
    # A hair more: 0.501 - 0.5 is a little over 0.001 in binary.
    return abs(before.score - after.score) > LEAST_CHANGE + 1e-12
