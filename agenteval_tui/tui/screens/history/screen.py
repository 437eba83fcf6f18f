"""The History screen: executions and runs, found by words and fields, opened in Inspect."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.events import ScreenResume
from textual.widgets import Input

from agenteval_tui.core.display import one_line
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.ids import now_ms
from agenteval_tui.history.scope import in_scope
from agenteval_tui.history.search import HistoryQuery
from agenteval_tui.tui.actions import bindings
from agenteval_tui.tui.presenters.history_rows import PAGE, ExecutionRows, RunRows, execution_summary
from agenteval_tui.tui.presenters.number_format import count
from agenteval_tui.tui.presenters.text_layout import error_lines, nothing_here, paragraph
from agenteval_tui.tui.screens.history.pages import HistoryPages
from agenteval_tui.tui.state import flag, text
from agenteval_tui.tui.styled_text import Cell, Line
from agenteval_tui.tui.widgets.line_block import LineBlock
from agenteval_tui.tui.widgets.virtual_list import VirtualList

if TYPE_CHECKING:
    from agenteval_tui.history.records import ExecutionRow, RunRow

AROUND = 250  # runs before and behind the opened one that next and previous go through


class HistoryScreen(HistoryPages):
    """Two lists in one place: executions, or runs (of one execution, or all that match what was searched)."""

    SCOPE = "history"
    BY_PROJECT = True
    CSS_PATH = "screen.tcss"
    BINDINGS: ClassVar[list[BindingType]] = list(bindings("history"))

    def __init__(self) -> None:
        super().__init__()
        self._execution: ExecutionRow | None = None
        self._runs_of_all = False
        self._failed_only = False
        self._query = HistoryQuery()
        self._marks: dict[str, set[str]] = {ExecutionRows.__name__: set(), RunRows.__name__: set()}
        self._keys: dict[str, str] = {}
        self._composed = False
        self._pending = ""
        self._opening = False  # an execution is being read, and is shown next
        self._visiting = False  # another screen led to this execution: esc leads back there
        self._listed: tuple[object, ...] = ()  # what the list is of
        self._restored = "", ""  # the execution that the last start left open, and what was searched

    def compose(self) -> ComposeResult:
        yield self.title_bar()
        with Vertical(id="body"):
            yield Input(
                placeholder="words in prompts, answers, tool calls  outcome:failed  agent:x  test:x  tag:x  since:7d",
                id="search",
                classes="filter",
            )
            yield LineBlock(id="what")
            yield VirtualList(id="list")
        yield self.key_bar()

    def on_mount(self) -> None:
        self.query_one("#search", Input).display = False
        self.query_one("#list", VirtualList).focus()
        self._composed = True
        if self._pending:
            self.open_execution(self._pending, visiting=self._visiting)
        else:
            self._begin()

    def open_execution(self, execution: str, *, visiting: bool = False) -> None:
        """Show the runs of this execution. `visiting`: esc leads back to the screen that led here."""
        if not self._composed:
            self._pending, self._visiting = execution, visiting
            return
        session = self.agenteval.session
        self._opening = True

        def then(row: ExecutionRow) -> None:
            self._opening = False
            self._execution, self._visiting = row, visiting
            # What was searched or filtered before was searched in other runs.
            self._failed_only = False
            self._clear_search()
            self.reload()

        def failed(error: AgentevalError) -> None:
            self._opening = False
            self.agenteval.say_error(error)

        self.ask(lambda: session.store.execution(execution), then, group="list", failed=failed)

    def go_to(self, row: ExecutionRow, *, opens: bool) -> None:
        """Put the cursor on an execution of the list, or show its runs; what was searched is over."""
        self._keys["ExecutionRows"] = str(row.rowid)
        self._rows = None  # the cursor goes where it is wanted, not where it was
        self._execution, self._visiting = row if opens else None, False
        self._runs_of_all = self._failed_only = False
        self._clear_search()
        self.reload()

    def _clear_search(self) -> None:
        self._query = HistoryQuery()
        box = self.query_one("#search", Input)
        with box.prevent(Input.Changed):
            box.value = ""
        box.display = False
        self.query_one("#list", VirtualList).focus()

    def on_screen_resume(self, event: ScreenResume) -> None:
        if self._rows is not None and not self._opening:
            self.reload()

    @property
    def _showing_runs(self) -> bool:
        return self._execution is not None or self._runs_of_all or bool(self._query.words.strip())

    def reload(self) -> None:
        """Read the list again; the cursor stays on its row."""
        execution = self._execution.id if self._execution else ""
        wanted = self._query.filter(now_ms(), execution=execution, failed_only=self._failed_only)
        runs = self._showing_runs
        at = self.query_one("#list", VirtualList).cursor // PAGE
        self.ask(lambda: self._read(wanted, runs, max(at, 0)), self._show, group="list", failed=self._show_failure)

    def action_reload(self) -> None:
        self.reload()

    def projects_changed(self) -> None:
        self._execution, self._visiting = None, False
        self.reload()

    def _show_failure(self, error: AgentevalError) -> None:
        """The history can't be read: say so where the list would be."""
        if self._rows is not None:
            self.agenteval.say_error(error)
            return
        lines = error_lines(error, max(self.size.width - 4, 20))
        self.query_one("#list", VirtualList).set_empty([(), *(((" ", ""), *line) for line in lines)])

    def _show(self, rows: ExecutionRows | RunRows) -> None:
        view = self.query_one("#list", VirtualList)
        same = type(rows) is type(self._rows)
        self._rows = rows
        self._wanted.clear()
        rows.marked = self._marks[type(rows).__name__]
        view.set_empty(self._empty())
        key = view.cursor_key if same else self._keys.pop(type(rows).__name__, None)
        everything = self.agenteval.session.everything
        of = type(rows), self._execution.id if self._execution else "", self._query, self._failed_only, everything
        before, self._listed = self._listed, of
        view.cursor_width = rows.cursor_cells(view.size.width)
        view.set_source(rows, keep_key=key)
        if before and of != before and (key is None or rows.index_of(key) is None):
            view.action_first()  # another list begins at its beginning
        self.query_one("#what", LineBlock).show(self._what)
        self.retitle()

    def _what(self, width: int) -> Sequence[Line]:
        lines: list[Line] = []
        if self._execution is not None:
            lines.append(execution_summary(self._execution, width))
        if self._query.problem:
            lines += [((" ", ""), *line) for line in paragraph(self._query.problem, width - 2, "failed")]
        if self._rows is not None and self._rows.count():
            bar = self.query_one("#list", VirtualList).styles.scrollbar_size_vertical
            lines.append(((" ", ""), *self._rows.heading(width - 1 - bar)))
        return lines

    def _empty(self) -> list[Line]:
        if self._query:
            return [(), (("  Nothing fits.", ""),), (("  esc clears the search.", "dim"),)]
        if self._failed_only:
            return [(), (("  Everything passed.", "passed"),), (("  f shows all.", "dim"),)]
        if self._elsewhere:
            return nothing_here(self._elsewhere, "H")
        if self._execution is not None:
            return [(), (("  No run of this execution is left.", ""),), (("  esc goes back.", "dim"),)]
        return [
            (),
            (("  Nothing was run yet.", ""),),
            (("  1 goes to the suites; r runs what is selected there.", "dim"),),
            (("  i brings in recordings of other tools.", "dim"),),
        ]

    def heading(self, width: int) -> tuple[tuple[Cell, ...], tuple[Cell, ...]]:
        if self._rows is None:
            return (), ()
        noun = "run" if self._showing_runs else "execution"
        left: list[Cell] = []
        if self._query.words.strip():
            left.append((f"“{one_line(self._query.words.strip(), 30)}”", ""))
        left += [(f"  {name}:{one_line(value, 20)}", "accent") for name, value in self._query.fields]
        if self._failed_only:
            left.append(("  not passed", "failed"))
        right: list[Cell] = [(count(self._rows.count(), noun), "dim")]
        if self._rows.marked:
            right.insert(0, (f"{len(self._rows.marked)} marked  ", "accent"))
        return tuple(left), tuple(right)

    # What is chosen

    def chosen_ids(self) -> tuple[bool, list[int]]:
        """Whether these are runs; the row ids of what is marked, else of the row with the cursor; [] for none."""
        rows = self._rows
        if rows is None:
            return False, []
        if rows.marked:
            return isinstance(rows, RunRows), sorted(int(key) for key in rows.marked)
        index = self.query_one("#list", VirtualList).cursor
        return isinstance(rows, RunRows), [rows.ids[index]] if 0 <= index < rows.count() else []

    def at_cursor(self) -> int | None:
        """The row id under the cursor."""
        index = self.query_one("#list", VirtualList).cursor
        return self._rows.ids[index] if self._rows is not None and 0 <= index < self._rows.count() else None

    def action_mark(self) -> None:
        view, rows = self.query_one("#list", VirtualList), self._rows
        if rows is None or view.cursor_key is None:
            return
        rows.marked.symmetric_difference_update({view.cursor_key})
        view.refresh_rows([view.cursor])
        view.action_cursor_down()
        self.retitle()

    def action_unmark(self) -> None:
        if self._rows is not None:
            self._rows.marked.clear()
            self.query_one("#list", VirtualList).refresh_rows()
            self.retitle()

    # What a person does

    def on_virtual_list_selected(self, event: VirtualList.Selected) -> None:
        """Enter or a click on the selected row."""
        self.action_open()

    def action_open(self) -> None:
        rows, number = self._rows, self.at_cursor()
        if rows is None or number is None:
            return
        store, index = self.agenteval.session.store, self.query_one("#list", VirtualList).cursor
        if isinstance(rows, ExecutionRows):
            self._keys["ExecutionRows"] = str(number)

            def enter(found: list[ExecutionRow]) -> None:
                if found:
                    self._execution, self._visiting = found[0], False
                    self.reload()

            known = rows.row(index)
            if known is not None:
                enter([known])
            else:
                self.ask(lambda: store.execution_rows([number]), enter, group="around")
            return
        # Next and previous go through what stands around it in this list.
        ids = rows.ids[max(index - AROUND, 0) : index + AROUND]

        def inspect(around: list[RunRow]) -> None:
            opened = next((one.id for one in around if one.rowid == number), None)
            if opened is not None:
                self.agenteval.inspect(opened, runs=[one.id for one in around])

        self.ask(lambda: store.run_rows(ids), inspect, group="around")

    def step_back(self) -> bool:
        box = self.query_one("#search", Input)
        if box.display:
            self._clear_search()
        elif self._rows is not None and self._rows.marked:
            self.action_unmark()
            return True
        elif self._execution is not None:
            self._execution = None
            if self._visiting:
                self._visiting = False
                self.reload()
                return False
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
        self._query = HistoryQuery.parse(event.value)
        self.reload()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Enter in the search goes to what was found."""
        self.query_one("#list", VirtualList).focus()

    def action_only_failed(self) -> None:
        self._failed_only = not self._failed_only
        self.reload()

    def kept(self) -> dict[str, Any] | None:
        if self._rows is None:
            return None
        return {
            "execution": self._execution.id if self._execution else "",
            "runs": self._runs_of_all,
            "failed": self._failed_only,
            "search": self.query_one("#search", Input).value,
            "cursor": self.query_one("#list", VirtualList).cursor_key or "",
        }

    def restore(self, kept: Mapping[str, Any]) -> None:
        self._runs_of_all = flag(kept, "runs")
        self._failed_only = flag(kept, "failed")
        self._restored = text(kept, "execution"), text(kept, "search")
        self._query = HistoryQuery.parse(self._restored[1])
        shown = RunRows if self._restored[0] or self._showing_runs else ExecutionRows
        self._keys[shown.__name__] = text(kept, "cursor")

    def _begin(self) -> None:
        """The first list: that which the last start left, as far as it is still there."""
        execution, words = self._restored
        if words:
            box = self.query_one("#search", Input)
            with box.prevent(Input.Changed):
                box.value = words
            box.display = True
        if not execution:
            self.reload()
            return
        session = self.agenteval.session

        def then(row: ExecutionRow) -> None:
            if in_scope(row.project, session.projects):
                self._execution = row
            self.reload()

        self.ask(lambda: session.store.execution(execution), then, group="list", failed=lambda _: self.reload())
