"""Whose failures the Causes screen shows, which causes it lists, and what its actions are meant for. No widget."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from agenteval_tui.analysis.causes import Causes, Scope, execution_scope, filter_scope, group_failures, newest_scope
from agenteval_tui.analysis.triage import TriageStatus, statuses
from agenteval_tui.core.display import one_line
from agenteval_tui.grading.results import CriterionResult
from agenteval_tui.history.records import RunFilter, RunRow
from agenteval_tui.history.references import References
from agenteval_tui.history.store import Store
from agenteval_tui.tui.inspect_target import RunToOpen
from agenteval_tui.tui.presenters.cause_rows import CauseRow, CauseRows, cause_lines, no_causes, rows_of
from agenteval_tui.tui.presenters.tabs import CAUSE_TABS, tab_cells
from agenteval_tui.tui.state import flag, text, texts
from agenteval_tui.tui.styled_text import Cell, Line
from agenteval_tui.views.causes import causes_text


class CauseScope(Struct, frozen=True):
    """Whose failures are shown: the newest runs of each test of `suites` (keys; none: of all) with these ids (none:
    all), so that a test that was run alone hides no other. `execution`: an id or "last"; only its runs. `everything`:
    all runs that there are."""

    execution: str = ""
    suites: tuple[str, ...] = ()
    tests: tuple[str, ...] = ()
    everything: bool = False

    def scope(self, store: Store, projects: tuple[str, ...] = ()) -> Scope:
        """The runs, of these projects where nothing is named (none: of all). Raises `AgentevalError`."""
        if self.everything:
            return filter_scope(store, RunFilter(projects=projects))
        if self.execution:
            named = References(store, projects).execution(self.execution)
            return execution_scope(store, named.id, self.tests)
        scope = newest_scope(store, self.suites, self.tests, () if self.suites else projects)
        if not scope.runs and not (self.suites or self.tests):
            References(store, projects).execution("last")  # says that nothing ran here, and where something did
        return scope

    def next(self) -> CauseScope:
        """What the key for the scope shows next: the newest runs of each test, the last execution, everything."""
        if self.execution:
            return CauseScope(everything=True)
        if self.everything or self.suites or self.tests:
            return CauseScope()
        return CauseScope("last")

    @property
    def name(self) -> str:
        """What a key that leads here says."""
        if self.everything:
            return "all runs"
        return "last execution" if self.execution else "newest runs"

    def of_no_execution(self) -> CauseScope:
        """The same of the last execution, where a certain one is shown; and of no suites of one project."""
        return CauseScope("last" if self.execution else "", everything=self.everything)

    def words(self, scope: Scope, *, short: bool) -> str:
        """Whose failures they are, for the title: `the newest runs of order-status`; `short`: without the article."""
        text = scope.words
        if not self.everything and not self.execution:
            of = f" of {one_line(self.tests[0], 60)}" if len(self.tests) == 1 else "" if short else " of each test"
            text = f"{'' if short else 'the '}newest runs{of}"
        return text

    def to_json(self) -> dict[str, Any]:
        """As it is kept between two starts. Of a certain execution only that it was one: there are newer ones then."""
        kind = "all" if self.everything else "execution" if self.execution else "newest"
        return {"scope": kind, "suites": list(self.suites), "tests": list(self.tests)}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> CauseScope:
        """What was kept; the newest runs of each test where nothing was."""
        kind = text(stored, "scope")
        if kind == "all":
            return cls(everything=True)
        if kind == "execution":
            return cls("last")
        return cls("", tuple(texts(stored, "suites")), tuple(texts(stored, "tests")))


MOST = 500
"""Runs of a cause that next and previous go through in Inspect."""
Example = tuple[str, str]
"""A run of a cause: the cause's signature, and the run's id."""


class DecidedCauses(Struct, frozen=True):
    """The causes of a scope, and what was decided about each, by its signature."""

    causes: Causes
    decided: dict[str, TriageStatus]


class ExplainedRun(Struct, frozen=True):
    """A run of a cause, and its result that failed; None where the run failed without one."""

    run: RunRow
    result: CriterionResult | None = None


def read_causes(store: Store, looking: CauseScope, projects: tuple[str, ...]) -> DecidedCauses:
    """The causes of these runs. Raises `AgentevalError`."""
    causes = group_failures(store, looking.scope(store, projects))
    return DecidedCauses(causes, statuses(store, causes))


def read_example(store: Store, run: str, position: int) -> ExplainedRun:
    """A run with its result at `position` (-1: none). Raises `AgentevalError`."""
    results = store.results(run)
    return ExplainedRun(store.run(run), results[position] if 0 <= position < len(results) else None)


class CausesController:
    """The state of the Causes screen. `row` in its methods is the one with the cursor."""

    def __init__(self) -> None:
        self.looking = CauseScope()
        self.decided_causes: DecidedCauses | None = None  # None: not read yet
        self.rows = CauseRows([])
        self.only_open = False
        self.words = ""
        self._chosen: tuple[str, str, int] = ("", "", 0)  # a cause's signature, one of its runs, and its number then
        self._shown: Example = ("", "")
        self._explained: ExplainedRun | None = None
        self._go_to: str | None = None  # the cause that the cursor goes to; "": the first; None: it stays

    def kept(self) -> dict[str, Any]:
        """What to know again at the next start."""
        return {**self.looking.to_json(), "only_open": self.only_open}

    def restore(self, stored: Mapping[str, Any]) -> None:
        """Take what an earlier start kept."""
        self.looking, self.only_open = CauseScope.from_json(stored), flag(stored, "only_open")

    # The causes

    def look_at(self, looking: CauseScope) -> None:
        """Other runs are looked at, from their first cause on."""
        self.looking, self.decided_causes, self._chosen, self._go_to = looking, None, ("", "", 0), ""

    def leave_project(self) -> None:
        """The runs of other projects are wanted."""
        self.looking, self.decided_causes, self.rows = self.looking.of_no_execution(), None, CauseRows([])

    def take(self, decided_causes: DecidedCauses) -> None:
        """These are the causes now."""
        self.decided_causes, self._shown = decided_causes, ("", "")

    def arrange(self) -> str | None:
        """Rebuild the rows. The key of the row that the cursor is to go to; "": the first; None: it stays."""
        decided_causes = self.decided_causes
        if decided_causes is not None:
            rows = rows_of(decided_causes.causes, decided_causes.decided, only_open=self.only_open, words=self.words)
            self.rows = CauseRows(rows)
        go_to, self._go_to = self._go_to, None
        return go_to

    def go_on_after(self, row: CauseRow) -> None:
        """The next cause that is open gets the cursor: what was decided about goes down the list."""
        self._go_to = self.rows.open_after(row)

    def row_at(self, index: int) -> CauseRow | None:
        """The row at `index`; None where there is none."""
        return self.rows.rows[index] if 0 <= index < self.rows.count() else None

    # The chosen cause

    def example(self, row: CauseRow) -> int:
        """The number of the run that is explained: the one that was stepped to, also when runs came before it; else the
        first."""
        signature, run, number = self._chosen
        runs = row.group.run_ids
        if signature != row.group.cause.signature or run not in runs:
            return 0
        # A run is listed once for each of its results that has the cause.
        return number if number < len(runs) and runs[number] == run else runs.index(run)

    def example_to_read(self, row: CauseRow) -> Example | None:
        """Which run of the cause is to be read and shown now; None: it is shown already."""
        example = (row.group.cause.signature, row.group.run_ids[self.example(row)])
        if example == self._shown:
            return None
        self._shown, self._explained = example, None
        return example

    def take_example(self, example: Example, explained_run: ExplainedRun) -> bool:
        """Take the data that was read of a run. False: a different run is shown by now."""
        if self._shown != example:
            return False
        self._explained = explained_run
        return True

    def step(self, row: CauseRow, by: int) -> str:
        """The run of the cause beside the one that is explained; "", or why there is none."""
        number = self.example(row) + by
        if not 0 <= number < len(row.group.runs):
            return f"This is the {'last' if by > 0 else 'first'} of its runs."
        self._chosen = (row.group.cause.signature, row.group.run_ids[number], number)
        return ""

    def run_to_open(self, row: CauseRow) -> RunToOpen:
        """The run that is explained; next and previous in Inspect go through the runs with this cause."""
        example = self.example(row)
        start = max(0, example - MOST // 2)
        runs = row.group.run_ids
        return RunToOpen(runs[example], row.group.cause.criterion, runs[start : start + MOST])

    # Lines

    def heading(self, width: int, narrow: int) -> tuple[tuple[Cell, ...], tuple[Cell, ...]]:
        """The left and right texts of the title; below `narrow` cells it says less."""
        cells = [*tab_cells(CAUSE_TABS, "causes", width, 0)[0], ("  ", "")]
        if self.decided_causes is None:
            return tuple(cells), ()
        causes = self.decided_causes.causes
        cells.append((causes_text(causes), "bold failed" if causes.failed else "bold passed"))
        if self.words:
            cells.append((f"   “{one_line(self.words, 30)}”", ""))
        if self.only_open:
            cells.append(("   only open", "review"))
        cells.append((f"   {self.looking.words(causes.scope, short=width < narrow)}", "dim"))
        if causes.scope.before_words and width >= narrow:
            cells.append((f", compared with {causes.scope.before_words}", "dim"))
        waiting = sum(row.is_open for row in rows_of(causes, self.decided_causes.decided))
        return tuple(cells), ((f"{waiting} open", "bold" if waiting else "dim"),) if causes.groups else ()

    def empty(self) -> list[Line]:
        """What is shown instead of rows."""
        if self.decided_causes is None:
            return [(), (("  looking for causes …", "dim"),)]
        return no_causes(self.decided_causes.causes, words=bool(self.words), only_open=self.only_open)

    def detail(self, row: CauseRow, width: int, now_ms: int) -> list[Line]:
        """The cause in full, with the run that is explained."""
        explained_run = self._explained
        run, result = (explained_run.run, explained_run.result) if explained_run is not None else (None, None)
        return cause_lines(row, width, now_ms, run, result, self.example(row))

    def key_names(self, row: CauseRow | None) -> list[str]:
        """What can be done now: names of actions, the most important first."""
        if row is None:
            return ["scope", *(["only_open"] if self.only_open else []), "review"]
        if row.group.trend == "gone":
            return ["open", "history", "scope", "filter"]
        names = ["open", "fix", "accept", "quarantine", "label", "ignore"]
        return [*names, *(["reopen"] if row.standing is not None else ["next"] if len(row.group.runs) > 1 else [])]
