"""The rules by which a variation changes a test: page 2 of what people write, rule by rule."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from agenteval_tui.runs.plan.model import RunPlan, StopRule
from agenteval_tui.runs.plan.options import PlanOptions
from agenteval_tui.runs.plan.planner import make_plan
from agenteval_tui.suites.load import LoadedSuite
from agenteval_tui.suites.model import AgentConfig

Varied = Callable[..., list[RunPlan]]

AGENT = {"kind": "scripted", "model": "big", "options": {"temperature": 1, "stop": ["x"]}, "tools": [{"name": "t"}]}
OTHER = {"kind": "scripted", "model": "small", "options": {"top_p": 0.5}}


@pytest.fixture
def varied(suite: Callable[[str], LoadedSuite]) -> Varied:
    """The runs of a test with one variation, both written as JSON (which is YAML)."""

    def made(variation: dict[str, Any], test: dict[str, Any] | None = None, **options: Any) -> list[RunPlan]:
        metric = {"type": "TextMatch", "contains": "a"}
        criterion = {"name": "c", "prototype_class": "TextResponse", "config_uxon": {"metrics": [metric]}}
        text = json.dumps(
            {
                "name": "V",
                "agent": "bot",
                "agents": {"bot": AGENT, "other": OTHER},
                "tests": [
                    {"id": "t", "prompt": "hi", "criteria": [criterion], "variations": [{"name": "v", **variation}]}
                    | (test or {})
                ],
            }
        )
        plan = make_plan([suite(text)], PlanOptions(**options), user_agents={"mine": AgentConfig(kind="scripted")})
        return list(plan.runs)

    return made


def with_(base: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return {**base, **changes}


@pytest.mark.parametrize(
    ("rule", "config", "expected"),
    [
        ("absent inherits", {}, AGENT),
        ("objects merge key by key", {"options": {"temperature": 0}},
         with_(AGENT, options={"temperature": 0, "stop": ["x"]})),
        ("an empty object changes nothing", {"options": {}}, AGENT),
        ("a text replaces", {"model": "mini"}, with_(AGENT, model="mini")),
        ("null sets null", {"model": None}, with_(AGENT, model=None)),
        ("a nested null sets null", {"options": {"temperature": None}},
         with_(AGENT, options={"temperature": None, "stop": ["x"]})),
        ("a list replaces a list", {"options": {"stop": ["y", "z"]}},
         with_(AGENT, options={"temperature": 1, "stop": ["y", "z"]})),
        ("an empty list means none", {"tools": [], "options": {"stop": []}},
         with_(AGENT, tools=[], options={"temperature": 1, "stop": []})),
        ("a list replaces an object", {"options": [1]}, with_(AGENT, options=[1])),
        ("an object replaces a list", {"tools": {"file": "t"}}, with_(AGENT, tools={"file": "t"})),
        ("a text replaces a list", {"tools": "tools.yaml"}, with_(AGENT, tools="tools.yaml")),
        ("a number replaces an object", {"options": 0}, with_(AGENT, options=0)),
        ("new keys are added", {"seed": 4, "options": {"top_k": 2}},
         with_(AGENT, seed=4, options={"temperature": 1, "stop": ["x"], "top_k": 2})),
    ],
)  # fmt: skip
def test_config(varied: Varied, rule: str, config: dict[str, Any], expected: dict[str, Any]) -> None:
    default, variation = varied({"config": config})
    assert default.agent.config == AGENT, rule
    assert variation.agent.config == expected, rule
    assert (variation.ref.agent, variation.ref.variation) == ("bot", "v")


def test_config_is_merged_into_the_agent_that_the_variation_names(varied: Varied) -> None:
    _, run = varied({"agent": "other", "config": {"options": {"temperature": 0}, "model": None}})
    assert run.ref.agent == "other"
    assert run.agent.config == with_(OTHER, model=None, options={"top_p": 0.5, "temperature": 0})


def test_a_variations_agent_is_kept_whatever_agent_is_asked_for(varied: Varied) -> None:
    assert [run.ref.agent for run in varied({"agent": "other"}, agent="mine")] == ["mine", "other"]
    assert [run.ref.agent for run in varied({}, {"agent": "other"})] == ["other", "other"]
    assert [run.ref.agent for run in varied({"agent": None}, {"agent": "other"})] == ["other", "other"]


@pytest.mark.parametrize(
    ("own", "test", "option", "expected"),
    [
        (None, None, None, [1, 1]), (None, 3, None, [3, 3]), (2, 3, None, [3, 2]), (2, 3, 4, [4, 4]),
        (2, None, None, [1, 2]),
    ],
)  # fmt: skip
def test_repeat(varied: Varied, own: int | None, test: int | None, option: int | None, expected: list[int]) -> None:
    runs = varied({"repeat": own}, {"repeat": test} if test else None, repeat=option)
    assert [sum(run.ref.variation == name for run in runs) for name in ("", "v")] == expected


TOOLS = {
    "weather": {"description": "w", "request_response_pairs": {"Rome": "sun", "Oslo": "snow"}},
    "time": {"sample_response": "noon"},
}
LISTED = [{"name": name, **tool} for name, tool in TOOLS.items()]
BASE = {
    "sample_system_prompt": "base",
    "sample_concepts": {"shop": "Eva's", "open": "9"},
    "input_data": {"a": {"b": 1}},
}


def pairs(**answers: str) -> dict[str, Any]:
    return {
        "name": "weather",
        "description": "w",
        "request_response_pairs": [{"request": key, "response": value} for key, value in answers.items()],
    }


WEATHER, TIME = pairs(Rome="sun", Oslo="snow"), {"name": "time", "sample_response": "noon"}


@pytest.mark.parametrize("written", [TOOLS, LISTED], ids=["object", "list"])
@pytest.mark.parametrize(
    ("rule", "over", "expected"),
    [
        ("absent inherits", {}, [WEATHER, TIME]),
        ("an empty object changes nothing", {"sample_tools": {}}, [WEATHER, TIME]),
        ("an empty list means none", {"sample_tools": []}, []),
        ("a list replaces", {"sample_tools": [{"name": "time", "sample_response": "night"}]},
         [{"name": "time", "sample_response": "night"}]),
        ("an object changes the tool that it names", {"sample_tools": {"time": {"sample_response": "night"}}},
         [WEATHER, {"name": "time", "sample_response": "night"}]),
        ("and adds others", {"sample_tools": {"new": {"sample_response": 1}}},
         [WEATHER, TIME, {"name": "new", "sample_response": 1}]),
        ("canned answers merge by request",
         {"sample_tools": {"weather": {"request_response_pairs": {"Rome": "rain", "Bonn": "fog"}}}},
         [pairs(Rome="rain", Oslo="snow", Bonn="fog"), TIME]),
        ("a list of canned answers replaces",
         {"sample_tools": {"weather": {"request_response_pairs": [{"request": "Bonn", "response": "fog"}]}}},
         [pairs(Bonn="fog"), TIME]),
        ("no canned answers", {"sample_tools": {"weather": {"request_response_pairs": []}}},
         [{"name": "weather", "description": "w"}, TIME]),
        ("a nested null sets null", {"sample_tools": {"time": {"sample_response": None}}}, [WEATHER, {"name": "time"}]),
    ],
)  # fmt: skip
def test_mock_tools(varied: Varied, written: Any, rule: str, over: dict[str, Any], expected: list[Any]) -> None:
    default, run = varied({"context": over}, {"context": {"sample_tools": written}})
    assert default.context["sample_tools"] == [WEATHER, TIME]
    assert run.context["sample_tools"] == expected, rule


@pytest.mark.parametrize(
    ("rule", "over", "expected"),
    [
        ("absent inherits", None, BASE),
        ("an empty object changes nothing", {}, BASE),
        ("a text replaces", {"sample_system_prompt": "mine"}, with_(BASE, sample_system_prompt="mine")),
        ("an empty text replaces", {"sample_system_prompt": ""}, with_(BASE, sample_system_prompt="")),
        ("null sets null", {"sample_system_prompt": None}, with_(BASE, sample_system_prompt=None)),
        ("objects merge", {"sample_concepts": {"open": "10"}},
         with_(BASE, sample_concepts={"shop": "Eva's", "open": "10"})),
        ("nested objects merge", {"input_data": {"a": {"c": 2}}}, with_(BASE, input_data={"a": {"b": 1, "c": 2}})),
        ("a list replaces an object", {"input_data": [1]}, with_(BASE, input_data=[1])),
        ("an empty list means none", {"input_data": []}, with_(BASE, input_data=[])),
        ("a nested null sets null", {"sample_concepts": {"open": None}},
         with_(BASE, sample_concepts={"shop": "Eva's", "open": None})),
    ],
)  # fmt: skip
def test_context(varied: Varied, rule: str, over: dict[str, Any] | None, expected: dict[str, Any]) -> None:
    default, run = varied({"context": over}, {"context": BASE})
    assert default.context == BASE
    assert run.context == expected, rule


def test_a_variation_brings_a_context_where_the_test_has_none(varied: Varied) -> None:
    default, run = varied({"context": {"sample_tools": {"time": {"sample_response": 1}}}})
    assert default.context == {}
    assert run.context == {"sample_tools": [{"name": "time", "sample_response": 1}]}


@pytest.mark.parametrize(
    ("test", "options", "expected"),
    [
        ({}, {}, None),
        ({"stop": {"alpha": 0.01, "threshold": 0.9}}, {}, StopRule(0.01, 0.9)),
        ({"stop": {}}, {}, StopRule(0.05, 0.8)),
        ({"stop": {}}, {"early_stop": False}, None),
        ({"stop": {}}, {"ab": ("bot", "other")}, None),
    ],
)  # fmt: skip
def test_early_stopping(
    varied: Varied, test: dict[str, Any], options: dict[str, Any], expected: StopRule | None
) -> None:
    assert {run.stop for run in varied({}, test, **options)} == {expected}


def test_the_suites_default_stops_tests_that_say_nothing(suite: Callable[[str], LoadedSuite]) -> None:
    text = """
    agent: bot
    agents: {bot: {kind: scripted}}
    defaults: {stop: {threshold: 0.7}}
    tests:
      - {id: a, prompt: a, criteria: &c [{name: c, prototype_class: TextResponse,
         config_uxon: {metrics: [{type: TextMatch, contains: a}]}}]}
      - {id: b, prompt: b, stop: {threshold: 0.9}, criteria: *c}
    """
    plan = make_plan([suite(text)], PlanOptions(), user_agents={})
    assert [run.stop for run in plan.runs] == [StopRule(0.05, 0.7), StopRule(0.05, 0.9)]
