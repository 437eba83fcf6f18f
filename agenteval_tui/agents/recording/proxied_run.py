"""A run that may ask models by way of the proxy of its agent."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from msgspec import Struct, field

from agenteval_tui.agents.base import PaidRequests
from agenteval_tui.agents.recording.answers import RecordedAnswers


class OpenRun(Struct, eq=False):
    """A run that may ask models. `secret` is in its address; `tells_usage`: its agent says itself what it used.
    `before`: how many requests were made in earlier turns. `recorded`: what answers in place of the servers; `stopped`
    is set by a request that it has no answer to, where that ends the run."""

    secret: str
    name: str
    env: Mapping[str, str]
    paid: PaidRequests | None
    tells_usage: bool = False
    before: int = 0
    recorded: RecordedAnswers | None = None
    stopped: asyncio.Event = field(default_factory=asyncio.Event)
