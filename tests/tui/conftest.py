"""A terminal for programs that a test writes itself."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from terminal import Terminal
from textual._compositor import Compositor
from textual.css.stylesheet import Stylesheet
from textual.pilot import Pilot


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
