"""A request that asks what an agent would ask, written down: for programs that repeat it without agenteval."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

from msgspec import Struct

from agenteval_tui.agents.base import AgentRequest

KEY = "{key}"
"""What stands for the key in a header's value."""


class WrittenRequest(Struct, frozen=True):
    """A POST of JSON. `headers` have `KEY` where the key is; `key_env` names the variable that holds it ("": the server
    wants none). `note`: what has to be known before it is sent."""

    url: str
    headers: Mapping[str, str]
    body: Mapping[str, Any]
    key_env: str = ""
    note: str = ""


@runtime_checkable
class WritesRequests(Protocol):
    """An agent that asks a model by HTTP."""

    async def written_request(self, request: AgentRequest) -> WrittenRequest:
        """The first request of a run. Sends nothing; servers of tools are asked which tools they have.

        Raises `AgentevalError` where they can't be.
        """
        ...
