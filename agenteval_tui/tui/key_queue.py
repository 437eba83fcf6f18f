"""Keys that come faster than they are handled, handled one after the other.

The toolkit hands each key at once to the widget that has the focus then. Over a slow line several come together:
of `/smoke` only the slash had been read when `s` was already handed to the list, where it is a command. So a key waits
until what the one before it did is done, the moving of the focus with it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any

from textual import events
from textual.app import App
from textual.errors import NoWidget
from textual.message_pump import MessagePump

PATIENCE_S = 0.5  # a widget that is removed with its messages does not report it: the next key does not wait for it


class KeyQueue:
    """The events of an app, of which each key waits for the one before it. The app's `on_event` hands them over."""

    def __init__(self, app: App[Any]) -> None:
        self._app = app
        self._ahead: deque[events.Key] = deque()
        self._handling = 0  # the number of the key that is handled now; 0 while there is none
        self._keys = 0

    @property
    def is_empty(self) -> bool:
        """Does no key wait, and is none handled now?"""
        return not self._handling and not self._ahead

    async def take(self, event: events.Event, handle: Callable[[events.Event], Awaitable[None]]) -> None:
        """Have an event handled by `handle` when it is its turn. The mouse on what has just gone does nothing."""
        if isinstance(event, events.MouseEvent) and not event.is_forwarded and self._on_what_has_gone(event):
            return
        if not isinstance(event, events.Key) or event.is_forwarded:
            await handle(event)
        elif self._handling:
            self._ahead.append(event)
        else:
            await self._handle(event, handle)

    def _on_what_has_gone(self, event: events.MouseEvent) -> bool:
        """Is there a widget only in the last picture, and no more in the app? The toolkit would ask for its parent."""
        if not self._app.screen_stack:
            return True
        try:
            widget, _ = self._app.screen.get_widget_at(event.x, event.y)
        except NoWidget:
            return False
        return not widget.is_attached

    async def _handle(self, event: events.Key, handle: Callable[[events.Event], Awaitable[None]]) -> None:
        self._keys += 1
        number = self._handling = self._keys
        # The key goes up from the widget to the app, where its action is found: what follows it goes the same way.
        way: list[MessagePump] = list((self._app.focused or self._app.screen).ancestors_with_self)
        await handle(event)
        # Twice: what the widget said of the key (a text was submitted) sets out when the key has been handled.
        self._follow(number, [*way, *way])
        self._app.set_timer(PATIENCE_S, lambda: self._handled(number))

    def _follow(self, number: int, way: list[MessagePump]) -> None:
        if way and way[0].call_later(self._follow, number, way[1:]):
            return
        # Behind whatever the key's action has left in the app's own queue, such as a new focus.
        self._app.call_later(self._handled, number)

    async def _handled(self, number: int) -> None:
        if self._handling != number:
            return
        self._handling = 0
        if self._ahead:
            # The whole of the app again: it may have an own use of the key by now.
            await self._app.on_event(self._ahead.popleft())
