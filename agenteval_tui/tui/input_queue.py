"""What a person does faster than it is handled, handled one after the other.

The toolkit hands each key at once to the widget that has the focus then, and each click to what lies under it then.
Over a slow line several come together: of `/smoke` only the slash had been read when `s` was already handed to the
list, where it is a command; of a double click the second one met the button again, and not the sheet that the first one
opened. So a key, a click and a paste wait until what the one before did is done, the moving of the focus with it.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any

from textual import events
from textual.app import App
from textual.dom import DOMNode
from textual.errors import NoWidget
from textual.message_pump import MessagePump
from textual.widget import Widget

PATIENCE_S = 0.5
"""The next key waits no longer, if what a key does waits for something itself, or is removed and cannot say that it is
done. A busy machine is no such case: by then the app must have had nothing to do for two looks."""
LONGEST_S = 5.0
"""The same for an app that always has something to do."""
LOOK_S = 0.05
LATE_S, BUSY_S = 0.01, 0.001
"""The app had something to do if a look comes later than this, or if it used more processor time than this."""
IDLE_LOOKS = 2
_QUEUED = (events.Key, events.Paste, events.MouseEvent)
_WAITED_FOR = (events.Key, events.Paste, events.MouseUp)


class InputQueue:
    """The events of an app, of which those of a person keep their order: each waits for the key, click or paste before
    it. The app's `on_event` hands them over."""

    def __init__(self, app: App[Any]) -> None:
        self._app = app
        self._ahead: deque[events.Event] = deque()
        self._handling = 0  # the number of the event that is waited for; 0 while there is none
        self._number = 0

    @property
    def is_empty(self) -> bool:
        """Does nothing wait, and is nothing waited for?"""
        return not self._handling and not self._ahead

    async def take(self, event: events.Event, handle: Callable[[events.Event], Awaitable[None]]) -> None:
        """Have an event handled by `handle` when it is its turn. The mouse on what has just gone does nothing."""
        if isinstance(event, events.Key) and event.key.startswith("alt+"):
            event.character = None  # the toolkit says the letter too: a field of text would take it for typed
        if not isinstance(event, _QUEUED) or event.is_forwarded:
            await handle(event)
        elif self._handling:
            self._ahead.append(event)
        elif isinstance(event, events.MouseEvent) and self._has_gone(self._under(event)):
            return
        elif isinstance(event, _WAITED_FOR):
            await self._handle(event, handle)
        else:
            await handle(event)

    def _under(self, event: events.MouseEvent) -> Widget | None:
        """The widget that a mouse event is for; None where there is none."""
        if not self._app.screen_stack:
            return None
        try:
            return self._app.mouse_captured or self._app.screen.get_widget_at(event.x, event.y)[0]
        except NoWidget:
            return self._app.screen

    def _has_gone(self, widget: Widget | None) -> bool:
        """Is it only in the last picture, and no more in the app? The toolkit would ask for its parent."""
        return widget is None or not widget.is_attached

    async def _handle(self, event: events.Event, handle: Callable[[events.Event], Awaitable[None]]) -> None:
        self._number += 1
        number = self._handling = self._number
        # It goes up from the widget to the app, where its action is found: what follows it goes the same way.
        widget: DOMNode | None = self._under(event) if isinstance(event, events.MouseEvent) else self._app.focused
        way: list[MessagePump] = list((widget or self._app.screen).ancestors_with_self)
        await handle(event)
        # Twice: what the widget said of it (a text was submitted) sets out when it has been handled.
        self._follow(number, [*way, *way])
        self._watch(number)

    def _follow(self, number: int, way: list[MessagePump]) -> None:
        if way and way[0].call_later(self._follow, number, way[1:]):
            return
        # Behind whatever its action has left in the app's own queue, such as a new focus.
        self._app.call_later(self._handled, number)

    def _watch(self, number: int) -> None:
        """Stop waiting for the event when it cannot be expected any more."""
        clock = asyncio.get_running_loop().time
        begun = clock()
        idle = 0

        def look_from(at: float, spent: float) -> None:
            self._app.set_timer(LOOK_S, lambda: look(at, spent))

        async def look(at: float, spent: float) -> None:
            nonlocal idle
            now = clock()
            if self._handling != number:
                return
            was_idle = now - at - LOOK_S < LATE_S and time.thread_time() - spent < BUSY_S
            idle = idle + 1 if was_idle else 0
            if (now - begun >= PATIENCE_S and idle >= IDLE_LOOKS) or now - begun >= LONGEST_S:
                await self._handled(number)
                return
            look_from(clock(), time.thread_time())

        look_from(begun, time.thread_time())

    async def _handled(self, number: int) -> None:
        if self._handling != number:
            return
        self._handling = 0
        while self._ahead and not self._handling:
            # The whole of the app again: it may have an own use of the event by now.
            await self._app.on_event(self._ahead.popleft())
