"""What a model's protocol is to the tool loop: how a conversation is told, asked, and gone on with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeVar

from agenteval_tui.agents.conversation import Said
from agenteval_tui.agents.interface import ToolCallFinished, ToolSpec
from agenteval_tui.agents.reply import ModelReply

Reply = TypeVar("Reply", bound=ModelReply)


class Dialogue(Protocol[Reply]):
    """One run's conversation in the words of a protocol; it grows with each answer."""

    def body(self) -> dict[str, Any]:
        """The JSON of the next request."""
        ...

    def reply(self, first_key: int) -> Reply:
        """What reads the answer to it."""
        ...

    def go_on(self, reply: Reply, results: Mapping[int, ToolCallFinished]) -> None:
        """Add the model's message and the results of its calls, by their keys."""
        ...


class ModelProtocol(Protocol):
    """A protocol with an agent's options. `path` and `models_path` are added to the address."""

    @property
    def path(self) -> str: ...

    @property
    def models_path(self) -> str: ...

    def begin(self, messages: Sequence[Said], tools: Sequence[ToolSpec], seed: int) -> Dialogue[Any]:
        """A conversation that begins with these messages."""
        ...

    def key_headers(self, key: str) -> dict[str, str]:
        """The headers that carry the key, and others that the protocol demands."""
        ...
