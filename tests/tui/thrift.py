"""Apps that no terminal shows, driven with less work: to paint, to parse styles and to wait is most of what they cost.

The tests of what a terminal gets start the program in one, in a process of its own: there nothing of this is so.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from time import monotonic, process_time
from typing import Any

import pytest
from textual import _wait, app, pilot
from textual.app import App
from textual.css import stylesheet
from textual.css.model import RuleSet
from textual.css.stylesheet import Stylesheet
from textual.message_pump import MessagePump
from textual.pilot import Pilot, WaitForScreenTimeout
from textual.screen import Screen


@contextmanager
def painting_where_a_test_waits() -> Iterator[None]:
    """A screen that changes is painted when the test comes to wait (`settle`, `until`, `Pilot.pause`), and not for each
    of the steps that led there. What is painted is the same: the places that have changed add up."""
    paint, pause = Screen._compositor_refresh, Pilot.pause
    due: set[Screen[Any]] = set()

    def compositor_refresh(self: Screen[Any]) -> None:
        if not self.app.is_headless or self is not self.app.screen:
            paint(self)
            return
        due.add(self)
        self._dirty_widgets.clear()
        self.app._update_mouse_over(self)

    async def pause_and_paint(self: Pilot[Any], delay: float | None = None) -> None:
        await pause(self, delay)
        if self.app.screen in due:
            paint(self.app.screen)
        due.clear()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Screen, "_compositor_refresh", compositor_refresh)
        patch.setattr(Pilot, "pause", pause_and_paint)
        yield


@contextmanager
def parsing_styles_once() -> Iterator[None]:
    """The rules of the same style sheet with the same variables are those that an app before this one has parsed; but
    where a test counts what is parsed."""
    parse, parser = Stylesheet._parse_rules, stylesheet.parse
    parsed: dict[object, list[RuleSet]] = {}

    def parse_rules(self: Stylesheet, *source: Any, **more: Any) -> list[RuleSet]:
        if stylesheet.parse is not parser:
            return parse(self, *source, **more)
        key = source, *more.items(), *sorted(self._variables.items())
        if key not in parsed:
            parsed[key] = parse(self, *source, **more)
        return parsed[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Stylesheet, "_parse_rules", parse_rules)
        yield


def is_quiet(pump: MessagePump) -> bool:
    """Whether it waits for a message, and has none; or takes none any more."""
    queue = pump._message_queue
    return pump._closing or pump._closed or (queue.empty() and bool(queue.ready_event._waiters))


async def wait_for_screen(self: Pilot[Any], timeout: float = 30.0) -> bool:
    """As Textual's, which sends each widget a message and counts the answers: half of all messages of a test."""
    if not self.app.screen_stack:
        return False
    pumps = [self.app, *self.app.screen.walk_children(with_self=True)]
    end = monotonic() + timeout
    turns = 0
    await asyncio.sleep(0)
    while not all(map(is_quiet, pumps)):
        if self.app._exception_event.is_set():
            return False
        if monotonic() > end:
            raise WaitForScreenTimeout(f"still at work: {[pump for pump in pumps if not is_quiet(pump)]}")
        turns += 1
        await asyncio.sleep(0 if turns < TURNS else LOOK_S)
    return True


TURNS = 100
"""That all get before somebody is waited for who waits himself: for a thread, for the disk."""
LOOK_S = 0.002
IDLE_S = 0.0002
"""Of a processor: to look whether anybody is at work takes less, to do anything takes more."""


@contextmanager
def waiting_for_what_is_at_work() -> Iterator[None]:
    """A test that waits looks whether widgets have messages; and a process that was idle, and has done nothing since,
    is idle."""
    wait, press = _wait.wait_for_idle, App._press_keys
    idle_at = 0.0

    async def wait_for_idle(*times: float) -> None:
        nonlocal idle_at
        if process_time() - idle_at > IDLE_S:
            await wait(*times)
            idle_at = process_time()

    async def press_keys(self: App[Any], keys: Iterable[str]) -> None:
        nonlocal idle_at
        for key in keys:
            idle_at = 0.0
            await press(self, (key,))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Pilot, "_wait_for_screen", wait_for_screen)
        patch.setattr(App, "_press_keys", press_keys)
        for module in (app, pilot):
            patch.setattr(module, "wait_for_idle", wait_for_idle)
        yield
