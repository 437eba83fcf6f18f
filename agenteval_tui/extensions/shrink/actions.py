"""The action that opens the sheet, and the keys in it."""

from __future__ import annotations

from agenteval_tui.tui.action import Action, extension_method

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
    Action(
        "shrink.close",
        "close",
        "escape,q,alt+k",
        "close",
        "Close the sheet; what was found is kept",
        "shrink",
        part=True,
    ),
    Action("shrink.start", "begin", "enter", "start", "Start the search, or start it again", "shrink", part=True),
    Action("shrink.calls", "calls", "c", "keep calls", "Keep tool calls, or remove them", "shrink", part=True),
    Action("shrink.tools", "tools", "t", "keep tools", "Keep the list of tools, or remove tools", "shrink", part=True),
    Action("shrink.stop", "stop", "S", "stop", "Stop asking", "shrink", part=True),
    Action("shrink.test", "save", "m", "make a test", "Save the small case as a test", "shrink", part=True),
)
