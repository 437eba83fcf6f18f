"""The tab `context` of Inspect: what the model was asked for an answer, and what changed since the request before."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.message import Message

from agenteval_tui.transcripts.model import Transcript
from agenteval_tui.transcripts.model_request import ModelRequests
from agenteval_tui.tui.actions import key_of, pane_bindings
from agenteval_tui.tui.presenters.transcript_blocks import BlockKey
from agenteval_tui.tui.presenters.view_lines import view_lines
from agenteval_tui.tui.services import services
from agenteval_tui.tui.styled_text import Line
from agenteval_tui.tui.widgets.lines_view import LinesView
from agenteval_tui.tui.widgets.titled_pane import Heading, TitledPane
from agenteval_tui.views.model_request import request_view

_MOST = 300
"""Messages of a request that are shown first, so that a context of thousands opens at once."""


class ContextPane(TitledPane[None]):
    """The requests of the open run, one at a time."""

    NAME = "context"
    BINDINGS: ClassVar[list[BindingType]] = list(pane_bindings("context"))

    @dataclass
    class AnswerWanted(Message):
        """The transcript's message that the shown request led to is to be seen."""

        message: int | None

    def __init__(self) -> None:
        super().__init__(None)
        self._requests = ModelRequests()
        self._calls: list[str] = []
        self.number = 0
        """The request that is shown, from 1; 0: there is none."""
        self._most = _MOST

    def parts(self) -> ComposeResult:
        yield LinesView(id="context")

    def heading(self) -> Heading:
        return "context", f"request {self.number} of {len(self._requests.references)}" if self.number else ""

    def open(self, transcript: Transcript) -> None:
        """Show the last request of another run."""
        self._requests = transcript.requests or ModelRequests()
        self._calls = [call.name for call in transcript.tool_calls]
        self.go_to(len(self._requests.references))

    def go_to_answer(self, message: int) -> None:
        """Show the request for this message of the transcript, or for the first answer behind it."""
        answers = [
            (reference.answer, number)
            for number, reference in enumerate(self._requests.references, 1)
            if reference.answer is not None and reference.answer >= message
        ]
        if answers:
            self.go_to(min(answers)[1])

    def go_to(self, number: int) -> None:
        """Show a request by its number."""
        self.number = max(1, min(number, len(self._requests.references))) if self._requests.references else 0
        self._most = _MOST
        self._draw()

    def _draw(self) -> None:
        requests, number, calls, most = self._requests, self.number, self._calls, self._most
        more = f"press {key_of('context.older', services(self).keymap)} to show more"

        def lines(width: int) -> list[Line]:
            if not number:
                return [
                    (),
                    ((" What the model saw is not recorded: `capture: model` of the agent records it.", "dim"),),
                ]
            lines = view_lines(request_view(requests, number, calls, most=most, more=more), width - 1)
            return [((" ", ""), *line) for line in lines]

        self.query_one("#context", LinesView).show(lines, keep_place=False)
        self.retitle()

    # Actions

    def action_next_request(self) -> None:
        """The request after this one."""
        self.go_to(self.number + 1)

    def action_previous_request(self) -> None:
        self.go_to(self.number - 1)

    def action_older_messages(self) -> None:
        """More of the messages at its beginning."""
        self._most += 2 * _MOST
        self._draw()

    def action_answer(self) -> None:
        """The answer to it, in the transcript."""
        if self.number:
            self.post_message(self.AnswerWanted(self._requests.references[self.number - 1].answer))


def message_of(key: BlockKey | None, transcript: Transcript) -> int | None:
    """The message that a block of the transcript belongs to: its own, or that of its call."""
    kind, index = key or ("", 0)
    if kind in ("message", "reasoning"):
        return index
    calls = transcript.tool_calls
    return calls[index].message if kind in ("call", "result") and index < len(calls) else None
