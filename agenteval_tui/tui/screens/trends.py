"""The Trends screen: how tests do over time, drawn; flaky tests, causes, criteria and alerts below."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.events import Resize, ScreenResume
from textual.widgets import Input

from agenteval_tui.analysis.trend_regrade import Regrading
from agenteval_tui.analysis.trends import Trend, TrendQuery, executions_at
from agenteval_tui.core.display import one_line
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.ids import now_ms
from agenteval_tui.core.numbers import moment
from agenteval_tui.history.trends import ExecutionTime
from agenteval_tui.tui.actions import bindings, keyed, named_keys
from agenteval_tui.tui.presenters.plot import height_within
from agenteval_tui.tui.presenters.trend_lines import ComparisonSeries
from agenteval_tui.tui.screen_registry import ask
from agenteval_tui.tui.screens.base_screen import FrameScreen
from agenteval_tui.tui.screens.select_dialog import SelectScreen
from agenteval_tui.tui.screens.trends_controller import (
    TrendsController,
    newest_failure,
    read_beside,
    read_trend,
    regrade_beside,
)
from agenteval_tui.tui.styled_text import Cell, Line, error_state, fit, hanging
from agenteval_tui.tui.terminal.sheet import if_answered
from agenteval_tui.tui.widgets.filter_box import FilterBox
from agenteval_tui.tui.widgets.line_block import LineBlock
from agenteval_tui.tui.widgets.virtual_list import VirtualList

_DRAWN = 0.64  # of the height: the drawing, what it is and the facts under its cursor; the rest is the list's
_AROUND = 3  # of these the lines over and below the drawing


class TrendsScreen(FrameScreen):
    """The drawing has a cursor on its time axis, and the list below has its own. What is asked, drawn and listed is the
    controller's."""

    SCOPE = "trends"
    BINDINGS: ClassVar[list[BindingType]] = bindings("trends")

    def __init__(self) -> None:
        super().__init__()
        self.controller = TrendsController()

    def kept(self) -> dict[str, Any]:
        return self.controller.kept()

    def restore(self, stored: Mapping[str, Any]) -> None:
        self.controller.restore(stored)

    def compose(self) -> ComposeResult:
        yield self.title_bar()
        with Vertical(id="body"):
            yield FilterBox("words of tests, test:x, tag:x, agent:x, suite:x", id="search")
            with Vertical(id="drawing"):
                yield LineBlock(self.controller.legend_lines, id="legend")
                yield LineBlock(id="plot")
                yield LineBlock(self.controller.readout_lines, id="readout")
            with Vertical(id="beside"):
                yield LineBlock(self.controller.views_lines, id="views")
                yield VirtualList(id="list")
        yield self.key_bar()

    def on_mount(self) -> None:
        self.query_one(FilterBox).fill(self.controller.words)
        self.query_one("#list", VirtualList).focus()
        self.query_one("#beside").display = False  # until there is something to list
        self.reload()

    def on_screen_resume(self, event: ScreenResume) -> None:
        if self.controller.trend is not None:
            self.reload()

    def new_runs(self) -> None:
        """They belong to a series, whichever process made them."""
        if self.controller.trend is not None:
            self.reload()

    def on_resize(self, event: Resize) -> None:
        # The parts have their new heights only then.
        self.call_after_refresh(self._draw)

    # Reading

    def reload(self) -> None:
        """Read everything again; the cursor stays at its time."""
        controller, session = self.controller, self.agenteval.session
        # As it is now: by the time the answer comes the other verdicts may be wanted.
        store, again, now = session.store, controller.today, now_ms()
        request = controller.request(session.projects, now)

        def read() -> tuple[TrendQuery, Trend, int | None]:
            query, trend = read_trend(store, request)
            # Why there is nothing to draw takes two more looks, and is only asked then.
            if trend.series or (elsewhere := session.workspace.elsewhere()):
                return query, trend, 0 if trend.series else elsewhere
            return query, trend, 0 if session.workspace.has_run() else None

        def then(read: tuple[TrendQuery, Trend, int | None]) -> None:
            query, trend, elsewhere = read
            if again:
                # Grading takes seconds for thousands of runs: the stored verdicts stay on the screen meanwhile.
                self.ask(lambda: regrade_beside(store, query, now), self._show_regraded, group="beside", beside=True)
                self.retitle()
                return
            controller.take_stored(trend, elsewhere)
            self._paint()
            self.ask(lambda: read_beside(store, query, request.below, now), self._show_beside, group="beside")

        self.ask(read, then, group="trend", failed=self._show_failure)

    def _show_beside(self, beside: ComparisonSeries) -> None:
        self.controller.take_beside(beside)
        self._paint()

    def _show_regraded(self, regraded: tuple[Regrading, ComparisonSeries]) -> None:
        if self.controller.take_regraded(regraded):
            self._paint()

    def _show_failure(self, error: AgentevalError) -> None:
        self.controller.fail()
        self._say(error_state(error, self.size.width))

    def _changed(self) -> None:
        """Something else is asked."""
        self.controller.outdate()
        self.reload()

    def projects_changed(self) -> None:
        self._changed()

    # Painting

    def _say(self, lines: list[Line]) -> None:
        """These lines in place of the drawing."""
        keyed_lines = keyed(lines, self.agenteval.keymap)
        self.query_one("#legend", LineBlock).show(lambda width: [])
        self.query_one("#plot", LineBlock).show(
            lambda width: [fit(each, width) for line in keyed_lines for each in hanging(line, width)]
        )
        self.query_one("#readout", LineBlock).show(lambda width: [])
        self.query_one("#beside").display = False
        self.rekey()
        self.retitle()

    def _paint(self) -> None:
        if self.controller.trend is None:
            return
        if not self.controller.has_runs:
            self._say(self.controller.empty())
            return
        self.query_one("#beside").display = True
        self.query_one("#legend", LineBlock).show(self.controller.legend_lines)
        self._draw()
        self._list()
        self.retitle()

    def _draw(self) -> None:
        if not self.controller.has_runs:
            return
        body, box = self.query_one("#body").size.height, self.query_one(FilterBox)
        height = height_within(round((body - box.outer_size.height * box.display) * _DRAWN) - _AROUND)
        self.query_one("#plot", LineBlock).show(lambda width: self.controller.plot_lines(width, height))
        self.query_one("#readout", LineBlock).show(self.controller.readout_lines)

    def _list(self) -> None:
        view = self.query_one("#list", VirtualList)
        rows, row = self.controller.arrange(view.cursor_key)
        if rows is None:
            return
        view.set_empty(self.controller.empty_list())
        view.set_source(rows, keep_key=row)
        self.query_one("#views", LineBlock).show(self.controller.views_lines)
        self.rekey()

    def heading(self, width: int) -> tuple[tuple[Cell, ...], tuple[Cell, ...]]:
        return self.controller.heading(width)

    def keys(self) -> list[tuple[str, str, str]]:
        """Only what does something with what is shown."""
        if not self.controller.has_runs and self.controller.elsewhere is None:
            return self.keys_without_runs()
        return [*named_keys(self.SCOPE, self.controller.key_names(), self.agenteval.keymap), *super().keys()[-1:]]

    # What a person does

    def action_reload(self) -> None:
        self._changed()

    def action_regrade(self) -> None:
        """All of it with today's criteria, or as it was stored."""
        self.controller.toggle_today()
        self._changed()

    def action_move(self, by: int) -> None:
        if self.controller.move(by):
            self._moved()

    def _moved(self) -> None:
        self._draw()
        # Of the lists, only that of groups has figures of the time under the cursor.
        if self.controller.view == "groups":
            self._list()

    def action_measure(self, by: int) -> None:
        self.controller.next_measure(by)
        self._paint()

    def action_group(self) -> None:
        self.controller.next_group()
        self._changed()

    def action_by(self) -> None:
        self.controller.next_by()
        self._changed()

    def action_window(self, by: int) -> None:
        self.controller.next_window(by)
        self._changed()

    def action_view(self, by: int) -> None:
        self.controller.next_view(by)
        self._list()

    def action_alert(self) -> None:
        def chosen(value: str) -> None:
            self.controller.alert_below(value)
            self._changed()

        choices, value = self.controller.alert_choices()
        self.app.push_screen(SelectScreen("Alert when the window's pass rate is", choices, value), if_answered(chosen))

    def action_filter(self) -> None:
        self.query_one(FilterBox).open()

    def leave_text(self) -> None:
        self.query_one("#list", VirtualList).focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Filter while typing; a newer word wins."""
        self.controller.words = event.value.strip()
        self._changed()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Enter goes back to the list."""
        self.leave_text()

    def step_back(self) -> bool:
        box = self.query_one(FilterBox)
        if not box.display and not self.controller.words:
            return False
        box.fill("")
        self.controller.words = ""
        self.query_one("#list", VirtualList).focus()
        self._changed()
        return True

    def on_line_block_clicked(self, event: LineBlock.Clicked) -> None:
        """A click in the drawing moves its cursor; on the name of a list it shows that."""
        width = event.block.size.width
        if event.block.id == "plot" and self.controller.move_to(event.x, width):
            self._moved()
        elif event.block.id == "views" and self.controller.show_view_at(event.x, width):
            self._list()

    def on_virtual_list_highlighted(self, event: VirtualList.Highlighted) -> None:
        """The group under the list's cursor is drawn, with those around it."""
        redrawn, others = self.controller.choose(event.index)
        if redrawn:
            self.query_one("#legend", LineBlock).show(self.controller.legend_lines)
            self._draw()
        if others:
            self._list()  # the marks are theirs now

    def on_virtual_list_selected(self, event: VirtualList.Selected) -> None:
        """Enter, or a click on the selected row."""
        self.action_open()

    def _row(self) -> list[str]:
        return (self.query_one("#list", VirtualList).cursor_key or "").split("\x1f")

    def action_open(self) -> None:
        """A cause: its newest run. A test or a criterion: its newest failure. Else the executions under the cursor."""
        kind, *rest = self._row()
        if kind == "run" and rest and rest[0]:
            self.agenteval.inspect(rest[0])
        elif kind == "test" and self.controller.view in ("flaky", "criteria"):
            suite_key, test_id, criterion = rest
            store = self.agenteval.session.store

            def show(answer: tuple[str, list[str]]) -> None:
                self.agenteval.inspect(answer[0], criterion=criterion, runs=answer[1])

            self.ask(lambda: newest_failure(store, suite_key, test_id), show, group="open")
        else:
            self.action_executions()

    def action_executions(self) -> None:
        """The executions under the cursor of the time axis, in History."""
        place, store = self.controller.open_bin(), self.agenteval.session.store
        if place is None:
            return

        def show(executions: list[ExecutionTime]) -> None:
            if not executions:
                self.agenteval.say("Nothing ran there.")
            elif len(executions) == 1:
                self.agenteval.show_execution(executions[0].id)
            else:
                choices = [
                    (execution.id, moment(execution.first_ms), one_line(execution.title, 60))
                    for execution in reversed(executions)
                ]
                choice = SelectScreen("Which execution", choices)
                self.app.push_screen(choice, if_answered(self.agenteval.show_execution))

        self.ask(lambda: executions_at(store, *place), show, group="open")

    def action_quarantine(self) -> None:
        target = self.controller.quarantine_target(self._row())
        if target is None:
            self.agenteval.say("Choose a test, or press {trends.view} for the flaky ones.")
            return
        ask(
            "quarantine_test",
            self,
            self._changed,
            target.suite_key,
            target.test_id,
            criterion=target.criterion,
            criteria=target.criteria,
            reason=target.reason,
            held=target.held,
        )
