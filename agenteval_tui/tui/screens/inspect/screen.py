"""The Inspect screen: why a run failed, beside the criterion that said so, which can be edited here."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.events import Resize
from textual.widgets import Input

from agenteval_tui.tui.screens.inspect.actions import InspectKeeping
from agenteval_tui.tui.screens.inspect.runs import InspectRuns
from agenteval_tui.tui.screens.inspect.save import InspectSaving
from agenteval_tui.tui.screens.inspect.transcript import InspectTranscript
from agenteval_tui.tui.styled_text import Line
from agenteval_tui.tui.widgets.config_editor import ConfigEditor
from agenteval_tui.tui.widgets.line_block import LineBlock
from agenteval_tui.tui.widgets.lines_view import LinesView
from agenteval_tui.tui.widgets.transcript_view import TranscriptView


class InspectScreen(InspectTranscript, InspectRuns, InspectSaving, InspectKeeping):
    """Transcript, what the criterion looked at, and its config: side by side, or one at a time where it is narrow."""

    CSS_PATH = "screen.tcss"

    def compose(self) -> ComposeResult:
        yield self.title_bar()
        yield LineBlock(id="run")
        yield LineBlock(self._tab_lines, id="tabs")
        with Horizontal(id="body"):
            with Vertical(id="transcript-pane", classes="pane"):
                yield LineBlock(self._transcript_title, id="transcript-title", classes="pane-title")
                yield Input(placeholder="search in the transcript", id="find", classes="filter")
                yield TranscriptView(id="transcript")
            with Vertical(id="looked-pane", classes="pane"):
                yield LineBlock(self._looked_title, id="looked-title", classes="pane-title")
                yield LinesView(id="looked")
            with Vertical(id="config-pane", classes="pane"):
                yield LineBlock(self._config_title, id="config-title", classes="pane-title")
                yield ConfigEditor(id="config")
                yield LineBlock(id="problems")
                yield LineBlock(id="impact")
        yield self.key_bar()

    def on_mount(self) -> None:
        self.set_class(self.app.size.width < self.NARROW, "narrow")  # already for the first frame
        self.query_one("#find", Input).display = False
        self._focus_pane("transcript")
        self._composed = True
        if self._pending is None:
            self._show_nothing()
        else:
            self._pending()

    def on_resize(self, event: Resize) -> None:
        self.set_class(event.size.width < self.NARROW, "narrow")
        self._draw_heading()
        if self._bench is not None:
            self._draw_impact()

    def _show_nothing(self) -> None:
        lines: list[Line] = [
            (),
            (("  No run is open.", ""),),
            (("  1 suites, enter on a test: its latest failure.", "dim"),),
            (("  5 history, enter on an execution, enter on a run.", "dim"),),
        ]
        self._looked.show(lambda width: lines)
        if self.size.width < self.NARROW:
            self._focus_pane("looked")

    # What several parts have a say in

    def step_back(self) -> bool:
        if self._end_search():
            return True
        if self._pane == "config":
            self._focus_pane("transcript")
            return True
        if self._edited and not self._is_new:
            self.agenteval.say("The edit is kept, and not saved: 4 comes back to it.")
        return False

    def action_next_failure(self) -> None:
        if not self._step_hit(1):
            super().action_next_failure()

    def action_next_run(self) -> None:
        if not self._step_hit(-1):
            super().action_next_run()
