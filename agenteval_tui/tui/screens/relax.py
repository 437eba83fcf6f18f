"""The smallest edits under which the open run would pass: what each flips, and a preview; enter puts one into the
editor."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType

from agenteval_tui.analysis.workbench import Suggestion, Workbench
from agenteval_tui.core.display import one_line
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.numbers import count
from agenteval_tui.tui.actions import bindings
from agenteval_tui.tui.presenters.edit_preview import preview_lines
from agenteval_tui.tui.presenters.evidence_pane import NO_EDIT
from agenteval_tui.tui.presenters.impact import gain
from agenteval_tui.tui.presenters.sheet_edges import Keys
from agenteval_tui.tui.presenters.status_style import WARNING
from agenteval_tui.tui.styled_text import Cell, Line, spread
from agenteval_tui.tui.terminal.sheet import Sheet
from agenteval_tui.tui.widgets.lines_view import LinesView
from agenteval_tui.tui.widgets.sheet_frame import Section, SheetFrame
from agenteval_tui.tui.widgets.virtual_list import Rows, VirtualList
from agenteval_tui.tui.workbench_worker import WorkbenchWorker
from agenteval_tui.tui.workers import start_worker


def _suggestion_line(suggestion: Suggestion, width: int) -> Line:
    """What would be edited, and what that does to the stored runs."""
    impact, against = suggestion.impact, len(suggestion.labels.against)
    flips: tuple[Cell, ...] = (("counting …", "dim"),)
    if impact is not None:
        flips = (*gain(impact), (f" of {count(impact.total, 'run')}", "dim"))
        if not suggestion.counted:
            flips = (*flips, (f", {impact.done:,} counted", "dim"))
    warn: tuple[Cell, ...] = ((f"  {WARNING} against {count(against, 'label')}", "error"),) if against else ()
    return spread(((" ", ""), (one_line(suggestion.relaxation.title), "")), (*flips, *warn, (" ", "")), width)


class RelaxScreen(Sheet[str]):
    """Dismissed with the new text of the config, or None."""

    SCOPE = "relax"
    BINDINGS: ClassVar[list[BindingType]] = bindings("relax")

    def __init__(self, bench: Workbench, criterion: int, text: str, alone: WorkbenchWorker) -> None:
        super().__init__()
        self._alone = alone
        self._bench = bench
        self._criterion = criterion
        self._config = text
        self._suggestions: Sequence[Suggestion] = ()

    def compose(self) -> ComposeResult:
        subject = one_line(self._bench.run.test_id, 60)
        with SheetFrame("Smallest edits that pass", self._keys, subject=subject, width="large"):
            yield VirtualList(id="relaxations")
            yield Section("preview", id="rule")
            yield LinesView(id="edit")

    def on_mount(self) -> None:
        rows = self.query_one("#relaxations", VirtualList)
        rows.set_empty([((" Looking …", "dim"),)])
        rows.focus()
        self._show_preview(False)
        start_worker(self, self._find, group="relax", awaited=True)

    async def _find(self) -> None:
        counting = self._bench.relaxations(self._criterion, self._config)
        # Its first step finds the edits, in up to some tenths of a second: not on the loop that reads the keys. Each
        # later one counts the flips of some more runs, in the same suggestions.
        self._suggestions = await self._alone(lambda: next(counting, ()))
        self._show()
        start_worker(self, partial(self._count, counting), group="count")

    async def _count(self, counting: Iterator[Sequence[Suggestion]]) -> None:
        rows = self.query_one("#relaxations", VirtualList)
        try:
            while await self._alone(lambda: next(counting, None)) is not None:
                rows.refresh_rows()
        except AgentevalError as error:
            self.agenteval.say_error(error)

    def _show(self) -> None:
        rows, suggestions = self.query_one("#relaxations", VirtualList), self._suggestions
        rows.set_empty([((f" {NO_EDIT}", ""),)])
        rows.set_source(Rows(suggestions, _suggestion_line))
        if suggestions:
            self.query_one(SheetFrame).retell()
            self._show_preview(True)
            self._preview(0)

    def _keys(self) -> Keys:
        return self.edge(*((("enter", "apply"), ("tab", "preview")) if self._suggestions else ()))

    def _show_preview(self, there: bool) -> None:
        self.query_one("#rule").display = self.query_one("#edit").display = there

    def _preview(self, index: int) -> None:
        """Show what an edit changes."""
        edits = self._suggestions[index].relaxation.edits.edits
        edit = self.query_one("#edit", LinesView)
        edit.show(lambda width: preview_lines(self._config, edits, width), keep_place=False)

    def on_virtual_list_highlighted(self, event: VirtualList.Highlighted) -> None:
        """Another edit."""
        if event.index < len(self._suggestions):
            self._preview(event.index)

    def on_virtual_list_selected(self, event: VirtualList.Selected) -> None:
        """Put this one into the editor."""
        self.dismiss(self._suggestions[event.index].relaxation.new_text)
