"""The state of the History screen: what is listed, read, chosen and deleted. No app, no widget."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from agenteval_tui.history.baselines import set_baseline
from agenteval_tui.history.delete_runs import remove_runs
from agenteval_tui.history.records import ExecutionRecord, ExecutionRow, PlannedRun, RunEnded
from agenteval_tui.history.store import Store
from agenteval_tui.transcripts.model import Message, Transcript
from agenteval_tui.tui.analysis_context import Session
from agenteval_tui.tui.presenters.history_rows import PAGE, ExecutionRows, RunRows
from agenteval_tui.tui.screens.history.controller import (
    HistoryController,
    execution_to_compare_with,
    read_list,
    read_page,
)

SUITE = "/suites/orders.suite.yaml"
RUNS = 3 * PAGE


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    folder = tmp_path_factory.mktemp("history")
    yield from session_in(folder, ("OLD", 2, 1000), ("BIG", RUNS, 2000), ("NEW", 3, 3000))


@pytest.fixture
def own_session(tmp_path: Path) -> Iterator[Session]:
    """One whose runs may be deleted."""
    yield from session_in(tmp_path, ("OLD", 2, 1000), ("NEW", 3, 3000))


def session_in(folder: Path, *executions: tuple[str, int, int]) -> Iterator[Session]:
    with Store.open(folder / "history.db") as store:
        for name, number, at in executions:
            done = Transcript((Message("user", "Where?"), Message("assistant", name)), final_output=name)
            runs = []
            for one in range(number):
                run = PlannedRun(f"{name}-{one:04}", name, one, SUITE, "Orders", f"test-{one % 2}", "Test")
                outcome = "passed" if one % 2 else "failed"
                runs.append((run, RunEnded(run.id, outcome, 1.0, at, 5.0, 1, done, (), 0, "")))
            store.import_runs(ExecutionRecord(name, name, "run", "orders", (SUITE,), at), runs)
    made = Session([folder], folder / "history.db")
    made.everything = True
    yield made
    made.close()


def listed(controller: HistoryController, session: Session, near: int = 0, cursor: str | None = None) -> list[str]:
    """Read what is to be listed; its rows as they are seen."""
    wanted: list[int] = []
    found = read_list(session, controller.request(10_000), near, wanted.append)
    controller.take(found, cursor, all_projects=True)
    rows = [found.rows.row(index) for index in range(found.rows.count())]
    return [row.id for row in rows if row is not None]


def execution(session: Session, name: str) -> ExecutionRow:
    return session.store.execution(name)


def test_executions_are_listed_then_the_runs_of_one_and_back(session: Session) -> None:
    controller = HistoryController()
    assert controller.kept("") is None, "what the last start kept stays"
    assert listed(controller, session) == ["NEW", "BIG", "OLD"]
    assert isinstance(controller.rows, ExecutionRows)
    old = execution(session, "OLD")
    controller.enter(old)
    assert listed(controller, session) == ["OLD-0000", "OLD-0001"], "in the order of its plan"
    assert isinstance(controller.rows, RunRows)
    assert controller.heading()[1][0][0] == "2 runs"
    assert controller.leave() == "list"
    found = read_list(session, controller.request(0), 0, lambda page: None)
    assert controller.take(found, "any", all_projects=True) == (str(old.rowid), False), "at the one that was left"
    assert controller.leave() == ""


def test_a_step_back_leads_to_the_screen_that_led_here(session: Session) -> None:
    controller = HistoryController()
    controller.failed_only = True
    controller.search("nothing like that")
    controller.open_for(execution(session, "NEW"), visiting=True)
    assert (controller.failed_only, controller.search_text) == (False, "")
    assert controller.leave() == "screen"
    controller.toggle_view()
    controller.failed_only = True
    assert [controller.leave() for _ in range(3)] == ["list", "list", ""]


def test_the_next_start_lists_what_was_listed(session: Session) -> None:
    controller = HistoryController()
    controller.toggle_view()
    controller.failed_only = True
    controller.search("test:test-0")
    assert len(listed(controller, session)) == PAGE
    kept = controller.kept("7")
    assert kept is not None
    again = HistoryController()
    again.restore(kept)
    assert again.request(10_000) == controller.request(10_000)
    found = read_list(session, again.request(10_000), 0, lambda page: None)
    assert again.take(found, None, all_projects=True)[0] == "7"
    again.restore({"execution": 3, "search": None, "runs": "nonsense"})
    assert (again.restored_execution, again.showing_runs) == ("", False)


def test_another_list_begins_at_its_beginning(session: Session) -> None:
    controller = HistoryController()
    listed(controller, session)
    controller.runs_of_all = True
    found = read_list(session, controller.request(0), 0, lambda page: None)
    assert controller.take(found, "1", all_projects=True) == (None, True)
    assert controller.take(found, "1", all_projects=True) == ("1", False)
    controller.search("agent:nobody")
    found = read_list(session, controller.request(0), 0, lambda page: None)
    assert controller.take(found, "1", all_projects=True) == ("1", True)
    assert "Nothing fits." in controller.empty()[1][0][0]


def test_pages_are_read_as_they_are_looked_at_the_last_wanted_first(session: Session) -> None:
    controller = HistoryController()
    controller.runs_of_all = True
    listed(controller, session, near=2)
    rows = controller.rows
    assert rows is not None
    assert [rows.has(page) for page in range(4)] == [True, False, True, False]
    assert controller.look_ahead(0, 20)
    assert controller.next_page(0, 20) == 1
    read_page(session, rows, 1)()
    assert (rows.has(1), controller.look_ahead(0, 20)) == (True, False)
    assert controller.want(3)
    assert not controller.want(3), "it is wanted already"
    assert controller.next_page(0, 20) is None, "nobody looks at it any more"
    controller.want(3)
    assert controller.next_page(2 * PAGE, 20) == 3
    controller.want(0)
    controller.cannot_read(rows, 3)
    assert (rows.has(3), controller.next_page(0, 20)) == (True, None)


def test_what_is_marked_is_chosen_else_the_row_with_the_cursor(session: Session) -> None:
    controller = HistoryController()
    assert controller.selection(0).ids == []
    listed(controller, session)
    new, big, old = (execution(session, name) for name in ("NEW", "BIG", "OLD"))
    assert (controller.selection(1).of_runs, controller.selection(1).ids) == (False, [big.rowid])
    assert controller.selection(9).ids == []
    controller.mark(str(new.rowid))
    controller.mark(str(old.rowid))
    assert [one.id for one in controller.selection(1).executions(session.store)] == ["OLD", "NEW"]
    controller.runs_of_all = True
    listed(controller, session)
    assert controller.selection(0).of_runs, "marks of executions are not those of runs"
    (found,) = controller.selection(0).runs_with_execution(session.store)
    assert found[0].execution_id == found[1].id == "NEW"
    controller.runs_of_all = False
    listed(controller, session)
    assert controller.unmark()
    assert not controller.unmark()
    assert len(controller.selection(0).all_runs(session.store)) == 3
    assert len(controller.around(1)) == 3


def test_what_deleting_takes_is_said_before(session: Session) -> None:
    controller = HistoryController()
    listed(controller, session)
    deletion = controller.selection(0).deletion(session.store)
    assert deletion.question == "Delete 1 execution with 3 runs?"
    assert deletion.warnings == ["This deletes them for good, with their transcripts and results."]
    assert not deletion.all_running
    controller.runs_of_all = True
    listed(controller, session)
    deletion = controller.selection(0).deletion(session.store)
    assert (deletion.question, deletion.executions) == ("Delete 1 run?", [])
    assert deletion.warnings == ["This deletes it for good, with its transcript and results."]
    stays = (replace(deletion, running=number).warnings[0] for number in (1, 2))
    assert list(stays) == ["1 execution is still running and stays.", "2 executions are still running and stay."]


def test_an_execution_is_compared_with_its_baseline_or_the_one_before(tmp_path: Path, session: Session) -> None:
    store = session.store
    assert execution_to_compare_with(store, execution(session, "NEW")) == "BIG"
    assert execution_to_compare_with(store, execution(session, "OLD")) is None
    set_baseline(store, "OLD", who="me")
    assert execution_to_compare_with(store, execution(session, "NEW")) == ""
    controller = HistoryController()
    listed(controller, session)
    assert {one.test_id for one in controller.selection(2).baselines(store)} == {"test-1", "test-0"}
    assert controller.selection(0).baselines(store) == []


@pytest.mark.parametrize(
    ("typed", "term"),
    [
        ("", ""),
        ("outcome:failed", ""),
        ("is cancelled ", "is cancelled"),
        ('test:a "on its way" #W1', "on its way #W1"),
    ],
)
def test_the_words_of_a_search_are_searched_for_in_the_run_that_is_opened(typed: str, term: str) -> None:
    controller = HistoryController()
    controller.search(typed)
    assert controller.search_term == term


def test_what_somebody_else_deleted_is_marked_no_more(own_session: Session) -> None:
    session = own_session
    controller = HistoryController()
    listed(controller, session)
    old, new = execution(session, "OLD"), execution(session, "NEW")
    controller.mark(str(old.rowid))
    controller.mark(str(new.rowid))
    request = controller.request(0)
    remove_runs(session.store, [row.rowid for row in session.store.runs_of_execution("OLD")], executions=[old.rowid])
    # One that a filter hides stays marked, and so does one that is marked while the list is read.
    controller.mark("1000")
    controller.take(read_list(session, request, 0, lambda page: None), None, all_projects=True)
    assert controller.selection(0).ids == [new.rowid, 1000]
    controller.search("agent:nobody")
    controller.mark("1000")
    controller.take(read_list(session, controller.request(0), 0, lambda page: None), None, all_projects=True)
    assert controller._marks[ExecutionRows.__name__] == {str(new.rowid)}
    assert controller.heading()[1][0][0] == "1 marked  "
