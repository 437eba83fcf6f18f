"""The options of the kind `litellm`, and where litellm sends the keys that it finds in the environment."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Self

from pydantic import ConfigDict, Field, JsonValue, model_validator

from agenteval_tui.agents.network_options import KEY_RULE, ModelOptions
from agenteval_tui.core.json_values import texts_in
from agenteval_tui.suites.trust import Sending

_SAMPLING = (
    *("temperature", "top_p", "max_tokens", "stop", "response_format", "reasoning_effort"),
    *("tool_choice", "parallel_tool_calls"),
)
# Arguments of `litellm.acompletion` that have an option of their own, or are none of a suite's business.
_NOT_PARAMS = {
    "api_key": "name the key's environment variable with `api_key_env`",
    "api_base": "use `base_url`",
    "base_url": "use the option `base_url`",
    "model": "use the option `model`",
    "messages": "they come from the test",
    "tools": "use the option `tools`",
    "stream": "use the option `stream`",
    "extra_headers": "use `headers`",
    "timeout": "use `timeouts`",
    "num_retries": "use `max_attempts`",
    "max_retries": "use `max_attempts`",
    "fallbacks": "a run must not be answered by another model: make an agent of each",
    **dict.fromkeys(_SAMPLING, "it is a separate option"),
    "seed": "it is a separate option",
}


class LiteLLMOptions(ModelOptions):
    """A model of any provider that the package litellm knows."""

    # As other models have it, but for the address, which may be left out.
    model_config = ConfigDict(
        json_schema_extra={
            "allOf": [
                KEY_RULE,
                {
                    "properties": {
                        "base_url": {"pattern": r"^(https?://[^?]*)?$"},
                        "query": {"maxProperties": 0},
                        "params": {"propertyNames": {"not": {"enum": list[JsonValue](sorted(_NOT_PARAMS))}}},
                    }
                },
            ]
        }
    )

    model: str = Field(min_length=1, description="litellm's name, PROVIDER/MODEL: groq/llama-3.3-70b-versatile.")
    base_url: str = Field("", description="The server's address. Default: the address that litellm knows.")
    temperature: float | None = Field(
        None, ge=0, description="The sampling temperature: how random the choice of words is."
    )
    top_p: float | None = Field(
        None, ge=0, le=1, description="Nucleus sampling: only the likeliest words that together have this probability."
    )
    max_tokens: int | None = Field(None, ge=1, description="How long an answer may be, in tokens.")
    stop: str | list[str] | None = Field(None, description="Texts that end the answer.")
    seed: int | Literal["run"] | None = Field(
        None, description='A seed for sampling; "run": another seed for each run.'
    )
    response_format: dict[str, Any] | None = Field(None, description="The form of the answer, such as a JSON Schema.")
    reasoning_effort: str | None = Field(None, description="How much to think: low, medium, high, ...")
    tool_choice: str | dict[str, Any] | None = Field(None, description="auto, none, required, or one tool.")
    parallel_tool_calls: bool | None = Field(None, description="Whether the model may call several tools in one turn.")
    params: dict[str, Any] = Field(
        default_factory=dict,
        description="More arguments for `litellm.acompletion`, such as `api_version` or `aws_region_name`.",
    )

    @model_validator(mode="after")
    def _right_address(self) -> Self:
        if self.base_url and not self.base_url.startswith(("http://", "https://")):
            raise ValueError(f"`base_url` must begin with http:// or https://, not {self.base_url[:60]!r}")
        if "?" in self.base_url or self.query:
            raise ValueError("litellm takes no parameters of an address: put `api_version` and the like into `params`")
        return self

    @model_validator(mode="after")
    def _only_other_arguments(self) -> Self:
        for name, remedy in _NOT_PARAMS.items():
            if name in self.params:
                raise ValueError(f"`params` can't hold `{name}`: {remedy}")
        return self

    def limited(self, tokens: int | None) -> Self:
        return self.model_copy(update={"max_tokens": tokens})

    def chat_body(self, messages: list[dict[str, Any]], tools: list[dict[str, Any]], seed: int) -> dict[str, Any]:
        """The arguments of `litellm.acompletion` that make up a request, in the words of Chat Completions."""
        sent: dict[str, Any] = {"model": self.model, "messages": messages}
        sent.update({name: value for name in _SAMPLING if (value := getattr(self, name)) is not None})
        if self.seed is not None:
            sent["seed"] = seed if self.seed == "run" else self.seed
        if tools:
            sent["tools"] = tools
        else:
            sent.pop("tool_choice", None)
            sent.pop("parallel_tool_calls", None)
        if self.stream:
            sent.update(stream=True, stream_options={"include_usage": True})
        if self.headers:
            sent["extra_headers"] = self.headers
        if self.extra_body:
            sent["extra_body"] = self.extra_body
        return {**sent, **self.params}


def destination(config: Mapping[str, Any]) -> Sending:
    """What an agent of kind `litellm` sends of the user's own: to an address, which may be in the model's name, or to a
    provider."""
    model = str(config.get("model", ""))
    provider, slash, rest = model.partition("/")
    names_provider = slash and not any(sign in model for sign in ("${", "://")) and rest
    # Parameters can name an address, too (`api_base`).
    more = [text for text in texts_in(config.get("params")) if "://" in text or "${" in text]
    place = str(config.get("base_url") or (f"{provider} (through litellm)" if names_provider else f"litellm's {model}"))
    return Sending("the keys that litellm finds", ", ".join((place, *more)))
