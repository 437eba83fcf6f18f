"""Which runs are looked at and which they are compared with, by order of arrival, and what reading them costs."""

from __future__ import annotations

import io
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest
from failing import SUITE, make

from agenteval_tui.analysis.causes import Scope, execution_scope, newest_scope
from agenteval_tui.cli.output import Output
from agenteval_tui.cli.run_finish import finish
from agenteval_tui.cli.run_progress import ProgressState, RunProgress
from agenteval_tui.history.baselines import set_baseline
from agenteval_tui.history.causes import failures, first_seen_in
from agenteval_tui.history.store import Store

Made = Callable[..., str]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "made.db") as opened:
        yield opened


@pytest.fixture
def ran(store: Store) -> Made:
    return partial(make, store)


def change(store: Store, statement: str, *values: object) -> None:
    with closing(sqlite3.connect(store.path)) as connection, connection:
        connection.execute(statement, values)


def names(store: Store, scope: Scope) -> tuple[list[str], list[str]]:
    def of(numbers: tuple[int, ...]) -> list[str]:
        return [row.id for row in store.run_rows(numbers)]

    return of(scope.runs), of(scope.before)


def test_each_test_is_compared_with_its_own_execution_before(store: Store, ran: Made) -> None:
    ran("E1", smoke=["text"], refund=["tool", ""])
    ran("E2", smoke=["", "text"])
    ran("E3", smoke=["text"], refund=[""], fresh=["text"])
    now, before = names(store, execution_scope(store))
    assert now == ["E3-000", "E3-001", "E3-002"]
    assert before == ["E1-001", "E1-002", "E2-000", "E2-001"]
    assert names(store, newest_scope(store, [SUITE])) == (now, before)
    # Of an older one what was before it, not what came after.
    assert names(store, execution_scope(store, "E2")) == (["E2-000", "E2-001"], ["E1-000"])
    assert names(store, execution_scope(store, "E1"))[1] == []


def test_the_order_is_that_of_arrival_whatever_clocks_say(store: Store, ran: Made) -> None:
    ran("E1", smoke=["text"], started_ms=9_000_000_000_000)
    ran("E2", smoke=["tool"], started_ms=1)
    ran("E3", smoke=[""], started_ms=1)
    assert names(store, execution_scope(store, "E3"))[1] == ["E2-000"]
    assert names(store, newest_scope(store)) == (["E3-000"], ["E2-000"])


def test_runs_that_came_in_late_are_of_their_execution(store: Store, ran: Made) -> None:
    """An import stores its runs piece by piece: row numbers of runs are in another order than executions."""
    ran("E1", smoke=["text"])
    ran("E2", smoke=["tool"])
    change(store, "UPDATE runs SET id = 1000 WHERE uid = 'E1-000'")
    ran("E3", smoke=[""])
    assert names(store, execution_scope(store, "E3"))[1] == ["E2-000"]
    assert names(store, newest_scope(store))[0] == ["E3-000"]


@pytest.mark.parametrize("status", ["cancelled", "skipped", "queued", "running"])
def test_an_execution_without_an_ended_run_of_the_test_is_passed_over(store: Store, ran: Made, status: str) -> None:
    ran("E1", smoke=["text"], refund=["tool"])
    ran("E2", smoke=["text"], refund=["tool"])
    change(store, "UPDATE runs SET status = ? WHERE uid = 'E2-000'", status)
    assert names(store, newest_scope(store))[0] == ["E1-000", "E2-001"]
    ran("E3", smoke=[""], refund=[""])
    assert names(store, execution_scope(store))[1] == ["E1-000", "E2-001"]


def test_of_some_projects_the_newest_execution_there(store: Store, ran: Made) -> None:
    for number, project in enumerate(["/one", "/one/below", "/two", "/onether", ""]):
        ran(f"E{number}", smoke=["text"])
        change(store, "UPDATE executions SET project = ? WHERE uid = ?", project, f"E{number}")
    assert [names(store, newest_scope(store, projects=only))[0] for only in ((), ("/one",), ("/two",), ("/none",))] == [
        ["E4-000"],
        ["E1-000"],
        ["E2-000"],
        [],
    ]


def test_the_first_run_with_a_cause(store: Store, ran: Made) -> None:
    ran("E1", smoke=["", "text"])
    ran("E2", smoke=["text", "tool"], refund=["text"])
    known = {one.signature for one in failures(store)}

    def seen(wanted: list[str]) -> dict[str, int]:
        return store.read(lambda c: first_seen_in(c, wanted))

    assert {store.run_rows([run])[0].id for run in seen([*known]).values()} == {"E1-001", "E2-001"}
    assert seen(["", "never", *known]).keys() == known
    assert seen([]) == {}


@pytest.mark.parametrize("baseline", [False, True], ids=["without a baseline", "with a baseline"])
def test_the_end_of_an_execution_reads_no_more_of_a_long_history(tmp_path: Path, baseline: bool) -> None:
    """Counted in steps of SQLite, which are the same on every machine; `benchmarks.ending` has the times."""

    def steps(executions: int) -> int:
        counted = 0

        def count() -> None:
            nonlocal counted
            counted += 1

        with Store.open(tmp_path / f"{executions}.db") as store:
            for number in range(executions):
                make(store, f"E{number:04}", smoke=["text", ""], refund=["tool"], other=["down"], fine=[""])
            make(store, "NEW", smoke=["text", ""], refund=["tool"], other=["down"], fine=[""], fresh=["text"])
            if baseline:
                set_baseline(store, "E0000")
            out = Output(io.StringIO(), {})
            store.read(lambda c: c.set_progress_handler(count, 1))
            finish(store, "NEW", RunProgress(out, ProgressState.of(store)), interrupted=False)
            store.read(lambda c: c.set_progress_handler(None, 0))
        assert counted > 100
        return counted

    assert steps(30) <= steps(3) * 1.1
