"""Whether a widget is there: composed, and not on its way out.

Textual takes a widget away in steps. One that goes (or whose app ends) before it was composed is given no parts, and
is told all the same that it was mounted; what it asked to be called back for is called when it has gone. Whoever then
asks it for one of its parts breaks the app. So a widget with parts is told nothing more once it goes, and what comes
from elsewhere (work that has waited, the app) asks first.

With a Textual that has no such private parts (`textual_support.py`), what can be known in public is asked.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

from textual import events
from textual.message import Message
from textual.widget import Widget

from agenteval_tui.tui.terminal.textual_support import has

W = TypeVar("W", bound=Widget)

DISPATCHES = has("textual.message_pump:MessagePump._dispatch_message", "self message")
"""Is a widget told everything through a method that can be replaced?"""
LOOK_S = 0.01  # between two looks at a widget that comes: Textual has no event for it

_OF_ITS_LIFE = (
    events.Compose,
    events.Mount,
    events.ScreenResume,
    events.ScreenSuspend,
    events.Resize,
    events.Show,
    events.Hide,
    events.Focus,
    events.Blur,
)


def is_there(widget: Widget) -> bool:
    """Has it all its parts? False before it is mounted, and from when it is being taken away."""
    return widget.is_mounted and widget.is_attached and not _is_going(widget)


def _is_going(widget: Widget) -> bool:
    return bool(getattr(widget, "_pruning", False))


async def mounted(widget: Widget) -> bool:
    """Wait until it is mounted, which may take longer than what it asked for. False when it goes instead."""
    mounted: asyncio.Event | None = getattr(widget, "_mounted_event", None)
    if mounted is not None:
        await mounted.wait()
    else:
        while widget.is_attached and not widget.is_mounted:  # noqa: ASYNC110 (there is no event to wait for)
            await asyncio.sleep(LOOK_S)
    return is_there(widget)


def is_too_late(widget: Widget, message: Message) -> bool:
    """Is it told something that it would need its parts for, while it is being taken away?"""
    if not (message.bubble or isinstance(message, _OF_ITS_LIFE)):
        return False  # such as that it is to go
    return _is_going(widget) or not widget.is_attached


def drop_messages(drops: Callable[[Any, Message], bool]) -> Callable[[type[W]], type[W]]:
    """A class of widgets that are not told what `drops` names (the widget, the message), such as what comes too late.

    Without effect where Textual tells widgets in another way: then a late message may break the app, as in any other.
    """

    def decorated(cls: type[W]) -> type[W]:
        async def _dispatch_message(self: W, message: Message) -> None:
            if not drops(self, message):
                await super(cls, self)._dispatch_message(message)

        if DISPATCHES:
            cls._dispatch_message = _dispatch_message  # type: ignore[method-assign, assignment]
        return cls

    return decorated
