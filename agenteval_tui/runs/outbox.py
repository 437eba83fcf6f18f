"""What waits to be sent to one watcher: never more than a bounded amount, however slow the watcher is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from agenteval_tui.runs.events import (
    Event,
    Progress,
    ReasoningStreamed,
    RunShown,
    Snapshot,
    TextStreamed,
    ToolArguments,
    ToolFinished,
    ToolStarted,
    TurnStarted,
)

MOST_EVENTS = 4_000
MOST_CHARACTERS = 2_000_000

STREAMED = (TextStreamed, ReasoningStreamed, ToolStarted, ToolArguments, ToolFinished, TurnStarted)


class Outbox:
    """Events for one watcher. While they wait, texts of a run are merged and only the newest figures are kept.

    A watcher that falls too far behind gets a fresh snapshot in place of all that it missed.
    """

    def __init__(self, snapshot: Callable[[], Snapshot]) -> None:
        self._snapshot = snapshot
        self._events: list[Event | None] = []
        self._characters = 0
        self._open_texts: dict[str, int] = {}  # by run: where its newest text is that may still grow
        self._progress: int | None = None
        self._watched = ""
        self._behind = True  # a new watcher knows nothing

    def __bool__(self) -> bool:
        return self._behind or bool(self._events)

    def watch(self, run: str, shown: RunShown | None) -> None:
        """From now on only what streams of `run` ("" of all), beginning with its whole state."""
        self._watched = run
        if not run:
            self._behind = True  # it has missed what streamed of the others
            self._forget()
        elif shown is not None:
            self._open_texts.clear()  # what streams from now on comes behind the state, not before it
            self._append(shown)

    def add(self, event: Event) -> None:
        """One more event. What a snapshot will tell anyway is not kept."""
        if self._behind:
            return
        if isinstance(event, STREAMED):
            if self._watched and event.run != self._watched:
                return
            if isinstance(event, (TextStreamed, ReasoningStreamed)):
                self._add_text(event)
            else:
                self._open_texts.pop(event.run, None)
                self._append(event)
        elif isinstance(event, Progress):
            if self._progress is not None:
                self._events[self._progress] = None
            self._progress = len(self._events)
            self._append(event)
        else:
            if self._open_texts:
                self._open_texts.pop(getattr(event, "run", ""), None)
            self._append(event)
        if len(self._events) > MOST_EVENTS or self._characters > MOST_CHARACTERS:
            self._behind = True
            self._forget()

    def take(self) -> list[Event]:
        """Everything that waits, to be sent now."""
        if self._behind:
            self._behind = False
            self._forget()
            return [self._snapshot()]
        events = [event for event in self._events if event is not None]
        self._forget()
        return events

    def _add_text(self, event: TextStreamed | ReasoningStreamed) -> None:
        self._characters += len(event.text)
        place = self._open_texts.get(event.run)
        waiting = self._events[place] if place is not None else None
        if place is not None and isinstance(waiting, type(event)):
            self._events[place] = replace(waiting, text=waiting.text + event.text)
        else:
            self._open_texts[event.run] = len(self._events)
            self._append(event)

    def _append(self, event: Event) -> None:
        self._events.append(event)
        if isinstance(event, ToolArguments | TurnStarted):
            self._characters += len(event.text)
        elif isinstance(event, ToolFinished):
            self._characters += len(event.result)

    def _forget(self) -> None:
        self._events.clear()
        self._open_texts.clear()
        self._progress = None
        self._characters = 0
