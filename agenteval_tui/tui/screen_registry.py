"""The work screens by their names. Each is imported when it is first shown."""

from __future__ import annotations

from collections.abc import Callable

from agenteval_tui.tui.screens.base_screen import FrameScreen


def _suites() -> FrameScreen:
    from agenteval_tui.tui.screens.suites.screen import SuitesScreen

    return SuitesScreen()


def _editor() -> FrameScreen:
    from agenteval_tui.tui.screens.editor.screen import EditorScreen

    return EditorScreen()


def _run() -> FrameScreen:
    from agenteval_tui.tui.screens.run import RunScreen

    return RunScreen()


def _inspect() -> FrameScreen:
    from agenteval_tui.tui.screens.inspect.screen import InspectScreen

    return InspectScreen()


def _history() -> FrameScreen:
    from agenteval_tui.tui.screens.history.screen import HistoryScreen

    return HistoryScreen()


def _agents() -> FrameScreen:
    from agenteval_tui.tui.screens.agents import AgentsScreen

    return AgentsScreen()


def _difference() -> FrameScreen:
    from agenteval_tui.tui.screens.difference import DifferenceScreen

    return DifferenceScreen()


def _branches() -> FrameScreen:
    from agenteval_tui.tui.screens.divergence import DivergenceScreen

    return DivergenceScreen()


def _compare() -> FrameScreen:
    from agenteval_tui.tui.screens.compare import CompareScreen

    return CompareScreen()


def _causes() -> FrameScreen:
    from agenteval_tui.tui.screens.causes import CausesScreen

    return CausesScreen()


def _review() -> FrameScreen:
    from agenteval_tui.tui.screens.review import ReviewScreen

    return ReviewScreen()


def _trends() -> FrameScreen:
    from agenteval_tui.tui.screens.trends import TrendsScreen

    return TrendsScreen()


FACTORIES: dict[str, Callable[[], FrameScreen]] = {
    "suites": _suites,
    "editor": _editor,
    "run": _run,
    "inspect": _inspect,
    "history": _history,
    "compare": _compare,
    "trends": _trends,
    "agents": _agents,
    "causes": _causes,
    "review": _review,
    "difference": _difference,
    "branches": _branches,
}
