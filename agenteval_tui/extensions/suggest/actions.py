"""The actions that open the sheet."""

from __future__ import annotations

from agenteval_tui.tui.action import Action, extension_method

_SHEET = "agenteval_tui.extensions.suggest.sheet"
ACTIONS = (
    Action(
        "edit.suggest",
        extension_method(f"{_SHEET}:suggest_for_test"),
        "alt+s",
        "suggest",
        "Suggest criteria from labelled runs",
        "edit",
        priority=True,
        after="edit.relax",
    ),
    Action(
        "inspect.suggest",
        extension_method(f"{_SHEET}:suggest_for_run"),
        "alt+s",
        "suggest",
        "Suggest criteria from labelled runs",
        "inspect",
        priority=True,
        after="inspect.shrink",
        introduction="Press {inspect.suggest} for criteria that agree with your labels.",
    ),
)
