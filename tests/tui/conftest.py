"""A terminal for programs that a test writes itself."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import pytest
from shop import SETTLING, copy_recorded, copy_samples, run_samples
from terminal import Terminal
from textual import app as textual_app
from textual import pilot as textual_pilot
from textual._compositor import Compositor
from textual._wait import SLEEP_GRANULARITY, SLEEP_IDLE, wait_for_idle
from textual.pilot import Pilot

from agenteval_tui.tui.terminal import output_filters


@pytest.fixture
def run_in_terminal() -> Callable[..., Terminal]:
    """`run_in_terminal(source, columns=..., rows=...)`: a terminal that runs a piece of Python."""

    def start(source: str, **options: Any) -> Terminal:
        return Terminal([sys.executable, "-c", source], **options)

    return start


@pytest.fixture(scope="session", autouse=True)
def notes_stay() -> Iterator[None]:
    """A note stays until it is taken away: on a busy machine its five seconds may be over before a test looks."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(output_filters, "SHORTEST_S", 3600.0)
        yield


@pytest.fixture(autouse=True)
def painted_when_looked_at(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """An app without a terminal paints its screen when its pilot has paused, once when it has settled, and not sixty
    times a second for nobody: a fifth of what such a test costs. Layout, styles and messages are as ever.

    A test whose subject is what is painted on the way says `every_frame`.
    """
    if request.node.get_closest_marker("every_frame"):
        return
    render, pause = Compositor.render_update, Pilot.pause
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

    async def paused(self: Pilot[Any], delay: float | None = None) -> None:
        await pause(self, delay)
        if self.app not in SETTLING:
            look(self)

    monkeypatch.setattr(Compositor, "render_update", render_update)
    monkeypatch.setattr(Pilot, "pause", paused)


@pytest.fixture(scope="session")
def samples_ran(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """(folder with the sample suites, history in which they ran once)."""
    folder = tmp_path_factory.mktemp("samples")
    suites, db = copy_samples(folder), folder / "history.db"
    run_samples(suites, db)
    return suites, db


@pytest.fixture(scope="session")
def recorded_ran(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """(folder with the recorded suite, history in which it ran once)."""
    folder = tmp_path_factory.mktemp("recorded")
    suites, db = copy_recorded(folder), folder / "history.db"
    run_samples(suites, db)
    return suites, db


BESIDE: WeakKeyDictionary[asyncio.AbstractEventLoop, set[asyncio.Future[Any]]] = WeakKeyDictionary()
"""What each loop awaits of threads. Loops of other threads await something, too, while one looks at its own."""


LATE_S = 0.005


async def until_nothing_is_due(min_sleep: float = SLEEP_GRANULARITY, max_sleep: float = 1) -> None:
    """As Textual's `wait_for_idle`: wait until 20 ms have passed in which the process had next to nothing to do. And
    sooner, where it is certain that nothing will happen in them: nothing is to be done, no timer ends, and no thread is
    waited for."""
    loop: Any = asyncio.get_running_loop()
    if min_sleep or not hasattr(loop, "_ready"):
        await wait_for_idle(min_sleep, max_sleep)
        return
    # Counted and not timed: on a busy machine a second is over before the process has had much of it.
    for _ in range(int(max_sleep / SLEEP_GRANULARITY)):
        spent, end = time.process_time(), loop.time() + SLEEP_GRANULARITY
        while loop.time() < end:
            await asyncio.sleep(0)
            await asyncio.sleep(0)  # what has arrived meanwhile has been seen
            if loop._ready:
                continue
            due = min((timer._when for timer in loop._scheduled if not timer._cancelled), default=end)
            awaited = BESIDE.get(loop)
            if awaited:
                left = min(due, end) - loop.time()
                await asyncio.wait(list(awaited), timeout=left, return_when=asyncio.FIRST_COMPLETED)
            elif due < end:
                await asyncio.sleep(due - loop.time())
            else:
                return
        # Who comes late had something to do, and no time for it.
        if time.process_time() - spent < SLEEP_IDLE and loop.time() - end < LATE_S:
            return


@pytest.fixture(scope="session", autouse=True)
def idle_time_is_not_waited_for() -> Iterator[None]:
    """A pilot waits twice for 20 ms after each key, and once in each pause: a third of the time of a test."""
    wrap = asyncio.futures.wrap_future

    def wrapped(future: Any, **named: Any) -> asyncio.Future[Any]:
        awaited: asyncio.Future[Any] = wrap(future, **named)
        if not awaited.done():
            of_its_loop = BESIDE.setdefault(awaited.get_loop(), set())
            of_its_loop.add(awaited)
            awaited.add_done_callback(of_its_loop.discard)
        return awaited

    with pytest.MonkeyPatch.context() as patch:
        for module in (asyncio, asyncio.futures):
            patch.setattr(module, "wrap_future", wrapped)
        for user in (textual_app, textual_pilot):
            patch.setattr(user, "wait_for_idle", until_nothing_is_due)
        yield
