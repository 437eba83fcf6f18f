"""The action that opens the sheet."""

from __future__ import annotations

from agenteval_tui.tui.action import Action, extension_method

ACTIONS = (
    Action(
        "inspect.blame",
        extension_method("agenteval_tui.extensions.blame.sheet:blame_run"),
        "alt+w",
        "blame",
        "Blame: find the step where the run went wrong",
        "inspect",
        priority=True,
        after="inspect.decisive",
    ),
)
