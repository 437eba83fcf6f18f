"""The transcript pane of Inspect: evidence, folds, raw JSON, search, addresses, criteria made of what it shows."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from textual.timer import Timer
from textual.widgets import Input

from agenteval_tui.text.display import one_line
from agenteval_tui.tui.screens.inspect_panes import InspectPanes

if TYPE_CHECKING:
    from agenteval_tui.grading.starters import Starter

SEARCH_SECONDS = 0.2
SEARCHED_AT_ONCE = 200_000


class InspectTranscript(InspectPanes):
    """Works with the transcript."""

    def __init__(self) -> None:
        super().__init__()
        self._search_timer: Timer | None = None

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

    def action_tool_text(self) -> None:
        self._show_tools = not self._show_tools
        self._draw_looked(keep_place=False)
        self._retitle_pane("looked-title")
        if self.has_class("narrow"):
            self._focus_pane("looked")

    def action_search(self) -> None:
        find = self.query_one("#find", Input)
        find.display = True
        self._set_pane("transcript")
        find.focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Search while typing."""
        if self._search_timer is not None:
            self._search_timer.stop()
        # Of a long transcript only what is typed in the end is looked for.
        long = self._bench is not None and self._bench.characters > SEARCHED_AT_ONCE
        if long and event.value:
            self._search_timer = self.set_timer(SEARCH_SECONDS, partial(self._search, event.value))
        else:
            self._search(event.value)

    def _search(self, words: str) -> None:
        self._view.search(words)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Enter: the next hit."""
        if not self._view.next_match():
            self.agenteval.say("Not found in this transcript.")

    def action_copy_address(self) -> None:
        bench = self._bench
        if bench is None:
            return
        address = f"{bench.run.id}/{self._criterion_name()}"
        self.app.copy_to_clipboard(one_line(address))
        self.agenteval.say(f"Copied {one_line(address)}; agenteval open takes it back here.")

    # New criteria

    def action_make_criterion(self) -> None:
        from agenteval_tui.tui.screens.inspect_criteria import starter_at

        found = self.query_one("#find", Input)
        self._new_criterion(
            starter_at(self._view, found.value if found.display else ""),
            "Select a text with the mouse, search for one with /, or go to a tool call: that becomes a criterion.",
        )

    def action_calls_criterion(self) -> None:
        from agenteval_tui.tui.screens.inspect_criteria import starter_of_calls

        starter = starter_of_calls(self._bench.transcript) if self._bench is not None else None
        self._new_criterion(starter, "There are no tool calls here that went well.")

    def _new_criterion(self, starter: Starter | None, otherwise: str) -> None:
        bench = self._bench
        if bench is None or starter is None:
            self.agenteval.say(otherwise)
        elif bench.loaded is None:
            self.agenteval.say("This test stands in no suite file, so it can't get a criterion.", severity="warning")
        else:
            self.agenteval.edit_test(bench.run.suite_key, bench.run.test_id, starter=starter)
