"""The tabs `output` and `state` of Inspect: what the run's code, hooks and services printed; what its probes read."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from textual.app import ComposeResult

from agenteval_tui.core.numbers import count
from agenteval_tui.runs.around.record import AroundRecord
from agenteval_tui.transcripts.model import Transcript
from agenteval_tui.tui.presenters.run_output import output_rows
from agenteval_tui.tui.presenters.run_state import state_rows
from agenteval_tui.tui.styled_text import Line
from agenteval_tui.tui.widgets.lines_view import LinesView
from agenteval_tui.tui.widgets.titled_pane import Heading, TitledPane


class _RunPane(TitledPane[None]):
    """Lines about the open run."""

    def __init__(self) -> None:
        super().__init__(None)
        self._transcript = Transcript()

    def parts(self) -> ComposeResult:
        yield LinesView(id=self.NAME)

    def _show(self, transcript: Transcript, rows: Callable[[int], list[Line]]) -> None:
        self._transcript = transcript
        self.query_one(f"#{self.NAME}", LinesView).show(rows, keep_place=False)
        self.retitle()


class OutputPane(_RunPane):
    """The output of the open run, with its time, and what hooks and services printed."""

    NAME = "output"

    def heading(self) -> Heading:
        lines = sum(max(1, piece.text.count("\n")) for piece in self._transcript.output)
        return self.NAME, count(lines, "line") if lines else ""

    def open(self, transcript: Transcript, record: AroundRecord) -> None:
        """Show the output of another run, and what its execution had around it."""
        self._show(transcript, partial(output_rows, transcript, record))


class StatePane(_RunPane):
    """The state before and after the open run, with what changed."""

    NAME = "state"

    def heading(self) -> Heading:
        probes = len(self._transcript.state)
        return self.NAME, count(probes, "probe") if probes else ""

    def open(self, transcript: Transcript) -> None:
        """Show the state of another run."""
        self._show(transcript, partial(state_rows, transcript))
