"""The action that opens the sheet, and the keys in it."""

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
    Action(
        "blame.close",
        "close",
        "escape,q,alt+w",
        "close",
        "Close the sheet; what was answered is kept",
        "blame",
        part=True,
    ),
    Action("blame.go", "go", "enter", "go to the step", "Go to the step whose evidence is shown", "blame", part=True),
    Action("blame.sample", "begin", "r", "sample", "Ask the agent to continue from the steps", "blame", part=True),
    Action("blame.stop", "stop", "S", "stop", "Stop asking", "blame", part=True),
)
