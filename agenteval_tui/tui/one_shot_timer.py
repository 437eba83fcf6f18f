"""A call after some seconds, which always comes.

Textual's `set_timer` skips a call that is already late, as it does for calls that repeat. If the process gets no
processor time while it sets up a timer of 5 ms, that timer never fires: keys wait forever, or no draft is written.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from textual.app import App
from textual.dom import DOMNode


def call_after(node: DOMNode, seconds: float, callback: Callable[[], Awaitable[object] | object]) -> None:
    """Call `callback` among the messages of `node`, `seconds` from now or later. Not if the node has gone by then."""

    def due() -> None:
        if node.is_running and (isinstance(node, App) or node.is_attached):
            node.call_next(callback)

    asyncio.get_running_loop().call_later(seconds, due)
