"""An agent's events on a worker: merged, without secrets, and sent piece by piece so that no scheduler is flooded."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from agenteval_tui.agents.interface import (
    AgentEvent,
    ReasoningDelta,
    TextDelta,
    ToolArgumentsDelta,
    ToolCallStarted,
)
from agenteval_tui.agents.redaction import EventRedactor
from agenteval_tui.runs.executors.wire import event_data
from agenteval_tui.transcripts.redact import TranscriptRedactor

PIECE = 16_000
"""Characters of one message, unless a single event is longer."""
LONGEST = 64_000
STREAMED = 1_000_000
"""Characters of a task that are streamed. What comes after that, or after an event longer than `LONGEST`, comes with
the task's result: a scheduler keeps the last thousand messages of an execution in memory."""

Place = type[AgentEvent] | int
"""Where a text belongs: the answer, the reasoning, or the arguments of the call with this key."""


class Gathered:
    """All events of a task, each final once it is in `events` (as `wire.event_data`).

    `send(first, events)` gets those that are to be streamed, in order; `first` is the place of the first of them.
    """

    def __init__(self, send: Callable[[int, list[Any]], None], withheld: TranscriptRedactor) -> None:
        self.events: list[Any] = []
        self._send = send
        self._withheld = withheld
        self._events = EventRedactor(withheld)
        self._place: Place | None = None
        self._texts: list[str] = []
        self._kept: dict[Place, str] = {}  # an end that may be the beginning of a secret
        self._sent = 0
        self._room = STREAMED

    def add(self, event: AgentEvent) -> None:
        """One more event. Texts of the same kind become one until `flush`."""
        match event:
            case TextDelta(text) | ReasoningDelta(text):
                self._text(type(event), text)
            case ToolArgumentsDelta(key, text):
                self._text(key, text)
            case ToolCallStarted():
                self._seal()
                self.events.append(event_data(self._events.whole(event) if self._withheld else event))
            case _:
                self._seal()
                for place, text in self._kept.items():
                    self.events.append(event_data(_delta(place, self._withheld.cut(text))))
                self._kept.clear()
                self.events.append(event_data(self._events.whole(event) if self._withheld else event))

    def flush(self) -> None:
        """Send what has come since the last time."""
        self._seal()
        while self._sent < len(self.events) and self._room > 0:
            first, size = self._sent, 0
            for event in self.events[first:]:
                length = len(json.dumps(event))
                if length > LONGEST:
                    self._room = 0
                if length > LONGEST or (size and size + length > PIECE):
                    break
                size += length
                self._sent += 1
            self._room -= size
            if self._sent > first:
                self._send(first, self.events[first : self._sent])

    def _text(self, place: Place, text: str) -> None:
        if place != self._place:
            self._seal()
            self._place = place
        self._texts.append(text)

    def _seal(self) -> None:
        if self._place is None:
            return
        place, text = self._place, "".join(self._texts)
        self._place = None
        self._texts.clear()
        if self._withheld:
            text = self._withheld.text(self._kept.pop(place, "") + text)
            kept = self._withheld.open_end(text)
            if kept:
                self._kept[place] = text[-kept:]
                text = text[:-kept]
        for start in range(0, len(text), PIECE):
            self.events.append(event_data(_delta(place, text[start : start + PIECE])))


def _delta(place: Place, text: str) -> AgentEvent:
    if isinstance(place, int):
        return ToolArgumentsDelta(place, text)
    return TextDelta(text) if place is TextDelta else ReasoningDelta(text)
