"""The actions that open the sheet."""

from __future__ import annotations

from agenteval_tui.tui.action import Action, extension_method

_SHEET = "agenteval_tui.extensions.share.sheet"
ACTIONS = (
    Action(
        "inspect.share",
        extension_method(f"{_SHEET}:share_run"),
        "",
        "share",
        "Share the run as an HTML file",
        "inspect",
        after="inspect.export",
    ),
    Action(
        "history.share",
        extension_method(f"{_SHEET}:share_chosen"),
        "",
        "share",
        "Share the execution or run as an HTML file",
        "history",
        after="history.export",
    ),
)
