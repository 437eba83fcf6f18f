"""The options of the kind `openai`."""

from __future__ import annotations

import re
from typing import Any, Literal, Self

from pydantic import ConfigDict, Field, model_validator

from agenteval_tui.agents.network_options import MODEL_RULES, ModelOptions
from agenteval_tui.core.schema_rules import given, set_to, where, without

OPENAI = "https://api.openai.com/v1"

# What the one protocol has and the other has not.
_CHAT_ONLY = ("stop", "seed", "include_usage")
_RESPONSES_ONLY = ("reasoning_summary", "store", "include")
# Models that think, and whose thinking must be sent back between two calls of tools.
_THINKS = re.compile(r"(?:.*/)?(?:o\d|gpt-[5-9]|gpt-\d\d|codex|computer-use)", re.IGNORECASE)


class OpenAIOptions(ModelOptions):
    """A server that speaks Chat Completions: OpenAI, Azure, vLLM, Ollama, LM Studio, llama.cpp, LiteLLM, ...
    With `api: responses`, one that speaks the Responses API."""

    model_config = ConfigDict(
        json_schema_extra={
            "allOf": [
                *MODEL_RULES,
                where(
                    set_to("api", "responses"),
                    {
                        **without(*_CHAT_ONLY, why="the Responses API has no such option"),
                        "not": given("max_tokens", "max_completion_tokens"),
                    },
                    without(*_RESPONSES_ONLY, why="only `api: responses` has this option"),
                ),
            ]
        }
    )

    base_url: str = Field(OPENAI, description="Where the server is; `/chat/completions` or `/responses` is added.")
    api: Literal["chat", "responses"] = Field("chat", description="Which of the two APIs to speak.")
    api_key_header: str = Field(
        "authorization",
        description="The header that carries the key: `api-key` for Azure. `authorization` adds Bearer.",
    )
    temperature: float | None = Field(
        None, ge=0, description="The sampling temperature: how random the choice of words is."
    )
    top_p: float | None = Field(
        None, ge=0, le=1, description="Nucleus sampling: only the likeliest words that together have this probability."
    )
    max_tokens: int | None = Field(None, ge=1, description="How long an answer may be, in tokens.")
    max_completion_tokens: int | None = Field(
        None, ge=1, description="The same, thinking included; newer OpenAI models need it."
    )
    stop: str | list[str] | None = Field(None, description="Texts that end the answer. Chat Completions only.")
    seed: int | Literal["run"] | None = Field(
        None, description='A seed for sampling; "run": another seed for each run. Chat Completions only.'
    )
    response_format: dict[str, Any] | None = Field(None, description="The form of the answer, such as a JSON Schema.")
    reasoning_effort: str | None = Field(None, description="How much to think: low, medium, high, ...")
    reasoning_summary: Literal["auto", "concise", "detailed"] | None = Field(
        None, description="Ask for a summary of the thinking. Responses only."
    )
    store: bool | None = Field(
        None, description="Whether the server stores the answer; by default it doesn't. Responses only."
    )
    include: list[str] | None = Field(
        None,
        description="What else the reply should contain. Default: the encrypted thinking, for models that think "
        "and answers that aren't stored. Responses only.",
    )
    tool_choice: str | dict[str, Any] | None = Field(None, description="auto, none, required, or one tool.")
    parallel_tool_calls: bool | None = Field(None, description="Whether the model may call several tools in one turn.")
    include_usage: bool = Field(
        True, description="Ask a stream to report its usage; false for servers that reject this. Chat Completions only."
    )

    @model_validator(mode="after")
    def _fits_the_api(self) -> Self:
        wrong = _CHAT_ONLY if self.api == "responses" else _RESPONSES_ONLY
        for name in wrong:
            if name in self.model_fields_set and getattr(self, name) is not None:
                words = "the Responses API has no" if self.api == "responses" else "only `api: responses` has"
                raise ValueError(f"{words} option `{name}`")
        if self.api == "responses" and self.max_tokens is not None and self.max_completion_tokens is not None:
            raise ValueError("the Responses API has one limit: give `max_tokens` or `max_completion_tokens`")
        return self

    @property
    def key_env(self) -> str:
        return self.api_key_env or ("OPENAI_API_KEY" if self.url == OPENAI else "")

    def key_headers(self, key: str) -> dict[str, str]:
        if not key:
            return {}
        name = self.api_key_header.lower()
        return {name: f"Bearer {key}" if name == "authorization" else key}

    def limited(self, tokens: int | None) -> Self:
        return self.model_copy(update={"max_tokens": tokens, "max_completion_tokens": None})

    def chat_body(self, messages: list[dict[str, Any]], tools: list[dict[str, Any]], seed: int) -> dict[str, Any]:
        """The JSON of a request of Chat Completions."""
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

    def responses_body(self, items: list[dict[str, Any]], tools: list[dict[str, Any]]) -> dict[str, Any]:
        """The JSON of a request of the Responses API, where many options have another name or place."""
        sent: dict[str, Any] = {"model": self.model, "input": items, "store": bool(self.store)}
        for name in ("temperature", "top_p"):
            if getattr(self, name) is not None:
                sent[name] = getattr(self, name)
        limit = self.max_completion_tokens or self.max_tokens
        if limit is not None:
            sent["max_output_tokens"] = limit
        if self.response_format is not None:
            sent["text"] = {"format": _flat(self.response_format, "json_schema")}
        thinking = {"effort": self.reasoning_effort, "summary": self.reasoning_summary}
        if any(thinking.values()):
            sent["reasoning"] = {key: value for key, value in thinking.items() if value}
        if self.included:
            sent["include"] = self.included
        if tools:
            sent["tools"] = tools
            if self.tool_choice is not None:
                choice = self.tool_choice
                sent["tool_choice"] = choice if isinstance(choice, str) else _flat(choice, "function")
            if self.parallel_tool_calls is not None:
                sent["parallel_tool_calls"] = self.parallel_tool_calls
        if self.stream:
            sent["stream"] = True
        return {**sent, **self.extra_body}

    @property
    def included(self) -> list[str]:
        """What else a reply of the Responses API shall hold. Models that do not think refuse to be asked for it."""
        if self.include is not None:
            return self.include
        thinks = bool(self.reasoning_effort or self.reasoning_summary or _THINKS.match(self.model))
        return ["reasoning.encrypted_content"] if thinks and not self.store else []


def _flat(value: dict[str, Any], key: str) -> dict[str, Any]:
    """{"type": key, key: {...}} of Chat Completions as {"type": key, ...}, which the Responses API wants."""
    inner = value.get(key)
    return {"type": value.get("type", key), **inner} if isinstance(inner, dict) else value
