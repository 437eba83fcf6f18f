"""A request that asks what an agent would ask, written down: for programs that repeat it without agenteval."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Protocol, runtime_checkable

from msgspec import Struct

from agenteval_tui.agents.base import AgentRequest
from agenteval_tui.agents.stored_config import is_key
from agenteval_tui.suites.environment import Reference, pieces


class WrittenRequest(Struct, frozen=True):
    """A POST of JSON. In the values of `headers` `${NAME}` stands for an environment variable, as in a suite; no value
    of one is in it. `note`: what has to be known before it is sent, in words."""

    url: str
    headers: Mapping[str, str]
    body: Mapping[str, Any]
    note: str = ""


def own_headers(
    headers: Mapping[str, str], written: Mapping[str, Any], reserved: Collection[str]
) -> tuple[dict[str, str], list[str]]:
    """The headers of an agent's options that are safe to write down, as the suite has them (`written`), and the names
    of the other headers. A reference to the environment is safe; any other value may be a key. `reserved`: names of
    headers (lower case) that the request already has."""
    own: dict[str, str] = {}
    others: list[str] = []
    for name in headers:
        if name.lower() in reserved:
            continue
        value = written.get(name)
        # Only what the suite itself takes from the environment can be written as such; the value of anything else may
        # be a key, and its name is all that is told.
        references = (
            [piece for piece in pieces(value) if isinstance(piece, Reference)] if isinstance(value, str) else []
        )
        if references and not any(is_key(name, reference.default, sent=True) for reference in references):
            own[name.lower()] = str(value)
        else:
            others.append(name)
    return own, others


@runtime_checkable
class WritesRequests(Protocol):
    """An agent that asks a model by HTTP."""

    async def written_request(self, request: AgentRequest) -> WrittenRequest:
        """The first request of a run. Sends nothing to the model; asks servers of tools which tools they have.

        Raises `AgentevalError` if a server of tools can't be asked.
        """
        ...
