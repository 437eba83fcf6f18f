"""What the history keeps for later: tasks, failed attempts, answers to be used again, and who paid for what."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from history_made import SUITE, ended, planned, record, transcript
from msgspec.structs import replace
from test_replies import reply
from test_salvage import overwrite, pages_of, rescued

from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.history import rebuild_totals
from agenteval_tui.history.maintenance import check_health
from agenteval_tui.history.records import CostRow, FailedAttempt, RunFilter
from agenteval_tui.history.store import Store
from agenteval_tui.transcripts.model import RunError

RUN = "EXECUTION-1-RUN-{:05}"
SETUP = {"agents": {"a": {"config": {"kind": "demo", "note": "x" * 2_000}}}}
TASKS = ({"prompt": "one"}, {"prompt": "two \ud800", "long": "y" * 2_000})
DEAD = 2**22 + 1  # no process has this number


def begin(store: Store, number: int = 4, execution: str = "EXECUTION-1", **more: object) -> None:
    runs = [planned(n, execution, task=TASKS[n % 2], seed=n) for n in range(number)]
    store.begin_execution(record(execution, setup=SETUP, **more), runs).result()


def attempt(number: int = 1, **more: object) -> FailedAttempt:
    values: dict[str, object] = {"input_tokens": 7, "output_tokens": 3, "cost": 0.125, **more}
    return FailedAttempt(number, "connection", f"gone {number}", 12.5, 99, **values)  # type: ignore[arg-type]


def count(store: Store, table: str) -> int:
    with sqlite3.connect(store.path) as connection:
        return int(connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0])


def agree(store: Store) -> None:
    """The maintained totals are what `costs` adds up, and what a rescue would count."""
    store.flush()
    row, agents = store.execution("last"), [one for one in store.costs("EXECUTION-1") if one.kind == "agent"]
    totals = row.input_tokens, row.output_tokens, row.cost
    assert totals == (
        sum(one.input_tokens for one in agents),
        sum(one.output_tokens for one in agents),
        sum(one.cost or 0.0 for one in agents),
    )
    with sqlite3.connect(store.path) as connection:
        rebuild_totals.recount(connection)
        found = connection.execute("SELECT input_tokens, output_tokens, cost FROM executions WHERE uid = 'EXECUTION-1'")
        assert found.fetchone() == totals
        connection.rollback()


def test_attempts_of_a_run_that_goes_back_to_the_queue(store: Store) -> None:
    begin(store)
    store.keep_attempts(RUN.format(0), [attempt(1), attempt(2)])
    store.end_execution("EXECUTION-1", "stopped").result()
    assert store.execution("last").cost == 0.25
    assert store.resume_execution("EXECUTION-1").result() == 4
    store.run_ended(replace(ended(0), failed_attempts=(attempt(1, cost=None),))).result()
    assert [one.number for one in store.failed_attempts(RUN.format(0))] == [1, 2, 3]
    assert store.execution("last").cost == 0.75
    agree(store)
    with pytest.raises(AgentevalError, match="there is no planned run"):
        store.keep_attempts("NOBODY", [attempt()]).result()


def test_tasks_come_back_and_are_stored_once(store: Store) -> None:
    begin(store)
    begin(store, execution="EXECUTION-2")
    found = store.tasks_of("EXECUTION-1")
    assert [found[RUN.format(n)].task for n in range(4)] == [*TASKS, *TASKS]
    assert [found[RUN.format(n)].seed for n in range(4)] == [0, 1, 2, 3]
    assert store.setup_of("EXECUTION-1") == SETUP == store.setup_of("EXECUTION-2")
    assert count(store, "tasks") == 2  # all tasks, and the setup
    store.begin_execution(record("BARE"), [planned(0, "BARE")]).result()
    assert store.tasks_of("BARE") == {}
    assert store.setup_of("BARE") is None


def test_many_tasks(store: Store) -> None:
    tasks = [{"number": n} for n in range(2_500)]
    runs = [planned(n, task=tasks[n % 2_500], seed=n) for n in range(5_000)]
    store.begin_execution(record(), runs[:4_000])
    store.add_runs("EXECUTION-1", runs[4_000:]).result()
    found = store.tasks_of("EXECUTION-1")
    assert [found[run.id].task["number"] for run in runs] == [*range(2_500), *range(2_500)]
    assert count(store, "tasks") == 4


def test_an_execution_is_taken_up_where_it_was_left(store: Store) -> None:
    begin(store, 6)
    store.run_ended(ended(0))
    store.run_ended(ended(1, passed=False))
    store.run_started(RUN.format(2), 1, 5)
    store.run_ended(replace(ended(3), status="cancelled", failed_attempts=(attempt(),)))
    store.end_execution("EXECUTION-1", "cancelled", "by hand").result()
    assert store.execution("last").cost == 1.625, "with the attempt that failed"
    assert store.resume_execution("EXECUTION-1", options={"max_cost": 2}).result() == 4
    row = store.execution("last")
    assert (row.status, row.message, row.finished_ms, row.options) == ("running", "", None, {"max_cost": 2})
    assert (row.passed, row.failed, row.cancelled, row.cost, row.ended) == (1, 1, 0, 1.625, 2)
    assert [run.status for run in store.runs_of_execution("EXECUTION-1")] == ["passed", "failed", *["queued"] * 4]
    assert (store.run(RUN.format(3)).attempts, store.run(RUN.format(3)).duration_ms) == (0, None)
    assert store.transcript(RUN.format(3)).messages == ()
    assert len(store.run_ids(RunFilter(text="way"))) == 2
    # What the cancelled run had used stays known, behind the attempt that it had before.
    assert [(one.number, one.kind, one.cost) for one in store.failed_attempts(RUN.format(3))] == [
        (1, "connection", 0.125),
        (2, "cancelled", 0.5),
    ]
    assert store.failed_attempts(RUN.format(4)) == []
    for number in (2, 3, 4, 5):
        store.run_ended(ended(number))
    store.end_execution("EXECUTION-1", "finished").result()
    row = store.execution("last")
    assert (row.passed, row.failed, row.cost) == (5, 1, 3.625)
    agree(store)
    with sqlite3.connect(store.path) as connection:
        connection.execute("INSERT INTO search (search) VALUES ('integrity-check')")


def test_what_is_running_or_imported_is_not_taken_up(store: Store) -> None:
    begin(store)
    with pytest.raises(AgentevalError, match="is running"):
        store.resume_execution("EXECUTION-1").result()
    store.begin_execution(record("IMPORT", kind="import"), [])
    store.end_execution("IMPORT", "finished").result()
    with pytest.raises(AgentevalError, match="was imported"):
        store.resume_execution("IMPORT").result()
    with pytest.raises(AgentevalError, match="there is no execution"):
        store.resume_execution("NOBODY").result()
    begin(store, execution="DEAD", pid=DEAD)
    assert store.resume_execution("DEAD").result() == 4


def test_a_stopped_execution_keeps_what_waits(store: Store) -> None:
    begin(store)
    store.run_ended(ended(0))
    store.run_started(RUN.format(1), 1, 5)
    store.end_execution("EXECUTION-1", "stopped", "the limit of $1 is reached").result()
    row = store.execution("last")
    assert (row.status, row.message, row.cancelled) == ("stopped", "the limit of $1 is reached", 0)
    assert [run.status for run in store.runs_of_execution("EXECUTION-1")] == ["passed", *["queued"] * 3]


def test_the_newest_answer_without_an_error_is_found_again(store: Store) -> None:
    begin(store)
    broken = replace(transcript(), error=RunError("timeout", "no answer"))
    store.run_ended(replace(ended(0, answer="first"), request="r" * 32))
    store.run_ended(replace(ended(1, answer="second", passed=False), request="r" * 32))
    store.run_ended(replace(ended(2), status="error", transcript=broken, request="r" * 32)).result()
    assert store.cached("r" * 32) == (RUN.format(1), transcript("second"))
    assert store.cached("other") is None
    assert store.cached("") is None
    # Graded again it is still found, and still an answer that was known before.
    store.run_ended(replace(ended(3), request="s", cached=True))
    store.run_ended(ended(3, passed=False)).result()
    assert store.cached("s") is not None
    assert store.run(RUN.format(3)).cached
    with sqlite3.connect(store.path) as connection:
        plan = connection.execute(
            "EXPLAIN QUERY PLAN SELECT id FROM runs WHERE request = 'r' ORDER BY id DESC"
        ).fetchall()
    assert "runs_by_request" in str(plan)


def test_who_paid_for_what(store: Store) -> None:
    begin(store, 3)
    store.run_ended(replace(ended(0), failed_attempts=(attempt(1), attempt(2))))
    store.run_ended(ended(1))
    store.run_ended(replace(ended(2), cached=True)).result()
    mine = replace(reply(), criterion="hash-a")
    store.keep_replies(RUN.format(0), [mine, replace(reply(prompt="other", cost=None), criterion="hash-b")])
    store.keep_replies(RUN.format(1), [mine]).result()  # known by then: nobody paid again
    assert store.costs("EXECUTION-1") == [
        CostRow("agent", SUITE, "test-0", "Test 0", "demo", "", "", 1, 114, 26, 0.75),
        CostRow("agent", SUITE, "test-1", "Test 1", "demo", "", "", 1, 100, 20, 0.5),
        CostRow("judge", SUITE, "test-0", "Test 0", "m", "hash-a", "polite", 1, 100, 10, 0.25),
        CostRow("judge", SUITE, "test-0", "Test 0", "m", "hash-b", "looks it up", 1, 100, 10, None),
    ]
    assert store.costs("NOBODY") == []
    # The totals leave out what was known before, too; taken away, nothing of it is left.
    row = store.execution("last")
    assert (row.passed, row.cost, row.input_tokens) == (3, 1.25, 214)
    assert store.replies(RUN.format(0))[0].criterion == "hash-a"
    store.run_ended(replace(ended(2), cached=True)).result()
    assert store.execution("last").cost == 1.25
    store.delete_execution("EXECUTION-1").result()
    assert count(store, "failed_attempts") == 0
    assert store.counts().cost is None


def test_a_damaged_file_saves_tasks_and_attempts(path: Path, tmp_path: Path) -> None:
    with Store.open(path) as store:
        for number in range(20):
            begin(store, 10, f"EXECUTION-{number}")
            for n in range(9):
                store.run_ended(
                    replace(ended(n, f"EXECUTION-{number}", answer=f"{n} {number}"), failed_attempts=(attempt(),))
                )
            store.flush()
    whole = path.read_bytes()
    path.unlink()
    pages = pages_of(whole, "runs", tmp_path)
    with rescued(path, overwrite(whole, [pages[len(pages) // 2]])) as store:
        assert check_health(path).problems == ()
        attempts = 0
        for row in store.executions():
            tasks = store.tasks_of(row.id)
            for run in store.runs_of_execution(row.id):
                assert tasks[run.id].task == TASKS[run.position % 2]
                attempts += len(store.failed_attempts(run.id))
            assert store.setup_of(row.id) == SETUP
        assert 0 < attempts == count(store, "failed_attempts") < 180


def test_a_lost_task_is_no_other_task_later(path: Path, tmp_path: Path) -> None:
    with Store.open(path) as store:
        begin(store)
    whole = path.read_bytes()
    path.unlink()
    (page,) = pages_of(whole, "tasks", tmp_path)
    with rescued(path, overwrite(whole, [page])) as store:
        assert store.tasks_of("EXECUTION-1") == {}
        assert store.setup_of("EXECUTION-1") is None
        store.begin_execution(record("LATER", setup={"a": 1}), [planned(0, "LATER", task={"b": 2})]).result()
        assert store.tasks_of("EXECUTION-1") == {}
        assert len(store.runs_of_execution("EXECUTION-1")) == 4
