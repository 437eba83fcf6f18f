"""The transcript of the open run: searched in short slices between which keys are read, as text or as JSON."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from textual.app import ComposeResult
from textual.message import Message
from textual.widgets import Input

from agenteval_tui.grading.criterion_templates import Starter, text_starter, tools_starter
from agenteval_tui.transcripts.model import ToolCall, Transcript
from agenteval_tui.tui.presenters.number_format import count
from agenteval_tui.tui.presenters.transcript import MOST_MATCHES
from agenteval_tui.tui.screens.inspect.pane import Pane
from agenteval_tui.tui.widgets.transcript_view import TranscriptView
from agenteval_tui.tui.workers import start_worker

if TYPE_CHECKING:
    from agenteval_tui.tui.presenters.transcript import TranscriptDocument

LONGEST = 400
"""Characters of a text that a criterion may want: a whole answer is no criterion."""


class TranscriptPane(Pane):
    """The transcript and the search in it. `words` are searched for ("": nothing); `hits` says how often they were
    found, and which hit is shown."""

    PANE = "transcript"

    class HitsChanged(Message):
        """`hits` says something else now."""

    def __init__(self) -> None:
        super().__init__()
        self.words = ""
        self.hits = ""
        self._opened = False

    def compose(self) -> ComposeResult:
        yield self.title_line()
        field = Input(placeholder="search in the transcript", id="find", classes="filter")
        field.display = False
        yield field
        yield TranscriptView(id="transcript")

    @property
    def view(self) -> TranscriptView:
        """The transcript itself."""
        return self.query_one("#transcript", TranscriptView)

    def heading(self) -> tuple[str, str]:
        view = self.view
        much = self.hits or (count(len(view.transcript.messages), "message") if self._opened else "")
        return "raw JSON" if view.is_raw else "transcript", much

    def open(self, transcript: Transcript, document: TranscriptDocument) -> None:
        """Show the transcript of another run; what is searched for stays. `document`: as `TranscriptView.lay_out` made
        it."""
        self._opened = True
        self.view.show_transcript(transcript, document=document)
        self._search_again()

    def toggle_raw(self) -> None:
        """Show the stored form as JSON, or the readable one."""
        self.view.show_raw(not self.view.is_raw)
        self.retitle()
        self._search_again()

    # Searching

    @property
    def _field(self) -> Input:
        return self.query_one("#find", Input)

    def open_search(self) -> None:
        """Ask what to search for."""
        self._field.display = True
        self._field.focus()

    def close_search(self) -> bool:
        """Forget the search and hide its field; False when there was none."""
        field = self._field
        if not field.display:
            return False
        field.display = False
        with field.prevent(Input.Changed):
            field.value = ""
        self.search("")
        return True

    def search(self, words: str) -> None:
        """Search for `words`; a newer search ends the one before."""
        self.words = words
        self.hits = ""
        start_worker(self.screen, partial(self._look_for, words), group="search", name="searching")

    def step_hit(self, step: int) -> bool:
        """Go to the next hit (1) or the one before (-1); False when there is none."""
        found = self.view.next_match() if step > 0 else self.view.previous_match()
        self._count_hits(whole=True)
        return found is not None

    async def _look_for(self, words: str) -> None:
        view = self.view
        document = view.document
        for _ in view.searching(words):
            self._count_hits(whole=False)
            await asyncio.sleep(0)
            if view.document is not document:
                # Raw or not, or another run: what is shown now is searched by who showed it.
                return
        self._count_hits(whole=True)

    def _search_again(self) -> None:
        if self.words:
            self.search(self.words)

    def _count_hits(self, *, whole: bool) -> None:
        """`3 of 17` in the title; `of 17 …` while there may be more."""
        number, total = self.view.match_number
        if not self.words:
            hits = ""
        elif not total:
            hits = "not found" if whole else "searching …"
        else:
            more = "" if whole else " …"
            most = "more than " if total >= MOST_MATCHES else ""
            hits = f"{number:,} of {most}{total:,}{more}"
        if hits != self.hits:
            self.hits = hits
            self.retitle()
            self.post_message(self.HitsChanged())

    # New criteria

    def starter(self) -> Starter | None:
        """A criterion of what is selected with the mouse, else of the call under the cursor, else of what is searched
        for, else of the message under the cursor; None when that is nothing, or too long."""
        view, key = self.view, self.view.cursor_key
        selection = view.text_selection
        if selection is not None and (text := (view.get_selection(selection) or ("", ""))[0].strip()):
            return text_starter(text) if len(text) <= LONGEST else None
        if key is not None and key[0] in ("call", "result"):
            calls = view.transcript.tool_calls
            return tools_starter(_expected([calls[key[1]]])) if key[1] < len(calls) else None
        text = self._field.value.strip() if self._field.display else ""
        if not text and key is not None and key[0] == "message":
            message = view.transcript.messages[key[1]]
            text = message.content.strip() if message.role == "assistant" else ""
        return text_starter(text) if text and len(text) <= LONGEST else None


def starter_of_calls(transcript: Transcript) -> Starter | None:
    """A criterion that wants all calls that went well, each once; None when there are none."""
    wanted = _expected([one for one in transcript.tool_calls if one.status == "ok" and not one.malformed])
    once = [one for place, one in enumerate(wanted) if one not in wanted[:place]]
    return tools_starter(once) if once else None


def _expected(calls: Sequence[ToolCall]) -> list[tuple[str, Mapping[str, object]]]:
    return [(one.name, one.arguments if isinstance(one.arguments, Mapping) else {}) for one in calls]
