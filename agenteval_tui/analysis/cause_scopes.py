"""Which runs a question about causes means, and what they are compared with.

Compared is with the baseline of each test, where one is set and is not among these runs; else with the execution
before in which the test was run.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from agenteval_tui.analysis.causes import Scope
from agenteval_tui.history import causes as stored
from agenteval_tui.history.baselines import baseline_runs, baselines_of

if TYPE_CHECKING:
    from array import array
    from sqlite3 import Connection

    from agenteval_tui.history.rows import RunFilter
    from agenteval_tui.history.store import Store

TestKey = tuple[str, str]


def execution_scope(store: Store, ref: str = "last", test_ids: Sequence[str] = ()) -> Scope:
    """The runs of an execution ("last", an id or its start), of all its tests or of these. Raises AgentevalError."""
    row = store.execution(ref)
    words = f"execution {row.id[:10]}"
    only = {one.casefold() for one in test_ids}

    def read(c: Connection) -> dict[int, list[int]]:
        found: dict[int, list[int]] = {}
        rows = c.execute(
            "SELECT r.test, r.id, t.test_id FROM runs r JOIN tests t ON t.id = r.test WHERE r.execution = ?"
            " AND r.status IN ('passed', 'failed', 'error', 'needs_review') ORDER BY r.id",
            (row.rowid,),
        )
        for test, run, test_id in rows.fetchall():
            if not only or test_id.casefold() in only:
                found.setdefault(test, []).append(run)
        return found

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
    one = len(by_test) == 1
    return _compared(store, by_test, newest, f"the newest runs of {'the test' if one else 'each test'}", "")


def filter_scope(store: Store, wanted: RunFilter) -> Scope:
    """All ended runs that a filter lets through, with nothing to compare with."""
    ids: array[int] = store.run_ids(wanted)
    # Of an execution that is named its own runs, else of each recording its newest grading.
    newest = "r.superseded = 0 AND r.id IN (SELECT value FROM json_each(?))"
    chosen = "r.id IN (SELECT value FROM json_each(?))" if wanted.execution_id else newest
    ended = store.read(lambda c: stored.runs_where(c, chosen, [json.dumps(list(ids))]))
    return Scope(tuple(ended), words="all runs" if not wanted.text else f"runs with “{wanted.text}”")


def _compared(
    store: Store, by_test: dict[int, list[int]], executions: dict[int, int], words: str, execution_id: str
) -> Scope:
    """The scope with what each test is compared with."""
    runs = sorted(run for found in by_test.values() for run in found)
    keys = store.read(lambda c: _keys(c, list(by_test)))
    based = set(baselines_of(store, keys.values()))
    base = store.read(lambda c: _numbers(c, baseline_runs(store, based))) if based else []
    own = {test for test, key in keys.items() if key in based and not set(base).intersection(by_test[test])}
    named = {keys[test] for test in own}
    before = store.read(lambda c: _numbers(c, baseline_runs(store, named))) if named else []

    def earlier(c: Connection) -> list[int]:
        newest = stored.newest_executions(c, {test: executions[test] for test in by_test if test not in own})
        return [run for found in stored.runs_of_tests(c, newest).values() for run in found]

    previous = store.read(earlier)
    said = "the baseline" if before and not previous else "the execution before" if previous and not before else ""
    if before and previous:
        said = "the baseline, or the execution before"
    return Scope(tuple(runs), tuple(sorted([*before, *previous])), words, said, execution_id)


def _keys(connection: Connection, tests: Sequence[int]) -> dict[int, TestKey]:
    rows = connection.execute(
        "SELECT t.id, s.key, t.test_id FROM tests t JOIN suites s ON s.id = t.suite"
        " WHERE t.id IN (SELECT value FROM json_each(?))",
        (json.dumps(list(tests)),),
    )
    return {row[0]: (row[1], row[2]) for row in rows.fetchall()}


def _numbers(connection: Connection, run_ids: Sequence[str]) -> list[int]:
    rows = connection.execute(
        "SELECT id FROM runs WHERE uid IN (SELECT value FROM json_each(?))", (json.dumps(list(run_ids)),)
    )
    return [row[0] for row in rows.fetchall()]
