"""The kind `litellm` as far as it needs no litellm: its options, the trust that it needs, and how it is refused."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest

from agenteval_tui.agents.base import AgentRequest, OffersTools
from agenteval_tui.agents.http.exported_request import WritesRequests
from agenteval_tui.agents.key_destinations import sends_keys
from agenteval_tui.agents.permission import NotTrustedError, permission_for
from agenteval_tui.agents.registry import is_model, make_agent, option_problems
from agenteval_tui.agents.secrets import secrets_of
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.extensions.litellm import agent as litellm_agent
from agenteval_tui.extensions.litellm.options import LiteLLMOptions
from agenteval_tui.suites.trust import Sending
from agenteval_tui.transcripts.model import Message

GROQ = {"kind": "litellm", "model": "groq/m"}


def test_without_the_package_a_sentence_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        litellm_agent, "find_spec", lambda name: None if name == "litellm" else importlib.util.find_spec(name)
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


@pytest.mark.parametrize(
    ("options", "place"),
    [
        ({"model": "groq/llama"}, "groq (through litellm)"),
        ({"model": "openai/m", "base_url": "https://evil.test"}, "https://evil.test"),
        (
            {"model": "openai/m", "params": {"api_base": "https://evil.test"}},
            "openai (through litellm), https://evil.test",
        ),
        ({"model": "huggingface/https://evil.test"}, "litellm's huggingface/https://evil.test"),
    ],
)
def test_where_keys_would_go(options: dict[str, Any], place: str, tmp_path: Path) -> None:
    assert sends_keys({"kind": "litellm", **options}, tmp_path, {})[0] == Sending("the keys that litellm finds", place)


async def test_it_tells_no_model_of_tools_that_are_taken_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(litellm_agent, "find_spec", lambda name: name)  # nothing is asked: it need not be installed
    tools = [{"name": "get_order", "sample_response": "W1"}, {"name": "cancel_order", "sample_response": "gone"}]
    agent = make_agent(
        "tested", {**GROQ, "tools": tools}, base_dir=tmp_path, env={}, permission=permission_for((), everything=True)
    )
    asked = AgentRequest((Message("user", "hi"),), context={"without_tools": ["cancel_order"]})
    assert isinstance(agent, OffersTools)
    assert [tool.name for tool in await agent.offered_tools(asked)] == ["get_order"]
    assert isinstance(agent, WritesRequests)
    with pytest.raises(AgentevalError, match="asks through litellm, which makes the request itself"):
        await agent.written_request(asked)
    await agent.close()


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


def test_it_is_a_model_on_a_server() -> None:
    assert is_model("litellm")
