"""The kind `litellm` as far as it needs no litellm: its options, the trust that it needs, and how it is refused."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest

from agenteval_tui.agents.key_destinations import sends_keys
from agenteval_tui.agents.models import litellm
from agenteval_tui.agents.models.litellm_options import LiteLLMOptions
from agenteval_tui.agents.permission import NotTrustedError, permission_for
from agenteval_tui.agents.registry import make_agent, option_problems
from agenteval_tui.agents.secrets import secrets_of
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.suites.trust import Sending

GROQ = {"kind": "litellm", "model": "groq/m"}


def test_without_the_package_a_sentence_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        litellm, "find_spec", lambda name: None if name == "litellm" else importlib.util.find_spec(name)
    )
    with pytest.raises(AgentevalError, match="agents of kind 'litellm' need the package litellm") as error:
        make_agent("a", GROQ, base_dir=tmp_path, env={}, permission=permission_for((), everything=True))
    assert error.value.fix == "pip install 'agenteval-tui[litellm]'"
    assert "litellm" not in sys.modules


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"base_url": "ftp://x"}, "must begin with http"),
        ({"base_url": "https://x?api-version=1"}, "put `api_version` and the like into `params`"),
        ({"query": {"a": "b"}}, "into `params`"),
        ({"params": {"api_key": "sk-1"}}, "with `api_key_env`"),
        ({"params": {"api_base": "https://evil.test"}}, "use `base_url`"),
        ({"params": {"fallbacks": ["openai/x"]}}, "answered by another model"),
        ({"params": {"num_retries": 3}}, "use `max_attempts`"),
        ({"params": {"temperature": 3}}, "a separate option"),
        ({"api_key_env": "sk-abc-def"}, "not the key itself"),
        ({"model": ""}, "model"),
        ({"params": {"api_version": "2024-02-01", "aws_region_name": "eu-west-1", "mock_response": "x"}}, ""),
        ({"base_url": "http://127.0.0.1:4000", "headers": {"x": "y"}}, ""),
    ],
)
def test_options(options: dict[str, Any], said: str) -> None:
    problems = option_problems("a", {**GROQ, **options})
    assert said in " ".join(message for _, message in problems)
    assert bool(problems) is bool(said)


def test_what_is_asked_of_litellm() -> None:
    options = LiteLLMOptions(
        kind="litellm", model="azure/m", seed="run", top_p=0.5, tool_choice="required", headers={"a": "b"},
        extra_body={"x": 1}, params={"api_version": "1"},
    )  # fmt: skip
    body = options.chat_body([], [{"type": "function"}], 7)
    assert body == {
        "model": "azure/m", "messages": [], "top_p": 0.5, "tool_choice": "required", "seed": 7, "stream": True,
        "tools": [{"type": "function"}], "stream_options": {"include_usage": True}, "extra_headers": {"a": "b"},
        "extra_body": {"x": 1}, "api_version": "1",
    }  # fmt: skip
    assert "tool_choice" not in options.chat_body([], [], 7)


def test_a_suites_agent_needs_trust(tmp_path: Path) -> None:
    asks = Sending("the keys that litellm finds", "groq (through litellm)")
    assert sends_keys(GROQ, tmp_path, {}) == (asks,)
    evil = {**GROQ, "base_url": "https://evil.test", "api_key_env": "OPENAI_API_KEY"}
    assert sends_keys(evil, tmp_path, {}) == (
        Sending("the keys that litellm finds", "https://evil.test"),
        Sending("OPENAI_API_KEY", "evil.test"),
    )
    with pytest.raises(NotTrustedError, match="through litellm"):
        make_agent("a", GROQ, base_dir=tmp_path, env={}, permission=permission_for(()))


def test_all_keys_of_the_environment_are_secrets() -> None:
    env = {"MISTRAL_API_KEY": "very-secret-key", "HOME": "/home/somebody"}
    assert secrets_of(GROQ, env) == ("very-secret-key",)
