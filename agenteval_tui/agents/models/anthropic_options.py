"""The options of the kind `anthropic`."""

from __future__ import annotations

from typing import Any, Literal, Self

from pydantic import ConfigDict, Field, model_validator

from agenteval_tui.agents.network_options import MODEL_RULES, ModelOptions
from agenteval_tui.core.schema_rules import given, where, without

ANTHROPIC = "https://api.anthropic.com"
_CHOICES = {"auto": "auto", "any": "any", "required": "any", "none": "none"}


class AnthropicOptions(ModelOptions):
    """A server that speaks the Messages API: Anthropic, or a gateway."""

    model_config = ConfigDict(
        json_schema_extra={
            "allOf": [
                *MODEL_RULES,
                where(
                    given("thinking_budget"),
                    {
                        "allOf": [
                            without("thinking", why="give `thinking_budget` or `thinking`, not both"),
                            without("top_k", why="it can't be set when the model thinks"),
                            {
                                "properties": {
                                    "temperature": {"enum": [None, 1]},
                                    "tool_choice": where({"type": "string"}, {"enum": ["auto", "none"]}),
                                }
                            },
                            where(
                                {"not": {"required": ["max_tokens"]}},
                                {"properties": {"thinking_budget": {"exclusiveMaximum": 4096}}},
                            ),
                        ]
                    },
                ),
            ]
        }
    )

    base_url: str = Field(ANTHROPIC, description="Where the server is; `/v1/messages` is added.")
    max_tokens: int = Field(4096, ge=1, description="How long an answer may be, in tokens, thinking included.")
    temperature: float | None = Field(
        None, ge=0, le=1, description="The sampling temperature: how random the choice of words is."
    )
    top_p: float | None = Field(
        None, ge=0, le=1, description="Nucleus sampling: only the likeliest words that together have this probability."
    )
    top_k: int | None = Field(None, ge=1, description="Sample from this many of the likeliest words only.")
    stop_sequences: list[str] | None = Field(None, description="Texts that end the answer.")
    thinking_budget: int | None = Field(
        None, ge=1024, description="Let the model think with at most this many tokens; must be less than `max_tokens`."
    )
    thinking: Literal["adaptive", "disabled"] | None = Field(
        None, description="adaptive: newer models decide how much to think."
    )
    effort: str | None = Field(None, description="How much to think and write: low, medium, high, ...")
    tool_choice: str | dict[str, Any] | None = Field(
        None, description="auto, any, none, or the name of the tool that must be called."
    )
    parallel_tool_calls: bool | None = Field(None, description="Whether the model may call several tools in one turn.")
    version: str = Field("2023-06-01", description="The header `anthropic-version`.")
    betas: list[str] = Field(default_factory=list, description="The header `anthropic-beta`.")

    @model_validator(mode="after")
    def _thinking_fits(self) -> Self:
        if self.thinking_budget is None:
            return self
        if self.thinking is not None:
            raise ValueError("give `thinking_budget` or `thinking`, not both")
        if self.thinking_budget >= self.max_tokens:
            raise ValueError(
                f"`thinking_budget` ({self.thinking_budget}) must be less than `max_tokens` ({self.max_tokens})"
            )
        if self.top_k is not None or self.temperature not in (None, 1.0):
            raise ValueError("`temperature` and `top_k` can't be set when the model thinks")
        if isinstance(self.tool_choice, str) and self.tool_choice not in ("auto", "none"):
            raise ValueError("a model that thinks cannot be forced to call a tool: set `tool_choice` to auto or none")
        return self

    @property
    def url(self) -> str:
        """The address as it is configured, whether with `/v1` at its end or without."""
        return super().url.removesuffix("/v1")

    @property
    def key_env(self) -> str:
        return self.api_key_env or ("ANTHROPIC_API_KEY" if self.url == ANTHROPIC else "")

    def key_headers(self, key: str) -> dict[str, str]:
        headers = {"anthropic-version": self.version}
        if self.betas:
            headers["anthropic-beta"] = ",".join(self.betas)
        return {**headers, "x-api-key": key} if key else headers

    def limited(self, tokens: int | None) -> Self:
        limits = {"max_tokens": tokens or 4096, "thinking_budget": None, "thinking": None, "effort": None}
        return self.model_copy(update=limits)

    def body(self, system: str, messages: list[dict[str, Any]], tools: list[dict[str, Any]]) -> dict[str, Any]:
        """The request's JSON."""
        sent: dict[str, Any] = {"model": self.model, "max_tokens": self.max_tokens}
        if system:
            sent["system"] = system
        sent["messages"] = messages
        for name in ("temperature", "top_p", "top_k", "stop_sequences"):
            if getattr(self, name) is not None:
                sent[name] = getattr(self, name)
        if self.thinking_budget is not None:
            sent["thinking"] = {"type": "enabled", "budget_tokens": self.thinking_budget}
        elif self.thinking is not None:
            sent["thinking"] = {"type": self.thinking}
        if self.effort is not None:
            sent["output_config"] = {"effort": self.effort}
        if tools:
            sent["tools"] = tools
            choice = self._tool_choice()
            if choice is not None:
                sent["tool_choice"] = choice
        if self.stream:
            sent["stream"] = True
        return {**sent, **self.extra_body}

    def _tool_choice(self) -> dict[str, Any] | None:
        choice: dict[str, Any] | None = None
        if isinstance(self.tool_choice, dict):
            choice = dict(self.tool_choice)
        elif self.tool_choice in _CHOICES:
            choice = {"type": _CHOICES[self.tool_choice]}
        elif self.tool_choice is not None:
            choice = {"type": "tool", "name": self.tool_choice}
        if self.parallel_tool_calls is not None and (choice or {}).get("type") != "none":
            choice = {"type": "auto", **(choice or {}), "disable_parallel_tool_use": not self.parallel_tool_calls}
        return choice
