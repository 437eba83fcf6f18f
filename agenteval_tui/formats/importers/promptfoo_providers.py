"""promptfoo's providers as agents of a suite: models of OpenAI, Anthropic, Google and Ollama, and HTTP endpoints.

Source: promptfoo, site/docs/providers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from agenteval_tui.formats.importers.message_formats import plain_text
from agenteval_tui.suites.slugs import slug

_OPTIONS = {
    "temperature": "temperature", "max_tokens": "max_tokens", "max_completion_tokens": "max_completion_tokens",
    "top_p": "top_p", "top_k": "top_k", "seed": "seed", "stop": "stop", "response_format": "response_format",
    "reasoning_effort": "reasoning_effort", "apiBaseUrl": "base_url", "apiKeyEnvar": "api_key_env",
    "headers": "headers",
}  # fmt: skip
_TAKEN = {
    "openai": frozenset(_OPTIONS.values()) - {"top_k"},
    "anthropic": frozenset(("temperature", "max_tokens", "top_p", "top_k", "base_url", "api_key_env", "headers")),
    "gemini": frozenset(("temperature", "max_tokens", "top_p", "top_k", "seed", "base_url", "api_key_env", "headers")),
}
"""The options that each kind of agent has, by our names."""
_OLLAMA = "http://127.0.0.1:11434/v1"
_PATH = re.compile(r"(?:json|\(?json\)?)((?:\??\.[A-Za-z_]\w*|\[\d+\])+)")


class Providers:
    """The agents that a configuration's providers become. `note` is told what could not be translated."""

    def __init__(self, note: Callable[[str], None]) -> None:
        self._note = note
        self.agents: dict[str, dict[str, Any]] = {}

    def agent(self, given: Any, *, name: str = "") -> str:
        """The name of the agent for a provider; "" for one that has no counterpart. `name`: what to call it."""
        one = {"id": given} if isinstance(given, str) else given
        if not isinstance(one, Mapping):
            return ""
        if "id" not in one and len(one) == 1:  # {"openai:gpt-4o": {"config": ...}}
            [(key, value)] = one.items()
            one = {"id": key, **(value if isinstance(value, Mapping) else {})}
        told = plain_text(one.get("id"))
        options = one.get("config")
        config: Mapping[str, Any] = options if isinstance(options, Mapping) else {}
        made = _endpoint(told, config) if told.startswith("http") else _model(told, config)
        if made is None:
            self._note(f"the provider {told[:80]} is not translated: name the agent as `agent:` or with --agent")
            return ""
        same = next((known for known, agent in self.agents.items() if agent == made), "")
        if same and not name:
            return same
        wanted = name or slug(plain_text(one.get("label")) or str(made.get("model") or "endpoint")) or "agent"
        free, number = wanted, 1
        while free in self.agents:
            number += 1
            free = f"{wanted}-{number}"
        self.agents[free] = made
        return free


def _model(told: str, config: Mapping[str, Any]) -> dict[str, Any] | None:
    vendor, _, rest = told.partition(":")
    way, _, model = rest.partition(":")
    made: dict[str, Any]
    if vendor == "openai" and (way in ("chat", "responses", "embedding", "embeddings") or not model):
        made = {"kind": "openai", "model": model or way}
        if way == "responses":
            made["api"] = "responses"
    elif vendor == "anthropic" and (way == "messages" or not model):
        made = {"kind": "anthropic", "model": model or way}
    elif vendor == "google":
        made = {"kind": "gemini", "model": rest}
    elif vendor == "ollama" and (way in ("chat", "completion") or not model):
        made = {"kind": "openai", "base_url": _OLLAMA, "model": model or way}
    elif vendor == "ollama" and way not in ("embeddings",):
        made = {"kind": "openai", "base_url": _OLLAMA, "model": rest}
    else:
        return None
    if not made["model"]:
        return None
    for key, value in config.items():
        option = _OPTIONS.get(str(key))
        if option in _TAKEN[made["kind"]] and value is not None and "{{" not in str(value):
            made[option] = value
    return made


def _endpoint(told: str, config: Mapping[str, Any]) -> dict[str, Any] | None:
    url = config.get("url") or told
    body = config.get("body")
    method = str(config.get("method") or "POST").upper()
    answer = _answer(config.get("transformResponse") or config.get("responseParser"))
    known = {"url", "method", "headers", "body", "transformResponse", "responseParser", "queryParams"}
    if (
        not isinstance(url, str)
        or "://" not in url
        or "{{" in url
        or answer is None
        or not isinstance(body, Mapping | str | None)
        or method not in ("POST", "PUT", "PATCH", "GET")
        or config.keys() - known
    ):
        return None
    made: dict[str, Any] = {"kind": "http", "url": url}
    if method != "POST":
        made["method"] = method
    if isinstance(config.get("headers"), Mapping):
        made["headers"] = dict(config["headers"])
    if isinstance(config.get("queryParams"), Mapping):
        made["query"] = dict(config["queryParams"])
    if body is not None or method == "GET":
        made["body"] = _own_variables(body)
    if answer:
        made["answer"] = answer
    return made


def _answer(code: Any) -> str | None:
    """The JMESPath of `json.reply.text`; "" without one, None for other code."""
    if not code:
        return ""
    found = _PATH.fullmatch(code.strip()) if isinstance(code, str) else None
    return None if found is None else found[1].replace("?", "").lstrip(".")


def _own_variables(value: Any) -> Any:
    """The test's variables have a name of their own in the templates of an endpoint."""
    if isinstance(value, Mapping):
        return {str(key): _own_variables(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_own_variables(one) for one in value]
    if not isinstance(value, str):
        return value
    return re.sub(r"\{\{\s*(?!prompt\s*\}\})([A-Za-z_]\w*)\s*\}\}", r"{{ variables.\1 }}", value)
