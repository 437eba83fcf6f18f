"""Runs name the row of their dataset; older files get the rows out of what their runs had."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from agenteval_tui.core.ids import new_id
from agenteval_tui.history.backup import move_suites
from agenteval_tui.history.merge import merge_history
from agenteval_tui.history.rebuild_totals import complete
from agenteval_tui.history.records import ExecutionRecord, PlannedRun, RunEnded
from agenteval_tui.history.store import Store
from agenteval_tui.suites.row_keys import RowKeys, content_key
from agenteval_tui.transcripts.model import Message, Transcript

Rows = Iterable[tuple[Mapping[str, Any], str]]


def add(
    store: Store,
    rows: Rows,
    *,
    test_variables: Mapping[str, Any] | None = None,
    keyed: bool = True,
    row_id: str | None = None,
    suite: str = "/s.suite.yaml",
    repeat: int = 1,
) -> str:
    """Store an execution of a test with these rows, each with its outcome; its id."""
    execution, keys, runs = new_id(), RowKeys(row_id), []
    for row, (variables, status) in enumerate(rows, 1):
        key = keys.of(variables, row)
        assert isinstance(key, str)
        for repetition in range(1, repeat + 1):
            planned = PlannedRun(
                new_id(), execution, len(runs), suite, "S", "t", "t", row=row, repetition=repetition, agent="bot",
                variables={**(test_variables or {}), **variables}, row_key=key if keyed else "",
            )  # fmt: skip
            transcript = Transcript(messages=(Message("assistant", status),))
            runs.append((planned, RunEnded(planned.id, status, 1.0, 1, 1.0, 1, transcript)))
    store.import_runs(ExecutionRecord(execution, "t", "run", "s", (suite,), started_ms=1), runs)
    return execution


def keys_of(store: Store, execution: str) -> dict[str, str]:
    """By question: the key of its row."""
    return {run.variables["q"]: run.row_key for run in store.runs_of_execution(execution)}


def rows_stored(store: Store) -> list[tuple[str, int, int]]:
    return store.read(lambda c: c.execute("SELECT key, place, assumed FROM dataset_rows ORDER BY id").fetchall())


A, B, C = ({"q": name} for name in "abc")


def test_a_row_is_one_wherever_it_stands(store: Store) -> None:
    first = add(store, [(A, "passed"), (B, "passed")])
    second = add(store, [(C, "passed"), (B, "failed"), (A, "passed")])
    was, now = keys_of(store, first), keys_of(store, second)
    assert (was["a"], was["b"]) == (now["a"], now["b"])
    assert sorted(place for _, place, _ in rows_stored(store)) == [1, 2, 3]
    (run,) = [one for one in store.runs_of_execution(second) if one.variables == A]
    assert [one.row for one in store.repetitions(run.suite_key, "t", "", run.row_key)] == [3, 1]


def test_rows_that_came_without_a_key_are_adopted_by_their_variables(store: Store) -> None:
    own = {"tone": "kind"}
    old = add(store, [(A, "passed"), (B, "failed"), (A, "passed")], test_variables=own, keyed=False)
    assert {assumed for _, _, assumed in rows_stored(store)} == {1}
    new = add(store, [(B, "passed"), (A, "passed"), (A, "failed"), (C, "passed")], test_variables=own)
    was, now = store.runs_of_execution(old), store.runs_of_execution(new)
    assert [run.row_key for run in was] == [now[1].row_key, now[0].row_key, now[2].row_key]
    assert now[0].row_key == content_key(B)
    assert {assumed for _, _, assumed in rows_stored(store)} == {0}
    later = add(store, [(A, "passed")], test_variables={"tone": "rude"})
    assert store.runs_of_execution(later)[0].row_key == now[1].row_key, "the test's own variables are not the row's"


def test_an_id_that_several_rows_that_came_without_keys_had_is_none(store: Store) -> None:
    rows = [({"id": "x", "q": "1"}, "passed"), ({"id": "x", "q": "2"}, "passed")]
    execution = new_id()
    runs = []
    for row, (variables, status) in enumerate(rows, 1):
        planned = PlannedRun(new_id(), execution, row, "/s", "S", "t", "t", row=row, variables=variables)
        runs.append((planned, RunEnded(planned.id, status, 1.0, 1, 1.0, 1, Transcript())))
    store.import_runs(ExecutionRecord(execution, "t", "run", "s", (), started_ms=1), runs)
    assert sorted(keys_of(store, execution).values()) == sorted(content_key(variables) for variables, _ in rows)


def test_rows_come_with_a_merge_follow_a_move_and_are_made_anew_when_lost(store: Store, tmp_path: Path) -> None:
    here = add(store, [(A, "passed"), (B, "passed")], suite="/a/s.suite.yaml")
    with Store.open(tmp_path / "other.db") as other:
        there = add(other, [(B, "passed"), (C, "passed")], suite="/b/s.suite.yaml")
    merge_history(store, tmp_path / "other.db")
    assert move_suites(store, "/b", "/a").merged == 1
    assert keys_of(store, here)["b"] == keys_of(store, there)["b"] == content_key(B)
    assert sorted(key for key, *_ in rows_stored(store)) == sorted(map(content_key, (A, B, C)))
    was = keys_of(store, there)
    store.close()
    with sqlite3.connect(tmp_path / "history.db" if (tmp_path / "history.db").exists() else store.path) as broken:
        broken.execute("DELETE FROM dataset_rows")
        complete(broken)
    with Store.open(store.path) as again:
        assert keys_of(again, there) == was
