"""The tab `output` of Inspect: what the agent's code printed and logged, with its time, and what hooks and services
printed."""

from __future__ import annotations

from textual.app import ComposeResult

from agenteval_tui.core.numbers import count
from agenteval_tui.runs.around.record import AroundRecord
from agenteval_tui.transcripts.model import Transcript
from agenteval_tui.tui.presenters.run_output import output_rows
from agenteval_tui.tui.styled_text import Line
from agenteval_tui.tui.widgets.lines_view import LinesView
from agenteval_tui.tui.widgets.titled_pane import Heading, TitledPane


class OutputPane(TitledPane[None]):
    """The output of the open run."""

    NAME = "output"

    def __init__(self) -> None:
        super().__init__(None)
        self._transcript = Transcript()

    def parts(self) -> ComposeResult:
        yield LinesView(id="output")

    def heading(self) -> Heading:
        lines = sum(max(1, piece.text.count("\n")) for piece in self._transcript.output)
        return "output", count(lines, "line") if lines else ""

    def open(self, transcript: Transcript, record: AroundRecord) -> None:
        """Show the output of another run, and what its execution had around it."""
        self._transcript = transcript

        def rows(width: int) -> list[Line]:
            return output_rows(transcript, record, width)

        self.query_one("#output", LinesView).show(rows, keep_place=False)
        self.retitle()
