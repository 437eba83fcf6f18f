"""Mock tools: which canned answer fits a call; and how wrong options of agents are said."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agenteval_tui.agents.permission import permission_for
from agenteval_tui.agents.registry import make_agent, option_problems
from agenteval_tui.agents.tools import mock
from agenteval_tui.agents.tools.toolset import make_toolbox, tool_problems
from agenteval_tui.core.errors import AgentevalError

PAIRS = [
    {"arguments": {"city": "Oslo", "unit": "c"}, "response": {"degrees": 4}},
    {"request": "Rome", "response": "warm"},
    {"requests": ["Paris", "Lyon"], "response": "mild"},
    {"request": '{"city": "Bern",  "unit": "f"}', "response": "cold"},
    {"arguments": {"days": 1}, "response": "one day"},
]


@pytest.mark.parametrize(
    ("arguments", "answer"),
    [
        ('{"unit": "c", "city": "Oslo"}', '{"degrees": 4}'),
        ('{"city": "Oslo", "unit": "c", "more": true}', '{"degrees": 4}'),
        ('{"city": "Oslo", "unit": "f"}', "otherwise"),
        ('{"city": "Rome"}', "warm"),
        ('{"city": " Rome ", "unit": "c"}', "warm"),
        ('{"city": "Lyon"}', "mild"),
        ('{"city": "Bern", "unit": "f"}', "cold"),
        ('{"days": 1.0}', "one day"),
        ("{}", "otherwise"),
        ("", "otherwise"),
    ],
)
async def test_the_first_pair_that_fits_answers(arguments: str, answer: str) -> None:
    tool = {"name": "weather", "request_response_pairs": PAIRS, "sample_response": "otherwise"}
    outcome = await make_toolbox([tool], {}, Path()).call("weather", arguments)
    assert (outcome.text, outcome.error) == (answer, False)


@pytest.mark.parametrize(
    ("pair", "arguments", "fits"),
    [
        ({"arguments": {"a": {"b": 1}}}, {"a": {"b": 1, "c": 2}, "d": 3}, True),
        ({"arguments": {"a": {"b": 1}}}, {"a": {"c": 2}}, False),
        ({"arguments": {"a": {"b": 1}}, "exact": True}, {"a": {"b": 1.0}}, True),
        ({"arguments": {"a": {"b": 1}}, "exact": True}, {"a": {"b": 1, "c": 2}}, False),
        ({"arguments": {"a": 1}, "exact": True}, {"a": 1, "b": 1}, False),
        ({"arguments": {"a": True}}, {"a": 1}, False),
        ({"arguments": {"a": 0}}, {"a": False}, False),
        ({"arguments": {"a": None}}, {}, False),
        ({"arguments": {"a": [{"x": 1}]}}, {"a": [{"x": 1, "y": 2}]}, True),
        ({"arguments": {"a": [1]}}, {"a": [1, 2]}, False),
        ({"arguments": {}}, {"anything": 1}, True),
        ({"arguments": {}, "exact": True}, {"anything": 1}, False),
        ({"request": '{"b": 2, "a": {"y": 1, "x": 0}}'}, {"a": {"x": 0, "y": 1}, "b": 2.0}, True),
        ({"request": '{"b": 2}'}, {"a": 1, "b": 2}, False),
        ({"request": "{not json"}, {"a": "{not json"}, True),
        ({"request": "5"}, {"a": 5}, True),
    ],
)
def test_which_call_a_pair_fits(pair: dict[str, Any], arguments: dict[str, Any], fits: bool) -> None:
    assert mock.fits(pair, arguments) is fits


def test_a_pair_that_fits_no_call(tmp_path: Path) -> None:
    with pytest.raises(AgentevalError, match="tool 'f': pair 1 does not say for which call it is"):
        make_toolbox([{"name": "f", "request_response_pairs": [{"response": 1}]}], {}, tmp_path)


async def test_tools_of_the_context_take_the_place_of_the_agents() -> None:
    context = {"sample_tools": {"f": {"sample_response": "new"}, "h": {"request_response_pairs": {"x": "y"}}}}
    box = make_toolbox([{"name": "f", "sample_response": "old"}, {"name": "g"}], context, Path())
    assert [spec.name for spec in box.specs()] == ["f", "g", "h"]
    assert (await box.call("f", "{}")).text == "new"
    assert (await box.call("g", "{}")).error
    assert (await box.call("h", '{"a": "x"}')).text == "y"


def test_arguments_as_power_ui_declares_them_become_a_schema() -> None:
    tool = {"name": "f", "arguments": [{"name": "city", "description": "where"}, "unit"]}
    declared = make_toolbox([tool], {}, Path()).specs()[0].parameters
    assert declared == {"type": "object", "properties": {"city": {"description": "where"}, "unit": {}}}


@pytest.mark.parametrize("tools", [[{"description": "x"}], [{"name": "f", "sample_respnse": 1}], "absent.yaml", [3]])
def test_a_wrong_tool_is_said_when_the_agent_is_made(tools: Any, tmp_path: Path) -> None:
    with pytest.raises(AgentevalError):
        make_agent("a", {"kind": "openai", "model": "m", "tools": tools}, base_dir=tmp_path, env={})


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ({"temprature": 1}, "unknown option `temprature`, did you mean `temperature`?"),
        ({"timeouts": {"conect": 1}}, "unknown option `timeouts.conect`, did you mean `connect`?"),
        ({"tools": 5}, "option `tools` must be string or list, not 5"),
        ({"max_steps": 0}, "option `max_steps` must be greater than or equal to 1, not 0"),
        ({"base_url": "localhost:11434"}, "`base_url` must begin with http:// or https://, not 'localhost:11434'"),
        ({"api_key_env": "sk-abc-123"}, "`api_key_env` is the name of an environment variable, not the key itself"),
        ({"model": ""}, "option `model` must be"),
    ],
)
def test_wrong_options_are_said_with_the_remedy(option: dict[str, Any], said: str) -> None:
    problems = option_problems("a", {"kind": "openai", "model": "m", **option})
    assert len(problems) == 1
    assert said in problems[0][1]
    assert "sk-abc" not in problems[0][1]


def test_the_version_of_the_demo_is_one_of_two() -> None:
    assert option_problems("a", {"kind": "demo", "version": "v3"}) == [
        ("version", "option `version` must be 'v1' or 'v2', not 'v3'")
    ]


def test_a_toolset_that_is_not_there_is_said_and_is_no_file(tmp_path: Path) -> None:
    assert tool_problems({"tools": "builtin:demo-shop"}, tmp_path) == []
    (problem,) = tool_problems({"tools": "builtin:demo-shops"}, tmp_path)
    assert problem == "there is no toolset 'demo-shops' (toolsets: demo-shop)"
    with pytest.raises(AgentevalError, match="there is no toolset 'demo-shops'"):
        make_toolbox("builtin:demo-shops", {}, tmp_path, permission=permission_for((), everything=True))
