"""Runs go by age and by count; what is of worth stays, totals stay right, and nothing is left behind."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

import pytest
from history_made import SUITE, ended, planned, record
from msgspec.structs import replace

from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.ids import now_ms
from agenteval_tui.history import baselines, quarantines
from agenteval_tui.history.delete_runs import PRUNED, remove_runs
from agenteval_tui.history.pruning import Pruning, moment_before, protection, prunable, prune
from agenteval_tui.history.rebuild_totals import recount
from agenteval_tui.history.records import ExecutionRecord, FailedAttempt, RunFilter
from agenteval_tui.history.store import Store

DAY_MS = 86_400_000
NOW = now_ms()
TOTALS = (
    "SELECT uid, runs, passed, failed, errors, skipped, cancelled, input_tokens, output_tokens, cost FROM executions"
)


def at_time(made: ExecutionRecord, at: int) -> ExecutionRecord:
    return replace(made, started_ms=at)


def fill(store: Store, name: str, days: int, number: int = 6, *, end: bool = True) -> None:
    """An execution of so many days ago; its runs go through three tests."""
    at = NOW - days * DAY_MS
    store.begin_execution(at_time(record(name), at), [planned(one, name, task={"of": name}) for one in range(number)])
    for one in range(number):
        made = ended(one, name, passed=one % 3 != 0, answer=f"word{name} {one}")
        failed = (FailedAttempt(1, "timeout", "late", 5.0, at, 7, 3, 0.25),) if one == 1 else ()
        store.run_ended(replace(made, started_ms=at, failed_attempts=failed, tape=({"of": name},)))
    if end:
        store.end_execution(name, "finished")
    store.flush()


@pytest.fixture
def aged(store: Store) -> Store:
    for name, days in (("OLD", 200), ("MIDDLE", 100), ("NEW", 1)):
        fill(store, name, days)
    return store


def raw(store: Store, statement: str) -> list[tuple[object, ...]]:
    return store.read(lambda c: c.execute(statement).fetchall())


def assert_sound(store: Store) -> None:
    """The totals are those of a new count, and nothing that no run needs is left."""
    was, tests = raw(store, TOTALS), raw(store, "SELECT id, ended FROM tests")
    store.flush()
    copy = sqlite3.connect(":memory:")
    source = sqlite3.connect(store.path)
    source.backup(copy)
    source.close()
    recount(copy)
    assert copy.execute(TOTALS).fetchall() == was
    assert copy.execute("SELECT id, ended FROM tests").fetchall() == tests
    runs = {row[0] for row in copy.execute("SELECT id FROM runs")}
    for table in ("criterion_results", "evidence", "failed_attempts", "labels", "run_replies", "tapes"):
        assert {row[0] for row in copy.execute(f"SELECT run FROM {table}")} <= runs, table
    for table, column in (("plans", "plan"), ("tasks", "task"), ("transcripts", "transcript")):
        named = {row[0] for row in copy.execute(f"SELECT {column} FROM runs")}
        assert {row[0] for row in copy.execute(f"SELECT id FROM {table}")} <= named, table
    assert len(store.run_ids(RunFilter(text="word"))) == len(runs)
    assert copy.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
    copy.close()


def test_by_age(aged: Store) -> None:
    found = prunable(aged, Pruning(before_ms=NOW - 90 * DAY_MS))
    assert (len(found.runs), found.of_runs, found.executions, found.of_executions) == (12, 18, 2, 3)
    assert found.bytes > 1_000
    assert [row.id for row in aged.executions()] == ["NEW", "MIDDLE", "OLD"], "looking changes nothing"
    told: list[tuple[int, int]] = []
    done = prune(aged, found, lambda at, of: bool(told.append((at, of))))
    assert (done.runs, done.executions) == (12, 2)
    assert done.orphans >= 2, "the tasks of both"
    assert told == [(12, 12)]
    assert [row.id for row in aged.executions()] == ["NEW"]
    assert_sound(aged)
    assert len(prunable(aged, Pruning(before_ms=NOW - 90 * DAY_MS)).runs) == 0


def test_by_count_and_both(aged: Store) -> None:
    assert len(prunable(aged, Pruning(keep=4)).runs) == 6, "6 of each test, of which 4 stay"
    assert len(prunable(aged, Pruning(before_ms=NOW - 150 * DAY_MS, keep=5)).runs) == 3
    assert len(prunable(aged, Pruning(before_ms=NOW - 90 * DAY_MS, keep=6)).runs) == 0
    done = prune(aged, prunable(aged, Pruning(keep=1)))
    assert (done.runs, done.executions) == (15, 2)
    (row,) = aged.executions()
    assert (row.id, row.runs, row.ended, row.message) == ("NEW", 3, 3, PRUNED)
    assert_sound(aged)
    with pytest.raises(AgentevalError, match="say what to remove"):
        prunable(aged, Pruning())


def test_what_is_of_worth_stays(aged: Store) -> None:
    old = [row.id for row in aged.runs_of_execution("OLD")]
    aged.label(old[0], 4).result()
    baselines.set_baseline(aged, "MIDDLE", tests=[(SUITE, "test-1")])
    quarantines.put(aged, quarantines.Quarantine(SUITE, "test-2", NOW + DAY_MS)).result()
    with sqlite3.connect(aged.path) as direct:
        direct.execute(
            "INSERT INTO triage (signature, decision, context, at_ms) VALUES ('s', 'label', ?, 1)",
            (f'{{"examples": ["{old[1]}"]}}',),
        )
    direct.close()
    fill(aged, "LIVE", 300, end=False)  # this process is its owner
    found = prunable(aged, Pruning(before_ms=NOW - 90 * DAY_MS))
    assert found.kept == {"running": 6, "baseline": 2, "labelled": 1, "triage": 1, "quarantine": 4}
    assert len(found.runs) == 18 - 14
    # Somebody labels one of those between looking and doing.
    last = aged.run_rows([found.runs[-1]])[0]
    aged.label(last.id, 1).result()
    assert prune(aged, found).runs == 3
    assert aged.run(last.id).id == last.id
    assert len(baselines.baselines(aged)) == 1
    assert_sound(aged)
    # A person who deletes knows what goes with it.
    middle = [row.rowid for row in aged.runs_of_execution("MIDDLE")]
    assert aged.read(lambda c: protection(c, middle)) == {"baseline": 2, "labelled": 1, "quarantine": 2}
    remove_runs(aged, middle)
    assert baselines.baselines(aged) == []
    assert_sound(aged)


def test_what_was_never_run_goes_by_age(store: Store) -> None:
    store.begin_execution(at_time(record("LEFT"), NOW - 100 * DAY_MS), [planned(one, "LEFT") for one in range(3)])
    store.begin_execution(at_time(record("EMPTY"), NOW - 100 * DAY_MS), [])
    for name in ("LEFT", "EMPTY"):
        store.end_execution(name, "interrupted").result()
    assert len(prunable(store, Pruning(keep=0)).runs) == 0, "it can be resumed"
    found = prunable(store, Pruning(before_ms=NOW))
    assert (len(found.runs), list(found.empty), found.executions) == (3, [2], 2)
    assert prune(store, found).executions == 2
    assert store.counts().executions == 0


def test_it_can_be_stopped_and_another_process_writes_meanwhile(store: Store, path: Path) -> None:
    fill(store, "BIG", 200, 420)
    fill(store, "RUNS", 0, 1, end=False)
    done = prune(store, prunable(store, Pruning(before_ms=NOW - DAY_MS)), lambda at, of: at >= 200)
    assert done.runs == 200
    assert store.execution("BIG").message == PRUNED
    with Store.open(path) as other:
        other.run_started("RUNS-RUN-00000", 1, 5).result()
    assert_sound(store)
    assert os.path.exists(path)


def test_ages_and_days() -> None:
    now = 1000 * 86_400_000
    ages = ("90d", "24 h", "2w", " 1Y ", "6mo")
    assert [(now - moment_before(age, now)) // 86_400_000 for age in ages] == [90, 1, 14, 365, 180]
    assert moment_before("1970-01-02T00:00+00:00", now) == 86_400_000
    for wrong in ("90", "soon", "-3d", "9999999d", "d"):
        with pytest.raises(AgentevalError, match="is not an age or a day"):
            moment_before(wrong, now)
