"""Runs name the row of their dataset; older files get the rows out of what their runs had."""

from __future__ import annotations

import gzip
import sqlite3
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from agenteval_tui.core.ids import new_id
from agenteval_tui.history.backup import move_suites
from agenteval_tui.history.maintenance import check
from agenteval_tui.history.merge import merge_history
from agenteval_tui.history.rebuild_totals import complete
from agenteval_tui.history.records import ExecutionRecord, PlannedRun, RunEnded
from agenteval_tui.history.store import Store
from agenteval_tui.suites.row_keys import RowKeys, content_key
from agenteval_tui.transcripts.model import Message, Transcript

OLD = Path(__file__).parent / "old" / "version5.db.gz"
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


def test_an_id_that_several_rows_of_an_older_program_had_is_none(store: Store) -> None:
    rows = [({"id": "x", "q": "1"}, "passed"), ({"id": "x", "q": "2"}, "passed")]
    execution = new_id()
    runs = []
    for row, (variables, status) in enumerate(rows, 1):
        planned = PlannedRun(new_id(), execution, row, "/s", "S", "t", "t", row=row, variables=variables)
        runs.append((planned, RunEnded(planned.id, status, 1.0, 1, 1.0, 1, Transcript())))
    store.import_runs(ExecutionRecord(execution, "t", "run", "s", (), started_ms=1), runs)
    assert sorted(keys_of(store, execution).values()) == sorted(content_key(variables) for variables, _ in rows)


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A history of file version 5, as the program of then wrote it (`old/make_version5.py`)."""
    path = tmp_path / "old.db"
    path.write_bytes(gzip.decompress(OLD.read_bytes()))
    return path


def test_an_older_history_gets_its_rows(old: Path) -> None:
    with sqlite3.connect(old) as before:
        assert before.execute("PRAGMA user_version").fetchone()[0] == 5
        outcomes = before.execute("SELECT uid, status, row FROM runs ORDER BY id").fetchall()
        totals = before.execute("SELECT uid, runs, passed, failed, errors FROM executions ORDER BY id").fetchall()
    with Store.open(old) as store:
        assert store.read(lambda c: c.execute("SELECT uid, status, row FROM runs ORDER BY id").fetchall()) == outcomes
        now = "SELECT uid, runs, passed, failed, errors FROM executions ORDER BY id"
        assert store.read(lambda c: c.execute(now).fetchall()) == totals
        executions = [uid for uid, *_ in totals]
        for test in ("rows", "named"):
            known = [
                {run.variables["question"]: run.row_key for run in store.runs_of_execution(uid) if run.test_id == test}
                for uid in executions
            ]
            assert len(set(known[0].values())) == 6
            assert all(one == known[0] for one in known), "whatever turned"
        named = {run.row_key for run in store.runs_of_execution(executions[0]) if run.test_id == "named"}
        assert named == {f"id:{n}x" for n in range(6)}
        assert {run.row_key for run in store.runs_of_execution(executions[0]) if run.test_id == "plain"} == {""}
        assert not check(store.path).wrong
        # What is planned now is what ran then, by the row's own columns.
        rows = [run for run in store.runs_of_execution(executions[0]) if run.test_id == "rows"]
        own = [{key: value for key, value in run.variables.items() if key != "tone"} for run in rows]
        planned = PlannedRun(new_id(), executions[0], 99, rows[0].suite_key, "Shop", "rows", "rows", row=4,
                             variables=rows[2].variables, row_key=content_key(own[2]))  # fmt: skip
        store.add_runs(executions[0], [planned]).result()
        assert store.run(planned.id).row_key == store.run(rows[2].id).row_key == content_key(own[2])


def test_an_older_history_merges_with_a_newer_one(old: Path, store: Store) -> None:
    merge_history(store, old)
    merge_history(store, old)
    (execution,) = [one.id for one in store.executions(10)][-1:]
    runs = [run for run in store.runs_of_execution(execution) if run.test_id == "named"]
    assert {run.row_key for run in runs} == {f"id:{n}x" for n in range(6)}
    assert not check(store.path).wrong


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
