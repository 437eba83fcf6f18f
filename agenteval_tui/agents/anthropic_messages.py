"""The kind `anthropic`: a server that speaks the Messages API, with our own loop of tool calls."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agenteval_tui.agents.anthropic_options import AnthropicOptions
from agenteval_tui.agents.messages_protocol import MessagesProtocol
from agenteval_tui.agents.model_agent import ModelAgent
from agenteval_tui.agents.options import read_options
from agenteval_tui.agents.protocol import ModelProtocol


class AnthropicAgent(ModelAgent[AnthropicOptions]):
    """Talks to Anthropic, or to a server that speaks as it does."""

    options_model = AnthropicOptions
    usual_address = " (without the /v1/messages at its end)"

    def _read(self, config: Mapping[str, Any]) -> AnthropicOptions:
        return read_options(AnthropicOptions, self._setup.name, config)

    def _protocol(self, options: AnthropicOptions) -> ModelProtocol:
        return MessagesProtocol(options)
