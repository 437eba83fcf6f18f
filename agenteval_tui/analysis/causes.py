"""Failures grouped by their cause, worst first: "212 failures = 6 causes".

Which runs a question about causes means, and what they are compared with.

Compared is with the baseline of each test, where one is set and is not among these runs; else with the execution
before in which the test was run.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Literal

from msgspec import Struct, field
from msgspec.structs import replace

from agenteval_tui.core.groups import grouped
from agenteval_tui.core.ids import short_id
from agenteval_tui.core.phrasing import quoted
from agenteval_tui.grading.causes import Cause, cause_from
from agenteval_tui.grading.placeholders import names_in
from agenteval_tui.history import causes as stored
from agenteval_tui.history.baselines import baseline_runs, baselines_of
from agenteval_tui.history.causes import Failure
from agenteval_tui.history.records import RunFilter
from agenteval_tui.history.store import Store

if TYPE_CHECKING:
    from array import array
    from sqlite3 import Connection


Trend = Literal["new", "known", "gone", ""]
TestKey = tuple[str, str]


class Scope(Struct, frozen=True):
    """Which runs are looked at, and which ones they are compared with: row numbers, oldest first.

    `words` and `before_words` say in a few words what they are: "execution 01J9…", "the execution before".
    """

    runs: tuple[int, ...]
    before: tuple[int, ...] = ()
    words: str = ""
    before_words: str = ""
    execution_id: str = ""


class CauseGroup(Struct, frozen=True):
    """One cause and the runs that have it.

    `runs`: row numbers, newest first; `run_ids` their ids. `tests`: (suite key, test id), those with the most runs
    first; `test_names` beside them. `positions` and `hashes` stand beside `runs`: the number of the failed result (-1:
    the agent failed) and its criterion's version ("": not known). `share`: of the
    failed runs that are looked at. `ended`: runs of these tests that are looked at, passed or not. `newest_ms` and
    `since_ms`: when the newest run here, and the first one ever, started (None: not known). `trend` against what is
    compared with ("": none of its tests ran there): "gone" groups have no runs here, and `runs` are those before.
    `expected`: what was expected, where that is the same in all of the runs; else "".
    """

    cause: Cause
    runs: tuple[int, ...]
    run_ids: tuple[str, ...]
    tests: tuple[TestKey, ...]
    test_names: tuple[str, ...]
    positions: tuple[int, ...] = ()
    hashes: tuple[str, ...] = ()
    share: float = 0.0
    ended: int = 0
    newest_ms: int | None = None
    since_ms: int | None = None
    since_run: str = ""
    trend: Trend = ""
    before: int = 0
    expected: str = ""

    @property
    def count(self) -> int:
        """Runs with this cause; 0 for one that is gone."""
        return 0 if self.trend == "gone" else len(self.runs)

    @property
    def versions(self) -> tuple[str, ...]:
        """The versions (hashes) of the criterion in these runs."""
        return tuple(sorted(set(self.hashes) - {""}))

    @property
    def title(self) -> str:
        """The cause in a line, with what was expected where that is always the same."""
        return self.cause.title_with(self.expected)

    def address(self, number: int = 0) -> str:
        """RUN/CRITERION of one of the runs (the newest first); RUN alone for an agent's error."""
        position = self.positions[number]
        return self.run_ids[number] if position < 0 else f"{self.run_ids[number]}/{position + 1}"


class Causes(Struct, frozen=True):
    """All causes of what is looked at, worst first (most runs, then the newest); those that are gone last."""

    scope: Scope
    groups: tuple[CauseGroup, ...] = ()
    failed: int = 0
    ended: int = 0

    @property
    def present(self) -> tuple[CauseGroup, ...]:
        """Those that are not gone."""
        return tuple(group for group in self.groups if group.trend != "gone")


def group_failures(store: Store, scope: Scope) -> Causes:
    """The causes of a scope's failed runs. A run with several failed criteria counts in each of their causes.

    The evidence of the runs of a cause is read until two runs expected different things: a title holds for every
    run, or says less.
    """
    # One look at the history for both: the end of an execution waits for this.
    failures = stored.failures(store, [*scope.runs, *scope.before])
    earlier = frozenset(scope.before)
    now = [failure for failure in failures if failure.run not in earlier]
    by_cause, before = _grouped(now), _grouped(failure for failure in failures if failure.run in earlier)
    gone = {signature: alike for signature, alike in before.items() if signature not in by_cause}
    facts = store.read(lambda c: _Facts.read(c, scope, failures))
    facts.since = store.read(lambda c: _since(c, [*by_cause, *gone]))
    # Only for these it matters whether their tests ran before: one query less where all is known.
    unknown = by_cause.keys() - before.keys()
    ran = store.read(lambda c: stored.tests_of(c, scope.before)) if unknown and scope.before else set()
    failed = len({failure.run for failure in now})
    groups = []
    for signature, alike in by_cause.items():
        # What fails in tests that never ran before is no news of them.
        trend: Trend = (
            "known" if signature in before else "new" if any(failure.test in ran for failure in alike) else ""
        )
        groups.append(facts.group(signature, alike, trend, failed, len(before.get(signature, ()))))
    groups.sort(key=lambda cause_group: (-len(cause_group.runs), -cause_group.runs[0]))
    for signature, alike in gone.items():
        groups.append(facts.group(signature, alike, "gone", 0, len(before[signature])))
    ended = len(scope.runs)
    named = store.read(lambda c: tuple(_with_expected(c, group) for group in groups))
    return Causes(scope, named, failed, ended)


def failure_causes(store: Store, run_ids: Sequence[str]) -> dict[str, list[Cause]]:
    """The causes of failed runs, by run id: for lists and exports. Runs that passed are left out."""
    rows = store.read(
        lambda c: c.execute(
            "SELECT id, uid FROM runs WHERE uid IN (SELECT value FROM json_each(?))", (json.dumps(list(run_ids)),)
        ).fetchall()
    )
    names = dict(rows)
    return grouped(
        (names[failure.run], cause_from(failure.signature)) for failure in stored.failures(store, list(names))
    )


def _grouped(failures: Iterable[Failure]) -> dict[str, list[Failure]]:
    """By signature, each run once."""
    grouped: dict[str, dict[int, Failure]] = {}
    for failure in failures:
        grouped.setdefault(failure.signature, {}).setdefault(failure.run, failure)
    return {signature: list(by_run.values()) for signature, by_run in grouped.items()}


def _since(connection: Connection, signatures: Sequence[str]) -> dict[str, tuple[int, str, int | None]]:
    """The first run with each signature: its row number, id and start time."""
    oldest = stored.first_seen_in(connection, signatures)
    runs = _runs(connection, oldest.values())
    return {signature: (run, *runs[run]) for signature, run in oldest.items() if run in runs}


def _runs(connection: Connection, numbers: Iterable[int]) -> dict[int, tuple[str, int | None]]:
    """The id and the start time of these runs, by row number."""
    rows = connection.execute(
        "SELECT id, uid, started_ms FROM runs WHERE id IN (SELECT value FROM json_each(?))",
        (json.dumps(sorted(set(numbers))),),
    )
    return {row[0]: (row[1], row[2]) for row in rows.fetchall()}


def _tests(connection: Connection, numbers: Iterable[int]) -> dict[int, tuple[TestKey, str]]:
    """The key and the name of these tests, by row number."""
    rows = connection.execute(
        "SELECT t.id, s.key, t.test_id, t.name FROM tests t JOIN suites s ON s.id = t.suite"
        " WHERE t.id IN (SELECT value FROM json_each(?))",
        (json.dumps(sorted(set(numbers))),),
    )
    return {row[0]: ((row[1], row[2]), row[3]) for row in rows.fetchall()}


class _Facts(Struct):
    """What groups are filled with."""

    runs: dict[int, tuple[str, int | None]]
    tests: dict[int, tuple[TestKey, str]]
    ended: dict[int, int]
    since: dict[str, tuple[int, str, int | None]] = field(default_factory=dict)

    @classmethod
    def read(cls, connection: Connection, scope: Scope, failures: Sequence[Failure]) -> _Facts:
        ended = connection.execute(
            "SELECT test, count(*) FROM runs WHERE id IN (SELECT value FROM json_each(?)) GROUP BY test",
            (json.dumps(list(scope.runs)),),
        )
        return cls(
            _runs(connection, (failure.run for failure in failures)),
            _tests(connection, (failure.test for failure in failures)),
            dict(ended.fetchall()),
        )

    def group(self, signature: str, failures: list[Failure], trend: Trend, failed: int, before: int) -> CauseGroup:
        failures = sorted(
            (failure for failure in failures if failure.run in self.runs), key=lambda failure: -failure.run
        )
        counts = Counter(failure.test for failure in failures)
        tests = sorted(
            (test for test in counts if test in self.tests), key=lambda test: (-counts[test], self.tests[test])
        )
        oldest = self.since.get(signature)
        first = failures[-1]
        # Not every result has its cause stored: a run that is looked at here can be older.
        if oldest is None or first.run < oldest[0]:
            oldest = (first.run, *self.runs[first.run])
        return CauseGroup(
            cause_from(signature),
            runs=tuple(failure.run for failure in failures),
            run_ids=tuple(self.runs[failure.run][0] for failure in failures),
            tests=tuple(self.tests[test][0] for test in tests),
            test_names=tuple(self.tests[test][1] for test in tests),
            positions=tuple(failure.position for failure in failures),
            hashes=tuple(failure.criterion for failure in failures),
            share=len(failures) / failed if failed else 0.0,
            ended=sum(self.ended.get(test, 0) for test in counts),
            newest_ms=self.runs[failures[0].run][1],
            since_ms=oldest[2],
            since_run=oldest[1],
            trend=trend,
            before=before,
        )


_NAMED = ("ToolCheck", "Trajectory", "Json", "Classification", "extraction")
"""Metrics of which the cause itself has what was expected."""


def _with_expected(connection: Connection, group: CauseGroup) -> CauseGroup:
    """The group with what was expected, if all its runs agree on that."""
    cause = group.cause
    if cause.kind != "failed" or not cause.metric or cause.metric in _NAMED:
        return group
    if cause.about and not names_in(cause.about):
        return group  # a text that the cause names
    expected = stored.expected_by_all(connection, list(zip(group.runs, group.positions, strict=True)))
    if isinstance(expected, str):
        # A range of scores is not a text that was looked for.
        wording = expected if cause.condition == "score" else quoted(expected, 40) if expected else ""
    else:
        wording = _figure(expected)
    return replace(group, expected=wording)


def _figure(expected: object) -> str:
    return f"{expected:g}" if isinstance(expected, int | float) and not isinstance(expected, bool) else ""


# Which runs a question about causes means, and what they are compared with


def execution_scope(store: Store, ref: str = "last", test_ids: Sequence[str] = ()) -> Scope:
    """The runs of an execution ("last", an id or its start), of all its tests or of these. Raises AgentevalError."""
    row = store.execution(ref)
    words = f"execution {short_id(row.id)}"
    only = {test_id.casefold() for test_id in test_ids}

    def read(c: Connection) -> dict[int, list[int]]:
        runs_by_test: dict[int, list[int]] = {}
        rows = c.execute(
            "SELECT r.test, r.id, t.test_id FROM runs r JOIN tests t ON t.id = r.test WHERE r.execution = ?"
            " AND r.status IN ('passed', 'failed', 'error', 'needs_review') ORDER BY r.id",
            (row.rowid,),
        )
        for test, run, test_id in rows.fetchall():
            if not only or test_id.casefold() in only:
                runs_by_test.setdefault(test, []).append(run)
        return runs_by_test

    by_test = store.read(read)
    return _compared(store, by_test, dict.fromkeys(by_test, row.rowid), words, row.id)


def newest_scope(
    store: Store, suite_keys: Sequence[str] = (), test_ids: Sequence[str] = (), projects: Sequence[str] = ()
) -> Scope:
    """Of each test of these suites (keys; none: all) with these ids (none: all) the runs of its newest execution, of
    all executions or of those of these projects."""

    def read(c: Connection) -> tuple[dict[int, list[int]], dict[int, int]]:
        tests = stored.tests_where(c, suite_keys, test_ids)
        newest = stored.newest_executions(c, dict.fromkeys(tests), projects)
        return stored.runs_of_tests(c, newest), newest

    by_test, newest = store.read(read)
    single = len(by_test) == 1
    return _compared(store, by_test, newest, f"the newest runs of {'the test' if single else 'each test'}", "")


def filter_scope(store: Store, run_filter: RunFilter) -> Scope:
    """All ended runs that a filter lets through, with nothing to compare with."""
    ids: array[int] = store.run_ids(run_filter)
    # Of an execution that is named its own runs, else of each recording its newest grading.
    newest = "r.superseded = 0 AND r.id IN (SELECT value FROM json_each(?))"
    chosen = "r.id IN (SELECT value FROM json_each(?))" if run_filter.execution_id else newest
    ended = store.read(lambda c: stored.runs_where(c, chosen, [json.dumps(list(ids))]))
    return Scope(tuple(ended), words="all runs" if not run_filter.text else f"runs with “{run_filter.text}”")


def _compared(
    store: Store, by_test: dict[int, list[int]], executions: dict[int, int], words: str, execution_id: str
) -> Scope:
    """The scope with what each test is compared with."""
    runs = sorted(run for test_runs in by_test.values() for run in test_runs)
    keys = {test: key for test, (key, _) in store.read(lambda c: _tests(c, by_test)).items()}
    based = set(baselines_of(store, keys.values()))
    base = store.read(lambda c: _numbers(c, baseline_runs(store, based))) if based else []
    # A baseline that is among these runs would be compared with itself.
    own = {test for test, key in keys.items() if key in based and not set(base).intersection(by_test[test])}
    named = {keys[test] for test in own}
    before = store.read(lambda c: _numbers(c, baseline_runs(store, named))) if named else []

    def earlier(c: Connection) -> list[int]:
        newest = stored.newest_executions(c, {test: executions[test] for test in by_test if test not in own})
        return [run for runs_of_test in stored.runs_of_tests(c, newest).values() for run in runs_of_test]

    previous = store.read(earlier)
    sides = (("the baseline", before), ("the execution before", previous))
    compared_with = ", or ".join(words for words, of_side in sides if of_side)
    return Scope(tuple(runs), tuple(sorted([*before, *previous])), words, compared_with, execution_id)


def _numbers(connection: Connection, run_ids: Sequence[str]) -> list[int]:
    rows = connection.execute(
        "SELECT id FROM runs WHERE uid IN (SELECT value FROM json_each(?))", (json.dumps(list(run_ids)),)
    )
    return [row[0] for row in rows.fetchall()]
