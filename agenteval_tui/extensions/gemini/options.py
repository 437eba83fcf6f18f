"""The options of the kind `gemini`."""

from __future__ import annotations

from typing import Any, Literal, Self

from pydantic import Field

from agenteval_tui.agents.network_options import ModelOptions

GEMINI = "https://generativelanguage.googleapis.com"
_CHOICES = {"auto": "AUTO", "any": "ANY", "required": "ANY", "none": "NONE"}
# Option -> its name in `generationConfig`.
_SAMPLING = {
    "max_tokens": "maxOutputTokens",
    "temperature": "temperature",
    "top_p": "topP",
    "top_k": "topK",
    "response_mime_type": "responseMimeType",
    "stop_sequences": "stopSequences",
}


class GeminiOptions(ModelOptions):
    """A server that speaks the Gemini API: Google, or a gateway."""

    base_url: str = Field(GEMINI, description="Where the server is; `/v1beta/models/...` is added.")
    max_tokens: int | None = Field(
        None, ge=1, description="How long an answer may be, in tokens, thinking included. Default: the server decides."
    )
    temperature: float | None = Field(
        None, ge=0, le=2, description="The sampling temperature: how random the choice of words is."
    )
    top_p: float | None = Field(
        None, ge=0, le=1, description="Nucleus sampling: only the likeliest words that together have this probability."
    )
    top_k: int | None = Field(None, ge=1, description="Sample from this many of the likeliest words only.")
    stop_sequences: list[str] | None = Field(None, description="Texts that end the answer.")
    seed: int | Literal["run"] | None = Field(
        None, description='A seed for sampling; "run": another seed for each run.'
    )
    thinking_budget: int | None = Field(
        None, ge=-1, description="How many tokens the model may think; 0: none, -1: the model decides."
    )
    thinking_level: Literal["minimal", "low", "medium", "high"] | None = Field(
        None, description="How much newer models think."
    )
    include_thoughts: bool | None = Field(None, description="true: ask for a summary of the thinking.")
    response_mime_type: str | None = Field(None, description="The form of the answer: `application/json` for JSON.")
    tool_choice: str | None = Field(None, description="auto, any, none, or the name of the tool that must be called.")

    @property
    def url(self) -> str:
        """The address as it is configured, whether with the version at its end or without."""
        return super().url.removesuffix("/v1beta").removesuffix("/v1")

    @property
    def key_env(self) -> str:
        return self.api_key_env or ("GEMINI_API_KEY" if self.url == GEMINI else "")

    def key_headers(self, key: str) -> dict[str, str]:
        return {"x-goog-api-key": key} if key else {}

    def limited(self, tokens: int | None) -> Self:
        limits = {"max_tokens": tokens, "thinking_budget": None, "thinking_level": None, "include_thoughts": None}
        return self.model_copy(update=limits)

    @property
    def path(self) -> str:
        """What is added to the address for an answer."""
        model = self.model if "/" in self.model else f"models/{self.model}"
        return f"v1beta/{model}:" + ("streamGenerateContent?alt=sse" if self.stream else "generateContent")

    def body(
        self, system: str, contents: list[dict[str, Any]], tools: list[dict[str, Any]], seed: int
    ) -> dict[str, Any]:
        """The request's JSON."""
        sent: dict[str, Any] = {"contents": contents}
        if system:
            sent["systemInstruction"] = {"parts": [{"text": system}]}
        if tools:
            sent["tools"] = [{"functionDeclarations": tools}]
            if self.tool_choice is not None:
                sent["toolConfig"] = {"functionCallingConfig": self._tool_choice(self.tool_choice)}
        config = {theirs: getattr(self, ours) for ours, theirs in _SAMPLING.items() if getattr(self, ours) is not None}
        if self.seed is not None:
            config["seed"] = seed & 0x7FFF_FFFF if self.seed == "run" else self.seed  # the API takes 32 bits
        thinking = {
            "thinkingBudget": self.thinking_budget,
            "thinkingLevel": self.thinking_level,
            "includeThoughts": self.include_thoughts,
        }
        thinking = {name: value for name, value in thinking.items() if value is not None}
        if thinking:
            config["thinkingConfig"] = thinking
        if config:
            sent["generationConfig"] = config
        return {**sent, **self.extra_body}

    def _tool_choice(self, choice: str) -> dict[str, Any]:
        if choice in _CHOICES:
            return {"mode": _CHOICES[choice]}
        return {"mode": "ANY", "allowedFunctionNames": [choice]}
