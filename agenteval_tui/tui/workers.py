"""Work beside a screen: what waits for something, in threads, or some seconds from now. It is begun here only, so that
all of it is begun in one way."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from textual.app import App
from textual.dom import DOMNode
from textual.screen import Screen
from textual.worker import Worker

from agenteval_tui.tui.services import services
from agenteval_tui.tui.terminal.mounting import is_there

_LONGEST_FRAME_S = 1.0  # the work is not put off longer, should no picture be painted
_REPAINT_S = 0.2  # between two pictures while work goes on


def start_worker(
    node: DOMNode,
    work: Callable[[], Coroutine[Any, Any, object]],
    *,
    group: str,
    exclusive: bool = True,
    name: str = "",
    awaited: bool = False,
) -> Worker[Any]:
    """Do `work` beside what `node` does. `exclusive`: the node's other work of the group is cancelled.
    `awaited`: the next keys may act on what it finds, and wait a moment for it.

    It ends when the node is taken away. An error in it goes to the node as a `Worker.StateChanged`. `work` is called,
    not given as a coroutine: one that is cancelled before it started would never be awaited.
    """

    async def run() -> object:
        return await work()  # of any kind of callable: Textual asks for an `async def`

    worker: Worker[Any] = node.run_worker(
        run, group=group, exclusive=exclusive, exit_on_error=False, name=name or group
    )
    if awaited:
        services(node).keys_wait_for(worker)
    return worker


def is_busy(node: DOMNode, group: str) -> bool:
    """Is work of this group of the node's going on?"""
    return any(worker.node is node and worker.group == group and not worker.is_finished for worker in node.workers)


async def until_painted(node: DOMNode) -> None:
    """Wait until the screen shows what it has now: a thread takes half of the processor from painting.

    A node whose messages wait, as behind one that opened a sheet and wants its answer, says so only when they are done:
    it is not waited for longer than any frame takes.
    """
    painted = asyncio.Event()
    node.call_after_refresh(painted.set)
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(painted.wait(), _LONGEST_FRAME_S)


class PaintedWork:
    """Work in a thread of which a screen shows how far it is: `paint` is called now and then, and at the end."""

    def __init__(self, screen: Screen[Any], paint: Callable[[], None], *, group: str) -> None:
        self._screen = screen
        self._paint = paint
        self._group = group
        self._timer = screen.set_interval(_REPAINT_S, paint, pause=True)

    def begin(self, work: Callable[[], object]) -> None:
        """Do it; one at a time."""
        self._timer.resume()
        self._paint()
        start_worker(self._screen, lambda: self._done(work), group=self._group)

    async def _done(self, work: Callable[[], object]) -> None:
        try:
            await asyncio.to_thread(work)
        finally:
            self._timer.pause()
            if is_there(self._screen):
                self._paint()


def call_after(node: DOMNode, seconds: float, callback: Callable[[], Awaitable[object] | object]) -> None:
    """Call `callback` among the messages of `node`, `seconds` from now or later. Not if the node has gone by then.

    Textual's `set_timer` skips a call that is already late, as it does for calls that repeat. If the process gets no
    processor time while it sets up a timer of 5 ms, that timer never fires: keys wait forever, or no draft is written.
    """

    def due() -> None:
        if node.is_running and (isinstance(node, App) or node.is_attached):
            node.call_next(callback)

    asyncio.get_running_loop().call_later(seconds, due)
