"""Searching in the transcript: in short slices between which keys are read; `n` and `N` go from hit to hit."""

from __future__ import annotations

import asyncio
from functools import partial

from textual.widgets import Input

from agenteval_tui.core.display import one_line
from agenteval_tui.tui.presenters.transcript import MOST_MATCHES
from agenteval_tui.tui.screens.inspect.layout import InspectPanes
from agenteval_tui.tui.workers import start_worker


class InspectSearch(InspectPanes):
    """Finds words in the open transcript."""

    def action_search(self) -> None:
        find = self.query_one("#find", Input)
        find.display = True
        self._set_pane("transcript")
        find.focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Search while typing; a newer search ends the one before."""
        self._search(event.value)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Enter: back to the transcript, where `n` and `N` go on."""
        if not self._found:
            return
        if not self._view.document.matches:
            self.agenteval.say(f"{one_line(self._found, 60)} is not in this transcript.")
        else:
            self._focus_pane("transcript")

    def _search(self, words: str) -> None:
        self._found = words
        self._said = ""
        start_worker(self, partial(self._look_for, words), group="search", name="searching")

    async def _look_for(self, words: str) -> None:
        view = self._view
        document = view.document
        for _ in view.searching(words):
            self._say_hits(whole=False)
            await asyncio.sleep(0)
            if view.document is not document:
                # Raw or not, or another run: what is shown now is searched by who showed it.
                return
        self._say_hits(whole=True)

    def _search_again(self) -> None:
        """The transcript is laid out anew, or another one: what is searched for stays."""
        if self._found:
            self._search(self._found)

    def _step_hit(self, step: int) -> bool:
        """The next hit (1) or the one before (-1), while something is searched for."""
        if not self._found:
            return False
        view = self._view
        if (view.next_match() if step > 0 else view.previous_match()) is None:
            self.agenteval.say(f"{one_line(self._found, 60)} is not in this transcript.")
        self._say_hits(whole=True)
        return True

    def _end_search(self) -> bool:
        """Forget the search and hide its field; False when there was none."""
        find = self.query_one("#find", Input)
        if not find.display:
            return False
        find.display = False
        with find.prevent(Input.Changed):
            find.value = ""
        self._search("")
        self._focus_pane("transcript")
        return True

    def _say_hits(self, *, whole: bool) -> None:
        """`3 of 17` in the pane's title; `of 17 …` while there may be more."""
        number, total = self._view.match_number
        if not self._found:
            said = ""
        elif not total:
            said = "not found" if whole else "searching …"
        else:
            more = "" if whole else " …"
            most = "more than " if total >= MOST_MATCHES else ""
            said = f"{number:,} of {most}{total:,}{more}"
        if said != self._said:
            self._said = said
            self._retitle_pane("transcript-title")
            self._draw_heading()
