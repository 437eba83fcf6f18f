"""A run that may ask models by way of the proxy of its agent."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from agenteval_tui.agents.base import PaidRequests


class OpenRun(Struct, eq=False):
    """A run that may ask models. `secret` is in its address; `tells_usage`: its agent says itself what it used.
    `before`: how many requests were made in earlier turns."""

    secret: str
    name: str
    env: Mapping[str, str]
    paid: PaidRequests | None
    tells_usage: bool = False
    before: int = 0
