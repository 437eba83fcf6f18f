"""Keys, clicks and pastes that arrive faster than the app handles them, in their order.

Textual gives each key at once to the widget with the focus, and each click to the widget below it. Over a slow line,
several arrive together. After `/smoke`, the list would get the `s`, where it is a command, because the filter did not
have the focus yet. The second click of a double click would press the button again, below the sheet that the first one
opened. So each key, click and paste waits until the one before has done all that it does, including moving the focus
and opening a screen.

They also wait for answers from the history and from files (`wait_for`): `n` and `L` label the next run, not the one
that is still shown. This wait has a limit, so that the user can leave while a disk is slow.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any

from textual import events
from textual.app import App
from textual.command import CommandList, CommandPalette
from textual.dom import DOMNode
from textual.errors import NoWidget
from textual.message_pump import MessagePump
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import Input, TextArea
from textual.worker import Worker

from agenteval_tui.tui.navigation import MOVES
from agenteval_tui.tui.workers import call_after

PATIENCE_S = 0.5
"""The longest wait for a key whose action waits for something itself, or whose widget was removed. A busy machine does
not count: the app must also have been idle for the last `IDLE_LOOKS` looks."""
LONGEST_S = 5.0
"""The longest wait if the app is never idle."""
LOOK_S = 0.05  # between two looks whether the app is idle
LATE_S, BUSY_S = 0.01, 0.001
"""The app was busy if a look comes later than this, or if it used more processor time than this since the last look."""
IDLE_LOOKS = 2
ANSWER_S = 2.0
"""The longest wait for an answer."""
ANSWER_LOOK_S = 0.005  # short: a key that waits for the answer waits as long
_QUEUED = (events.Key, events.Paste, events.MouseEvent)
_WAITED_FOR = (events.Key, events.Paste, events.MouseUp)
_MAY_WAIT = (events.Key, events.Paste, events.MouseDown, events.MouseUp)
_TYPING, _MOVING, _OTHER = "typing", "moving", ""
_Handler = Callable[[events.Event], Awaitable[None]]
_EDITS = frozenset({"backspace", "delete", "left", "right", "home", "end"})


class InputQueue:
    """The events of an app. Keys, clicks and pastes wait for the one before. The app's `on_event` passes the events."""

    def __init__(self, app: App[Any]) -> None:
        self._app = app
        self._ahead: deque[tuple[events.Event, _Handler]] = deque()
        self._handling = 0  # the number of the event that is waited for; 0 while there is none
        self._number = 0
        self._kind = _OTHER  # of the last event that was handled
        self._answers: list[tuple[Worker[Any], str, float]] = []  # with what asked for them, and until when they count
        self._looks = False
        self._held_since = 0.0  # since when the first of those ahead waits for an answer; 0 while it does not
        self._pressed = 0  # how many events were waited for
        self._at: Screen[Any] | None = None  # the screen whose widgets have done what was asked of them

    @property
    def is_empty(self) -> bool:
        """Whether no event waits, and none is being handled."""
        return not self._handling and not self._ahead

    @property
    def last(self) -> int:
        """The number of the last event that anybody waited for, which may be being handled."""
        return self._pressed

    def is_last(self, number: int) -> bool:
        """Whether nothing was pressed, clicked or pasted after the event with this number."""
        return number == self._pressed and not self._ahead

    def wait_for(self, answer: Worker[Any]) -> None:
        """Let later events wait for this work, because it decides what the next key acts on."""
        self._answers.append((answer, self._kind, time.monotonic() + ANSWER_S))

    async def take(self, event: events.Event, handle: _Handler) -> None:
        """Call `handle` with an event when its turn comes. Mouse events on a removed widget do nothing."""
        if isinstance(event, events.Key) and event.key.startswith("alt+"):
            event.character = None  # the toolkit says the letter too: a field of text would take it for typed
        if not isinstance(event, _QUEUED) or event.is_forwarded:
            await handle(event)
        # Also where only others wait: an event that overtook them would be handled before them.
        elif self._handling or self._ahead or self._waits(event):
            self._ahead.append((event, handle))
            await self._next()
        else:
            await self._take_now(event, handle)

    async def _take_now(self, event: events.Event, handle: _Handler) -> None:
        # Looked at only now: the event before may have removed the widget.
        if isinstance(event, events.MouseEvent) and self._has_gone(self._under(event)):
            return
        if isinstance(event, _WAITED_FOR):
            await self._handle(event, handle)
        else:
            await handle(event)

    def _under(self, event: events.MouseEvent) -> Widget | None:
        """The widget that a mouse event is for; None where there is none."""
        if not self._app.screen_stack:
            return None
        try:
            # What holds the mouse gets the event wherever the mouse is, as a scroll bar that is dragged does.
            return self._app.mouse_captured or self._app.screen.get_widget_at(event.x, event.y)[0]
        except NoWidget:
            return self._app.screen

    def _has_gone(self, widget: Widget | None) -> bool:
        """Whether the widget is still painted but already removed. Textual would ask for its parent."""
        return widget is None or not widget.is_attached

    async def _handle(self, event: events.Event, handle: _Handler) -> None:
        self._number += 1
        number = self._handling = self._number
        self._pressed += 1
        self._kind, screen = self._kind_of(event), self._screen
        self._at = screen
        if screen is None:  # the app ends
            self._handling = 0
            await handle(event)
            return
        # It goes up from the widget to the app, where its action is found: what follows it goes the same way.
        widget: DOMNode | None = self._under(event) if isinstance(event, events.MouseEvent) else screen.focused
        way: list[MessagePump] = list((widget or screen).ancestors_with_self)
        palette = screen if isinstance(screen, CommandPalette) and screen.is_mounted else None
        await handle(event)
        # Twice: what the widget said of it (a text was submitted) sets out when it has been handled.
        way += way
        if palette is not None:  # its field has its list do it
            way += palette.query_one(CommandList).ancestors_with_self
        self._follow(number, way)
        self._watch(number)

    def _follow(self, number: int, way: list[MessagePump]) -> None:
        # Each widget on the way has a queue of its own: when this call comes out of it, all that the event put into it
        # before is done. False: the widget ends, and takes no more.
        if way and way[0].call_later(self._follow, number, way[1:]):
            return
        # Behind whatever its action has left in the app's own queue, such as a new focus.
        self._app.call_later(self._followed, number)

    async def _followed(self, number: int) -> None:
        if self._handling != number:
            return
        screen = self._screen
        if screen is not None and screen is not self._at:
            # One that was opened is told that it is there, and says what has the focus, before it does this.
            self._at = screen
            self._follow(number, [screen, screen])
        else:
            await self._handled(number)

    def _watch(self, number: int) -> None:
        """Stop waiting for an event that will not report its end."""
        clock = asyncio.get_running_loop().time
        begun = clock()
        idle = 0

        def look_from(at: float, spent: float) -> None:
            call_after(self._app, LOOK_S, lambda: look(at, spent))

        async def look(at: float, spent: float) -> None:
            nonlocal idle
            now = clock()
            if self._handling != number:
                return
            # Both: another program may take the processor from the app (a late look), or the app may use it itself.
            was_idle = now - at - LOOK_S < LATE_S and time.thread_time() - spent < BUSY_S
            idle = idle + 1 if was_idle else 0
            # An idle app does nothing more for the event: its action waits itself, or its widget is gone.
            if (now - begun >= PATIENCE_S and idle >= IDLE_LOOKS) or now - begun >= LONGEST_S:
                await self._handled(number)
                return
            look_from(clock(), time.thread_time())

        look_from(begun, time.thread_time())

    async def _handled(self, number: int) -> None:
        # Both the way and the watch may report the end; the second report is of an event that is over.
        if self._handling == number:
            self._handling = 0
            await self._next()

    async def _next(self) -> None:
        """Handle the waiting events until one has to wait."""
        while self._ahead and not self._handling:
            event, handle = self._ahead[0]
            if self._waits(event):
                self._look_soon()
                return
            self._held_since = 0.0
            # Before it is handled: what it does may ask whether it is the last (`is_last`).
            self._ahead.popleft()
            await self._take_now(event, handle)

    # The answers that are waited for

    def _waits(self, event: events.Event) -> bool:
        """Whether an expected answer decides what this event acts on. Typing into a field does not depend on what the
        letter before asked for, nor does a cursor move on the row before."""
        if not isinstance(event, _MAY_WAIT) or self._screen is None:
            return False
        now, kind, screen = time.monotonic(), self._kind_of(event), self._screen
        self._answers = [answer for answer in self._answers if not answer[0].is_finished and answer[2] > now]
        if any(answer_kind != kind or not kind for _, answer_kind, _ in self._answers):
            return True
        # The palette lists by the toolkit's own work.
        return isinstance(screen, CommandPalette) and kind != _TYPING and self._lists(screen, now)

    def _lists(self, palette: CommandPalette, now: float) -> bool:
        # The same limit as for other answers, which these workers do not carry.
        if self._held_since and now - self._held_since > ANSWER_S:
            return False
        return any(worker.node is palette and not worker.is_finished for worker in self._app.workers)

    def _kind_of(self, event: events.Event) -> str:
        if self._screen is not None and isinstance(self._screen.focused, (Input, TextArea)):
            typed = isinstance(event, events.Key) and (event.is_printable or event.key in _EDITS)
            return _TYPING if typed or isinstance(event, events.Paste) else _OTHER
        return _MOVING if isinstance(event, events.Key) and event.key in MOVES else _OTHER

    def _look_soon(self) -> None:
        if not self._looks:
            self._looks = True
            self._held_since = self._held_since or time.monotonic()
            call_after(self._app, ANSWER_LOOK_S, self._look)

    async def _look(self) -> None:
        self._looks = False
        if self._handling or not self._ahead:
            return
        if self._waits(self._ahead[0][0]):
            self._look_soon()
            return
        # What the answer left to do (a focus, a screen, a cursor that asks for something more) is done first.
        self._number += 1
        number = self._handling = self._number
        screen = self._screen
        way: list[MessagePump] = list((screen.focused or screen).ancestors_with_self) if screen is not None else []
        self._follow(number, way)
        self._watch(number)

    @property
    def _screen(self) -> Screen[Any] | None:
        return self._app.screen_stack[-1] if self._app.screen_stack else None
