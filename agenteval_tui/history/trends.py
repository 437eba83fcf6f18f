"""What runs did over time, counted and gathered by SQLite from one narrow index: no wide row is read.

Runs without a time of their own (imported ones) count at the time of their execution. A run counts when it passed,
failed, ended in an error or waits for a person.
"""

# ruff: noqa: S608 - statements are put together from words of ours; values are always bound

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from agenteval_tui.core.storable import storable
from agenteval_tui.history.bulk_sql import rows_among
from agenteval_tui.history.recordings import FORK
from agenteval_tui.history.scope import runs_in
from agenteval_tui.history.search import described_executions

Group = str
"""What runs are grouped by: suite, test, tag, agent; by their execution's name, commit or metadata; "": all
together; setting: by agent, its configuration, their plan, and the execution."""
Measure = Literal["latency", "tokens", "cost", "steps", "score"]
"""What is measured of runs: milliseconds, tokens in and out, US dollars, tool calls, 0..1."""

NEWEST = 20_000
"""Runs of a window over which flaky tests, scores and causes are counted: the newest of those that were asked for."""

# As the index has it, word for word.
ENDED = "r.status IN ('passed', 'failed', 'error', 'needs_review') AND r.superseded = 0"
# Without being told, SQLite takes the index by status and looks up each row: two hundred times slower.
_RUNS = "runs r INDEXED BY runs_over_time"
_VALUES: dict[Measure, str] = {
    "latency": "r.duration_ms",
    "tokens": "r.input_tokens + r.output_tokens",
    "cost": "r.cost",
    "steps": "r.steps",
    "score": "r.score",
}
# An answer that was known before took no time and no money.
_MEASURED: dict[Measure, str] = {
    "latency": "NOT r.cached AND r.duration_ms IS NOT NULL",
    "tokens": "NOT r.cached AND r.input_tokens IS NOT NULL AND r.output_tokens IS NOT NULL",
    "cost": "NOT r.cached AND r.cost IS NOT NULL",
    "steps": "r.steps IS NOT NULL",
    "score": "r.score IS NOT NULL",
}
_KEY: dict[Group, str] = {
    "": "",
    "suite": "r.test",
    "test": "r.test",
    "agent": "r.agent",
    "tag": "r.plan",
    "setting": "r.agent || char(31) || r.agent_version || char(31) || r.plan || char(31) || r.execution",
}
# A number is compared sooner than a text that is made for it.
_GROUPED: dict[Group, str] = {"setting": "r.plan, r.agent, r.agent_version, r.execution"}
# A run as one number: its test, its dataset's row and its end (and behind it its variation, which few have). SQLite
# gives these as one JSON text and Python counts them: less than half the time of a GROUP BY over 100,000 rows.
_ROWS = 1 << 32
_PACKED = (
    f"(r.test * {_ROWS} + coalesce(r.dataset_row, 0)) * 4"
    " + (CASE r.status WHEN 'passed' THEN 0 WHEN 'failed' THEN 1 WHEN 'error' THEN 2 ELSE 3 END)"
)
_RUN = f"CASE WHEN r.variation = '' THEN {_PACKED} ELSE ({_PACKED}) || ' ' || r.variation END"


_ENDS = {"passed": 0, "failed": 1, "error": 2, "needs_review": 3}
_END = "CASE c.outcome WHEN 'passed' THEN 0 WHEN 'failed' THEN 1 WHEN 'error' THEN 2 ELSE 3 END"
# A result in two digits: how it ended, and its score, which nearly always is 1.0, 0.0 or none.
_SKIPPED = "90"
_PLACES: dict[str, tuple[int, ...]] = {
    _SKIPPED: (),
    **{
        str(10 + end + 4 * score): (end, *places, *(failed if end == _ENDS["failed"] else ()))
        for end in _ENDS.values()
        for score, (places, failed) in enumerate((((13, 14), (24,)), ((4,), (15,)), ((), ())))
    },
}
"""By the two digits: where it is counted in a list of `ScoreCounts`."""


def _packed_result(width: int) -> str:
    """A result as one text, so that equal ones can be counted: two digits as above, its test in a fixed number of
    digits, its name. NULL where it has another score: a text would round that."""

    def by_score(end: int) -> str:
        some, no, none = ((10 + end + 4 * score) * 10**width for score in range(3))
        return (
            f"CASE c.score WHEN 1.0 THEN {some} WHEN 0.0 THEN {no} ELSE CASE WHEN c.score IS NULL THEN {none} END END"
        )

    ends = " ".join(f"WHEN '{outcome}' THEN {by_score(end)}" for outcome, end in _ENDS.items())
    ends += f" WHEN 'skipped' THEN {int(_SKIPPED) * 10**width}"
    return f"(CASE c.outcome {ends} END + r.test) || c.name"


class TimeBucket(Struct, frozen=True):
    """A piece of time, from its first millisecond to before its last. `row` is what the answers call it: a number, or
    with `of_execution` that of the execution, whose runs alone are in it."""

    row: int
    since_ms: int
    until_ms: int
    of_execution: bool = False


class SelectedRuns(Struct, frozen=True):
    """The runs from `since_ms` to before `until_ms`, of these tests (row numbers; None: all), of any of the agents,
    with all of the tags, of these projects ((): all). `but`: tests that are left out. `name_part`, `commit`, `meta`: of
    their executions, as in `RunFilter`."""

    since_ms: int
    until_ms: int
    tests: tuple[int, ...] | None = None
    agents: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    but: tuple[int, ...] = ()
    projects: tuple[str, ...] = ()
    name_part: str = ""
    commit: str = ""
    meta: tuple[tuple[str, str], ...] = ()


class TestName(Struct, frozen=True):
    """A test in the history. `row` is its row number here and in the other results of this module."""

    __test__ = False  # not a test class, whatever its name says to pytest

    row: int
    suite_key: str
    suite: str
    test_id: str
    test: str


class Tally(NamedTuple):
    """The outcomes of the runs of one test, variation and row of its dataset, in one place of time and one group.
    `row`: a number of `history.dataset_rows`, 0 without a dataset.

    `at`: the place's `row`. `key` depends on the grouping: the test's row number, the agent's name, or the plan's row
    number (`tags_of_plans` gives its tags); None without a grouping.

    This is a tuple, because there are tens of thousands: making and unpacking a tuple takes a third of the time.
    """

    at: int
    key: Any
    test: int
    variation: str
    row: int
    passed: int
    failed: int
    errors: int
    review: int


class ExecutionTime(Struct, frozen=True):
    """An execution as a place on the axis of time."""

    row: int
    id: str
    title: str
    first_ms: int
    last_ms: int


ScoreCounts = dict[tuple[int, str], list[Any]]
"""The results of criteria. A criterion is its test (a row number, as in `TestName`) and its name.

The list for each criterion: how many results passed, failed, ended in an error and wait for a person; how many have a
score that rounds down to 0.0, 0.1 and so on to 0.9 (1.0 counts there, too); the sum of the scores; and how many of each
tenth failed. It is one flat list, because there are thousands of criteria; only the display splits it.
"""
_NO_SCORES: list[Any] = [0] * 14 + [0.0] + [0] * 10


class VersionUse(NamedTuple):
    """A `version` (a hash) of a criterion judged runs of a test in an execution, or a configuration of an agent
    answered them; the first one at `first_ms`. `name`: the criterion's, or the agent's."""

    test: int
    name: str
    version: str
    execution: int
    first_ms: int


class CauseCount(Struct, frozen=True):
    """How many results failed by one cause (a signature of `grading.causes`; "": not stored),
    and in how many runs and tests. `error_kind` where the agent did not finish. `last`: the newest of the runs."""

    cause: str
    error_kind: str
    criterion: str
    runs: int
    tests: int
    last: str


def tests_known(connection: sqlite3.Connection) -> list[TestName]:
    """All tests, by suite and in the order in which they were first run."""
    rows = connection.execute(
        "SELECT t.id, s.key, s.name, t.test_id, t.name FROM tests t JOIN suites s ON s.id = t.suite ORDER BY s.id, t.id"
    )
    return [TestName(*row) for row in rows.fetchall()]


def agents_known(connection: sqlite3.Connection) -> list[str]:
    """The names of all agents that ever ran, by name."""
    names: set[str] = set()
    for (text,) in connection.execute("SELECT DISTINCT agents FROM executions").fetchall():
        names.update(json.loads(text))
    return sorted(names)


def tags_known(connection: sqlite3.Connection) -> list[str]:
    """All tags of all tests that ever ran, by name."""
    return sorted(
        {tag for (text,) in connection.execute("SELECT DISTINCT tags FROM plans") for tag in json.loads(text)}
    )


def extent(connection: sqlite3.Connection, picked: SelectedRuns) -> tuple[int, int] | None:
    """When the first and the last of the picked runs started; None: there is none."""
    times: list[int] = []
    for source, at, values in _arms(connection, picked):
        low, high = connection.execute(f"SELECT min({at}), max({at}) FROM {source}", values).fetchone()
        times += [time for time in (low, high) if time is not None]
    return (min(times), max(times)) if times else None


def tallies(
    connection: sqlite3.Connection, picked: SelectedRuns, places: Sequence[TimeBucket], group: Group = ""
) -> list[Tally]:
    """How runs ended, by place of time, group, and test with its variation and row."""
    counted: list[Tally] = []
    by_test = group in ("suite", "test")
    for at, key, packed in _gathered(connection, picked, places, group, _RUN, ""):
        # By test and row as one number; with its variation, where a run has one.
        ends: dict[int | tuple[int, str], list[int]] = {}
        for run, count in Counter(packed).items():
            which: int | tuple[int, str]
            if isinstance(run, int):
                which, end = run >> 2, run & 3
            else:
                text, _, variation = run.partition(" ")
                which, end = (int(text) >> 2, variation), int(text) & 3
            counts = ends.get(which)
            if counts is None:
                counts = ends[which] = [0, 0, 0, 0]
            counts[end] += count
        for which, (passed, failed, errors, review) in ends.items():
            number, variation = (which, "") if isinstance(which, int) else which
            test, row = divmod(number, _ROWS)
            counted.append(
                Tally(
                    at,
                    key=test if by_test else key,
                    test=test,
                    variation=variation,
                    row=row,
                    passed=passed,
                    failed=failed,
                    errors=errors,
                    review=review,
                )
            )
    return counted


def tallies_of(
    connection: sqlite3.Connection,
    picked: SelectedRuns,
    places: Sequence[TimeBucket],
    statuses: Mapping[int, str],
    group: Group = "",
) -> list[Tally]:
    """The same where runs ended as `statuses` says, by their row numbers; those that it does not name are left out."""
    by_key: dict[tuple[int, Any, int, str, int], list[int]] = {}
    who = "json_array(r.id, r.test, r.variation, coalesce(r.dataset_row, 0))"
    for at, key, runs in _gathered(connection, picked, places, group, who, "", by_test=True):
        for number, test, variation, row in runs:
            end = _ENDS.get(statuses.get(number, ""))
            if end is not None:
                by_key.setdefault((at, key, test, variation, row), [0, 0, 0, 0])[end] += 1
    return [Tally(*key, *counts) for key, counts in by_key.items()]


def picked_runs(connection: sqlite3.Connection, picked: SelectedRuns) -> list[int]:
    """The row numbers of the picked runs, newest first."""
    return _newest_that(connection, picked, "1", [])


def _newest_that(
    connection: sqlite3.Connection, picked: SelectedRuns, condition: str, of_condition: Sequence[Any]
) -> list[int]:
    """The row numbers of the picked runs that meet a condition with these values for its `?`, newest first."""
    numbers: list[int] = []
    for source, _, values in _arms(connection, picked):
        rows = connection.execute(f"SELECT r.id FROM {source} AND {condition}", [*values, *of_condition])
        numbers += [row[0] for row in rows]
    return sorted(numbers, reverse=True)


def measurements(
    connection: sqlite3.Connection,
    picked: SelectedRuns,
    places: Sequence[TimeBucket],
    measure: Measure,
    group: Group = "",
) -> list[tuple[int, Any, list[float]]]:
    """What was measured of runs: (place of time, key of the group as in `Tally`, values in no order)."""
    condition = f" AND {_MEASURED[measure]}"
    return list(_gathered(connection, picked, places, group, _VALUES[measure], condition, by_test=True))


def executions_in(connection: sqlite3.Connection, picked: SelectedRuns) -> list[ExecutionTime]:
    """The executions of the picked runs, by when those runs started."""
    executions = []
    for source, at, values in _arms(connection, picked):
        rows = connection.execute(
            f"SELECT r.execution, min({at}), max({at}) FROM {source} GROUP BY r.execution", values
        ).fetchall()
        for number, first, last in rows:
            named = connection.execute("SELECT uid, title FROM executions WHERE id = ?", (number,)).fetchone()
            if named is not None:
                uid, title = named
                executions.append(ExecutionTime(number, uid, title, first, last))
    return sorted(executions, key=lambda execution: (execution.first_ms, execution.row))


def tags_of_plans(connection: sqlite3.Connection, plans: Sequence[int]) -> dict[int, tuple[str, ...]]:
    """The tags of these plans (row numbers)."""
    rows = rows_among(connection, "SELECT id, tags FROM plans WHERE id IN {keys}", plans)
    return {number: tuple(json.loads(text)) for number, text in rows}


def feedback_scores(connection: sqlite3.Connection, picked: SelectedRuns) -> list[tuple[str, int, str, float]]:
    """The feedback on the picked runs, as `feedback.means` takes it: oldest first. What was graded again has that of
    its recording."""
    conditions, values = _conditions(connection, picked)
    more = "".join(f" AND {condition}" for condition in conditions)
    return connection.execute(
        "SELECT l.key, l.run, l.who, l.score FROM labels l JOIN runs r ON r.id = l.run"
        " JOIN executions e ON e.id = r.execution WHERE l.key != '' AND l.score IS NOT NULL"
        f" AND r.superseded != {FORK} AND coalesce(r.started_ms, e.started_ms) >= ?"
        f" AND coalesce(r.started_ms, e.started_ms) < ?{more} ORDER BY l.at_ms, l.id",
        [picked.since_ms, picked.until_ms, *values],
    ).fetchall()


class VerdictCount(NamedTuple):
    """How one criterion of one test, variation and row (as in `Tally`) did: passed, failed, errors, and others (waits
    for a person).

    `criterion`: the hash of the newest version that is stored, "" where none is. `by_agent`: how often it passed and
    failed, and when last, by agent, its configuration ("": not known), version of the criterion (its number) and
    execution.
    """

    test: int
    variation: str
    row: int
    name: str
    criterion: str
    passed: int
    failed: int
    errors: int
    review: int
    by_agent: tuple[tuple[str, str, int, int, int, int, int], ...] = ()


def verdicts(connection: sqlite3.Connection, picked: SelectedRuns) -> list[VerdictCount]:
    """How criteria did in the picked runs, by test, variation and row."""
    by_criterion: dict[tuple[int, str, int, str], list[int]] = {}
    parts: dict[tuple[int, str, int, str], dict[tuple[str, str, int, int], tuple[int, int, int]]] = {}
    # All results of a run as one text, by which runs are counted: half the time of sorting five times as many rows.
    results_text = (
        f"(SELECT json_group_array(coalesce(c.criterion, 0) || ' ' || {_END} || ' ' || c.name)"
        " FROM criterion_results c WHERE c.run = r.id AND c.outcome != 'skipped')"
    )
    split_texts: dict[str, list[tuple[int, int, str]]] = {}
    for source, at, values in _arms(connection, picked):
        rows = connection.execute(
            f"SELECT r.test, r.variation, coalesce(r.dataset_row, 0), r.agent, r.agent_version, {results_text} AS said,"
            f" max({at}), count(*), r.execution FROM {source}"
            " GROUP BY r.test, r.agent, said, r.dataset_row, r.agent_version, r.variation, r.execution",
            values,
        )
        for test, variation, row, agent, version, text, last, n, execution in rows.fetchall():
            results = split_texts.get(text)
            if results is None:
                split = (result.split(" ", 2) for result in json.loads(text))
                results = split_texts[text] = [(int(criterion), int(end), name) for criterion, end, name in split]
            for criterion, end, name in results:
                key = (test, variation, row, name)
                counts = by_criterion.get(key)
                if counts is None:
                    counts, parts[key] = by_criterion.setdefault(key, [0, 0, 0, 0, 0]), {}
                counts[0] = max(counts[0], criterion)
                counts[1 + end] += n
                good, bad, before_ms = parts[key].get((agent, version, criterion, execution), (0, 0, 0))
                ends = (good + n * (end == 0), bad + n * (end == 1), max(before_ms, last or 0))
                parts[key][agent, version, criterion, execution] = ends
    hashes = _criterion_hashes(connection, {figures[0] for figures in by_criterion.values()})
    counted = []
    for key, (criterion, passed, failed, errors, review) in sorted(by_criterion.items()):
        by_agent = tuple((*which, *ends) for which, ends in sorted(parts[key].items()))
        counted.append(
            VerdictCount(
                *key,
                criterion=hashes.get(criterion, ""),
                passed=passed,
                failed=failed,
                errors=errors,
                review=review,
                by_agent=by_agent,
            )
        )
    return counted


def _criterion_hashes(connection: sqlite3.Connection, criteria: Iterable[int]) -> dict[int, str]:
    return dict(rows_among(connection, "SELECT id, hash FROM criteria WHERE id IN {keys}", criteria))


def settings_seen(connection: sqlite3.Connection, picked: SelectedRuns) -> dict[str, int]:
    """By setting (as in the grouping of that name): when its last run started."""
    last_ms: dict[str, int] = {}
    for source, at, values in _arms(connection, picked):
        rows = connection.execute(
            f"SELECT {_KEY['setting']}, max({at}) FROM {source} GROUP BY {_GROUPED['setting']}", values
        )
        for key, last in rows.fetchall():
            last_ms[key] = max(last_ms.get(key, 0), last or 0)
    return last_ms


def criteria_of_plans(connection: sqlite3.Connection, plans: Sequence[int]) -> dict[int, str]:
    """By plan: the versions of its criteria, as a text that is the same for the same ones."""
    return dict(rows_among(connection, "SELECT id, criteria FROM plans WHERE id IN {keys}", plans))


def rows_known(connection: sqlite3.Connection, numbers: Sequence[int]) -> dict[int, tuple[str, int]]:
    """By number: what these rows of datasets are (`suites.row_keys`), and where each stood last."""
    rows = rows_among(connection, "SELECT id, key, place FROM dataset_rows WHERE id IN {keys}", numbers)
    return {number: (key, place) for number, key, place in rows}


def row_number(connection: sqlite3.Connection, test: int, key: str) -> int:
    """The number of a test's row; 0 without a dataset."""
    dataset_row = connection.execute(
        "SELECT id FROM dataset_rows WHERE key = ? AND test = ?", (storable(key), test)
    ).fetchone()
    return int(dataset_row[0]) if dataset_row else 0


def rows_of_runs(connection: sqlite3.Connection, runs: Sequence[int]) -> dict[int, int]:
    """The numbers of the rows of these runs (row numbers), 0 without a dataset."""
    return dict(rows_among(connection, "SELECT id, coalesce(dataset_row, 0) FROM runs WHERE id IN {keys}", runs))


def runs_of(connection: sqlite3.Connection, picked: SelectedRuns, variation: str, row: int, most: int) -> list[int]:
    """The row numbers of the newest of the picked runs of one variation and row."""
    condition = "r.variation = ? AND coalesce(r.dataset_row, 0) = ?"
    return _newest_that(connection, picked, condition, [variation, row])[:most]


def runs_to_judge_again(
    connection: sqlite3.Connection, picked: SelectedRuns, held: Mapping[int, Iterable[str]], most: int
) -> list[int]:
    """The row numbers of the newest of the picked runs that may end otherwise without the criteria `held` (names by
    test): those that did not pass, and those that have no other criterion."""
    names = json.dumps([[test, name] for test, listed in held.items() for name in listed])
    other = (
        "SELECT 1 FROM criterion_results o WHERE o.run = r.id AND NOT EXISTS"
        " (SELECT 1 FROM json_each(?) h"
        " WHERE json_extract(h.value, '$[0]') = r.test AND json_extract(h.value, '$[1]') = o.name)"
    )
    condition = f"(r.status != 'passed' OR NOT EXISTS ({other}))"
    return _newest_that(connection, picked, condition, [names])[:most]


def newest_runs(connection: sqlite3.Connection, picked: SelectedRuns, most: int) -> tuple[int, bool]:
    """The time from which there are at most `most` of the picked runs, and whether that leaves any out.

    Runs that started in the same millisecond stay together. If the newest millisecond alone has more than `most` runs,
    all of its runs are included.
    """
    arms = list(_arms(connection, picked))
    boundary, newest = _times_of_newest(connection, arms, most)
    if boundary is None:
        return picked.since_ms, False
    # The runs of one millisecond stay together, so the span begins after the boundary, unless it is the newest one.
    if boundary < newest:
        return boundary + 1, True
    older = [
        connection.execute(f"SELECT 1 FROM {source} AND {at} < ? LIMIT 1", [*values, boundary]).fetchone()
        for source, at, values in arms
    ]
    return boundary, any(older)


def _times_of_newest(
    connection: sqlite3.Connection, arms: Sequence[tuple[str, str, list[Any]]], most: int
) -> tuple[int | None, int]:
    """The start of the run after the `most` newest (None: there is no such run), and the start of the newest run."""
    # With one part SQLite walks the index to the place, and gives nothing out.
    if len(arms) == 1:
        ((source, at, values),) = arms
        ordered = f"SELECT {at} FROM {source} ORDER BY {at} DESC LIMIT 1 OFFSET ?"
        boundary = connection.execute(ordered, [*values, most]).fetchone()
        return (None, 0) if boundary is None else (boundary[0], connection.execute(ordered, [*values, 0]).fetchone()[0])
    times: list[int] = []
    for source, at, values in arms:
        newest = f"SELECT {at} AS at FROM {source} ORDER BY {at} DESC LIMIT ?"
        times += json.loads(
            connection.execute(f"SELECT json_group_array(at) FROM ({newest})", [*values, most + 1]).fetchone()[0]
        )
    times.sort(reverse=True)
    return (times[most], times[0]) if len(times) > most else (None, 0)


def scores(connection: sqlite3.Connection, picked: SelectedRuns) -> ScoreCounts:
    """How the results of each criterion ended, and their scores."""
    width = len(str(connection.execute("SELECT max(id) FROM tests").fetchone()[0] or 0))
    packed, until = _packed_result(width), width + 2
    by_criterion: ScoreCounts = {}
    for source, _, values in _arms(connection, picked):
        results = _with_results(source)
        texts = connection.execute(f"SELECT json_group_array({packed}) FROM {results}", values).fetchone()[0]
        counted = Counter(json.loads(texts))
        others = counted.pop(None, 0)
        for text, n in counted.items():
            places = _PLACES[text[:2]]
            if places:
                criterion = (int(text[2:until]), text[until:])
                counts = by_criterion.get(criterion)
                if counts is None:
                    counts = by_criterion[criterion] = _NO_SCORES.copy()
                for place in places:
                    counts[place] += n
        if others:
            # By score first: most criteria have few, and tenths of these few are counted sooner than one of every
            # result.
            rows = connection.execute(
                "SELECT test, name, coalesce(min(CAST(score * 10 + 1e-9 AS INTEGER), 9), -1) AS tenth, outcome, sum(n),"
                " total(scores) FROM ("
                "  SELECT r.test AS test, c.name AS name, c.score AS score, c.outcome AS outcome, count(*) AS n,"
                f"  total(c.score) AS scores FROM {results} AND ({packed}) IS NULL"
                "  GROUP BY r.test, c.name, c.score, c.outcome)"
                " GROUP BY test, name, tenth, outcome",
                values,
            )
            for test, name, *result in rows.fetchall():
                count_score(by_criterion, (test, name), *result)
    return by_criterion


def count_score(
    counted: ScoreCounts, criterion: tuple[int, str], tenth: int, outcome: str, n: int, scored: float
) -> None:
    """Add `n` results with scores that round down to that tenth (-1: no score) and sum up to `scored`."""
    counts = counted.setdefault(criterion, _NO_SCORES.copy())
    if outcome in _ENDS:
        counts[_ENDS[outcome]] += n
    if tenth >= 0:
        counts[4 + tenth] += n
        counts[14] += scored
        if outcome == "failed":
            counts[15 + tenth] += n


def versions_used(connection: sqlite3.Connection, picked: SelectedRuns) -> list[VersionUse]:
    """Which versions of criteria judged the picked runs, by test and execution; of tests of which that is more than
    one."""
    # Plans are a few, in the narrow index, and results are many. A plan without criteria (of an import) says nothing.
    criteria: dict[int, set[str]] = {}
    for source, _, values in _arms(connection, picked):
        plans = f"SELECT DISTINCT r.test AS test, r.plan AS plan FROM {source}"
        for test, text in connection.execute(
            f"SELECT DISTINCT o.test, p.criteria FROM ({plans}) o CROSS JOIN plans p ON p.id = o.plan", values
        ):
            criteria.setdefault(test, set()).add(text)
    several = tuple(test for test, texts in criteria.items() if len(texts) > 1 or "[]" in texts)
    if not several:
        return []
    # The results are many: only tests that can differ are read.
    picked = replace(picked, tests=several)
    uses: list[tuple[int, str, int, int, int]] = []
    for source, at, values in _arms(connection, picked):
        rows = connection.execute(
            f"SELECT r.test, c.name, c.criterion, r.execution, min({at}) FROM {_with_results(source)}"
            " AND c.criterion IS NOT NULL GROUP BY r.test, c.name, c.criterion, r.execution",
            values,
        )
        uses += rows.fetchall()
    hashes = _criterion_hashes(connection, {use[2] for use in uses})
    return [
        VersionUse(test, name, hashes[criterion], execution, first)
        for test, name, criterion, execution, first in uses
        if criterion in hashes
    ]


def agents_used(connection: sqlite3.Connection, picked: SelectedRuns) -> list[VersionUse]:
    """Which configurations of agents answered the picked runs, by test and execution; of tests that an agent answered
    in more than one. Those that are not known are left out."""
    versions: dict[tuple[int, str], set[str]] = {}
    for source, _, values in _arms(connection, picked):
        for test, agent, version in connection.execute(
            f"SELECT DISTINCT r.test, r.agent, r.agent_version FROM {source} AND r.agent_version != ''", values
        ):
            versions.setdefault((test, agent), set()).add(version)
    several = {test for (test, _), of_agent in versions.items() if len(of_agent) > 1}
    if not several:
        return []
    picked = replace(picked, tests=tuple(sorted(several)))
    uses: list[VersionUse] = []
    for source, at, values in _arms(connection, picked):
        rows = connection.execute(
            f"SELECT r.test, r.agent, r.agent_version, r.execution, min({at}) FROM {source}"
            " AND r.agent_version != '' GROUP BY r.test, r.agent, r.agent_version, r.execution",
            values,
        )
        uses += map(VersionUse._make, rows.fetchall())
    return uses


def causes(connection: sqlite3.Connection, picked: SelectedRuns) -> list[CauseCount]:
    """The causes of runs that failed or ended in an error, most frequent first."""
    by_cause: dict[tuple[str, str, str], list[Any]] = {}
    for source, _, values in _arms(connection, picked):
        rows = connection.execute(
            "SELECT c.cause, '' AS kind, CASE WHEN c.cause IS NULL THEN c.name ELSE '' END AS name, r.test,"
            f" count(DISTINCT r.id), max(r.id) FROM {_with_results(source)} AND r.status IN ('failed', 'error')"
            " AND r.error_kind = '' AND c.outcome IN ('failed', 'error') AND c.cause IS NOT ''"
            " GROUP BY r.test, c.cause, 3",  # numbers are compared sooner than texts
            values,
        ).fetchall()
        rows += connection.execute(
            f"SELECT '', r.error_kind, '', r.test, count(*), max(r.id) FROM {source}"
            " AND r.status = 'error' AND r.error_kind != '' GROUP BY r.error_kind, r.test",
            values,
        ).fetchall()
        for cause, kind, name, test, runs, last in rows:
            counts = by_cause.setdefault((cause or "", kind, name), [0, set(), 0])
            counts[0] += runs
            counts[1].add(test)
            counts[2] = max(counts[2], last)
    last_runs = [counts[2] for counts in by_cause.values()]
    newest = dict(rows_among(connection, "SELECT id, uid FROM runs WHERE id IN {keys}", last_runs))
    counted = [
        CauseCount(*key, runs, len(tests), newest.get(last, "")) for key, (runs, tests, last) in by_cause.items()
    ]
    return sorted(counted, key=lambda counts: (-counts.runs, counts.cause, counts.error_kind, counts.criterion))


def _with_results(source: str) -> str:
    table, _, conditions = source.partition(" WHERE ")
    # CROSS JOIN fixes the order: runs by their narrow index first, then the results of each.
    return f"{table} CROSS JOIN criterion_results c WHERE c.run = r.id AND {conditions}"


def _arms(connection: sqlite3.Connection, picked: SelectedRuns) -> Iterator[tuple[str, str, list[Any]]]:
    """(FROM and WHERE, when a run started, values) for the runs with a time of their own, then for those without."""
    conditions, values = _conditions(connection, picked)
    more = "".join(f" AND {condition}" for condition in conditions)
    span = [picked.since_ms, picked.until_ms]
    yield (
        f"{_RUNS} WHERE {ENDED} AND r.started_ms >= ? AND r.started_ms < ?{more}",
        "r.started_ms",
        [*span, *values],
    )
    # Nearly always there is none, and the second query is spared.
    if _any_undated(connection):
        yield (
            f"executions e CROSS JOIN {_RUNS} WHERE e.started_ms >= ? AND e.started_ms < ?"
            f" AND {ENDED} AND r.started_ms IS NULL AND r.execution = e.id{more}",
            "e.started_ms",
            [*span, *values],
        )


def _gathered(
    connection: sqlite3.Connection,
    picked: SelectedRuns,
    places: Sequence[TimeBucket],
    group: Group,
    what: str,
    condition: str,
    *,
    by_test: bool = False,
) -> Iterator[tuple[int, Any, list[Any]]]:
    """(place, key of the group, `what` of each run there). Without `by_test` groups that a test says have no key."""
    conditions, values = _conditions(connection, picked)
    more = "".join(f" AND {part}" for part in conditions) + condition
    # What is known of executions only (name, commit, metadata) is asked of them afterwards.
    key = _KEY.get(group, "r.execution") if by_test or group not in ("suite", "test") else ""
    selected, grouped = (f"{key}, ", f" GROUP BY {_GROUPED.get(group, key)}") if key else ("NULL, ", "")
    head = f"SELECT {selected}json_group_array({what}) FROM {_RUNS} WHERE {ENDED}"
    dated = f"{head} AND r.started_ms >= ? AND r.started_ms < ?{more}{grouped}"
    of_one = f"{head} AND r.started_ms >= ? AND r.started_ms < ? AND r.execution = ?{more}{grouped}"
    undated = f"{head} AND r.started_ms IS NULL AND r.execution IN (SELECT value FROM json_each(?)){more}{grouped}"
    without = _undated(connection)
    for place in places:
        span = [place.since_ms, place.until_ms]
        if not place.of_execution:
            rows = connection.execute(dated, [*span, *values]).fetchall()
            others = [execution for execution, at in without if place.since_ms <= at < place.until_ms]
        else:
            rows = connection.execute(of_one, [*span, place.row, *values]).fetchall()
            others = [execution for execution, _ in without if execution == place.row]
        if others:
            rows += connection.execute(undated, [json.dumps(others), *values]).fetchall()
        for name, text in rows:
            if text != "[]":
                yield place.row, name, json.loads(text)


def _undated(connection: sqlite3.Connection) -> list[tuple[int, int]]:
    """Executions that have runs without a time of their own, and when they started."""
    if not _any_undated(connection):
        return []
    rows = connection.execute(
        f"SELECT id, started_ms FROM executions WHERE id IN (SELECT r.execution FROM {_RUNS} WHERE {ENDED}"
        " AND r.started_ms IS NULL)"
    )
    return rows.fetchall()


def _any_undated(connection: sqlite3.Connection) -> bool:
    undated = connection.execute(f"SELECT 1 FROM {_RUNS} WHERE {ENDED} AND r.started_ms IS NULL LIMIT 1").fetchone()
    return undated is not None


def _conditions(connection: sqlite3.Connection, picked: SelectedRuns) -> tuple[list[str], list[Any]]:
    conditions: list[str] = []
    values: list[Any] = []
    if picked.tests is not None:
        conditions.append("r.test IN (SELECT value FROM json_each(?))")
        values.append(json.dumps(list(picked.tests)))
    if picked.projects:
        condition, of_projects = runs_in(picked.projects, "r.execution")
        conditions.append(condition)
        values += of_projects
    described, parts = described_executions(picked.name_part, picked.commit, picked.meta, column="r.execution")
    conditions += described
    values += map(storable, parts)
    if picked.but:
        conditions.append("r.test NOT IN (SELECT value FROM json_each(?))")
        values.append(json.dumps(list(picked.but)))
    if picked.agents:
        conditions.append("r.agent IN (SELECT value FROM json_each(?))")
        values.append(json.dumps([storable(agent) for agent in picked.agents]))
    if picked.tags:
        tags = set(picked.tags)
        texts = [
            text
            for (text,) in connection.execute("SELECT DISTINCT tags FROM plans").fetchall()
            if tags <= set(json.loads(text))
        ]
        conditions.append("r.plan IN (SELECT id FROM plans WHERE tags IN (SELECT value FROM json_each(?)))")
        values.append(json.dumps(texts))
    return conditions, values
