"""promptfoo's providers as agents: each key becomes an option or is told, and `validate` accepts what is written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agenteval_tui.analysis.lint import check_suites
from agenteval_tui.cli.main import main
from agenteval_tui.extensions.promptfoo.providers import Providers

URL = "http://127.0.0.1:9/chat"


def translated(provider: Any) -> tuple[dict[str, Any] | None, list[str]]:
    """The agent without its kind, and the notes."""
    notes: list[str] = []
    providers = Providers(notes.append)
    name = providers.agent(provider)
    agent = providers.agents.get(name)
    return agent and {key: value for key, value in agent.items() if key != "kind"}, notes


def http(**config: Any) -> dict[str, Any]:
    return {"id": "http", "config": {"url": URL, **config}}


@pytest.mark.parametrize(
    ("provider", "options", "left_out"),
    [
        ({"id": "openai:small", "config": {"temperature": 0, "seed": None}}, {"temperature": 0}, ()),
        ({"id": "openai:small", "config": {"tools": [], "tool_choice": "auto"}}, {}, ("tools", "tool_choice")),
        ({"id": "openai:small", "config": {"systemPrompt": "Be brief"}}, {}, ("systemPrompt",)),
        ({"id": "openai:small", "config": {"apiKey": "sk-1"}}, {}, ("apiKey",)),
        ({"id": "openai:small", "config": {"apiKey": "{{ env.SHOP_KEY }}"}}, {"api_key_env": "SHOP_KEY"}, ()),
        ({"id": "openai:small", "transform": "output.x", "prompts": ["a"]}, {}, ("transform", "prompts")),
        ({"openai:small": {"label": "mine", "delay": 100}}, {}, ("delay",)),
        ({"id": "openai:small", "config": {"temperature": "0.5"}}, {}, ("temperature",)),
        ({"id": "openai:small", "config": {"headers": {"x-n": 1}, "top_p": 1}}, {"top_p": 1}, ("headers",)),
        ({"id": "openai:small", "config": {"headers": {"x": "{{ user }}"}}}, {}, ("headers",)),
        (
            {"id": "openai:small", "config": {"headers": {"x": "k {{env.K}}"}, "apiBaseUrl": "{{env.BASE}}/v1"}},
            {"headers": {"x": "k ${K}"}, "base_url": "${BASE}/v1"},
            (),
        ),
        ({"id": "anthropic:small", "config": {"seed": 1, "max_tokens": 2}}, {"max_tokens": 2}, ("seed",)),
    ],
)
def test_an_option_of_a_model_is_translated_or_told(
    provider: Any, options: dict[str, Any], left_out: tuple[str, ...]
) -> None:
    agent, notes = translated(provider)
    assert agent == {"model": "small", **options}
    assert [key for key in left_out if not any(f"`{key}`" in note for note in notes)] == []
    assert len(notes) == bool(left_out)


@pytest.mark.parametrize(
    ("config", "options"),
    [
        ({"headers": {"Authorization": "Bearer {{env.TOKEN}}"}}, {"headers": {"Authorization": "Bearer ${TOKEN}"}}),
        ({"headers": {"x-u": "{{user.id}}", "x-n": 5}}, {"headers": {"x-u": "{{ variables.user.id }}", "x-n": "5"}}),
        ({"url": "{{env.BASE}}/chat/{{ user }}"}, {"url": "${BASE}/chat/{{ variables.user }}"}),
        ({"queryParams": {"q": "{{ prompt }}", "v": 1}}, {"query": {"q": "{{ prompt }}", "v": "1"}}),
        ({"body": {"q": "{{ prompt | dump }}", "m": [{"x": "{{x|dump}}"}]}},
         {"body": {"q": "{{ prompt }}", "m": [{"x": "{{ variables.x }}"}]}}),
        ({"body": '{"q": {{prompt|dump}}, "k": "{{env.K}}"}'}, {"body": '{"q": {{ prompt | tojson }}, "k": "${K}"}'}),
        ({"body": {"q": "costs ${n}", "n": 1}}, {"body": {"q": "costs $${n}", "n": 1}}),
        ({"method": "get"}, {"method": "GET", "body": None}),
    ],
)  # fmt: skip
def test_templates_of_an_endpoint_are_its_own(config: dict[str, Any], options: dict[str, Any]) -> None:
    agent, notes = translated(http(**config))
    assert agent == {"url": URL, **options}
    assert notes == []


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        ({"auth": {"type": "bearer"}}, "auth"),
        ({"body": {"q": "{{ prompt | upper }}"}}, "{{ prompt | upper }}"),
        ({"body": {"q": "say {{ prompt | dump }}"}}, "{{ prompt | dump }}"),
        ({"body": "{% if prompt %}x{% endif %}"}, "{% if prompt %}x{% endif %}"),
        ({"headers": {"x": "{{ env }}"}}, None),
        ({"url": 5}, "url"),
        ({"url": "http://{{ host }}/chat"}, ""),
        ({"method": "DELETE"}, "method"),
        ({"transformResponse": "file://read.js"}, "transformResponse"),
    ],
)
def test_an_endpoint_that_can_not_be_asked_the_same_way_is_told(config: dict[str, Any], reason: str | None) -> None:
    agent, notes = translated(http(**config))
    if reason is None:  # a variable of the test that is called env
        assert agent is not None
        return
    assert agent is None
    because = f" (`{reason}`)" if reason else ""
    assert notes == [f"the provider http is not translated{because}: name the agent as `agent:` or with --agent"]


def test_validate_accepts_what_an_import_writes(tmp_path: Path) -> None:
    config = tmp_path / "promptfooconfig.json"
    providers = [
        http(
            headers={"Authorization": "Bearer {{env.TOKEN}}", "x-n": 1}, body={"q": "{{prompt | dump}}", "w": "{{who}}"}
        ),
        {"id": "openai:gpt", "config": {"temperature": "1", "stop": 5, "max_tokens": "{{ env.MOST }}", "headers": []}},
        {"id": "google:", "config": {}},
        {"id": "google:g", "config": {"top_k": 1.5, "headers": {"a": "{{ env.A }}"}}},
    ]
    tests = [{"vars": {"who": "Ada"}, "assert": [{"type": "equals", "value": "x"}]}]
    config.write_text(json.dumps({"prompts": ["Hi {{who}}"], "providers": providers, "tests": tests}))
    suite = tmp_path / "s.suite.yaml"
    assert main(["import", str(config), "--to", str(suite)], launch_app=lambda start: 0) == 0
    loaded, problems = check_suites([suite])
    assert [problem for problem in problems if problem.severity == "error"] == []
    assert loaded[0].suite is not None
    assert len(loaded[0].suite.agents) == 3


def test_a_model_that_the_environment_names() -> None:
    assert translated("openai:chat:{{env.LLM_MODEL}}") == ({"model": "${LLM_MODEL}"}, [])
    agent, notes = translated("openai:chat:{{model}}")
    assert agent is None
    assert "{{model}}" in notes[0]
