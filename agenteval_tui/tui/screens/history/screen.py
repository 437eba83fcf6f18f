"""The History screen: executions and runs, found by words and fields, opened in Inspect."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.events import Resize, ScreenResume
from textual.widgets import Input

from agenteval_tui.core.display import one_line
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.ids import now_ms
from agenteval_tui.core.numbers import count
from agenteval_tui.history.baselines import Baseline, BaselineSet, clear_baselines, set_baseline_run
from agenteval_tui.history.current_user import current_user
from agenteval_tui.history.delete_runs import DeleteResult, remove_runs
from agenteval_tui.history.records import ExecutionRow, RunRow
from agenteval_tui.history.scope import in_scope
from agenteval_tui.runs.client import live_executions
from agenteval_tui.runs.live_registry import Live
from agenteval_tui.tui.actions import bindings, named_keys
from agenteval_tui.tui.presenters.history_rows import PAGE, ExecutionRows, TestOutcome
from agenteval_tui.tui.screen_registry import sheet
from agenteval_tui.tui.screens.base_screen import FrameScreen
from agenteval_tui.tui.screens.baseline_dialogs import ask_to_clear, ask_to_set_baseline
from agenteval_tui.tui.screens.confirm_dialog import ConfirmScreen
from agenteval_tui.tui.screens.history.controller import (
    Deletion,
    HistoryController,
    ListedRows,
    Selection,
    execution_to_compare_with,
    read_list,
    read_page,
    read_tests,
)
from agenteval_tui.tui.styled_text import Cell, Line, error_state, paragraph
from agenteval_tui.tui.terminal.sheet import if_answered
from agenteval_tui.tui.widgets.filter_box import FilterBox
from agenteval_tui.tui.widgets.line_block import LineBlock
from agenteval_tui.tui.widgets.titled_pane import PaneTitle
from agenteval_tui.tui.widgets.virtual_list import VirtualList
from agenteval_tui.tui.workers import start_worker

if TYPE_CHECKING:
    from agenteval_tui.tui.screens.import_export_dialogs import ImportOutcome


class HistoryScreen(FrameScreen):
    """Two lists in one place: executions, or runs. What is listed and chosen is the controller's."""

    SCOPE = "history"
    BINDINGS: ClassVar[list[BindingType]] = bindings("history")

    def __init__(self) -> None:
        super().__init__()
        self.controller = HistoryController()
        self._composed = False
        self._pending: tuple[str, bool] | None = None  # `open_execution` that came before the screen was there
        self._opening = False  # an execution is being read, and is shown next
        self._reading = False  # pages are being read

    def compose(self) -> ComposeResult:
        yield self.title_bar()
        with Vertical(id="body"):
            yield FilterBox(
                "words in prompts, answers, tool calls  outcome:failed  agent:x  test:x  tag:x  since:7d", id="search"
            )
            yield LineBlock(id="what")
            yield VirtualList(id="list")
            with Vertical(id="below"):
                yield PaneTitle(self.controller.tests_heading, id="tests-title")
                yield LineBlock(self._test_lines, id="tests")
        yield self.key_bar()

    def on_mount(self) -> None:
        self.query_one("#below").display = False
        self._list.focus()
        self._composed = True
        if self._pending is not None:
            execution, visiting = self._pending
            self.open_execution(execution, visiting=visiting)
        else:
            self._begin()

    def on_screen_resume(self, event: ScreenResume) -> None:
        # What is being opened is shown next: a list before it would be read for nothing.
        if self.controller.rows is not None and not self._opening:
            self.reload()

    def keys(self) -> list[tuple[str, str, str]]:
        """Without rows, what can be done without one."""
        rows, keymap, keys = self.controller.rows, self.agenteval.keymap, super().keys()
        if rows is None or rows.count():
            return keys
        if self.controller.is_narrowed:
            return [*named_keys("history", ("search", "failed", "view"), keymap), *keys[-1:]]
        named = named_keys("history", ("import", "view"), keymap)
        return [*named_keys("go", ("suites",), keymap), *named, *keys[-1:]]

    def kept(self) -> dict[str, Any] | None:
        return self.controller.kept(self._list.cursor_key)

    def restore(self, stored: Mapping[str, Any]) -> None:
        self.controller.restore(stored)

    @property
    def _list(self) -> VirtualList:
        return self.query_one("#list", VirtualList)

    @property
    def _search_box(self) -> FilterBox:
        return self.query_one("#search", FilterBox)

    @property
    def _selection(self) -> Selection:
        return self.controller.selection(self._list.cursor)

    # The list

    def _begin(self) -> None:
        """The first list: that which the last start left, as far as it is still there."""
        execution, session = self.controller.restored_execution, self.agenteval.session
        self._search_box.fill(self.controller.search_text)
        if not execution:
            self.reload()
            return

        def then(row: ExecutionRow) -> None:
            # This start may be of another project.
            if in_scope(row.project, session.projects):
                self.controller.open(row)
            self.reload()

        self.ask(lambda: session.store.execution(execution), then, group="list", failed=lambda _: self.reload())

    def open_execution(self, execution: str, *, visiting: bool = False) -> None:
        """Show the runs of this execution. `visiting`: esc leads back to the screen that led here."""
        if not self._composed:
            self._pending = execution, visiting
            return
        session, self._opening = self.agenteval.session, True

        def then(row: ExecutionRow) -> None:
            self._opening = False
            self.controller.open_for(row, visiting=visiting)
            self._leave_search()
            self.reload()

        def failed(error: AgentevalError) -> None:
            self._opening = False
            self.agenteval.say_error(error)

        self.ask(lambda: session.store.execution(execution), then, group="list", failed=failed)

    def reload(self) -> None:
        """Read the list again; the cursor stays on its row."""
        session, request = self.agenteval.session, self.controller.request(now_ms())
        # The page of the cursor is read with the list: its rows are there at once.
        near = max(self._list.cursor // PAGE, 0)
        self.ask(
            lambda: read_list(session, request, near, self._want), self._show, group="list", failed=self._show_failure
        )

    def action_reload(self) -> None:
        self.reload()

    def new_runs(self) -> None:
        """They are in the list, whichever process runs them."""
        if self.controller.rows is not None:
            self.reload()

    def projects_changed(self) -> None:
        self.controller.change_projects()
        self.reload()

    def _show_failure(self, error: AgentevalError) -> None:
        """The history can't be read: say so where the list would be."""
        if self.controller.rows is not None:
            self.agenteval.say_error(error)
            return
        self._list.set_empty(error_state(error, self.size.width))

    def _show(self, listed: ListedRows) -> None:
        view, everything = self._list, self.agenteval.session.everything
        key, at_first = self.controller.take(listed, view.cursor_key, all_projects=everything)
        view.set_empty(self.controller.empty())
        view.set_source(listed.rows, keep_key=key)
        if at_first:
            view.action_first()
        bar = view.styles.scrollbar_size_vertical
        self.query_one("#what", LineBlock).show(lambda width: self.controller.summary(width, bar))
        self.rekey()
        self.retitle()
        self._show_below()

    # What the chosen execution says of its tests, where the list leaves room

    def on_resize(self, event: Resize) -> None:
        super().on_resize(event)
        # The list has its new height only then.
        self.call_after_refresh(self._show_below)

    def _show_below(self) -> None:
        room = self.query_one("#body").size.height - len(self.controller.summary(80, 0)) - self._search_box.display
        rows = self.controller.rows_beside_tests(room)
        self.query_one("#below").display = bool(rows)
        self._list.styles.height = rows or "1fr"
        if rows:
            self._show_tests()

    def _show_tests(self) -> None:
        session, controller = self.agenteval.session, self.controller
        execution_row = controller.execution_at(self._list.cursor)
        if execution_row is None or not self.query_one("#below").display:
            return

        def then(tests: list[TestOutcome]) -> None:
            if controller.take_tests(execution_row, tests):
                self.query_one("#tests-title", PaneTitle).retell()
                self.query_one("#tests", LineBlock).retell()

        test_outcomes = controller.tests_of(execution_row)
        if test_outcomes is not None:
            then(test_outcomes)
        else:
            self.ask(
                lambda: read_tests(session.store, execution_row),
                then,
                group="tests",
                failed=lambda _: None,
                beside=True,
            )

    def _test_lines(self, width: int) -> list[Line]:
        return self.controller.test_lines(width, max(self.query_one("#below").size.height - 1, 1))

    def heading(self, width: int) -> tuple[tuple[Cell, ...], tuple[Cell, ...]]:
        return self.controller.heading()

    # Pages: what is painted is there already, or a stand-in is

    def _want(self, page: int) -> None:
        """A row of this page is being painted, and the page is not here."""
        if self.controller.want(page):
            # Rows are being painted: reading begins when that is done.
            self.call_later(self._read_wanted)

    def on_virtual_list_highlighted(self, event: VirtualList.Highlighted) -> None:
        """Who goes through the list finds the next page read already."""
        self._look_ahead()
        self.show_soon(self._show_tests)

    def _look_ahead(self) -> None:
        view = self._list
        if self.controller.look_ahead(view.scroll_offset.y, view.size.height):
            self._read_wanted()

    def _read_wanted(self) -> None:
        if not self._reading:
            self._reading = True
            start_worker(self, self._read_pages, group="pages", exclusive=False)

    async def _read_pages(self) -> None:
        """Read the wanted pages one after another."""
        view, session = self._list, self.agenteval.session
        try:
            while (page := self.controller.next_page(view.scroll_offset.y, view.size.height)) is not None:
                rows = self.controller.rows
                assert rows is not None
                try:
                    apply = await asyncio.to_thread(read_page, session, rows, page)
                except AgentevalError as error:
                    self.controller.cannot_read(rows, page)
                    self.agenteval.say_error(error)
                else:
                    apply()
                top = view.scroll_offset.y
                # Only where it is seen: another list may be shown by now, or another part of it.
                if rows is self.controller.rows and top // PAGE <= page <= (top + view.size.height) // PAGE:
                    view.refresh_rows()
        finally:
            self._reading = False
        # The list may have been scrolled on meanwhile.
        self._look_ahead()

    # Search and what is listed

    def action_filter(self) -> None:
        self._search_box.open()

    def leave_text(self) -> None:
        self._list.focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Search while typing; a newer word wins."""
        self.controller.search(event.value)
        self.reload()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Enter in the search goes to what was found."""
        self.leave_text()

    def _leave_search(self) -> None:
        """The controller's search is over: no box, and the list has the keys."""
        self._search_box.fill(self.controller.search_text)
        self._list.focus()

    def step_back(self) -> bool:
        place = "list"
        if self._search_box.display:
            self.controller.search("")
            self._leave_search()
        elif self.controller.unmark():
            self._show_marks()
            return True
        else:
            place = self.controller.leave()
        if place:
            self.reload()
        return place == "list"

    def action_toggle_view(self) -> None:
        self.controller.toggle_view()
        self.reload()

    def action_only_failed(self) -> None:
        self.controller.failed_only = not self.controller.failed_only
        self.reload()

    def on_virtual_list_selected(self, event: VirtualList.Selected) -> None:
        """Enter or a click on the selected row."""
        self.action_open()

    def action_open(self) -> None:
        """The runs of an execution, or a run in Inspect."""
        rows, index, session = self.controller.rows, self._list.cursor, self.agenteval.session
        if rows is None or not 0 <= index < rows.count():
            return
        number = rows.ids[index]
        if isinstance(rows, ExecutionRows):

            def enter(executions: list[ExecutionRow]) -> None:
                if executions:
                    self.controller.enter(executions[0])
                    self.reload()

            execution_row = rows.row(index)
            # Its page may not be read yet.
            if execution_row is not None:
                enter([execution_row])
            else:
                self.ask(lambda: session.store.execution_rows([number]), enter, group="around")
            return
        ids = self.controller.around(index)

        def inspect(around: list[RunRow]) -> None:
            opened = next((run_row.id for run_row in around if run_row.rowid == number), None)
            if opened is not None:
                self.agenteval.inspect(
                    opened, runs=[run_row.id for run_row in around], search=self.controller.search_term
                )

        self.ask(lambda: session.store.run_rows(ids), inspect, group="around")

    # Marks

    def action_mark(self) -> None:
        view = self._list
        if view.cursor_key is not None:
            self.controller.mark(view.cursor_key)
            view.refresh_rows([view.cursor])
            view.action_cursor_down()
            self.retitle()

    def action_unmark(self) -> None:
        self.controller.unmark()
        self._show_marks()

    def _show_marks(self) -> None:
        self._list.refresh_rows()
        self.retitle()

    # What is chosen

    def _with_executions(self, then: Callable[[list[ExecutionRow]], None]) -> None:
        """`then` with the chosen executions (of runs: theirs), the oldest first; says so where there is none."""
        chosen, session = self._selection, self.agenteval.session
        if chosen.ids:
            self.ask(lambda: chosen.executions(session.store), then, group="chosen")
        else:
            self._say_nothing_chosen()

    def _with_runs(self, then: Callable[[list[RunRow]], None]) -> None:
        """`then` with the chosen runs, the oldest first."""
        chosen, session = self._selection, self.agenteval.session
        if chosen.of_runs and chosen.ids:
            self.ask(lambda: session.store.run_rows(chosen.ids), then, group="chosen")
        else:
            self._say_nothing_chosen()

    def with_chosen(self, then: Callable[[Sequence[ExecutionRow | RunRow]], None]) -> None:
        """`then` with the chosen executions or runs, the oldest first; says so where there is none."""
        if self._selection.of_runs:
            self._with_runs(then)
        else:
            self._with_executions(then)

    def _with_run(self, then: Callable[[RunRow], None]) -> None:
        """`then` with the first of the chosen runs that is still there."""

        def with_first(rows: list[RunRow]) -> None:
            if rows:
                then(rows[0])
            else:
                self.agenteval.say("This run is no longer in the history.")
                self.reload()

        self._with_runs(with_first)

    def _say_nothing_chosen(self) -> None:
        self.agenteval.say("There is nothing to choose yet.")

    def action_watch(self) -> None:
        """The chosen execution if it runs now, else one of those that do."""
        chosen, session, execution_row = self._selection, self.agenteval.session, self.controller.execution

        def read() -> tuple[list[Live], str]:
            execution_id = execution_row.id if execution_row is not None else ""
            if not execution_id and chosen.ids and not chosen.of_runs:
                execution_id = next((row.id for row in session.store.execution_rows(chosen.ids[:1])), "")
            return live_executions(), execution_id

        def show(pair: tuple[list[Live], str]) -> None:
            live = next((execution for execution in pair[0] if execution.execution == pair[1]), None)
            if live is not None:
                self.agenteval.watch_live(live)
            else:
                self.agenteval.choose_live()

        self.ask(read, show, group="live")

    def action_causes(self) -> None:
        """The causes of the chosen execution's failures."""
        self._with_executions(lambda rows: self.agenteval.show_causes(rows[-1].id) if rows else None)

    def action_resume(self) -> None:
        def then(rows: list[ExecutionRow]) -> None:
            if len(rows) != 1:
                self.agenteval.say("Choose one execution, then press {history.resume} to run the rest of it.")
            elif rows[0].status == "running":
                self.agenteval.say("This execution is running. Press {history.watch} to watch it.")
            else:
                self.agenteval.resume_execution(rows[0].id)

        self._with_executions(then)

    # Comparing, baselines

    def action_compare(self) -> None:
        """Two marked ones with each other, the older on the left; one alone with its baseline, or the one before."""
        chosen, session = self._selection, self.agenteval.session
        if chosen.of_runs and len(chosen.ids) == 2:
            self._with_runs(lambda rows: self.agenteval.show_difference(rows[0].id, rows[1].id))
        elif len(chosen.ids) > 2:
            self.agenteval.say("Mark two to compare them with each other.")
        elif chosen.of_runs and chosen.ids:
            # One run: what its execution has changed, from its test on.
            def from_its_test(rows: list[tuple[RunRow, ExecutionRow]]) -> None:
                for row, of in rows:
                    self._compare_one(of, (row.suite_key, row.test_id))

            self.ask(lambda: chosen.runs_with_execution(session.store), from_its_test, group="chosen")
        else:

            def then(rows: list[ExecutionRow]) -> None:
                if len(rows) == 2:
                    self.agenteval.compare(rows[0].id, rows[1].id)
                elif rows:
                    self._compare_one(rows[0])

            self._with_executions(then)

    def _compare_one(self, row: ExecutionRow, test: tuple[str, str] | None = None) -> None:
        """With its baseline, or the one before. `test`: suite's key and id of the one that it begins with."""
        session = self.agenteval.session

        def then(other: str | None) -> None:
            if other is None:
                self.agenteval.say("Nothing ran before it. Mark two with {history.mark}, then press {history.compare}.")
            else:
                self.agenteval.compare(other, row.id, test=test)

        self.ask(lambda: execution_to_compare_with(session.store, row), then, group="chosen")

    def action_name(self) -> None:
        """Name the first of the chosen executions; of runs, theirs."""

        def done(name: str) -> None:
            self.agenteval.say(f"It is called {one_line(name, 60)}." if name else "Saved.")
            self.reload()

        def then(rows: list[ExecutionRow]) -> None:
            if rows:
                self.app.push_screen(sheet("name", rows[0]), if_answered(done))

        self._with_executions(then)

    def action_baseline(self) -> None:
        """Of an execution or a run; where the runs of an execution are shown, it is asked which."""
        chosen, execution_row = self._selection, self.controller.execution
        if len(chosen.ids) != 1:
            self.agenteval.say("Choose one execution or one run to be the baseline.")
            return
        if not chosen.of_runs:
            self._with_executions(lambda rows: self._baseline_execution(rows[0]) if rows else None)
            return
        if execution_row is None:
            self._with_run(self._baseline_run)
            return

        def answered(answer: str | None) -> None:
            if answer == "execution":
                self._baseline_execution(execution_row)
            elif answer:
                self._with_run(self._baseline_run)

        words = "Set all runs of this execution as the baseline of its tests, or only the chosen run?"
        answers = [("e", "execution", "the execution"), ("r", "run", "this run")]
        self.app.push_screen(
            ConfirmScreen("Set the baseline?", lambda width: paragraph(words, width), answers), answered
        )

    def _baseline_execution(self, row: ExecutionRow) -> None:
        session = self.agenteval.session

        def then(tests: int) -> None:
            ask_to_set_baseline(self, row.id, row.title or row.id, tests, self.reload)

        def read() -> int:
            return len({(run.suite_key, run.test_id) for run in session.store.runs_of_execution(row.id)})

        self.ask(read, then, group="chosen")

    def _baseline_run(self, row: RunRow) -> None:
        session, name = self.agenteval.session, one_line(row.test_id, 60)

        def done(_: BaselineSet) -> None:
            self.agenteval.say(f"This run is the baseline of {name} now.")
            self.reload()

        def set_it() -> None:
            self.ask(lambda: set_baseline_run(session.store, row.id, who=current_user()), done, group="baseline")

        words = f"This run becomes the baseline of {name}. If there is one already, it is replaced; its runs stay."
        self._ask_yes("Set the baseline?", [words], "set it", set_it)

    def action_clear_baseline(self) -> None:
        """Of a run its test's baseline, of an execution those that rest on it."""
        chosen, session = self._selection, self.agenteval.session
        if chosen.of_runs:
            self._with_run(lambda row: ask_to_clear(self, row.suite_key, row.test_id, self.reload))
            return

        def done(number: int) -> None:
            self.agenteval.say(f"Cleared the baseline of {count(number, 'test')}.")
            self.reload()

        def then(baselines: list[Baseline]) -> None:
            tests = [(baseline.suite_key, baseline.test_id) for baseline in baselines]
            if not tests:
                self.agenteval.say("It is not the baseline of any test.")
                return
            self._ask_yes(
                f"Clear the baseline of {count(len(tests), 'test')}?",
                ["The runs stay, but pruning may remove them. Later executions are no longer compared with them."],
                "clear it",
                lambda: self.ask(lambda: clear_baselines(session.store, tests), done, group="baseline"),
            )

        self.ask(lambda: chosen.baselines(session.store), then, group="baseline")

    # Deleting, pruning

    def action_delete(self) -> None:
        chosen, session = self._selection, self.agenteval.session

        def then(deletion: Deletion) -> None:
            if deletion.all_running:
                self.agenteval.say(
                    "It is still running. Press {history.watch} to go to it, and {run.cancel} there to stop it."
                )
            else:
                self._ask_yes(deletion.question, deletion.warnings, "delete", lambda: self._delete(deletion))

        if chosen.ids:
            self.ask(lambda: chosen.deletion(session.store), then, group="chosen")
        else:
            self._say_nothing_chosen()

    def _delete(self, what: Deletion) -> None:
        session = self.agenteval.session

        def done(gone: DeleteResult) -> None:
            self.action_unmark()
            self.agenteval.say(f"Deleted {count(gone.runs, 'run')} and {count(gone.executions, 'execution')}.")
            if self.controller.execution is not None and not what.runs:
                self.step_back()
            self.reload()

        if len(what.runs) > 1000:
            self.agenteval.say(f"Deleting {count(len(what.runs), 'run')} …")
        self.ask(lambda: remove_runs(session.store, what.runs, executions=what.executions), done, group="delete")

    def action_prune(self) -> None:
        self.app.push_screen(sheet("prune"), lambda changed: self.reload() if changed else None)

    # Files

    def action_import_file(self) -> None:
        session = self.agenteval.session

        def done(brought: ImportOutcome | str | None) -> None:
            if brought is not None and not isinstance(brought, str):
                execution, opens = brought.execution, brought.opens
                show = partial(self._go_to, opens=opens)
                self.ask(lambda: session.store.execution(execution), show, group="go")

        self.app.push_screen(sheet("import"), done)

    def _go_to(self, row: ExecutionRow, *, opens: bool) -> None:
        """Put the cursor on an execution of the list, or show its runs; what was searched is over."""
        self.controller.go_to(row, opens=opens)
        self._leave_search()
        self.reload()

    def action_export(self) -> None:
        chosen, session = self._selection, self.agenteval.session

        def then(rows: list[RunRow]) -> None:
            if rows:
                self.app.push_screen(sheet("export_runs", rows))
            else:
                self.agenteval.say("None of its runs has ended yet.")

        if chosen.ids:
            self.ask(lambda: chosen.all_runs(session.store), then, group="chosen")
        else:
            self._say_nothing_chosen()

    def _ask_yes(self, title: str, words: Sequence[str], label: str, then: Callable[[], None]) -> None:
        def lines(width: int) -> list[Line]:
            return [line for sentence in words for line in paragraph(sentence, width)]

        self.app.push_screen(
            ConfirmScreen(title, lines, [("y", "yes", label)]), lambda answer: then() if answer else None
        )
