"""Keys must not get out: they are taken out of what an agent yields, also where they come in several pieces."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator

from msgspec.structs import replace

from agenteval_tui.agents.base import (
    AgentEvent,
    Attached,
    Captured,
    Done,
    Failed,
    LogLine,
    ModelAsked,
    Printed,
    PromptSent,
    ReasoningDelta,
    Recorded,
    Seen,
    TextDelta,
    ToolArgumentsDelta,
    ToolCallFinished,
    ToolCallStarted,
)
from agenteval_tui.transcripts.model import Transcript
from agenteval_tui.transcripts.redact import TranscriptRedactor


class EventRedactor:
    """Takes secrets out of the events of one run. The end of a piece that may be the beginning of a secret is kept
    back until more has come."""

    def __init__(self, redactor: TranscriptRedactor) -> None:
        self._redactor = redactor
        # What was kept back, by where it belongs: TextDelta, ReasoningDelta, or the key of a tool call.
        self._kept: dict[type | int, str] = {}

    async def clean_all(self, events: AsyncIterator[AgentEvent]) -> AsyncGenerator[AgentEvent, None]:
        """The events to yield in place of these. What yields them is closed with this, where it can be."""
        try:
            async for event in events:
                for clean in self.clean(event):
                    yield clean
        finally:
            if hasattr(events, "aclose"):
                await events.aclose()

    def clean(self, event: AgentEvent) -> list[AgentEvent]:
        """The events to yield in place of this one."""
        if isinstance(event, TextDelta | ReasoningDelta):
            text = self._piece(type(event), event.text)
            return [replace(event, text=text)] if text else []
        if isinstance(event, ToolArgumentsDelta):
            text = self._piece(event.key, event.text)
            return [replace(event, text=text)] if text else []
        if isinstance(event, ToolCallStarted | Printed | ModelAsked):
            return [self.whole(event)]
        return [*self._rest(), self.whole(event)]

    def whole(self, event: AgentEvent) -> AgentEvent:
        """An event that is not a piece of a longer text, without secrets."""
        clean = self._redactor.text
        match event:
            case ToolCallStarted(key, call, name):
                return ToolCallStarted(key, clean(call), clean(name))
            case ToolCallFinished():
                traceback = self._redactor.traceback(event.traceback)
                return replace(event, result=clean(event.result), traceback=traceback)
            case Done(reason, model, outputs):
                return Done(clean(reason), clean(model), self._redactor.data(outputs))
            case Failed():
                return replace(event, error=self._redactor.error(event.error))
            case LogLine(text):
                return LogLine(clean(text))
            case Printed(_, text):
                return replace(event, text=self._redactor.cut(clean(text)))
            case PromptSent(messages):
                return PromptSent(self._redactor.transcript(Transcript(messages)).messages)
            case Attached(attachment):
                return Attached(self._redactor.attachment(attachment))
            case ModelAsked():
                data = self._redactor.data
                asked, answer, about = data(event.messages), data(event.answer), data(event.about)
                return replace(event, messages=asked, answer=answer, about=about, error=clean(event.error))
            case Captured(transcript, tape, answers):
                clean = self._redactor.data(list(tape))
                return Captured(self._redactor.transcript(transcript), tuple(clean), answers)
            case Seen(transcript):
                return Seen(self._redactor.transcript(transcript))
            case Recorded(transcript):
                return Recorded(self._redactor.transcript(transcript))
        return event

    def _piece(self, place: type | int, text: str) -> str:
        ready, rest = self._redactor.piece(self._kept.pop(place, "") + text)
        if rest:
            self._kept[place] = rest
        return ready

    def _rest(self) -> list[AgentEvent]:
        buffers, self._kept = self._kept, {}
        events: list[AgentEvent] = []
        for place, held in buffers.items():
            text = self._redactor.ending(held)  # no more of it comes: what may be half a secret stays here
            if isinstance(place, int):
                events.append(ToolArgumentsDelta(place, text))
            else:
                events.append(TextDelta(text) if place is TextDelta else ReasoningDelta(text))
        return events
