"""An embedder: it makes a vector of a text. This one is a toy; a real one asks a model."""

from __future__ import annotations

import string

from agenteval_tui.agents.base import AgentSetup, Embedding, Failed
from agenteval_tui.transcripts.model import RunError


class Letters:
    """How often each letter a to z occurs."""

    def __init__(self, setup: AgentSetup) -> None:
        self._name = setup.name

    async def embed(self, text: str) -> Embedding | Failed:
        counts = tuple(float(text.lower().count(letter)) for letter in string.ascii_lowercase)
        if not any(counts):
            return Failed(RunError("bad_request", "there is no letter in this text"))
        return Embedding(counts, "letters", "letters were counted: this says nothing of meanings")

    async def close(self) -> None:
        """Nothing to give back."""
