"""The work screens by their names. Each is imported when it is first shown."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module

from agenteval_tui.tui.screens.base_screen import FrameScreen

_SCREENS = {
    "suites": "suites.screen:SuitesScreen",
    "editor": "editor.screen:EditorScreen",
    "run": "run.screen:RunScreen",
    "inspect": "inspect.screen:InspectScreen",
    "history": "history.screen:HistoryScreen",
    "compare": "compare.screen:CompareScreen",
    "trends": "trends:TrendsScreen",
    "agents": "agents:AgentsScreen",
    "causes": "causes:CausesScreen",
    "review": "review:ReviewScreen",
    "difference": "difference:DifferenceScreen",
    "branches": "divergence:DivergenceScreen",
}
"""Where each is, below `agenteval_tui.tui.screens`."""


def _make(place: str) -> FrameScreen:
    module, _, name = place.partition(":")
    screen: FrameScreen = getattr(import_module(f"agenteval_tui.tui.screens.{module}"), name)()
    return screen


FACTORIES: dict[str, Callable[[], FrameScreen]] = {name: partial(_make, place) for name, place in _SCREENS.items()}
