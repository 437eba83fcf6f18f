"""The actions that open the sheet, and the keys in it."""

from __future__ import annotations

from agenteval_tui.tui.action import Action, close_action, extension_method, part_action

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
    close_action("suggest", "alt+s", description="Close the sheet; labels stay"),
    part_action("suggest.good", "say(True)", "y", "good", "Label the run as good"),
    part_action("suggest.bad", "say(False)", "n", "bad", "Label the run as bad"),
    part_action("suggest.undo", "take_back", "u", "undo", "Take the last label back"),
    part_action("suggest.older", "step(1)", "right_square_bracket", "another run", "Show an older run"),
    part_action("suggest.newer", "step(-1)", "left_square_bracket", "newer run", "Show a newer run"),
)
