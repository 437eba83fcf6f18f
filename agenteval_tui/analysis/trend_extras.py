"""What stands beside the lines of a trend: the scores of each criterion, and what failures come from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from agenteval_tui.analysis.trend_breaks import Break, agent_breaks_of, breaks_of
from agenteval_tui.analysis.trends import Wanted, pick
from agenteval_tui.grading.causes import cause_from, cause_id
from agenteval_tui.history import trends as rows
from agenteval_tui.history.trends import CauseCount, ScoreCount, TestName
from agenteval_tui.text.quick_dataclass import dataclass

if TYPE_CHECKING:
    from agenteval_tui.history.connect import Connection
    from agenteval_tui.history.store import Store


@dataclass(frozen=True, slots=True)
class Scores:
    """The results of a criterion (a name in a test): how many passed and did not, and its scores in tenths."""

    suite_key: str
    suite: str
    test_id: str
    criterion: str
    n: int
    passed: int
    failed: int
    errors: int
    review: int
    mean: float | None
    tenths: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Failing:
    """A cause of failures: its short name ("": an agent's error, or not known), what it is, and how often."""

    id: str
    title: str
    runs: int
    tests: int
    last: str


@dataclass(frozen=True, slots=True)
class Extras:
    """Criteria worst first, causes most frequent first. `cut`: older runs of the window are not in it."""

    scores: tuple[Scores, ...]
    causes: tuple[Failing, ...]
    since_ms: int
    cut: bool
    breaks: tuple[Break, ...] = ()
    """Where criteria changed in between, in the order of time."""


def extras(store: Store, wanted: Wanted) -> Extras:
    """Scores and causes of the newest runs of the window. Raises AgentevalError, HistoryError."""
    return store.read(lambda connection: _extras(connection, wanted))


def _extras(connection: Connection, wanted: Wanted) -> Extras:
    picked = pick(connection, wanted)
    since_ms, cut = rows.newest_runs(connection, picked, rows.NEWEST)
    picked = replace(picked, since_ms=since_ms)
    tests = {one.row: one for one in rows.tests_known(connection)}
    breaks = (
        *breaks_of(rows.versions_used(connection, picked), tests),
        *agent_breaks_of(rows.agents_used(connection, picked), tests),
    )
    made = made_extras(connection, rows.scores(connection, picked), rows.causes(connection, picked), since_ms, cut)
    return replace(made, breaks=tuple(sorted(breaks, key=lambda one: one.at_ms)))


def made_extras(
    connection: Connection, scores: Iterable[ScoreCount], causes: Iterable[CauseCount], since_ms: int, cut: bool
) -> Extras:
    """The same of what was counted already; without breaks."""
    tests = {one.row: one for one in rows.tests_known(connection)}
    return Extras(_scores(scores, tests), tuple(map(_failing, causes)), since_ms, cut)


def _scores(counts: Iterable[ScoreCount], tests: Mapping[int, TestName]) -> tuple[Scores, ...]:
    # By test there are thousands of criteria: each count is looked at once.
    ends: dict[tuple[int, str], dict[str, int]] = {}
    tenths: dict[tuple[int, str], list[int]] = {}
    sums: dict[tuple[int, str], float] = {}
    for one in counts:
        which = (one.test, one.criterion)
        known = ends.get(which)
        if known is None:
            known = ends[which] = dict.fromkeys(_ENDS, 0)
            tenths[which], sums[which] = [0] * 10, 0.0
        if one.outcome in known:
            known[one.outcome] += one.count
        if one.tenth >= 0:
            tenths[which][one.tenth] += one.count
            sums[which] += one.sum
    made = []
    for which, known in ends.items():
        test, listed = tests[which[0]], tenths[which]
        passed, failed, errors, review = known.values()
        scored = sum(listed)
        made.append(
            Scores(
                *(test.suite_key, test.suite, test.test_id, which[1]),
                *(passed + failed, passed, failed, errors, review),
                sums[which] / scored if scored else None,
                tuple(listed),
            )
        )
    return tuple(sorted(made, key=_worst_first))


def _worst_first(one: Scores) -> tuple[float, int, str, str, str]:
    return (one.passed / one.n if one.n else 2.0), -one.n, one.suite_key, one.test_id, one.criterion


def criterion_labels(scores: Sequence[Scores]) -> list[str]:
    """What each of these criteria is called beside the others: `TEST / CRITERION`, with the suite where two suites have
    a test of that name, and its place where two suites have one name."""
    suites: dict[str, set[str]] = {}
    names: dict[tuple[str, str], set[str]] = {}
    for one in scores:
        suites.setdefault(one.test_id, set()).add(one.suite_key)
        names.setdefault((one.test_id, one.suite), set()).add(one.suite_key)
    made = []
    for one in scores:
        label = f"{one.test_id} / {one.criterion}"
        if len(suites[one.test_id]) > 1:
            label += f" ({one.suite if len(names[one.test_id, one.suite]) == 1 else one.suite_key})"
        made.append(label)
    return made


_ENDS = ("passed", "failed", "error", "needs_review")


def _failing(one: CauseCount) -> Failing:
    if one.error_kind:
        return Failing("", f"agent: {one.error_kind}", one.runs, one.tests, one.last)
    if not one.cause:
        return Failing("", f"{one.criterion} (an older program did not store why)", one.runs, one.tests, one.last)
    try:
        title = cause_from(one.cause).title
    except ValueError:
        title = one.cause
    return Failing(cause_id(one.cause), title, one.runs, one.tests, one.last)
