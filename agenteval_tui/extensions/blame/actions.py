"""The action that opens the sheet, and the keys in it."""

from __future__ import annotations

from agenteval_tui.tui.action import Action, close_action, extension_method, part_action

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
    close_action("blame", "alt+w", description="Close the sheet; what was answered is kept"),
    part_action("blame.go", "go", "enter", "go to the step", "Go to the step whose evidence is shown"),
    part_action("blame.sample", "begin", "r", "sample", "Ask the agent to continue from the steps"),
    part_action("blame.stop", "stop", "S", "stop", "Stop asking"),
)
