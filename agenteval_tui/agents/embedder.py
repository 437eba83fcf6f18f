"""What an embedder is."""

from __future__ import annotations

from typing import ClassVar, Protocol, runtime_checkable

from msgspec import Struct, field

from agenteval_tui.agents.base import Failed
from agenteval_tui.transcripts.model import Usage


class Embedding(Struct, frozen=True):
    """A text's vector, which model gave it, and what a person should know of it ("cut at 256 tokens")."""

    vector: tuple[float, ...]
    model: str = ""
    note: str = ""
    usage: Usage = field(default_factory=Usage)


@runtime_checkable
class Embedder(Protocol):
    """A kind of embedder (entry point group `agenteval.embedders`); made from an `AgentSetup`, as agents are.

    `embed` never raises for what a server does wrong: it gives a `Failed`. Vectors of one embedder have one length.
    """

    async def embed(self, text: str) -> Embedding | Failed:
        """The vector of one text."""
        ...

    async def close(self) -> None:
        """Give back connections."""
        ...


class LocalEmbedder(Embedder, Protocol):
    """One that needs no address (entry point group `agenteval.local_embedders`, beside `agenteval.embedders`).

    Where no embedder is named, the first whose `missing()` is "" is taken. `install` is the command that installs what
    is missing.
    """

    install: ClassVar[str]

    @staticmethod
    def missing() -> str:
        """What is not installed of what it needs, in words; "" when all is there."""
        ...
