"""What the chosen criterion looked at: its verdict, the evidence, the other criteria; or the formatted tool calls."""

from __future__ import annotations

from collections.abc import Sequence

from textual.app import ComposeResult
from textual.message import Message

from agenteval_tui.tui.presenters.evidence_pane import Target, looked_rows, tool_text_lines
from agenteval_tui.tui.presenters.text_layout import indented
from agenteval_tui.tui.screens.inspect.controller import InspectController
from agenteval_tui.tui.screens.inspect.pane import Pane
from agenteval_tui.tui.styled_text import Line
from agenteval_tui.tui.widgets.lines_view import LinesView


class EvidencePane(Pane):
    """`targets` says what a click on a row means."""

    PANE = "looked"

    class Chosen(Message):
        """A criterion (its number) or a piece of evidence was clicked."""

        def __init__(self, target: Target) -> None:
            super().__init__()
            self.target = target

    def __init__(self, controller: InspectController) -> None:
        super().__init__()
        self._controller = controller
        self.shows_tool_text = False
        self.targets: dict[int, Target] = {}

    def compose(self) -> ComposeResult:
        yield self.title_line()
        yield LinesView(id="looked")

    @property
    def view(self) -> LinesView:
        """The lines."""
        return self.query_one("#looked", LinesView)

    @property
    def what(self) -> str:
        """What it shows, in two words."""
        return "tool text" if self.shows_tool_text else "looked at"

    def heading(self) -> tuple[str, str]:
        state = self._controller
        which = f"criterion {state.criterion + 1} of {len(state.bench.criteria)}" if state.bench is not None else ""
        return self.what, which

    def say(self, lines: Sequence[Line]) -> None:
        """Show these lines while no run is open."""
        self.view.show(lambda width: lines)

    def draw(self, *, keep_place: bool = True) -> None:
        """Show what is known of the chosen criterion now."""
        state = self._controller
        bench, number, result, results, facts = (
            state.bench, state.criterion, state.result, state.results, state.facts
        )  # fmt: skip
        if bench is None or result is None:
            return

        def evidence(width: int) -> list[Line]:
            made = looked_rows(bench, number, result, results, width - 1, facts)
            self.targets = made.targets
            return indented(made.lines)

        def tool_text(width: int) -> list[Line]:
            return indented(tool_text_lines(bench, result, width - 1))

        self.view.show(tool_text if self.shows_tool_text else evidence, keep_place=keep_place)

    def toggle_tool_text(self) -> None:
        """Show the formatted tool calls, or the evidence."""
        self.shows_tool_text = not self.shows_tool_text
        self.draw(keep_place=False)
        self.retitle()

    def on_lines_view_row_clicked(self, event: LinesView.RowClicked) -> None:
        """Say what stands in the row."""
        event.stop()
        if not self.shows_tool_text and (target := self.targets.get(event.row)) is not None:
            self.post_message(self.Chosen(target))
