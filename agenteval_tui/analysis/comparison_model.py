"""What a comparison of two sides says: overall, by test, by criterion. Plain data; differences are now minus was."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Annotated, Literal

from msgspec import Meta, Struct, field

from agenteval_tui.analysis.code_changes import FileChange
from agenteval_tui.analysis.setup_changes import JUDGING, SetupChange
from agenteval_tui.analysis.statistics import Interval, PairedCounts
from agenteval_tui.core.document import Count, Document, RowKey, Share, one_of
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.outcomes import ENDED
from agenteval_tui.history.comparison_queries import ComparedRun
from agenteval_tui.history.quarantines import ActiveQuarantines
from agenteval_tui.suites.commits import Commit

State = Literal["worse", "better", "mixed", "score", "criteria", "undecided", "added", "removed", "same"]
"""`worse`: passes less often; `better`: more often; `mixed`: as often, but other rows of its dataset; `score`: as
often, with another score; `criteria`: its criteria are others, and nothing else changed; `undecided`: on one side no
run was decided; `added`, `removed`: there is none on the left, or on the right."""
ORDER: tuple[State, ...] = (
    "worse",
    "better",
    "mixed",
    "score",
    "criteria",
    "undecided",
    "added",
    "removed",
    "same",
)
Pair = Annotated[tuple[str, str] | None, Meta(description="a run of each side that show the change")]
TestKey = tuple[str, str, str]
"""Suite key, test id, variation ("" where variations are not told apart)."""
LEAST_CHANGE = 0.001
"""Differences of scores up to this are none."""


class SidesError(AgentevalError):
    """These two sides can't be compared with each other; others may be."""


class NamedSide(Document, frozen=True, kw_only=True):
    """What is published of a side. `name` is what people read, `reference` what names it on the command line;
    `executions` are those that its runs come from."""

    kind: Annotated[str, one_of("execution", "baseline", "agent", "variation", "version")]
    name: str
    reference: str
    executions: tuple[str, ...] = ()
    commits: Annotated[
        tuple[Commit, ...],
        Meta(description="of its suites' and agents' repositories; empty for several executions"),
    ] = ()
    meta: Annotated[Mapping[str, str], Meta(description="its execution's metadata")] = field(default_factory=dict)


class Side(NamedSide, frozen=True, kw_only=True):
    """One of the two sides, with its runs. `started_ms`: when the newest of its executions started. `moved`: suites of
    a baseline whose file lies elsewhere now; their runs have the new key."""

    runs: tuple[ComparedRun, ...]
    started_ms: int = 0
    moved: tuple[PairedSuites, ...] = ()

    @property
    def waiting(self) -> int:
        """How many of its runs have not ended."""
        return sum(run.status not in ENDED for run in self.runs)


class Tally(Document, frozen=True):
    """Runs of a test, or results of one criterion or metric. `score` is the mean of the decided ones.

    `latency_ms`, `tokens` and `cost` are means of what was measured; None: nothing was, or it is a criterion.
    """

    runs: Count
    n: Annotated[Count, Meta(description="those that passed or failed")]
    passed: Count
    errors: Count
    score: Share | None
    latency_ms: float | None = None
    tokens: float | None = None
    cost: float | None = None

    @property
    def rate(self) -> float | None:
        """The share that passed; None when none was decided."""
        return self.passed / self.n if self.n else None


class MetricChange(Document, frozen=True):
    """A metric of a criterion on both sides."""

    name: str
    type: str
    was: Tally | None
    now: Tally | None

    @property
    def changed(self) -> bool:
        """Whether it passes more or less often, or scores otherwise, or is there on one side only."""
        return self.was is None or self.now is None or differs(self.was, self.now)


class CriterionChange(Document, frozen=True, kw_only=True):
    """A criterion of a test on both sides; None where it is not there. `versions_*`: the hashes that judged.

    `was_name` is what it was called on the left, where that is another name.
    """

    name: str = field(name="criterion")
    was_name: str = ""
    state: State
    was: Tally | None
    now: Tally | None
    versions_was: tuple[str, ...] = ()
    versions_now: tuple[str, ...] = ()

    @property
    def edited(self) -> bool:
        """Whether another version of it judges now."""
        return bool(self.versions_was and self.versions_now) and set(self.versions_was) != set(self.versions_now)

    @property
    def comparable(self) -> bool:
        """Whether both sides were judged by the same version of it; under another name it is the same one."""
        return self.was is not None and self.now is not None and not self.edited


class RowChange(Document, frozen=True, kw_only=True):
    """A row of a test's dataset on both sides; `place_was` and `place_now` are where it stood in the file."""

    label: Annotated[str, Meta(description="its id, else its place in the file")] = field(name="row")
    key: RowKey = field(name="row_key")
    state: State
    was: Tally | None
    now: Tally | None
    place_was: Annotated[Count | None, Meta(description="null: it didn't exist")]
    place_now: Annotated[Count | None, Meta(description="null: it no longer exists")]
    moved: Annotated[bool, Meta(description="out of the order of the others")]
    content: Annotated[
        tuple[str, ...], Meta(description="the variables that are others now, of a row that has an id")
    ] = field(name="content_changed")
    pair: Pair = field(name="runs")

    @property
    def case(self) -> str:
        """What tells it from the other rows of its test."""
        return self.key or self.label

    @property
    def changed(self) -> bool:
        """Whether there is anything to say of it."""
        return self.state != "same" or self.moved or bool(self.content)


class TestOnBothSides(Document, frozen=True, kw_only=True):
    """What is published of a test on both sides. `difference` is the mean change of the pass rate over its `cases`
    (rows), `score` that of the score; None where nothing can be told.

    `p_value` is Fisher's exact one for a test that ran several times, McNemar's (or of flipped signs) for one with
    several rows; None where a single run is compared with a single run.
    """

    __test__ = False  # not a test class, whatever its name says to pytest

    suite: str
    test: str
    name: str
    variation: str
    state: State
    setup: Annotated[
        tuple[SetupChange, ...], Meta(description="what it was asked and judged with, as far as that is different now")
    ] = ()
    cases: Count
    was: Tally | None
    now: Tally | None
    difference: float | None
    score: float | None = field(name="score_difference")
    p_value: Share | None
    quarantine: Annotated[str, Meta(description='why it does not gate; "": it does')] = ""
    rows: Annotated[
        tuple[RowChange, ...],
        Meta(description="of its dataset, in the order of the right side; those that went are last"),
    ] = ()
    pair: Pair = field(name="runs", default=None)


class TestChange(TestOnBothSides, frozen=True, kw_only=True):
    """A test on both sides, with the ids of its runs on each side, and the `pairs` of runs that flipped."""

    suite_key: str
    criteria: tuple[CriterionChange, ...]
    pairs: tuple[tuple[str, str], ...] = ()
    was_runs: tuple[str, ...] = ()
    now_runs: tuple[str, ...] = ()

    @property
    def key(self) -> TestKey:
        """What tells it from other tests."""
        return self.suite_key, self.test, self.variation

    @property
    def comparable(self) -> bool:
        """Whether its runs were judged alike on both sides: by the same versions of the same criteria, which count as
        much, against the same thresholds. Where one side does not have the test, or judged none of its runs, there is
        nothing to compare."""
        sides = ([change.was for change in self.criteria], [change.now for change in self.criteria])
        return not all(map(any, sides)) or (
            all(change.comparable for change in self.criteria) and not self.judging_changes
        )

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


class SummaryMetric(Document, frozen=True):
    """How a mean changed. `interval` None: of fewer than `statistics.FEW` cases; of what was measured also where all
    differ by the same."""

    was: float
    now: float
    difference: float
    interval: Annotated[Interval | None, Meta(description="95 %, of the difference; null for fewer than five cases")]
    n: Annotated[Count, Meta(description="cases that both sides have")]


class Overall(Document, frozen=True, kw_only=True):
    """All tests together. `rate` is of pass rates: the mean over the cases (rows of tests) decided on both sides.

    `test` is what `p_value` comes from. Where it is fisher and no case is shared, `rate` compares what the sides have.
    """

    rate: SummaryMetric | None = field(name="pass_rate")
    test: Annotated[
        str,
        one_of("mcnemar", "sign-flip", "fisher"),
        Meta(
            description="mcnemar: every case ran once; sign-flip: repetitions; fisher: no case in common, or the"
            " repetitions of a single case"
        ),
    ]
    one_case: Annotated[bool, Meta(description="the repetitions of one case are compared; others may differ")] = False
    n: Annotated[Count, Meta(description="pairs, cases, or runs of the smaller side: what the test counts")]
    p_value: Share | None
    detectable: Annotated[
        Share | None,
        Meta(description="smallest drop detectable with 80 % power; null: not even a drop of 1"),
    ] = field(name="detectable_drop")
    pairs: PairedCounts
    left_out: Annotated[Count, Meta(description="cases that were decided on one side only")]
    score: SummaryMetric | None = None
    latency_ms: SummaryMetric | None = None
    tokens: SummaryMetric | None = None
    cost: SummaryMetric | None = None

    @property
    def few(self) -> bool:
        """Whether there is too little to say how sure the difference is."""
        return self.rate is not None and self.rate.interval is None


class PairedSuites(Document, frozen=True):
    """Two suites that are compared with each other."""

    was: Annotated[str, Meta(description="its key in a")]
    now: Annotated[str, Meta(description="its key in b")]
    by: Annotated[
        str,
        one_of("name", "tests"),
        Meta(
            description="name: a suite's file that lies elsewhere; tests: two imported files whose tests have the same"
            " ids"
        ),
    ] = "name"
    asked_alike: Annotated[bool, Meta(description="a test of both was asked the same")] = True


class Comparison(Struct, frozen=True):
    """Two sides, all tests (those that say most first), and what may be said of all together.

    `by_variation`: a variation is compared with itself; else the sides are different ones. `checks_not_made` counts,
    for each side, the criteria in error of the runs that have a verdict. `files`: of the agents' projects, those that
    differ between the executions of both sides, as far as that is known.
    """

    a: Side
    b: Side
    overall: Overall
    tests: tuple[TestChange, ...]
    by_variation: bool = True
    checks_not_made: tuple[int, int] = (0, 0)
    runs: Mapping[str, ComparedRun] = field(default_factory=dict)
    paired: tuple[PairedSuites, ...] = ()
    files: tuple[FileChange, ...] = ()

    @property
    def suite_names(self) -> Mapping[str, str]:
        """The name of each suite by its key; where the sides call it differently, the right side's."""
        return {run.suite_key: run.suite_name for side in (self.a, self.b) for run in side.runs}

    def check_in_common(self) -> None:
        """Raises `SidesError` where no test is on both sides: there is nothing to compare."""
        if any(test.state not in ("added", "removed") for test in self.tests):
            return
        raise SidesError(
            f"there is nothing to compare: {self.a.name} and {self.b.name} have no test in common",
            fix="`agenteval history` lists executions; compare two of the same suite",
        )

    def in_state(self, *states: State) -> list[TestChange]:
        """The tests in one of these states, in order."""
        return [test for test in self.tests if test.state in states]

    def held_by(self, quarantined: ActiveQuarantines) -> bool:
        """Whether these quarantines are those that its tests have."""
        return all(test.quarantine == quarantined.reason(test.suite_key, test.test) for test in self.tests)

    @property
    def not_comparable(self) -> list[TestChange]:
        """The tests that are judged differently on the right: their verdicts say nothing of the agent alone. They are
        counted all the same. Of two versions of a criterion that is what is compared."""
        if "version" in (self.a.kind, self.b.kind):
            return []
        return [test for test in self.tests if not test.comparable]

    def counts(self) -> dict[State, int]:
        """How many tests are in each state; states without any are left out."""
        numbers = Counter(test.state for test in self.tests)
        return {state: numbers[state] for state in ORDER if state in numbers}


def fails(tally: Tally | None) -> bool:
    """Whether one of its decided runs did not pass."""
    return tally is not None and tally.passed < tally.n


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
