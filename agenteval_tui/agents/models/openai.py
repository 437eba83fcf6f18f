"""The kind `openai`: any server that speaks Chat Completions or the Responses API, with our own loop of tool calls."""

from __future__ import annotations

from msgspec.structs import replace

from agenteval_tui.agents.base import Embedding, Failed
from agenteval_tui.agents.http.client_factory import NoWayError
from agenteval_tui.agents.models.loop import ModelAgent
from agenteval_tui.agents.models.openai_chat import ChatProtocol
from agenteval_tui.agents.models.openai_options import OpenAIOptions
from agenteval_tui.agents.models.openai_responses import ResponsesProtocol
from agenteval_tui.agents.models.stream import ModelProtocol
from agenteval_tui.agents.usage import read_usage
from agenteval_tui.transcripts.model import ErrorCode


class OpenAIChatAgent(ModelAgent[OpenAIOptions]):
    """Talks to a server of OpenAI's kind. `api: responses` speaks the Responses API. It is an embedder, too: of any
    server that has OpenAI's `/embeddings`, such as Ollama, vLLM, LM Studio, LiteLLM."""

    options_model = OpenAIOptions
    usual_address = " (it usually ends with /v1)"

    def _protocol(self, options: OpenAIOptions) -> ModelProtocol:
        if options.api == "responses":
            return ResponsesProtocol(options)
        return ChatProtocol(options)

    async def embed(self, text: str) -> Embedding | Failed:
        """The vector of a text, from the server's `/embeddings`."""
        try:
            wire = self._wire(self._options)
        except NoWayError as missing:
            return missing.failed
        body = {"model": self._options.model, "input": text, **self._options.extra_body}
        answer, failed = await wire.post("embeddings", body)
        if failed is not None:
            return failed
        try:
            vector = tuple(float(number) for number in answer["data"][0]["embedding"])
        except (KeyError, IndexError, TypeError, ValueError):
            message = f"{wire.server.url} sent no embedding"
            return wire.server.failed(
                "protocol", ErrorCode.NO_EMBEDDING, message, "check `base_url`, and that `model` is one for embeddings"
            )
        used, model = read_usage(answer.get("usage")), answer.get("model")
        return Embedding(
            vector,
            model if isinstance(model, str) else self._options.model,
            usage=used if used.input_tokens is None else replace(used, output_tokens=0),
        )
