"""The tab `state` of Inspect: what the run's probes read before and after it, with what changed."""

from __future__ import annotations

from textual.app import ComposeResult

from agenteval_tui.core.numbers import count
from agenteval_tui.transcripts.model import Transcript
from agenteval_tui.tui.presenters.run_state import state_rows
from agenteval_tui.tui.styled_text import Line
from agenteval_tui.tui.widgets.lines_view import LinesView
from agenteval_tui.tui.widgets.titled_pane import Heading, TitledPane


class StatePane(TitledPane[None]):
    """The state of the open run."""

    NAME = "state"

    def __init__(self) -> None:
        super().__init__(None)
        self._transcript = Transcript()

    def parts(self) -> ComposeResult:
        yield LinesView(id="state")

    def heading(self) -> Heading:
        probes = len(self._transcript.state)
        return "state", count(probes, "probe") if probes else ""

    def open(self, transcript: Transcript) -> None:
        """Show the state of another run."""
        self._transcript = transcript

        def rows(width: int) -> list[Line]:
            return state_rows(transcript, width)

        self.query_one("#state", LinesView).show(rows, keep_place=False)
        self.retitle()
