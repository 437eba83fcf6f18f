"""Choose the run to compare with: the repetitions of the test first, then its other runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType

from agenteval_tui.analysis.repetitions import runs_to_choose
from agenteval_tui.core.display import one_line
from agenteval_tui.core.numbers import moment, short_duration
from agenteval_tui.history.records import RunRow
from agenteval_tui.tui.actions import bindings
from agenteval_tui.tui.presenters.history_rows import why_or_answer
from agenteval_tui.tui.presenters.status_style import mark
from agenteval_tui.tui.screens.base_screen import FrameScreen
from agenteval_tui.tui.styled_text import Cell, Line, right, spread, width_of
from agenteval_tui.tui.terminal.sheet import Sheet, if_answered
from agenteval_tui.tui.widgets.sheet_frame import SheetFrame
from agenteval_tui.tui.widgets.virtual_list import Rows, VirtualList


def choose_other_run(screen: FrameScreen, run: str, then: Callable[[str], None]) -> None:
    """Ask which run to compare `run` with; `then` gets its id. Says so where there is none."""
    session = screen.agenteval.session

    def work() -> tuple[RunRow, list[RunRow]]:
        row = session.store.run(run)
        return row, runs_to_choose(session.store, row)

    def show(pair: tuple[RunRow, list[RunRow]]) -> None:
        row, others = pair
        if not others:
            screen.agenteval.say("No other run of this test is stored. Press {inspect.run} in Inspect to run it again.")
        elif screen.is_current:
            screen.app.push_screen(RunPickerScreen(row, others), if_answered(then))

    screen.ask(work, show, group="choose")


def _line(row: RunRow, width: int, beside: RunRow) -> Line:
    cells: list[Cell] = [(" ", ""), mark(row.status), (right(f"run {row.repetition}", 8), "")]
    if (row.variation, row.row_key) != (beside.variation, beside.row_key):
        cells.append((f"  {one_line(row.variation, 30) or f'#{one_line(row.row_label, 24)}'}", "accent"))
    here = row.execution_id == beside.execution_id
    when = "same execution" if here else moment(row.started_ms)
    agent = (right(one_line(row.agent, 18), 20), "dim")
    end = (
        *([(right(when, 18), "dim")] if width >= 48 else []),
        *([agent] if width >= 90 else []),
        (right(short_duration(row.duration_ms), 8), "dim"),
    )
    cells.append(("  ", ""))
    room = width - width_of(cells) - width_of(end) - 2
    cells.append((why_or_answer(row, room), "dim"))
    return spread(cells, (*end, (" ", "")), width)


class RunPickerScreen(Sheet[str]):
    """Dismissed with the id of the chosen run, or None."""

    SCOPE = "run_picker"
    BINDINGS: ClassVar[list[BindingType]] = bindings("run_picker")

    def __init__(self, run: RunRow, others: Sequence[RunRow]) -> None:
        super().__init__()
        self._run = run
        self._others = others

    def compose(self) -> ComposeResult:
        keys, subject = self.edge(("enter", "compare with it")), one_line(self._run.test_id, 60)
        with SheetFrame(f"Compare run {self._run.repetition} with", keys, subject=subject, width="large"):
            yield VirtualList(Rows(self._others, partial(_line, beside=self._run), lambda row: row.id), id="runs")

    def on_virtual_list_selected(self, event: VirtualList.Selected) -> None:
        """This one."""
        self.dismiss(event.key)
