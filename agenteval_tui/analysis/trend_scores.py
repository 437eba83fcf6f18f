"""The figures beside the lines of a trend: the scores of each criterion, and the causes of failures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from agenteval_tui.analysis.trend_breaks import Break, agent_breaks_of, breaks_of
from agenteval_tui.analysis.trends import TrendQuery, select_runs
from agenteval_tui.grading.causes import cause_from, cause_id
from agenteval_tui.history import trends as rows
from agenteval_tui.history.connections import Connection
from agenteval_tui.history.feedback import FeedbackMean, means
from agenteval_tui.history.store import Store
from agenteval_tui.history.trends import CauseCount, ScoreCounts, TestName


class Scores(NamedTuple):
    """The results of a criterion (a name in a test): how many passed and did not, and its scores in tenths.

    What is shown of it is taken from the counts when it is shown: there are thousands of criteria.
    """

    test: TestName
    criterion: str
    counts: list[Any]
    """As `history.trends.ScoreCounts` has them."""

    @property
    def suite_key(self) -> str:
        """Its suite's key."""
        return self.test.suite_key

    @property
    def suite(self) -> str:
        """Its suite's name."""
        return self.test.suite

    @property
    def test_id(self) -> str:
        """Its test."""
        return self.test.test_id

    @property
    def n(self) -> int:
        """How many passed or failed."""
        return self.passed + self.failed

    @property
    def passed(self) -> int:
        """How many passed."""
        return int(self.counts[0])

    @property
    def failed(self) -> int:
        """How many failed."""
        return int(self.counts[1])

    @property
    def errors(self) -> int:
        """How many could not run."""
        return int(self.counts[2])

    @property
    def review(self) -> int:
        """How many wait for a person."""
        return int(self.counts[3])

    @property
    def mean(self) -> float | None:
        """The mean of the scores, from 0 to 1; None without any."""
        scored = sum(self.tenths)
        return self.counts[14] / scored if scored else None

    @property
    def tenths(self) -> tuple[int, ...]:
        """How many scores round down to 0.0, 0.1 and so on to 0.9, where 1.0 stands, too."""
        return tuple(self.counts[4:14])

    @property
    def failed_tenths(self) -> tuple[int, ...]:
        """How many of each tenth failed."""
        return tuple(self.counts[15:25])


class Failing(Struct, frozen=True):
    """A cause of failures: its short name ("": an agent's error, or not known), what it is, and how often."""

    id: str
    title: str
    runs: int
    tests: int
    last: str


class Extras(Struct, frozen=True):
    """Criteria worst first, causes most frequent first. `cut`: older runs of the window are not in it."""

    scores: tuple[Scores, ...]
    causes: tuple[Failing, ...]
    since_ms: int
    cut: bool
    breaks: tuple[Break, ...] = ()
    """Where criteria changed in between, in the order of time."""
    feedback: tuple[FeedbackMean, ...] = ()
    """The means of the scores that the window's runs were given, by key."""


def extras(store: Store, trend_query: TrendQuery) -> Extras:
    """Scores and causes of the newest runs of the window. Raises AgentevalError, HistoryError."""
    return store.read(lambda connection: _extras(connection, trend_query))


def _extras(connection: Connection, trend_query: TrendQuery) -> Extras:
    picked = select_runs(connection, trend_query)
    # Of the whole window: feedback is small, and needs no limit.
    feedback = means(rows.feedback_scores(connection, picked))
    since_ms, cut = rows.newest_runs(connection, picked, rows.NEWEST)
    picked = replace(picked, since_ms=since_ms)
    tests = {test.row: test for test in rows.tests_known(connection)}
    breaks = (
        *breaks_of(rows.versions_used(connection, picked), tests),
        *agent_breaks_of(rows.agents_used(connection, picked), tests),
    )
    scores, failing = rows.scores(connection, picked), rows.causes(connection, picked)
    in_time = tuple(sorted(breaks, key=lambda shift: shift.at_ms))
    return Extras(_scores(scores, tests), tuple(map(_failing, failing)), since_ms, cut, in_time, feedback)


def made_extras(
    connection: Connection, scores: ScoreCounts, causes: Iterable[CauseCount], since_ms: int, cut: bool
) -> Extras:
    """The same of what was counted already; without breaks."""
    tests = {test_name.row: test_name for test_name in rows.tests_known(connection)}
    return Extras(_scores(scores, tests), tuple(map(_failing, causes)), since_ms, cut)


def _scores(counted: ScoreCounts, tests: Mapping[int, TestName]) -> tuple[Scores, ...]:
    by_name = sorted(tests.values(), key=lambda test_name: (test_name.suite_key, test_name.test_id))
    ranks = {test_name.row: rank for rank, test_name in enumerate(by_name)}
    ordered = []
    for (test, criterion), counts in counted.items():
        passed = counts[0]
        n = passed + counts[1]
        # The worst first. A test has one criterion of a name: what follows the name is never compared.
        scores = Scores(tests[test], criterion, counts)
        ordered.append((passed / n if n else 2.0, -n, ranks[test], criterion, scores))
    ordered.sort()
    return tuple([entry[-1] for entry in ordered])


def criterion_labels(scores: Sequence[Scores]) -> list[str]:
    """What each of these criteria is called beside the others: `TEST / CRITERION`, with the suite where two suites have
    a test of that name, and its place where two suites have one name."""
    suites: dict[str, set[str]] = {}
    names: dict[tuple[str, str], set[str]] = {}
    for score in scores:
        suites.setdefault(score.test_id, set()).add(score.suite_key)
        names.setdefault((score.test_id, score.suite), set()).add(score.suite_key)
    labels = []
    for score in scores:
        label = f"{score.test_id} / {score.criterion}"
        if len(suites[score.test_id]) > 1:
            label += f" ({score.suite if len(names[score.test_id, score.suite]) == 1 else score.suite_key})"
        labels.append(label)
    return labels


def _failing(cause: CauseCount) -> Failing:
    if cause.error_kind:
        return Failing("", f"agent: {cause.error_kind}", cause.runs, cause.tests, cause.last)
    if not cause.cause:
        return Failing("", f"{cause.criterion} (why is not stored)", cause.runs, cause.tests, cause.last)
    try:
        title = cause_from(cause.cause).title
    except ValueError:
        title = cause.cause
    return Failing(cause_id(cause.cause), title, cause.runs, cause.tests, cause.last)
