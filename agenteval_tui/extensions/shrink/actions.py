"""The action that opens the sheet."""

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
)
