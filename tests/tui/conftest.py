"""A terminal for programs that a test writes itself."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from terminal import Terminal
from textual._compositor import Compositor
from textual.css.stylesheet import Stylesheet
from textual.message_pump import MessagePump
from textual.pilot import Pilot, WaitForScreenTimeout


@pytest.fixture
def run_in_terminal() -> Callable[..., Terminal]:
    """`run_in_terminal(source, columns=..., rows=...)`: a terminal that runs a piece of Python."""

    def start(source: str, **options: Any) -> Terminal:
        return Terminal([sys.executable, "-c", source], **options)

    return start


@pytest.fixture(scope="session", autouse=True)
def styles_read_once() -> Iterator[None]:
    """The rules of a piece of CSS are read once in a process, and not anew in each app: a tenth of what an app costs.

    Within one app Textual keeps them just so, until its variables change; here these are part of the key.
    """
    known: dict[object, object] = {}
    read = Stylesheet._parse_rules

    def parsed(self: Stylesheet, css: str, read_from: Any, *args: Any, **named: Any) -> Any:
        variables = tuple(sorted(self._variables.items()))
        key = (css, read_from, args, tuple(sorted(named.items())), variables)
        if key not in known:
            known[key] = read(self, css, read_from, *args, **named)
        return known[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Stylesheet, "_parse_rules", parsed)
        yield


@pytest.fixture(autouse=True)
def painted_when_looked_at(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """An app without a terminal paints its screen when its pilot has waited for it, and not sixty times a second for
    nobody: a fifth of what such a test costs. Layout, styles and messages are as ever.

    A test whose subject is what is painted on the way says `every_frame`.
    """
    if request.node.get_closest_marker("every_frame"):
        return
    render, press, pause = Compositor.render_update, Pilot.press, Pilot.pause
    looking = False

    def render_update(self: Compositor, full: bool = False, *args: Any, **named: Any) -> Any:
        if full or looking or not (self.root and self.root.app.is_headless):
            return render(self, full, *args, **named)
        return None  # what is to be painted is still noted

    def look(pilot: Pilot[Any]) -> None:
        nonlocal looking
        app = pilot.app
        if app.is_running and app.screen_stack and not (app._exit or app._batch_count) and app.is_headless:
            looking = True
            try:
                if app.screen._compositor._dirty_regions:
                    app.screen._compositor_refresh()
            finally:
                looking = False

    async def pressed(self: Pilot[Any], *keys: str) -> None:
        await press(self, *keys)
        look(self)

    async def paused(self: Pilot[Any], delay: float | None = None) -> None:
        await pause(self, delay)
        look(self)

    monkeypatch.setattr(Compositor, "render_update", render_update)
    monkeypatch.setattr(Pilot, "press", pressed)
    monkeypatch.setattr(Pilot, "pause", paused)


def waits(pump: MessagePump) -> bool:
    """Whether it has done all that it was told, and waits for the next message."""
    queue: Any = pump._message_queue
    return queue.empty() and bool(queue.ready_event._waiters)


@pytest.fixture(scope="session", autouse=True)
def only_who_is_busy_is_waited_for() -> Iterator[None]:
    """After each key a pilot waits until every widget has done what it was told. It finds out by telling each of them
    one thing more, which is two thirds of all messages of a test; here only those are told that have something to do.
    """

    async def wait_for_screen(self: Pilot[Any], timeout: float = 30.0) -> bool:
        app = self.app
        if not app.screen_stack:
            return False
        left = 0
        done = asyncio.Event()

        def one_is_done() -> None:
            nonlocal left
            left -= 1
            if not left:
                done.set()

        for pump in (app, *app.screen.walk_children(with_self=True)):
            if not waits(pump):
                left += pump.call_later(one_is_done)
        if left:
            ends = [asyncio.create_task(event.wait()) for event in (done, app._exception_event)]
            ended, pending = await asyncio.wait(ends, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
            for end in pending:
                end.cancel()
            if not ended:
                raise WaitForScreenTimeout("the widgets did not do in time what they were told")
        return not left

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Pilot, "_wait_for_screen", wait_for_screen)
        yield
