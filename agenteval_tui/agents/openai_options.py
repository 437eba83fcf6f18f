"""The options of the kind `openai`."""

from __future__ import annotations

from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from agenteval_tui.agents.options import AgentOptions

OPENAI = "https://api.openai.com/v1"


class Timeouts(BaseModel):
    """Seconds to wait for a server."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    connect: float = Field(default=10.0, gt=0, description="For the connection.")
    first_token: float = Field(
        default=120.0, gt=0, description="For the first piece of an answer, from sending the request."
    )
    silence: float = Field(default=60.0, gt=0, description="Between two pieces of an answer that streams.")


class OpenAIOptions(AgentOptions):
    """A server that speaks Chat Completions: OpenAI, Azure, vLLM, Ollama, LM Studio, llama.cpp, LiteLLM, ..."""

    base_url: str = Field(OPENAI, description="Where the server is; `/chat/completions` is added.")
    model: str = Field(min_length=1, description="The model's name as the server knows it.")
    api_key_env: str | None = Field(None, description="The environment variable that holds the key. Never the key.")
    headers: dict[str, str] = Field(default_factory=dict, description="More HTTP headers.")
    system: str | None = Field(None, description="The system prompt.")
    temperature: float | None = Field(None, ge=0)
    top_p: float | None = Field(None, ge=0, le=1)
    max_tokens: int | None = Field(None, ge=1)
    max_completion_tokens: int | None = Field(None, ge=1)
    stop: str | list[str] | None = None
    seed: int | Literal["run"] | None = Field(None, description='A seed for sampling; "run": its own for each run.')
    response_format: dict[str, Any] | None = None
    reasoning_effort: str | None = None
    tool_choice: str | dict[str, Any] | None = None
    parallel_tool_calls: bool | None = None
    extra_body: dict[str, Any] = Field(default_factory=dict, description="Anything else for the request's JSON.")
    tools: str | list[Any] | None = Field(
        None, description='Mock tools: a list, a YAML file beside the suite, or "builtin:demo-shop".'
    )
    max_steps: int = Field(12, ge=1, description="Requests in one run before its loop of tool calls is an error.")
    stream: bool = Field(True, description="false: one reply instead of a stream.")
    include_usage: bool = Field(True, description="Ask a stream for its usage; false for servers that reject it.")
    timeouts: Timeouts = Timeouts()
    max_reply_mb: float = Field(16.0, gt=0, description="A longer reply is an error.")

    @model_validator(mode="after")
    def _right_address(self) -> Self:
        if not self.base_url.startswith(("http://", "https://")):
            raise ValueError(f"`base_url` must begin with http:// or https://, not {self.base_url[:60]!r}")
        if self.api_key_env is not None and not self.api_key_env.replace("_", "").isalnum():
            raise ValueError("`api_key_env` is the name of an environment variable, not the key itself")
        return self

    def body(self, messages: list[dict[str, Any]], tools: list[dict[str, Any]], seed: int) -> dict[str, Any]:
        """The request's JSON."""
        sent: dict[str, Any] = {"model": self.model, "messages": messages}
        for name in (
            *("temperature", "top_p", "max_tokens", "max_completion_tokens", "stop"),
            *("response_format", "reasoning_effort"),
        ):
            value = getattr(self, name)
            if value is not None:
                sent[name] = value
        if self.seed is not None:
            sent["seed"] = seed if self.seed == "run" else self.seed
        if tools:
            sent["tools"] = tools
            for name in ("tool_choice", "parallel_tool_calls"):
                if getattr(self, name) is not None:
                    sent[name] = getattr(self, name)
        if self.stream:
            sent["stream"] = True
            if self.include_usage:
                sent["stream_options"] = {"include_usage": True}
        return {**sent, **self.extra_body}
