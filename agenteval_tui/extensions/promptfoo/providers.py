"""promptfoo's providers as agents of a suite: models of OpenAI, Anthropic, Google and Ollama, and HTTP endpoints.

Source: promptfoo, site/docs/providers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from agenteval_tui.agents.registry import option_problems
from agenteval_tui.core.ids import free_name
from agenteval_tui.formats.importers.message_formats import as_object, plain_text
from agenteval_tui.suites.slugs import slug
from agenteval_tui.suites.templates import is_template

_OPTIONS = {
    "temperature": "temperature",
    "max_tokens": "max_tokens",
    "max_completion_tokens": "max_completion_tokens",
    "top_p": "top_p",
    "top_k": "top_k",
    "seed": "seed",
    "stop": "stop",
    "response_format": "response_format",
    "reasoning_effort": "reasoning_effort",
    "apiBaseUrl": "base_url",
    "apiKeyEnvar": "api_key_env",
    "headers": "headers",
}
_TAKEN = {
    "openai": frozenset(_OPTIONS.values()) - {"top_k"},
    "anthropic": frozenset(("temperature", "max_tokens", "top_p", "top_k", "base_url", "api_key_env", "headers")),
    "gemini": frozenset(("temperature", "max_tokens", "top_p", "top_k", "seed", "base_url", "api_key_env", "headers")),
}
"""The options that each kind of agent has, by our names."""
_OLLAMA = "http://127.0.0.1:11434/v1"
_PATH = re.compile(r"(?:json|\(?json\)?)((?:\??\.[A-Za-z_]\w*|\[\d+\])+)")
_VARIABLE = re.compile(r"\{\{\s*([A-Za-z_]\w*(?:\.\w+)*)\s*(\|\s*dump\s*)?\}\}")
_OF_ENVIRONMENT = re.compile(r"\{\{\s*env\.([A-Za-z_]\w*)\s*\}\}")
_TRANSLATED = ("id", "label", "config")


class _NotTranslatedError(Exception):
    """A key of a provider, or of its `config`, that has no counterpart."""


class Providers:
    """The agents that a configuration's providers become. `note` is told what could not be translated."""

    def __init__(self, note: Callable[[str], None]) -> None:
        self._note = note
        self.agents: dict[str, dict[str, Any]] = {}

    def agent(self, written: Any) -> str:
        """The name of the agent for a provider, as the configuration has it; "" for one that has no counterpart."""
        provider = {"id": written} if isinstance(written, str) else written
        if not isinstance(provider, Mapping):
            return ""
        if "id" not in provider and len(provider) == 1:  # {"openai:gpt-4o": {"config": ...}}
            [(key, value)] = provider.items()
            provider = {"id": key, **as_object(value)}
        provider_id = plain_text(provider.get("id"))
        options = provider.get("config")
        config: Mapping[str, Any] = as_object(options)
        left_out = [str(key) for key in provider if key not in _TRANSLATED]
        try:
            agent_config = _endpoint(provider_id, config) if provider_id.startswith("http") else _model(provider_id)
            # Those of an endpoint are read as a whole: with one left out it would be another request.
            if agent_config["kind"] != "http":
                left_out += _add_options(agent_config, config)
            _check(agent_config)
        except _NotTranslatedError as error:
            because = f" (`{error}`)" if str(error) else ""
            self._note(
                f"the provider {provider_id[:80]} is not translated{because}: name the agent as `agent:` or with "
                "--agent"
            )
            return ""
        if left_out:
            keys = ", ".join(f"`{key}`" for key in left_out)
            are = "is" if len(left_out) == 1 else "are"
            self._note(f"{keys} of the provider {provider_id[:80]} {are} not translated")
        # Those that differ only in what is not translated are one agent: it would be asked the same twice.
        if same := next((name for name, agent in self.agents.items() if agent == agent_config), ""):
            return same
        name = slug(plain_text(provider.get("label")) or str(agent_config.get("model") or "endpoint")) or "agent"
        name = free_name(name, self.agents.__contains__)
        self.agents[name] = agent_config
        return name


def _model(provider_id: str) -> dict[str, Any]:
    vendor, _, rest = provider_id.partition(":")
    way, _, model = rest.partition(":")
    agent: dict[str, Any]
    if vendor == "openai" and (way in ("chat", "responses", "embedding", "embeddings") or not model):
        agent = {"kind": "openai", "model": model or way}
        if way == "responses":
            agent["api"] = "responses"
    elif vendor == "anthropic" and (way == "messages" or not model):
        agent = {"kind": "anthropic", "model": model or way}
    elif vendor == "google":
        agent = {"kind": "gemini", "model": rest}
    elif vendor == "ollama" and (way in ("chat", "completion") or not model):
        agent = {"kind": "openai", "base_url": _OLLAMA, "model": model or way}
    elif vendor == "ollama" and way not in ("embeddings",):
        agent = {"kind": "openai", "base_url": _OLLAMA, "model": rest}
    else:
        raise _NotTranslatedError
    return agent | {"model": _own_templates(agent["model"], variables=False)}


def _add_options(agent: dict[str, Any], config: Mapping[str, Any]) -> list[str]:
    """Add the options of a model that agents have, too. The keys of the others."""
    left_out = []
    for key, value in config.items():
        option = _OPTIONS.get(str(key), "")
        variable = _OF_ENVIRONMENT.fullmatch(value) if key == "apiKey" and isinstance(value, str) else None
        try:
            if variable:
                _check(agent | {"api_key_env": variable[1]})
                agent["api_key_env"] = variable[1]
            elif value is not None:
                if option not in _TAKEN[agent["kind"]]:
                    raise _NotTranslatedError
                own_value = _own_templates(value, variables=False)
                # One by one, so that an option that an agent refuses costs only itself.
                _check(agent | {option: own_value})
                agent[option] = own_value
        except _NotTranslatedError:
            left_out.append(str(key))
    return left_out


def _check(agent: Mapping[str, Any]) -> None:
    if problems := option_problems("", agent, as_written=True):
        raise _NotTranslatedError(problems[0][0])


def _endpoint(provider_id: str, config: Mapping[str, Any]) -> dict[str, Any]:
    texts = {"headers": "headers", "queryParams": "query"}
    answer = _answer(config.get("transformResponse") or config.get("responseParser"))
    read_keys = {"url", "method", "body", "transformResponse", "responseParser", *texts}
    if unknown := next((str(key) for key in config if key not in read_keys), ""):
        raise _NotTranslatedError(unknown)
    method, body = plain_text(config.get("method") or "POST").upper(), config.get("body")
    agent: dict[str, Any] = {"kind": "http", "url": _own_templates(config.get("url") or provider_id)}
    if method != "POST":
        agent["method"] = method
    for key, option in texts.items():
        if isinstance(value := config.get(key), Mapping):
            agent[option] = {str(name): _own_templates(plain_text(text)) for name, text in value.items()}
    if body is not None or method == "GET":
        agent["body"] = _own_templates(body)
    if answer:
        agent["answer"] = answer
    return agent


def _answer(code: Any) -> str:
    """The JMESPath of `json.reply.text`; "" without one."""
    if not code:
        return ""
    path = _PATH.fullmatch(code.strip()) if isinstance(code, str) else None
    if path is None:
        raise _NotTranslatedError("transformResponse")
    # In JMESPath, what is not there is null without `?`.
    return path[1].replace("?", "").lstrip(".")


def _own_templates(value: object, *, variables: bool = True, in_object: bool = False) -> object:
    """A value of `config` with its templates as an agent has them: the environment's variables, and where the agent
    gets the test's `variables`, those. `in_object`: a text that is a single template keeps the variable's type."""
    if isinstance(value, Mapping):
        return {str(key): _own_templates(item, variables=variables, in_object=True) for key, item in value.items()}
    if isinstance(value, list):
        return [_own_templates(item, variables=variables, in_object=True) for item in value]
    if not isinstance(value, str):
        return value

    def own(match: re.Match[str]) -> str:
        name, dump = match.groups()
        if name.startswith("env.") and name.count(".") == 1 and not dump:
            return f"${{{name[4:]}}}"
        if not variables or name.startswith("env.") or (dump and in_object and match[0] != value):
            raise _NotTranslatedError(match[0])
        own_name = name if name == "prompt" else f"variables.{name}"
        return f"{{{{ {own_name} | tojson }}}}" if dump and not in_object else f"{{{{ {own_name} }}}}"

    if is_template(_VARIABLE.sub("", value)):
        raise _NotTranslatedError(value[:80])
    # What promptfoo does not read, a suite would: `${` is a variable of the environment there.
    return _VARIABLE.sub(own, value.replace("${", "$${"))
