"""The action that listens for traces."""

from __future__ import annotations

from agenteval_tui.tui.action import Action, extension_method

ACTIONS = (
    Action(
        "listen",
        f"app.{extension_method('agenteval_tui.extensions.otel.sheet:listen')}",
        "alt+l",
        "listen…",
        "Listen for the traces that programs send",
        after="record",
    ),
)
