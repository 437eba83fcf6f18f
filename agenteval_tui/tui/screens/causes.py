"""The Causes screen: what is wrong, worst first; decided once, with a key."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar

from msgspec import Struct
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Container
from textual.events import Resize, ScreenResume
from textual.widgets import Input

from agenteval_tui.analysis.causes import Causes, group_failures
from agenteval_tui.analysis.triage import TriageStatus, statuses
from agenteval_tui.core.display import one_line
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.ids import now_ms
from agenteval_tui.grading.results import CriterionResult
from agenteval_tui.history.queries import NOTHING_RAN
from agenteval_tui.history.records import RunRow
from agenteval_tui.history.references import NothingHereError
from agenteval_tui.tui.actions import bindings, named_keys
from agenteval_tui.tui.presenters.cause_detail import cause_lines
from agenteval_tui.tui.presenters.cause_rows import PURPOSE, CauseRow, CauseRows, no_causes, rows_of
from agenteval_tui.tui.presenters.cause_tabs import cause_tabs, tab_at
from agenteval_tui.tui.presenters.text_layout import (
    SUITES_KEY,
    empty_state,
    error_lines,
    nothing_here,
    nothing_ran,
)
from agenteval_tui.tui.screens.causes_scope_picker import CauseScope
from agenteval_tui.tui.screens.filterable_screen import FilteredScreen
from agenteval_tui.tui.screens.triage_dialog import ask_to_decide, ask_to_reopen
from agenteval_tui.tui.state import flag
from agenteval_tui.tui.styled_text import Cell
from agenteval_tui.tui.widgets.line_block import LineBlock
from agenteval_tui.tui.widgets.lines_view import LinesView
from agenteval_tui.tui.widgets.virtual_list import VirtualList
from agenteval_tui.views.causes import causes_text

MOST = 500
"""Runs of a cause that next and previous go through in Inspect."""


class _Read(Struct, frozen=True):
    causes: Causes
    decided: dict[str, TriageStatus]


class CausesScreen(FilteredScreen):
    """The list of causes; beside it the chosen one, with the explanation of one of its runs."""

    SCOPE = "causes"
    LIST = "#causes"
    CSS_PATH = "causes.tcss"
    BINDINGS: ClassVar[list[BindingType]] = list(bindings("causes"))

    def __init__(self) -> None:
        super().__init__()
        self._looking = CauseScope()
        self._read: _Read | None = None
        self._only_open = False
        self._example = 0
        self._shown: tuple[str, int] = ("", 0)
        self._explained: tuple[RunRow | None, CriterionResult | None] = (None, None)
        self._go_to: str | None = None
        """The cause that the cursor goes to when the list comes; "": to the first one; None: it stays on its own."""
        self._composed = False
        self._pending: Callable[[], None] | None = None

    def compose(self) -> ComposeResult:
        yield self.title_bar()
        yield Input(placeholder="words in causes, tests and notes", id="search", classes="filter")
        with Container(id="body"):
            yield VirtualList(id="causes")
            yield LinesView(id="details")
        yield self.key_bar()

    def on_mount(self) -> None:
        self._composed = True
        self.hide_filter()
        (self._pending or self.reload)()

    def on_resize(self, event: Resize) -> None:
        self.set_class(event.size.width < self.NARROW, "narrow")

    def on_screen_resume(self, event: ScreenResume) -> None:
        """Labels, edits and new runs change what is shown."""
        if self._read is not None:
            self.reload()

    def open_failures(self, execution: str, suites: Sequence[str], tests: Sequence[str]) -> None:
        """Show the causes of an execution's failures, else of the newest runs of these suites' tests, else of the last
        execution."""
        named = execution or suites or tests
        self.open(CauseScope(execution, tuple(suites), tuple(tests)) if named else CauseScope())

    def open(self, looking: CauseScope) -> None:
        """Show the causes of these runs."""
        if not self._composed:
            self._pending = partial(self.open, looking)
            return
        self._looking, self._read, self._example, self._go_to = looking, None, 0, ""
        self.reload()

    def reload(self) -> None:
        """Read them again; the cursor stays on its cause."""
        session, looking = self.agenteval.session, self._looking
        store = session.store
        if self._read is None:
            self.query_one("#causes", VirtualList).set_empty([(), (("  looking for causes …", "dim"),)])

        def work() -> _Read:

            causes = group_failures(store, looking.scope(store, session.projects))
            return _Read(causes, statuses(store, causes))

        self.ask(work, self._arrived, group="causes", failed=self._failed)

    def action_reload(self) -> None:
        self.reload()

    def projects_changed(self) -> None:
        self._looking, self._read = self._looking.of_no_execution(), None
        self.query_one("#causes", VirtualList).set_source(CauseRows([]))
        self.reload()

    def new_runs(self) -> None:
        """They may have failed."""
        if self._read is not None and not self._looking.everything:
            self.reload()

    def kept(self) -> dict[str, Any]:
        return {**self._looking.to_json(), "only_open": self._only_open}

    def restore(self, kept: Mapping[str, Any]) -> None:
        self._looking, self._only_open = CauseScope.from_json(kept), flag(kept, "only_open")

    def _failed(self, error: AgentevalError) -> None:
        if self._read is not None:
            self.agenteval.say_error(error)
            return
        if isinstance(error, NothingHereError):
            lines = nothing_here(error.elsewhere, "H", PURPOSE)
        elif error.what == NOTHING_RAN:
            lines = nothing_ran(PURPOSE)
        else:
            said = error_lines(error, max(self.size.width - 4, 20))
            lines = [(), *(((" ", ""), *line) for line in said), *empty_state("", "", *SUITES_KEY)[2:]]
        self.query_one("#causes", VirtualList).set_empty(lines)
        self._detail()

    def _arrived(self, read: _Read) -> None:
        self._read = read
        self._shown = ("", 0)
        self.show_filtered()

    def show_filtered(self) -> None:
        if self._read is None:
            return
        view = self.query_one("#causes", VirtualList)
        rows = rows_of(self._read.causes, self._read.decided, only_open=self._only_open, words=self._words)
        view.set_empty(no_causes(self._read.causes, words=bool(self._words), only_open=self._only_open))
        wanted, self._go_to = self._go_to, None
        view.set_source(CauseRows(rows), keep_key=view.cursor_key if wanted is None else wanted)
        if wanted == "" and rows:
            view.cursor = 0
        self.retitle()
        self._detail()

    def heading(self, width: int) -> tuple[tuple[Cell, ...], tuple[Cell, ...]]:
        read = self._read
        if read is None:
            return tuple(cause_tabs(self.SCOPE)), ()
        causes = read.causes
        left: list[Cell] = [
            *cause_tabs(self.SCOPE),
            (causes_text(causes), "bold failed" if causes.failed else "bold passed"),
        ]
        if self._words:
            left.append((f"   “{one_line(self._words, 30)}”", ""))
        if self._only_open:
            left.append(("   only open", "review"))
        left.append((f"   {causes.scope.words}", "dim"))
        if causes.scope.before_words and width >= self.NARROW:
            left.append((f", compared with {causes.scope.before_words}", "dim"))
        waiting = sum(row.is_open for row in rows_of(causes, read.decided))
        return tuple(left), ((f"{waiting} open", "bold" if waiting else "dim"),) if causes.groups else ()

    def keys(self) -> list[tuple[str, str, str]]:
        """Only what does something with what is shown."""
        row, keymap = self._row(), self.agenteval.keymap
        if row is None:
            names = ["scope", *(["only_open"] if self._only_open else []), "review"]
        elif row.group.trend == "gone":
            names = ["open", "history", "scope", "filter"]
        else:
            names = ["open", "fix", "accept", "quarantine", "label", "ignore"]
            names += ["reopen"] if row.standing is not None else ["next"] if len(row.group.runs) > 1 else []
        return [*named_keys(self.SCOPE, names, keymap), *super().keys()[-1:]]

    def on_line_block_clicked(self, event: LineBlock.Clicked) -> None:
        """A click on the other tab shows it."""
        if event.block.id == "title" and event.y == 1 and tab_at(event.x, self.SCOPE) == "review":
            self.action_review()
        else:
            super().on_line_block_clicked(event)

    # The chosen cause

    def _row(self) -> CauseRow | None:
        view = self.query_one("#causes", VirtualList)
        rows = view.source
        if not isinstance(rows, CauseRows) or not 0 <= view.cursor < rows.count():
            return None
        return rows.rows[view.cursor]

    def _detail(self) -> None:
        row = self._row()
        self.set_class(row is None, "nothing")
        self.query_one("#keys", LineBlock).show(self._key_lines)
        if row is None:
            self.query_one("#details", LinesView).show(lambda width: [], keep_place=False)
            return
        wanted = (row.group.cause.signature, self._example)
        if wanted[0] != self._shown[0]:
            self._example, wanted = 0, (wanted[0], 0)
        if wanted == self._shown:
            return
        self._shown, self._explained = wanted, (None, None)
        self._draw()
        store, run = self.agenteval.session.store, row.group.run_ids[wanted[1]]
        position = row.group.positions[wanted[1]]

        def work() -> tuple[RunRow, CriterionResult | None]:
            results = store.results(run)
            return store.run(run), results[position] if 0 <= position < len(results) else None

        def then(found: tuple[RunRow, CriterionResult | None]) -> None:
            if self._shown == wanted:
                self._explained = found
                self._draw()

        self.ask(work, then, group="example", failed=lambda _: None)

    def _draw(self) -> None:
        row = self._row()
        if row is None:
            return
        (example, result), number, now = self._explained, self._example, now_ms()
        self.query_one("#details", LinesView).show(
            lambda width: cause_lines(row, max(width - 1, 10), now, example, result, number), keep_place=False
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
            self.agenteval.say("This cause is gone: no run here has it.")
            return None
        return row

    # What a person does

    def action_open(self) -> None:
        """The example in Inspect; next and previous failure there go through the runs with this cause."""
        self._inspect(edit=False)

    def _inspect(self, *, edit: bool) -> None:
        row = self._chosen(here=False)
        if row is None:
            return
        group, number = row.group, self._example
        start = max(0, number - MOST // 2)
        self.agenteval.inspect(
            group.run_ids[number],
            criterion=group.cause.criterion,
            runs=group.run_ids[start : start + MOST],
            edit=edit,
        )

    def _step(self, by: int) -> None:
        row = self._row()
        if row is None:
            return
        number = self._example + by
        if not 0 <= number < len(row.group.runs):
            self.agenteval.say(f"This is the {'last' if by > 0 else 'first'} of its runs.")
            return
        self._example = number
        self._detail()

    def action_next_example(self) -> None:
        self._step(1)

    def action_previous_example(self) -> None:
        self._step(-1)

    def action_decide(self, decision: str) -> None:
        """Ask for a note, and do it."""
        row = self._chosen()
        if row is not None and self._read is not None:
            ask_to_decide(
                self, row, decision, self._read.causes.scope.execution_id, partial(self._decided, decision, row)
            )

    def _decided(self, decision: str, row: CauseRow) -> None:
        """The cursor goes on to the next cause that is open: what was decided about goes down the list."""
        rows = self.query_one("#causes", VirtualList).source
        if decision == "fix":
            self._inspect(edit=True)
        elif isinstance(rows, CauseRows):
            self._go_to = rows.open_after(row)
        self.reload()

    def action_reopen(self) -> None:
        """Take the decision back."""
        row = self._chosen(here=False)
        if row is not None:
            ask_to_reopen(self, row, self.reload)

    def action_scope(self) -> None:
        """This execution, the newest runs of each test, everything."""
        self.open(self._looking.next())
        self.agenteval.keep_places()

    def action_only_open(self) -> None:
        """Only what nobody decided about, or all."""
        self._only_open = not self._only_open
        self.show_filtered()

    def action_review(self) -> None:
        """What waits for a person."""
        self.agenteval.go("review")

    def action_history(self) -> None:
        """The execution's runs in the history."""
        row = self._chosen(here=False)
        read = self._read
        if row is None or read is None:
            return
        store, run = self.agenteval.session.store, row.group.run_ids[self._example]
        self.ask(lambda: store.run(run), lambda found: self.agenteval.show_execution(found.execution_id), group="go")

    def action_copy(self) -> None:
        """Copy the command that decides about it."""
        row = self._row()
        if row is not None:
            command = f"agenteval triage {row.group.cause.id} "
            self.agenteval.copy(command, command)

    def action_next_pane(self) -> None:
        view, details = self.query_one("#causes", VirtualList), self.query_one("#details", LinesView)
        (view if details.has_focus else details).focus()

    def step_back(self) -> bool:
        if super().step_back():
            return True
        if self._only_open:
            self.action_only_open()
            return True
        return False
