"""The Inspect screen: why a run failed, beside the criterion that said so, which can be edited here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.events import Resize
from textual.widgets import Input

from agenteval_tui.core.display import one_line
from agenteval_tui.core.shell import command_line
from agenteval_tui.formats.exporters.explanation import address_of_criterion
from agenteval_tui.tui.screens.inspect.actions import InspectKeeping
from agenteval_tui.tui.screens.inspect.runs import InspectRuns
from agenteval_tui.tui.screens.inspect.save import InspectSaving
from agenteval_tui.tui.screens.inspect.transcript_pane import TranscriptPane, starter_of_calls
from agenteval_tui.tui.styled_text import Line
from agenteval_tui.tui.widgets.config_editor import ConfigEditor
from agenteval_tui.tui.widgets.line_block import LineBlock
from agenteval_tui.tui.widgets.lines_view import LinesView

if TYPE_CHECKING:
    from agenteval_tui.grading.criterion_templates import Starter


class InspectScreen(InspectRuns, InspectSaving, InspectKeeping):
    """Transcript, what the criterion looked at, and its config: side by side, or one at a time where it is narrow."""

    CSS_PATH = "screen.tcss"

    def compose(self) -> ComposeResult:
        yield self.title_bar()
        yield LineBlock(id="run")
        yield LineBlock(self._tab_lines, id="tabs")
        with Horizontal(id="body"):
            yield self.transcript
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
        if self.transcript.close_search():
            self._focus_pane("transcript")
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

    def _step_hit(self, step: int) -> bool:
        """The next hit (1) or the one before (-1), while something is searched for."""
        pane = self.transcript
        if pane.words and not pane.step_hit(step):
            self._say_not_found()
        return bool(pane.words)

    def _say_not_found(self) -> None:
        self.agenteval.say(f"{one_line(self.transcript.words, 60)} is not in this transcript.")

    # The transcript

    def on_transcript_pane_hits_changed(self, event: TranscriptPane.HitsChanged) -> None:
        """On a narrow screen the line of tabs names the hit."""
        self._draw_heading()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Search while typing."""
        self.transcript.search(event.value)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Enter: back to the transcript, where `n` and `N` go on."""
        if not self.transcript.words:
            return
        if not self.transcript.view.document.matches:
            self._say_not_found()
        else:
            self._focus_pane("transcript")

    def action_search(self) -> None:
        self._set_pane("transcript")
        self.transcript.open_search()

    def action_next_evidence(self) -> None:
        self._show_next_evidence(self.transcript.view.next_mark() is not None)

    def action_previous_evidence(self) -> None:
        self._show_next_evidence(self.transcript.view.previous_mark() is not None)

    def _show_next_evidence(self, found: bool) -> None:
        if not found:
            self.agenteval.say("The evidence points at nothing in the transcript.")
        elif self.has_class("narrow"):
            self._focus_pane("transcript")

    def action_fold(self) -> None:
        self.transcript.view.toggle_fold()

    def action_fold_all(self) -> None:
        self.transcript.view.action_fold_all()

    def action_raw(self) -> None:
        self.transcript.toggle_raw()

    def action_tool_text(self) -> None:
        self._show_tools = not self._show_tools
        self._draw_looked(keep_place=False)
        self._retitle_pane("looked-title")
        for line, lines in (("#tabs", self._tab_lines), ("#keys", self._key_lines)):
            self.query_one(line, LineBlock).show(lines)
        if self.has_class("narrow"):
            self._focus_pane("looked")

    def action_copy_address(self) -> None:
        bench = self._bench
        if bench is None:
            return
        names = [result.criterion for result in bench.stored]
        address = command_line(address_of_criterion(bench.run.id, names, self._criterion_name()))
        self.app.copy_to_clipboard(address)
        self.agenteval.say(f"Copied {one_line(address)}; agenteval open takes it back here.")

    # New criteria

    def action_make_criterion(self) -> None:
        self._new_criterion(
            self.transcript.starter(),
            "Select a text with the mouse, search for one with /, or go to a tool call: that becomes a criterion.",
        )

    def action_calls_criterion(self) -> None:
        starter = starter_of_calls(self._bench.transcript) if self._bench is not None else None
        self._new_criterion(starter, "There are no tool calls here that went well.")

    def _new_criterion(self, starter: Starter | None, otherwise: str) -> None:
        bench = self._bench
        if bench is None or starter is None:
            self.agenteval.say(otherwise)
        elif bench.loaded is None:
            self.agenteval.say("This test stands in no suite file, so it can't get a criterion.", severity="warning")
        else:
            self.agenteval.edit_test(bench.run.suite_key, bench.run.test_id, starter=starter, run=bench.run.id)
