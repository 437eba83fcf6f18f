"""The screens by their names, and the sheets that lie over them. Each is imported when it is first shown."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

from textual.screen import ModalScreen

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
    "watch": "watch:WatchScreen",
}
"""Where each is, below `agenteval_tui.tui.screens`."""

_SHEETS = {
    "add_row": "add_dataset_row:AddRowScreen",
    "choose": "select_dialog:SelectScreen",
    "delete_tests": "editor.dialogs:delete_question",
    "export_run": "import_export_dialogs:ExportRunScreen",
    "export_runs": "import_export_dialogs:ExportScreen",
    "fork": "fork:ForkScreen",
    "help": "help:help_of",
    "import": "import_export_dialogs:ImportScreen",
    "make_test": "new_test:MakeTestScreen",
    "new_suite": "new_test:NewSuiteScreen",
    "new_test": "new_test:NewTestScreen",
    "notices": "notification_log:NotificationLogScreen",
    "plan": "plan:PlanScreen",
    "name": "name:NameScreen",
    "prune": "prune:PruneScreen",
    "record": "record:RecordScreen",
    "replay": "record:ReplayScreen",
    "tags": "new_test:TagsScreen",
    "theme": "theme:ThemeScreen",
}
"""Sheets that need further modules. Each is imported only when somebody opens it."""

_QUESTIONS = {
    "label": "label:ask_label",
    "quarantine": "quarantine:ask_quarantine_of",
    "quarantine_test": "quarantine:ask_quarantine",
    "reopen": "triage_dialog:ask_to_reopen",
    "triage": "triage_dialog:ask_to_decide",
}
"""Questions over a screen. Each function shows a sheet and carries out the answer."""


def _at(place: str) -> Callable[..., Any]:
    module, _, name = place.partition(":")
    target: Callable[..., Any] = getattr(import_module(f"agenteval_tui.tui.screens.{module}"), name)
    return target


def _make(place: str) -> FrameScreen:
    screen: FrameScreen = _at(place)()
    return screen


def read_screen(name: str) -> None:
    """Import a screen, in whichever thread, so that it is made sooner when it is first shown."""
    _at(_SCREENS[name])


def sheet(name: str, *arguments: Any, **named: Any) -> ModalScreen[Any]:
    """A sheet, made with what it is about."""
    screen: ModalScreen[Any] = _at(_SHEETS[name])(*arguments, **named)
    return screen


def ask(question: str, *arguments: Any, **named: Any) -> None:
    """Ask a question over a screen, which is the first of its arguments."""
    _at(_QUESTIONS[question])(*arguments, **named)


FACTORIES: dict[str, Callable[[], FrameScreen]] = {name: partial(_make, place) for name, place in _SCREENS.items()}
