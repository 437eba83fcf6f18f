"""The transcript pane of Inspect: evidence, folds, raw JSON, search, addresses, criteria made of what it shows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.widgets import Input

from agenteval_tui.core.display import one_line
from agenteval_tui.core.shell import command_line
from agenteval_tui.formats.exporters.explanation import address_of_criterion
from agenteval_tui.tui.screens.inspect.criteria import starter_at, starter_of_calls
from agenteval_tui.tui.screens.inspect.search import InspectSearch
from agenteval_tui.tui.widgets.line_block import LineBlock

if TYPE_CHECKING:
    from agenteval_tui.grading.criterion_templates import Starter


class InspectTranscript(InspectSearch):
    """Works with the transcript."""

    def action_next_evidence(self) -> None:
        self._evidence(forward=True)

    def action_previous_evidence(self) -> None:
        self._evidence(forward=False)

    def _evidence(self, *, forward: bool) -> None:
        view = self._view
        found = view.next_mark() if forward else view.previous_mark()
        if not found:
            self.agenteval.say("The evidence points at nothing in the transcript.")
        elif self.has_class("narrow"):
            self._focus_pane("transcript")

    def action_fold(self) -> None:
        self._view.toggle_fold()

    def action_fold_all(self) -> None:
        self._view.action_fold_all()

    def action_raw(self) -> None:
        self._raw = not self._raw
        self._view.show_raw(self._raw)
        self._retitle_pane("transcript-title")
        self._search_again()

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
        found = self.query_one("#find", Input)
        self._new_criterion(
            starter_at(self._view, found.value if found.display else ""),
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
