"""Embeddings from any server that has OpenAI's `/embeddings`: Ollama, vLLM, LM Studio, LiteLLM, OpenAI itself."""

from __future__ import annotations

from agenteval_tui.agents.base import AgentSetup, Failed
from agenteval_tui.agents.embedders.base import Embedding
from agenteval_tui.agents.models.openai import OpenAIChatAgent
from agenteval_tui.agents.models.openai_options import OpenAIOptions


class OpenAIEmbedder:
    """Takes the options of an agent of kind `openai`: `base_url`, `model`, `api_key_env`, `headers`, `timeouts`."""

    options_model = OpenAIOptions

    def __init__(self, setup: AgentSetup) -> None:
        self._agent = OpenAIChatAgent(setup)

    async def embed(self, text: str) -> Embedding | Failed:
        """The vector that the server gives."""
        return await self._agent.embed(text)

    async def close(self) -> None:
        """Close the connections."""
        await self._agent.close()
