"""Keys must not get out: they are taken out of what an agent yields, also where they come in several pieces."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any

from msgspec.structs import replace

from agenteval_tui.agents.base import (
    AgentEvent,
    Attached,
    Captured,
    Done,
    Failed,
    ModelAsked,
    Noted,
    Printed,
    PromptSent,
    ReasoningDelta,
    Recorded,
    Seen,
    TextDelta,
    ToolArgumentsDelta,
    ToolCallFinished,
    ToolCallStarted,
    closing,
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
        async with closing(events):
            async for event in events:
                for clean in self.clean(event):
                    yield clean

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
        """An event that is not a piece of a longer text, without secrets: in every text that it has."""
        clean, data = self._redactor.text, self._redactor.data
        fields = {name: getattr(event, name) for name in event.__struct_fields__}
        changed: dict[str, Any] = {
            name: text for name, value in fields.items() if isinstance(value, str) and (text := clean(value)) != value
        }
        match event:
            case ToolCallFinished():
                changed["traceback"] = self._redactor.traceback(event.traceback)
            case Done():
                changed["outputs"] = data(event.outputs)
            case Failed():
                changed["error"] = self._redactor.error(event.error)
            case Printed():
                changed["text"] = self._redactor.cut(clean(event.text))
            case Noted():
                changed["note"] = self._redactor.note(event.note)
            case PromptSent(messages):
                changed["messages"] = self._redactor.transcript(Transcript(messages)).messages
            case Attached():
                changed["attachment"] = self._redactor.attachment(event.attachment)
            case ModelAsked():
                changed |= {name: data(fields[name]) for name in ("messages", "answer", "about")}
            case Captured():
                changed["tape"] = tuple(data(list(event.tape)))
                changed["transcript"] = self._redactor.transcript(event.transcript)
            case Seen() | Recorded():
                changed["transcript"] = self._redactor.transcript(event.transcript)
        return replace(event, **changed) if changed else event

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
