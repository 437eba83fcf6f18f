"""The Causes screen: what is wrong, worst first; decided once, with a key."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Container
from textual.events import Resize, ScreenResume

from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.ids import now_ms
from agenteval_tui.history.errors import NothingRanError
from agenteval_tui.tui.actions import bindings, named_keys
from agenteval_tui.tui.presenters.cause_rows import PURPOSE, CauseRow
from agenteval_tui.tui.presenters.tabs import cause_tab_at
from agenteval_tui.tui.screen_registry import ask
from agenteval_tui.tui.screens.causes_controller import (
    CausesController,
    CauseScope,
    DecidedCauses,
    ExplainedRun,
    read_causes,
    read_example,
)
from agenteval_tui.tui.screens.filterable_screen import FilteredScreen, without_runs
from agenteval_tui.tui.styled_text import (
    SUITES_KEY,
    Cell,
    empty_state,
    error_state,
)
from agenteval_tui.tui.widgets.filter_box import FilterBox
from agenteval_tui.tui.widgets.line_block import LineBlock
from agenteval_tui.tui.widgets.lines_view import LinesView
from agenteval_tui.tui.widgets.virtual_list import VirtualList


class CausesScreen(FilteredScreen):
    """The list of causes; beside it the chosen one, with the explanation of one of its runs. What is listed and chosen
    is the controller's."""

    SCOPE = "causes"
    LIST = "#causes"
    BINDINGS: ClassVar[list[BindingType]] = bindings("causes")

    def __init__(self) -> None:
        super().__init__()
        self.controller = CausesController()
        self._composed = False
        self._pending: Callable[[], None] | None = None

    def compose(self) -> ComposeResult:
        yield self.title_bar()
        yield FilterBox("words in causes, tests and notes", id="search")
        with Container(id="body"):
            yield VirtualList(id="causes")
            yield LinesView(id="details")
        yield self.key_bar()

    def on_mount(self) -> None:
        self._composed = True
        self._list.focus()
        # What it was opened for may have been said before its widgets were there.
        (self._pending or self.reload)()

    def on_resize(self, event: Resize) -> None:
        self.set_class(event.size.width < self.NARROW, "narrow")

    def on_screen_resume(self, event: ScreenResume) -> None:
        """Labels, edits and new runs change what is shown."""
        if self.controller.decided_causes is not None:
            self.reload()

    def open_failures(self, execution: str, suites: Sequence[str], tests: Sequence[str]) -> None:
        """Show the causes of an execution's failures, else of the newest runs of these suites' tests (none: of all)."""
        self.open(CauseScope(execution, tuple(suites), tuple(tests)))

    def open(self, looking: CauseScope) -> None:
        """Show the causes of these runs."""
        if not self._composed:
            # Its widgets are not there yet.
            self._pending = partial(self.open, looking)
            return
        self.controller.look_at(looking)
        self.reload()

    def reload(self) -> None:
        """Read them again; the cursor stays on its cause."""
        session, controller = self.agenteval.session, self.controller
        store, looking = session.store, controller.looking
        if controller.decided_causes is None:
            self._list.set_empty(controller.empty())

        def then(decided_causes: DecidedCauses) -> None:
            controller.take(decided_causes)
            self.show_filtered()

        self.ask(lambda: read_causes(store, looking, session.projects), then, group="causes", failed=self._failed)

    def action_reload(self) -> None:
        self.reload()

    def projects_changed(self) -> None:
        self.controller.leave_project()
        self._list.set_source(self.controller.rows)
        self.reload()

    def new_runs(self) -> None:
        """They may have failed."""
        if self.controller.decided_causes is not None and not self.controller.looking.everything:
            self.reload()

    def kept(self) -> dict[str, Any]:
        return self.controller.kept()

    def restore(self, stored: Mapping[str, Any]) -> None:
        self.controller.restore(stored)

    def _failed(self, error: AgentevalError) -> None:
        if self.controller.decided_causes is not None:
            self.agenteval.say_error(error)
            return
        self._nothing_ran = isinstance(error, NothingRanError)
        lines = without_runs(error, PURPOSE)
        if lines is None:
            lines = [*error_state(error, self.size.width), *empty_state("", "", *SUITES_KEY)[2:]]
        self._list.set_empty(lines)
        self._detail()

    def show_filtered(self) -> None:
        controller, view = self.controller, self._list
        if controller.decided_causes is None:
            return
        controller.words = self._words
        go_to = controller.arrange()
        view.set_empty(controller.empty())
        view.set_source(controller.rows, keep_key=view.cursor_key if go_to is None else go_to)
        if go_to == "" and controller.rows.count():
            view.cursor = 0
        self.retitle()
        self._detail()

    def heading(self, width: int) -> tuple[tuple[Cell, ...], tuple[Cell, ...]]:
        return self.controller.heading(width, self.NARROW)

    def keys(self) -> list[tuple[str, str, str]]:
        """Only what does something with what is shown."""
        if self._nothing_ran and self.controller.decided_causes is None:
            return self.keys_without_runs()
        names, other = self.controller.key_names(self._row()), self.controller.looking.next().name
        keys = named_keys(self.SCOPE, names, self.agenteval.keymap)
        return [*((key, other if do == "scope" else label, do) for key, label, do in keys), *super().keys()[-1:]]

    def on_line_block_clicked(self, event: LineBlock.Clicked) -> None:
        """A click on the other tab shows it."""
        if (
            event.block.id == "title"
            and event.y == 1
            and cause_tab_at(self.SCOPE, event.x, self.size.width) == "review"
        ):
            self.action_review()
        else:
            super().on_line_block_clicked(event)

    # The chosen cause

    def _row(self) -> CauseRow | None:
        return self.controller.row_at(self._list.cursor)

    def _detail(self) -> None:
        row, controller = self._row(), self.controller
        self.set_class(row is None, "nothing")
        self.rekey()
        if row is None:
            self.query_one("#details", LinesView).show(lambda width: [], keep_place=False)
            return
        example = controller.example_to_read(row)
        # It is shown already.
        if example is None:
            return
        self._draw()
        store, (_, run), position = (
            self.agenteval.session.store,
            example,
            row.group.positions[controller.example(row)],
        )

        def then(explained_run: ExplainedRun) -> None:
            if controller.take_example(example, explained_run):
                self._draw()

        # A run that is gone, or can't be read, leaves the details without an example.
        self.ask(lambda: read_example(store, run, position), then, group="example", failed=lambda _: None)

    def _draw(self) -> None:
        row, now = self._row(), now_ms()
        if row is not None:
            self.query_one("#details", LinesView).show(
                lambda width: self.controller.detail(row, max(width - 1, 10), now), keep_place=False
            )

    def on_virtual_list_highlighted(self, event: VirtualList.Highlighted) -> None:
        """Show it in full."""
        self.show_soon(self._detail)

    def on_virtual_list_selected(self, event: VirtualList.Selected) -> None:
        """Enter, or a click on the chosen row."""
        self.action_open()

    def _chosen(self, *, here: bool = True) -> CauseRow | None:
        """The chosen cause; `here`: only one that is not gone."""
        row = self._row()
        if row is None:
            self.agenteval.say("Choose a cause first.")
        elif here and row.group.trend == "gone":
            self.agenteval.say("This cause is gone: no run here has it any more.")
            return None
        return row

    # What a person does

    def action_open(self) -> None:
        """The example in Inspect; next and previous failure there go through the runs with this cause."""
        self._inspect(edit=False)

    def _inspect(self, *, edit: bool) -> None:
        row = self._chosen(here=False)
        if row is not None:
            run_to_open = self.controller.run_to_open(row)
            self.agenteval.inspect(run_to_open.run, criterion=run_to_open.criterion, runs=run_to_open.runs, edit=edit)

    def _step(self, by: int) -> None:
        row = self._chosen(here=False)
        if row is None:
            return
        if message := self.controller.step(row, by):
            self.agenteval.say(message)
        else:
            self._detail()

    def action_next_example(self) -> None:
        self._step(1)

    def action_previous_example(self) -> None:
        self._step(-1)

    def action_decide(self, decision: str) -> None:
        """Ask for a note, and do it."""
        row, decided_causes = self._chosen(), self.controller.decided_causes
        if row is not None and decided_causes is not None:
            execution = decided_causes.causes.scope.execution_id
            ask("triage", self, row, decision, execution, partial(self._decided, decision, row))

    def _decided(self, decision: str, row: CauseRow) -> None:
        """The cursor moves to the next open cause: a decided one moves down the list."""
        if decision == "fix":
            self._inspect(edit=True)
        else:
            self.controller.go_on_after(row)
        self.reload()

    def action_reopen(self) -> None:
        """Take the decision back."""
        row = self._chosen(here=False)
        if row is not None:
            ask("reopen", self, row, self.reload)

    def action_scope(self) -> None:
        """The newest runs of each test, the last execution, everything."""
        self.open(self.controller.looking.next())
        self.agenteval.keep_places()

    def action_only_open(self) -> None:
        """Only undecided causes, or all."""
        self.controller.only_open = not self.controller.only_open
        self.show_filtered()

    def action_review(self) -> None:
        """What waits for a person."""
        self.agenteval.go("review")

    def action_history(self) -> None:
        """The execution's runs in the history."""
        row = self._chosen(here=False)
        if row is None:
            return
        store, run = self.agenteval.session.store, row.group.run_ids[self.controller.example(row)]
        self.ask(
            lambda: store.run(run), lambda run_row: self.agenteval.show_execution(run_row.execution_id), group="go"
        )

    def action_copy(self) -> None:
        """Copy the command that decides about it."""
        row = self._row()
        if row is not None:
            command = f"agenteval triage {row.group.cause.id}{self.agenteval.session.db_option} "
            self.agenteval.copy(command, command)

    def step_back(self) -> bool:
        if super().step_back():
            return True
        if self.controller.only_open:
            self.action_only_open()
            return True
        return False
