"""What the History screen lists, how its pages are read, and what its actions are meant for. It knows no widget."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from agenteval_tui.core.display import one_line
from agenteval_tui.core.numbers import count
from agenteval_tui.history import delete_runs, pruning
from agenteval_tui.history.annotations import notes_of_executions, notes_of_runs
from agenteval_tui.history.baselines import Baseline, baselines, baselines_of
from agenteval_tui.history.records import ExecutionRow, RunFilter, RunRow
from agenteval_tui.history.scope import several_projects
from agenteval_tui.history.search import HistoryQuery
from agenteval_tui.history.store import Store
from agenteval_tui.tui.analysis_context import Session
from agenteval_tui.tui.presenters.history_rows import (
    MOST_RUNS,
    PAGE,
    ExecutionRows,
    RunRows,
    TestOutcome,
    execution_summary,
    execution_version,
    outcomes_of_tests,
    spent_text,
    test_lines,
)
from agenteval_tui.tui.state import flag, text
from agenteval_tui.tui.styled_text import Cell, Line, indented, nothing_here, paragraph

LEAST_TESTS = 6  # rows below the list that are worth having
EXECUTIONS_KEPT = 50  # whose tests stay in memory: the cursor comes back to those near it
AROUND = 250  # runs before and behind the opened one that next and previous go through
KEPT_FOR = {
    "baseline": "are a baseline, which is cleared too",
    "labelled": "are labelled by people",
    "quarantine": "belong to tests in quarantine",
    "triage": "are examples of triage decisions",
}

Rows = ExecutionRows | RunRows


class ListRequest(Struct, frozen=True):
    """What to list: runs or executions that the filter lets through. `execution`: whose runs, None for all. Row ids of
    runs and of executions are marked, listed or not."""

    run_filter: RunFilter
    runs: bool
    execution: ExecutionRow | None
    marked_runs: tuple[int, ...] = ()
    marked_executions: tuple[int, ...] = ()


class ListedRows(Struct, frozen=True):
    """The rows, with the first pages read; and how many executions other projects have, where there is no row. Of what
    is marked these runs and executions are gone: somebody deleted them."""

    rows: Rows
    elsewhere: int
    gone_runs: frozenset[str] = frozenset()
    gone_executions: frozenset[str] = frozenset()


def read_list(session: Session, request: ListRequest, near: int, want: Callable[[int], None]) -> ListedRows:
    """The ids of all rows, and the rows of the first page and of page `near`. Other pages are asked of `want` when they
    are painted. Raises `AgentevalError`."""
    store, run_filter = session.store, request.run_filter
    if not run_filter.execution_id:
        run_filter = replace(run_filter, projects=session.projects)
    rows: Rows
    if request.runs:
        ids = store.run_ids(run_filter)
        if run_filter.execution_id and not run_filter.text:
            ids = array("q", reversed(ids))  # an execution reads in the order of its plan
        rows = RunRows(ids, want, request.execution if run_filter.execution_id else None)
    else:
        rows = ExecutionRows(store.execution_ids(run_filter), want)
        rows.places = not run_filter.projects and store.read(several_projects)
    elsewhere = (
        0 if rows.count() or run_filter != RunFilter(projects=run_filter.projects) else session.workspace.elsewhere()
    )
    for page in {0, near}:
        read_page(session, rows, page)()
    marked = request.marked_runs, request.marked_executions
    return ListedRows(rows, elsewhere, _gone(store.run_rows, marked[0]), _gone(store.execution_rows, marked[1]))


def _gone(read: Callable[[Sequence[int]], Sequence[RunRow | ExecutionRow]], marked: Sequence[int]) -> frozenset[str]:
    there = {row.rowid for row in read(marked)} if marked else set()
    return frozenset(str(rowid) for rowid in marked if rowid not in there)


def read_tests(store: Store, row: ExecutionRow) -> list[TestOutcome]:
    """What an execution says of its tests; of a very large one nothing. Raises `AgentevalError`."""
    return outcomes_of_tests(store.runs_of_execution(row.id), store.results) if row.runs <= MOST_RUNS else []


def read_page(session: Session, rows: Rows, page: int) -> Callable[[], None]:
    """Read a page; what it gives puts the page into the rows. Raises `AgentevalError`."""
    ids = rows.ids_of(page)
    if not ids:
        return lambda: None
    store, numbers = session.store, ids.tolist()
    if isinstance(rows, RunRows):
        runs, of_runs = store.run_rows(ids), store.read(lambda c: notes_of_runs(c, numbers))
        return lambda: rows.put(page, runs, of_runs)
    execution_rows, noted = store.execution_rows(ids), store.read(lambda c: notes_of_executions(c, numbers))
    return lambda: rows.put(page, execution_rows, noted)


class Selection(Struct, frozen=True):
    """The marked rows, else the one with the cursor: row ids of runs, or of executions. Each method reads the history
    and raises `AgentevalError`."""

    of_runs: bool
    ids: list[int]

    def executions(self, store: Store) -> list[ExecutionRow]:
        """The executions (of runs: theirs), the oldest first."""
        if not self.of_runs:
            return store.execution_rows(self.ids)
        names = dict.fromkeys(row.execution_id for row in store.run_rows(self.ids))
        return sorted((store.execution(name) for name in names), key=lambda row: row.rowid)

    def runs_with_execution(self, store: Store) -> list[tuple[RunRow, ExecutionRow]]:
        """The runs, each with its execution."""
        return [(row, store.execution(row.execution_id)) for row in store.run_rows(self.ids)]

    def all_runs(self, store: Store) -> list[RunRow]:
        """The runs that have ended; of executions all of theirs."""
        if self.of_runs:
            rows = store.run_rows(self.ids)
        else:
            rows = [run for row in store.execution_rows(self.ids) for run in store.runs_of_execution(row.id)]
        return [row for row in rows if row.status not in ("queued", "running", "grading")]

    def baselines(self, store: Store) -> list[Baseline]:
        """The baselines that rest on these executions."""
        chosen = {row.id for row in store.execution_rows(self.ids)}
        return [baseline for baseline in baselines(store) if baseline.execution_id in chosen]

    def deletion(self, store: Store) -> Deletion:
        """What deleting them would take."""
        runs = self.ids if self.of_runs else store.read(lambda c: delete_runs.runs_of(c, self.ids))
        worth = store.read(lambda c: pruning.protection(c, runs))
        busy = set() if self.of_runs else set(store.read(delete_runs.running_executions)).intersection(self.ids)
        return Deletion(runs, [] if self.of_runs else self.ids, worth, len(busy))


class Deletion(Struct, frozen=True):
    """Runs and executions (row ids) that would go, for what how many of the runs are kept (`KEPT_FOR`), and how many
    of the executions are running: these stay."""

    runs: list[int]
    executions: list[int]
    worth: Mapping[str, int]
    running: int

    @property
    def all_running(self) -> bool:
        """Would nothing go?"""
        return 0 < self.running == len(self.executions)

    @property
    def question(self) -> str:
        """What is asked before."""
        runs = count(len(self.runs), "run")
        return (
            f"Delete {count(len(self.executions), 'execution')} with {runs}?" if self.executions else f"Delete {runs}?"
        )

    @property
    def warnings(self) -> list[str]:
        """What to know before."""
        words = [f"Runs that {KEPT_FOR.get(why, why)}: {number:,}." for why, number in self.worth.items()]
        if self.running:
            stays = "is still running and stays" if self.running == 1 else "are still running and stay"
            words.append(f"{count(self.running, 'execution')} {stays}.")
        what = "it for good, with its transcript" if len(self.runs) == 1 else "them for good, with their transcripts"
        return [*words, f"This deletes {what} and results."]


def execution_to_compare_with(store: Store, row: ExecutionRow) -> str | None:
    """Its other side: "" for its tests' baseline, else the id of the execution of these suites before it; None: there
    is none."""
    tests = {(run.suite_key, run.test_id) for run in store.runs_of_execution(row.id)}
    if any(baseline.execution_id != row.id for baseline in baselines_of(store, tests).values()):
        return ""
    page = store.executions(200, before=row.rowid)
    return next(
        (
            execution_row.id
            for execution_row in page
            if execution_row.kind != "fork" and set(execution_row.suite_keys) & set(row.suite_keys)
        ),
        None,
    )


class HistoryController:
    """The state of the History screen: executions, or runs (of one execution, or all that match what was searched)."""

    def __init__(self) -> None:
        self.rows: Rows | None = None  # None: the first list is still being read
        self.execution: ExecutionRow | None = None  # whose runs are shown
        self.runs_of_all = False
        self.failed_only = False
        self.search_text = ""
        self.restored_execution = ""  # the execution that the last start left open
        self._visiting = False  # another screen led to this execution: esc leads back there
        self._query = HistoryQuery()
        self._elsewhere = 0
        self._marks: dict[str, set[str]] = {ExecutionRows.__name__: set(), RunRows.__name__: set()}
        self._cursors: dict[str, str] = {}  # the row to come back to, by the kind of rows
        self._listed: tuple[object, ...] = ()  # what the list is of
        self._wanted: list[int] = []  # pages to read, the most wanted last
        self._tests: dict[str, tuple[ExecutionRow, list[TestOutcome]]] = {}  # of executions as they were, by their ids
        self._shown: tuple[ExecutionRow, list[TestOutcome]] | None = None  # whose tests are below the list

    # What is listed

    @property
    def search_term(self) -> str:
        """The words that were searched for, to be searched for in the run that is opened; "" for none."""
        return self._query.words.replace('"', "").strip()

    @property
    def showing_runs(self) -> bool:
        """Are runs listed, and not executions?"""
        return self.execution is not None or self.runs_of_all or bool(self._query.words.strip())

    def request(self, now_ms: int) -> ListRequest:
        """What to read for the list."""
        execution = self.execution.id if self.execution else ""
        run_filter = self._query.filter(now_ms, execution=execution, failed_only=self.failed_only)
        runs, executions = (tuple(map(int, self._marks[kind.__name__])) for kind in (RunRows, ExecutionRows))
        return ListRequest(run_filter, self.showing_runs, self.execution, runs, executions)

    def take(self, listed: ListedRows, cursor: str | None, *, all_projects: bool) -> tuple[str | None, bool]:
        """Show this list. Gives the row for the cursor, and whether the list starts at its top: it is a different list,
        without that row. `cursor` is the row that has it now."""
        rows = listed.rows
        key = cursor if type(rows) is type(self.rows) else self._cursors.pop(type(rows).__name__, None)
        self.rows, self._elsewhere = rows, listed.elsewhere
        self._wanted.clear()
        self._marks[RunRows.__name__] -= listed.gone_runs
        self._marks[ExecutionRows.__name__] -= listed.gone_executions
        rows.marked = self._marks[type(rows).__name__]
        of = type(rows), self.execution.id if self.execution else "", self._query, self.failed_only, all_projects
        before, self._listed = self._listed, of
        return key, of != before and (key is None or rows.index_of(key) is None)

    def search(self, words: str) -> None:
        """List what has these words and fields."""
        self.search_text, self._query = words, HistoryQuery.parse(words)

    def open(self, row: ExecutionRow, *, visiting: bool = False) -> None:
        """List the runs of an execution. `visiting`: another screen led here, and the way back leads there."""
        self.execution, self._visiting = row, visiting

    def open_for(self, row: ExecutionRow, *, visiting: bool) -> None:
        """List the runs of an execution that another screen asks for. What was searched or filtered before is over: it
        was searched in other runs."""
        self.open(row, visiting=visiting)
        self.failed_only = False
        self.search("")

    def go_to(self, row: ExecutionRow, *, opens: bool) -> None:
        """The cursor on an execution of the list, or its runs; what was searched is over."""
        self._cursors[ExecutionRows.__name__] = str(row.rowid)
        self.rows = None  # the cursor goes where it is wanted, not where it was
        self.execution, self._visiting = row if opens else None, False
        self.runs_of_all = self.failed_only = False
        self.search("")

    def enter(self, row: ExecutionRow) -> None:
        """List the runs of the execution under the cursor; the way back leads to it."""
        self._cursors[ExecutionRows.__name__] = str(row.rowid)
        self.open(row)

    def leave(self) -> Literal["", "list", "screen"]:
        """One step back. Gives what was left: nothing, this list, or this list for the screen that led to it."""
        if self.execution is not None:
            self.execution = None
            if self._visiting:
                self._visiting = False
                return "screen"
        elif self.runs_of_all:
            self.runs_of_all = False
        elif self.failed_only:
            self.failed_only = False
        else:
            return ""
        return "list"

    def toggle_view(self) -> None:
        """Executions, or the runs of all."""
        self.runs_of_all = self.execution is None and not self.runs_of_all
        self.execution = None

    def change_projects(self) -> None:
        """Other projects are listed: no execution is open any more."""
        self.execution, self._visiting = None, False

    # What is chosen

    def selection(self, cursor: int) -> Selection:
        """What is marked, else the row at `cursor`; no ids for nothing."""
        rows = self.rows
        if rows is None:
            return Selection(False, [])
        if rows.marked:
            return Selection(isinstance(rows, RunRows), sorted(int(key) for key in rows.marked))
        return Selection(isinstance(rows, RunRows), [rows.ids[cursor]] if 0 <= cursor < rows.count() else [])

    def mark(self, key: str) -> None:
        """Mark a row, or take its mark away."""
        if self.rows is not None:
            self.rows.marked.symmetric_difference_update({key})

    def unmark(self) -> bool:
        """Take all marks away. False: there were none."""
        were = self.rows is not None and bool(self.rows.marked)
        if self.rows is not None:
            self.rows.marked.clear()
        return were

    def around(self, index: int) -> list[int]:
        """The runs (row ids) that next and previous go through from row `index`."""
        return self.rows.ids[max(index - AROUND, 0) : index + AROUND].tolist() if self.rows is not None else []

    # Pages

    def want(self, page: int) -> bool:
        """A row of this page is painted, and the page is not here. False: it is wanted already."""
        if page in self._wanted:
            return False
        self._wanted.append(page)
        return True

    def look_ahead(self, top: int, height: int) -> bool:
        """Want what is missing of the pages that are seen (rows `top` and on), and one before and behind them. False:
        nothing, or other pages are wanted first."""
        if self.rows is None or self._wanted:
            return False
        self._wanted += [page for page in self._near(top, height) if not self.rows.has(page)]
        return bool(self._wanted)

    def next_page(self, top: int, height: int) -> int | None:
        """The page to read now: the one that was wanted last, for who scrolls on has left the others."""
        while self._wanted and self.rows is not None:
            page = self._wanted.pop()
            if page in self._near(top, height) and not self.rows.has(page):
                return page
        return None

    def cannot_read(self, rows: Rows, page: int) -> None:
        """The page can't be read: its rows say so, and the others are not tried now."""
        self._wanted.clear()
        rows.put(page, (), {})

    def _near(self, top: int, height: int) -> range:
        last = (self.rows.count() - 1) // PAGE if self.rows is not None else -1
        return range(max(top // PAGE - 1, 0), min((top + height) // PAGE + 1, last) + 1)

    # What is kept for the next start

    def kept(self, cursor: str | None) -> dict[str, Any] | None:
        """What is listed and searched, and the cursor's row; None while the first list is still being read."""
        if self.rows is None:
            return None
        return {
            "execution": self.execution.id if self.execution else "",
            "runs": self.runs_of_all,
            "failed": self.failed_only,
            "search": self.search_text,
            "cursor": cursor or "",
        }

    def restore(self, stored: Mapping[str, Any]) -> None:
        """Take what an earlier start kept; the execution that was open must still be read (`restored_execution`)."""
        self.runs_of_all, self.failed_only = flag(stored, "runs"), flag(stored, "failed")
        self.restored_execution = text(stored, "execution")
        self.search(text(stored, "search"))
        rows_class = RunRows if self.restored_execution or self.showing_runs else ExecutionRows
        self._cursors[rows_class.__name__] = text(stored, "cursor")

    # The tests of the execution with the cursor

    def execution_at(self, index: int) -> ExecutionRow | None:
        """The execution at `index` of the list; None where runs are listed, or it is not read yet."""
        rows = self.rows
        return rows.row(index) if isinstance(rows, ExecutionRows) and 0 <= index < rows.count() else None

    def rows_beside_tests(self, room: int) -> int:
        """How many of `room` rows the list of executions takes where its tests have room below it; 0: they have not."""
        rows = self.rows
        listed = rows.count() if isinstance(rows, ExecutionRows) else 0
        return listed if listed + 2 + LEAST_TESTS <= room else 0

    def tests_of(self, row: ExecutionRow) -> list[TestOutcome] | None:
        """What is known of an execution's tests; None: nothing yet, or it may have changed."""
        before, tests = self._tests.get(row.id, (None, None))
        return tests if before == row else None

    def take_tests(self, row: ExecutionRow, tests: list[TestOutcome]) -> bool:
        """The tests of an execution, which is the chosen one now. False: it is shown as it is already."""
        # Of one that runs nothing is kept: when it has ended, these are not its tests any more.
        if row.status != "running":
            while len(self._tests) >= EXECUTIONS_KEPT:
                self._tests.pop(next(iter(self._tests)))
            self._tests[row.id] = row, tests
        earlier, self._shown = self._shown, (row, tests)
        return earlier != self._shown

    def tests_heading(self) -> tuple[str, str]:
        """The title over the tests."""
        if self._shown is None:
            return "tests", ""
        row, tests = self._shown
        return "tests", " · ".join(filter(None, (count(len(tests), "test"), spent_text(row))))

    def test_lines(self, width: int, most: int) -> list[Line]:
        """What the chosen execution is a version of, and a line for each of its tests."""
        if self._shown is None:
            return []
        row, tests = self._shown
        version = execution_version(row, width)
        if row.runs > MOST_RUNS:
            return [*version, ((f"   {row.runs:,} runs: press enter to list them.", "dim"),)]
        return [*version, *test_lines(tests, width, most - len(version))]

    # Lines

    def summary(self, width: int, bar: int) -> Sequence[Line]:
        """What stands over the list: the open execution, what is wrong in the search, the columns. `bar`: the cells of
        the list's scroll bar."""
        lines: list[Line] = []
        if self.execution is not None:
            lines.append(execution_summary(self.execution, width))
        if self._query.problem:
            lines += indented(paragraph(self._query.problem, width - 2, "failed"))
        if self.rows is not None and self.rows.count():
            lines.append(((" ", ""), *self.rows.heading(width - 1 - bar)))
        return lines

    @property
    def is_narrowed(self) -> bool:
        """Are rows left out by what was searched for?"""
        return bool(self._query) or self.failed_only

    def empty(self) -> list[Line]:
        """What is shown instead of rows."""
        if self._query:
            return [(), (("  Nothing fits.", ""),), (("  Press {everywhere.back} to clear the search.", "dim"),)]
        if self.failed_only:
            return [(), (("  Nothing failed.", "passed"),), (("  Press {history.failed} to show all runs.", "dim"),)]
        if self._elsewhere:
            return nothing_here(self._elsewhere)
        if self.execution is not None:
            return [
                (),
                (("  No run of this execution is left.", ""),),
                (("  Press {everywhere.back} to go back.", "dim"),),
            ]
        return [
            (),
            (("  Nothing has run yet.", ""),),
            (("  Press {go.suites} to go to the suites, then {suites.run} to run what is selected.", "dim"),),
            (("  Press {history.import} to import recordings from other tools.", "dim"),),
        ]

    def heading(self) -> tuple[tuple[Cell, ...], tuple[Cell, ...]]:
        """The left and right texts of the title."""
        if self.rows is None:
            return (), ()
        cells: list[Cell] = []
        if self._query.words.strip():
            cells.append((f"“{one_line(self._query.words.strip(), 30)}”", ""))
        cells += [(f"  {name}:{one_line(value, 20)}", "accent") for name, value in self._query.fields]
        if self.failed_only:
            cells.append(("  not passed", "failed"))
        right: list[Cell] = [(count(self.rows.count(), "run" if self.showing_runs else "execution"), "dim")]
        if self.rows.marked:
            right.insert(0, (f"{len(self.rows.marked):,} marked  ", "accent"))
        return tuple(cells), tuple(right)
