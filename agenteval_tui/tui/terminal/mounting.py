"""Whether a widget is there: composed, and not on its way out.

Textual takes a widget away in steps. One that goes (or whose app ends) before it was composed is given no parts, and
is told all the same that it was mounted; what it asked to be called back for is called when it has gone. Whoever then
asks it for one of its parts breaks the app. So a widget with parts is told nothing more once it goes, and what comes
from elsewhere (work that has waited, the app) asks first.

All that this program uses of Textual's private parts for that. `tests/tui/test_private.py` fails when they change.
"""

from __future__ import annotations

from textual import events
from textual.message import Message
from textual.widget import Widget

STANDS_ON: dict[str, str] = {
    "App._prune": "be1dc93ca461",
    "MessagePump._dispatch_message": "f2be0916fb2d",
    "MessagePump._pre_process": "f9bc326248dc",
    "Widget._compose": "7d97d9452e2c",
    "Widget.mount": "3da6fbf0df70",
}
"""What is replaced or relied on, with the first digits of the SHA-256 of its source in Textual 8.2.8."""

_OF_ITS_LIFE = (
    events.Compose, events.Mount, events.ScreenResume, events.ScreenSuspend, events.Resize, events.Show, events.Hide,
    events.Focus, events.Blur,
)  # fmt: skip


def is_there(widget: Widget) -> bool:
    """Has it all its parts? False before it is mounted, and from when it is being taken away."""
    return widget.is_mounted and widget.is_attached and not widget._pruning


async def mounted(widget: Widget) -> bool:
    """Wait until it is mounted, which may take longer than what it asked for. False when it goes instead."""
    await widget._mounted_event.wait()
    return is_there(widget)


def comes_too_late(widget: Widget, message: Message) -> bool:
    """Is it told something that it would need its parts for, while it is being taken away?"""
    if not (message.bubble or isinstance(message, _OF_ITS_LIFE)):
        return False  # such as that it is to go
    return widget._pruning or not widget.is_attached
