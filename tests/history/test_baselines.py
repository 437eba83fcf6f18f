"""Baselines: set, counted, listed, cleared; gone with their runs; never of what did not finish."""

from __future__ import annotations

import pytest
from history_made import SUITE, ended, planned, record

from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.history.baselines import (
    KEPT_RUNS,
    baseline_runs,
    baselines,
    baselines_of,
    clear_baselines,
    set_baseline,
    set_baseline_run,
)
from agenteval_tui.history.store import Store

TESTS = [(SUITE, f"test-{n}") for n in range(3)]


def fill(store: Store, execution: str = "EXECUTION-1", status: str = "finished", runs: int = 6, left: int = 0) -> None:
    store.begin_execution(record(execution), [planned(n, execution) for n in range(runs)])
    for number in range(runs - left):
        store.run_ended(ended(number, execution, passed=number != 1))
    store.end_execution(execution, status).result()


def kept(store: Store) -> int:
    return store.read(lambda c: len(c.execute(KEPT_RUNS).fetchall()))


def test_the_runs_of_an_execution_or_a_single_run_are_a_tests_baseline(store: Store) -> None:
    fill(store)
    fill(store, "EXECUTION-2")
    made = set_baseline(store, "EXECUTION-1", who="ada", at_ms=5)
    assert list(made.tests) == TESTS
    assert made.left_out == ()
    listed = baselines(store)
    assert [(one.test_id, one.execution_id, one.run_id, one.runs, one.passed) for one in listed] == [
        ("test-0", "EXECUTION-1", "", 2, 2),
        ("test-1", "EXECUTION-1", "", 2, 1),
        ("test-2", "EXECUTION-1", "", 2, 2),
    ]
    assert {(one.who, one.at_ms, one.started_ms) for one in listed} == {("ada", 5, 1_000)}
    # A later one replaces it, for its test only.
    assert set_baseline_run(store, "EXECUTION-2-RUN-00004", who="bob").tests == (TESTS[1],)
    assert set_baseline(store, "EXECUTION-2", tests=[TESTS[2]]).tests == (TESTS[2],)
    found = baselines_of(store, TESTS[1:])
    assert {key: (one.execution_id, one.run_id, one.runs) for key, one in found.items()} == {
        TESTS[1]: ("EXECUTION-2", "EXECUTION-2-RUN-00004", 1),
        TESTS[2]: ("EXECUTION-2", "", 2),
    }
    assert baseline_runs(store, TESTS) == [
        *("EXECUTION-1-RUN-00000", "EXECUTION-1-RUN-00003"),
        *("EXECUTION-2-RUN-00002", "EXECUTION-2-RUN-00004", "EXECUTION-2-RUN-00005"),
    ]
    assert kept(store) == 5
    # What is deleted is nobody's baseline any more.
    store.delete_execution("EXECUTION-2").result()
    assert [one.test_id for one in baselines(store)] == ["test-0"]
    assert clear_baselines(store, [TESTS[1]]) == 0
    assert clear_baselines(store, [TESTS[0]]) == 1
    assert clear_baselines(store) == 0
    assert kept(store) == 0


def test_only_what_finished_and_was_decided_can_be_one(store: Store) -> None:
    fill(store, status="interrupted", left=1)
    with pytest.raises(AgentevalError, match=r"did not finish \(interrupted\)"):
        set_baseline(store, "EXECUTION-1")
    with pytest.raises(AgentevalError, match="it has not ended"):
        set_baseline_run(store, "EXECUTION-1-RUN-00005")
    store.begin_execution(record("EXECUTION-2"), [planned(0, "EXECUTION-2")]).result()
    with pytest.raises(AgentevalError, match="is still running"):
        set_baseline(store, "EXECUTION-2")
    for ref in ("EXECUTION-9", ""):
        with pytest.raises(AgentevalError, match="there is no execution"):
            set_baseline(store, ref)
    from msgspec.structs import replace

    store.run_ended(replace(ended(0, "EXECUTION-2"), status="error"))
    store.end_execution("EXECUTION-2", "finished").result()
    with pytest.raises(AgentevalError, match="none of its runs passed or failed"):
        set_baseline(store, "EXECUTION-2")
    with pytest.raises(AgentevalError, match="it ended as error"):
        set_baseline_run(store, "EXECUTION-2-RUN-00000")
    assert baselines(store) == []


def test_a_test_with_nothing_but_errors_keeps_the_baseline_that_it_has(store: Store) -> None:
    from msgspec.structs import replace

    fill(store)
    set_baseline(store, "EXECUTION-1")
    store.begin_execution(record("EXECUTION-2"), [planned(n, "EXECUTION-2") for n in range(3)])
    for number in range(3):
        one = ended(number, "EXECUTION-2")
        store.run_ended(replace(one, status="error") if number == 2 else one)
    store.end_execution("EXECUTION-2", "finished").result()
    made = set_baseline(store, "EXECUTION-2")
    assert (made.tests, made.left_out) == (tuple(TESTS[:2]), (TESTS[2],))
    assert [one.execution_id for one in baselines(store)] == ["EXECUTION-2", "EXECUTION-2", "EXECUTION-1"]
