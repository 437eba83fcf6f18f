"""Keys that come faster than they are handled, handled one after the other.

The toolkit hands each key at once to the widget that has the focus then. Over a slow line several come together:
of `/smoke` only the slash had been read when `s` was already handed to the list, where it is a command. So a key waits
until what the one before it did is done, the moving of the focus with it.
"""

from __future__ import annotations

from collections import deque
from typing import Any

from textual import events
from textual.errors import NoWidget
from textual.message_pump import MessagePump

from agenteval_tui.tui.terminal.minimal_redraw import MinimalRedraw

PATIENCE_S = 0.5  # a widget that goes away with its messages tells nobody: then the next key does not wait for it


class KeyQueue(MinimalRedraw):
    """An app that handles keys in order."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._ahead: deque[events.Key] = deque()
        self._handling = 0  # the number of the key that is handled now; 0 while there is none
        self._keys = 0

    async def on_event(self, event: events.Event) -> None:
        """A key waits for the one before it. The mouse on what has just gone does nothing."""
        if isinstance(event, events.MouseEvent) and not event.is_forwarded and self._on_what_has_gone(event):
            return
        if not isinstance(event, events.Key) or event.is_forwarded:
            await super().on_event(event)
        elif self._handling:
            self._ahead.append(event)
        else:
            await self._handle(event)

    def _on_what_has_gone(self, event: events.MouseEvent) -> bool:
        """Is there a widget only in the last picture, and no more in the app? The toolkit would ask for its parent."""
        if not self.screen_stack:
            return True
        try:
            widget, _ = self.screen.get_widget_at(event.x, event.y)
        except NoWidget:
            return False
        return not widget.is_attached

    async def _handle(self, event: events.Key) -> None:
        self._keys += 1
        number = self._handling = self._keys
        # The key goes up from the widget to the app, where its action is found: what follows it goes the same way.
        way: list[MessagePump] = list((self.focused or self.screen).ancestors_with_self)
        await super().on_event(event)
        # Twice: what the widget said of the key (a text was submitted) sets out when the key has been handled.
        self._follow(number, [*way, *way])
        self.set_timer(PATIENCE_S, lambda: self._handled(number))

    def _follow(self, number: int, way: list[MessagePump]) -> None:
        if way and way[0].call_later(self._follow, number, way[1:]):
            return
        # Behind whatever the key's action has left in the app's own queue, such as a new focus.
        self.call_later(self._handled, number)

    async def _handled(self, number: int) -> None:
        if self._handling != number:
            return
        self._handling = 0
        if self._ahead:
            # The whole of this app again: a subclass may have an own use of the key.
            await self.on_event(self._ahead.popleft())
