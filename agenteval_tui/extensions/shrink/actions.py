"""The action that opens the sheet, and the keys in it."""

from __future__ import annotations

from agenteval_tui.tui.action import Action, close_action, extension_method, part_action

ACTIONS = (
    Action(
        "inspect.shrink",
        extension_method("agenteval_tui.extensions.shrink.sheet:shrink_run"),
        "alt+k",
        "shrink",
        "Shrink: find the smallest input that still fails",
        "inspect",
        priority=True,
        after="inspect.blame",
    ),
    close_action("shrink", "alt+k", description="Close the sheet; what was found is kept"),
    part_action("shrink.start", "begin", "enter", "start", "Start the search, or start it again"),
    part_action("shrink.calls", "calls", "c", "keep calls", "Keep tool calls, or remove them"),
    part_action("shrink.tools", "tools", "t", "keep tools", "Keep the list of tools, or remove tools"),
    part_action("shrink.stop", "stop", "S", "stop", "Stop asking"),
    part_action("shrink.test", "save", "m", "make a test", "Save the small case as a test"),
)
