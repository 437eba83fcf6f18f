"""The History screen: executions and runs, found by words, opened in Inspect."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.events import ScreenResume
from textual.widgets import Input

from agenteval_tui.text.display import one_line
from agenteval_tui.text.problems import AgentevalError
from agenteval_tui.tui.actions import bindings
from agenteval_tui.tui.lines import Cell, Line
from agenteval_tui.tui.presenters.figures import count
from agenteval_tui.tui.presenters.history_rows import ExecutionRows, RunRows, execution_summary
from agenteval_tui.tui.presenters.paragraphs import error_lines
from agenteval_tui.tui.screens.frame import FrameScreen
from agenteval_tui.tui.widgets.line_block import LineBlock
from agenteval_tui.tui.widgets.virtual_list import VirtualList

if TYPE_CHECKING:
    from agenteval_tui.history.rows import ExecutionRow, RunFilter

NOT_PASSED = ("failed", "error", "cancelled", "needs_review")


class HistoryScreen(FrameScreen):
    """Two lists in one place: executions, or runs (of one execution, or all that match what was searched)."""

    SCOPE = "history"
    CSS_PATH = "history.tcss"
    BINDINGS: ClassVar[list[BindingType]] = list(bindings("history"))

    def __init__(self) -> None:
        super().__init__()
        self._rows: ExecutionRows | RunRows | None = None
        self._execution: ExecutionRow | None = None
        self._runs_of_all = False
        self._failed_only = False
        self._text = ""
        self._keys: dict[str, str] = {}
        self._composed = False
        self._pending = ""

    def compose(self) -> ComposeResult:
        yield self.title_bar()
        with Vertical(id="body"):
            yield Input(
                placeholder="words in prompts, answers, tool names and arguments", id="search", classes="filter"
            )
            yield LineBlock(id="what")
            yield VirtualList(id="list")
        yield self.key_bar()

    def on_mount(self) -> None:
        self.query_one("#search", Input).display = False
        self.query_one("#list", VirtualList).focus()
        self._composed = True
        if self._pending:
            self.open_execution(self._pending)
        else:
            self.reload()

    def open_execution(self, execution: str) -> None:
        """Show the runs of this execution."""
        if not self._composed:
            self._pending = execution
            return
        session = self.agenteval.session

        def then(row: ExecutionRow) -> None:
            self._execution = row
            # What was searched or filtered before was searched in other runs.
            self._text = ""
            self._failed_only = False
            box = self.query_one("#search", Input)
            with box.prevent(Input.Changed):
                box.value = ""
            box.display = False
            self.query_one("#list", VirtualList).focus()
            self.reload()

        self.ask(lambda: session.store.execution(execution), then, group="list")

    def on_screen_resume(self, event: ScreenResume) -> None:
        if self._rows is not None:
            self.reload()

    @property
    def _showing_runs(self) -> bool:
        return self._execution is not None or self._runs_of_all or bool(self._text)

    def reload(self) -> None:
        """Read the list again; the cursor stays on its row."""
        from agenteval_tui.history.rows import RunFilter

        wanted = RunFilter(
            text=self._text,
            outcomes=NOT_PASSED if self._failed_only else (),
            execution_id=self._execution.id if self._execution else "",
        )
        runs = self._showing_runs
        self.ask(lambda: self._read(wanted, runs), self._show, group="list", failed=self._show_failure)

    def _show_failure(self, error: AgentevalError) -> None:
        """The history can't be read: say so where the list would be."""
        if self._rows is not None:
            self.agenteval.say_error(error)
            return
        lines = error_lines(error, max(self.size.width - 4, 20))
        self.query_one("#list", VirtualList).set_empty([(), *(((" ", ""), *line) for line in lines)])

    def action_reload(self) -> None:
        self.reload()

    def _read(self, wanted: RunFilter, runs: bool) -> ExecutionRows | RunRows:
        store = self.agenteval.session.store
        if runs:
            ids = store.run_ids(wanted)
            if wanted.execution_id and not wanted.text:
                ids = array("q", reversed(ids))  # an execution reads in the order of its plan
            rows: ExecutionRows | RunRows = RunRows(ids, store.run_rows)
        else:
            rows = ExecutionRows(store.execution_ids(wanted), store.execution_rows)
        if rows.count():
            rows.row(0)  # the first page is read here, not when it is painted
        return rows

    def _show(self, rows: ExecutionRows | RunRows) -> None:
        view = self.query_one("#list", VirtualList)
        same = type(rows) is type(self._rows)
        self._rows = rows
        view.set_empty(self._empty())
        view.set_source(rows, keep_key=view.cursor_key if same else self._keys.pop(type(rows).__name__, None))
        execution = self._execution
        self.query_one("#what", LineBlock).show(
            lambda width: [execution_summary(execution, width)] if execution is not None else []
        )
        self.retitle()

    def _empty(self) -> list[Line]:
        if self._text:
            return [(), (("  Nothing holds these words.", ""),), (("  esc clears the search.", "dim"),)]
        if self._failed_only:
            return [(), (("  Everything passed.", "passed"),), (("  f shows all.", "dim"),)]
        return [
            (),
            (("  Nothing was run yet.", ""),),
            (("  1 goes to the suites; r runs what is selected there.", "dim"),),
            (("  agenteval import FILE brings in recordings of other tools.", "dim"),),
        ]

    def heading(self, width: int) -> tuple[tuple[Cell, ...], tuple[Cell, ...]]:
        if self._rows is None:
            return (), ()
        noun = "run" if self._showing_runs else "execution"
        left: list[Cell] = []
        if self._text:
            left.append((f"“{one_line(self._text, 40)}”", ""))
        if self._failed_only:
            left.append(("  not passed", "failed"))
        return tuple(left), ((count(self._rows.count(), noun), "dim"),)

    # What a person does

    def on_virtual_list_selected(self, event: VirtualList.Selected) -> None:
        """Enter or a click on the selected row."""
        self.action_open()

    def action_open(self) -> None:
        rows = self._rows
        index = self.query_one("#list", VirtualList).cursor
        if rows is None or not 0 <= index < rows.count():
            return
        if isinstance(rows, ExecutionRows):
            row = rows.row(index)
            if row is None:
                return
            self._keys["ExecutionRows"] = rows.key(index)
            self._execution = row
            self.reload()
            return
        run = rows.row(index)
        if run is not None:
            # Next and previous go through what stands around it in this list.
            ids, opened, session = rows.ids[max(index - 250, 0) : index + 250], run.id, self.agenteval.session
            self.ask(
                lambda: [one.id for one in session.store.run_rows(ids)],
                lambda around: self.agenteval.inspect(opened, runs=around),
                group="around",
            )

    def step_back(self) -> bool:
        box = self.query_one("#search", Input)
        if box.display:
            box.display = False
            box.value = ""
            self._text = ""
            self.query_one("#list", VirtualList).focus()
        elif self._execution is not None:
            self._execution = None
        elif self._runs_of_all:
            self._runs_of_all = False
        elif self._failed_only:
            self._failed_only = False
        else:
            return False
        self.reload()
        return True

    def action_toggle_view(self) -> None:
        if self._execution is not None:
            self._execution = None
            self._runs_of_all = False
        else:
            self._runs_of_all = not self._runs_of_all
        self.reload()

    def action_filter(self) -> None:
        box = self.query_one("#search", Input)
        box.display = True
        box.focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Search while typing; a newer word wins."""
        self._text = event.value.strip()
        self.reload()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Enter in the search goes to what was found."""
        self.query_one("#list", VirtualList).focus()

    def action_only_failed(self) -> None:
        self._failed_only = not self._failed_only
        self.reload()

    def _selected(self) -> ExecutionRow | None:
        rows = self._rows
        if not isinstance(rows, ExecutionRows):
            return self._execution
        index = self.query_one("#list", VirtualList).cursor
        return rows.row(index) if 0 <= index < rows.count() else None

    def action_watch(self) -> None:
        from agenteval_tui.runs.client import Live, live_executions

        wanted = self._selected()

        def show(live: list[Live]) -> None:
            chosen = [one for one in live if wanted is not None and one.execution == wanted.id]
            if chosen:
                self.agenteval.watch_live(chosen[0])
            else:
                self.agenteval.choose_live()

        self.ask(live_executions, show, group="live")

    def action_resume(self) -> None:
        row = self._selected()
        if row is None:
            self.agenteval.say("Choose an execution: R runs what is left of it.")
        elif row.status == "running":
            self.agenteval.say("This execution is running: w watches it.")
        else:
            self.agenteval.resume_execution(row.id)
