"""Which runs an execution has, and in which order."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from msgspec import ValidationError, convert, to_builtins

from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.options import OptionError
from agenteval_tui.history.store import Store
from agenteval_tui.runs.plan.model import Plan
from agenteval_tui.runs.plan.options import PlanOptions
from agenteval_tui.runs.plan.planner import make_plan
from agenteval_tui.suites.load import LoadedSuite
from agenteval_tui.suites.model import AgentConfig

CRITERIA = """
    criteria:
      - {name: c, prototype_class: TextResponse, config_uxon: {metrics: [{type: TextMatch, contains: a}]}}
"""
SUITE = f"""
name: Orders
agent: bot
tags: [shop]
defaults: {{repeat: 2, timeout: 7, pass_threshold: 0.5, concurrency: 3}}
agents:
  bot: {{kind: scripted, options: {{temperature: 1, stop: [x]}}, model: big}}
  other: {{kind: scripted, model: small}}
tests:
  - id: first
    name: The first
    prompt: "Where is {{{{order.id}}}}?"
    tags: [smoke, slow]
    variables: {{order: {{id: W1}}}}
    context: {{sample_system_prompt: base, sample_tools: [{{name: t, sample_response: x}}]}}
    variations:
      - {{name: cold, config: {{options: {{temperature: 0, stop: []}}, model: null}}}}
      - {{name: elsewhere, agent: other, repeat: 1, context: {{sample_tools: []}}}}
{CRITERIA}
  - id: Second
    name: The second
    prompt: two
    repeat: 1
    timeout: 3
    tags: [smoke]
{CRITERIA}
"""

Load = Callable[..., LoadedSuite]


def planned(suite: Load, text: str = SUITE, **options: Any) -> Plan:
    return make_plan([suite(text)], PlanOptions(**options), user_agents={})


def short(plan: Plan) -> list[str]:
    return [f"{run.ref.test}/{run.ref.variation}#{run.ref.repetition}" for run in plan.runs]


def test_the_default_configuration_comes_first_then_each_variation(suite: Load) -> None:
    plan = planned(suite)
    assert short(plan) == ["first/#1", "first/#2", "first/cold#1", "first/cold#2", "first/elsewhere#1", "Second/#1"]
    assert plan.title == "Orders"
    assert plan.concurrency == 3
    assert plan.tests == 2
    assert len({run.ref.run for run in plan.runs}) == 6


def test_a_variation_is_merged_into_the_agents_configuration(suite: Load) -> None:
    runs = {(run.ref.variation, run.ref.repetition): run for run in planned(suite).runs if run.ref.test == "first"}
    assert runs["", 1].agent.config == {
        "kind": "scripted",
        "options": {"temperature": 1, "stop": ["x"]},
        "model": "big",
    }
    assert runs["cold", 1].agent.config == {
        "kind": "scripted",
        "options": {"temperature": 0, "stop": []},
        "model": None,
    }
    assert runs["elsewhere", 1].ref.agent == "other"
    assert runs["elsewhere", 1].agent.config["model"] == "small"
    assert runs["", 1].context["sample_tools"][0]["name"] == "t"
    assert runs["elsewhere", 1].context == {"sample_system_prompt": "base", "sample_tools": []}
    assert runs["", 1].agent.hash == runs["", 2].agent.hash != runs["cold", 1].agent.hash


def test_prompts_are_rendered_and_limits_taken_over(suite: Load) -> None:
    first, *_, second = planned(suite).runs
    assert [(m.role, m.content) for m in first.messages] == [("user", "Where is W1?")]
    assert (first.timeout_s, second.timeout_s) == (7, 3)
    assert (first.pass_threshold, first.tags) == (0.5, ("shop", "smoke", "slow"))
    assert first.prompt == "Where is W1?"


def test_options_replace_what_the_suite_says(suite: Load) -> None:
    plan = planned(suite, repeat=1, agent="other", concurrency=9, timeout=1.5, title="mine", tests=("FIRST",))
    assert short(plan) == ["first/#1", "first/cold#1", "first/elsewhere#1"]
    assert {run.ref.agent for run in plan.runs} == {"other"}
    assert (plan.concurrency, plan.title, plan.runs[0].timeout_s) == (9, "mine", 1.5)


def test_a_test_must_have_all_tags(suite: Load) -> None:
    assert {run.ref.test for run in planned(suite, tags=("smoke",)).runs} == {"first", "Second"}
    assert {run.ref.test for run in planned(suite, tags=("smoke", "SLOW", "shop")).runs} == {"first"}


def test_a_test_is_named_with_its_file_where_its_id_is_in_several_suites(suite: Load) -> None:
    here, there = suite(SUITE), suite(SUITE.replace("name: Orders", "name: Others"), name="others.suite.yaml")
    both = make_plan([here, there], PlanOptions(tests=("second",)), user_agents={})
    assert {run.suite_name for run in both.runs} == {"Orders", "Others"}
    for name in (f"{there.key}::Second", "others.suite.yaml::second"):
        one = make_plan([here, there], PlanOptions(tests=(name,)), user_agents={})
        assert {(run.suite_name, run.ref.test) for run in one.runs} == {("Others", "Second")}
    with pytest.raises(AgentevalError, match="there is no test"):
        make_plan([here, there], PlanOptions(tests=("nowhere.suite.yaml::second",)), user_agents={})


def test_suites_of_one_name_are_told_apart_by_their_paths(suite: Load) -> None:
    both = make_plan(
        [suite(SUITE, name="a/s.suite.yaml"), suite(SUITE, name="b/s.suite.yaml")], PlanOptions(), user_agents={}
    )
    assert {run.suite_name for run in both.runs} == {"Orders"}
    assert {run.ref.suite for run in both.runs} == {"Orders (a/s.suite.yaml)", "Orders (b/s.suite.yaml)"}


def test_one_variation_alone(suite: Load) -> None:
    assert short(planned(suite, variation="cold")) == ["first/cold#1", "first/cold#2"]
    assert short(planned(suite, variation="default")) == ["first/#1", "first/#2", "Second/#1"]


def test_seeds_depend_on_test_and_repetition_only(suite: Load) -> None:
    runs = planned(suite).runs
    # As written down: another machine, or a later version, must give a test the same ones.
    assert runs[0].seed == runs[2].seed == 3_798_705_146
    assert planned(suite, seed=1).runs[0].seed == 1_858_007_721
    assert len({runs[0].seed, runs[1].seed, runs[5].seed}) == 3


def test_messages_start_a_conversation(suite: Load) -> None:
    messages = "[{role: user, content: hi}, {role: assistant, content: yes?}, {role: user, content: go on}]"
    text = SUITE.replace("prompt: two", f"messages: {messages}")
    run = planned(suite, text, tests=("Second",)).runs[0]
    assert [message.role for message in run.messages] == ["user", "assistant", "user"]
    assert run.prompt == "go on"


def test_agents_of_the_user_are_found(suite: Load) -> None:
    text = SUITE.replace("agent: bot\ntags", "agent: mine\ntags")
    plan = make_plan([suite(text)], PlanOptions(), user_agents={"mine": AgentConfig(kind="scripted")})
    assert plan.runs[0].ref.agent == "mine"


@pytest.mark.parametrize(
    ("change", "options", "what", "fix"),
    [
        (("", ""), {"tests": ("frist",)}, "there is no test 'frist'", "did you mean 'first'?"),
        (("", ""), {"tags": ("nope",)}, "none of 2 tests is left", ""),
        (("", ""), {"variation": "clod"}, "no chosen test has a variation 'clod'", "cold, elsewhere"),
        (("", ""), {"agent": "bto"}, 'there is no agent "bto"', "bot"),
        (("", ""), {"repeat": 0}, "repeat must be a whole number from 1 to 100,000, not 0", ""),
        (("agent: bot\n", ""), {}, "has no agent", "--agent"),
        (("agent: bot\n", "agent: bott\n"), {}, 'there is no agent "bott"', "bot"),
        (("order.id", "order.nope"), {}, "nope", ""),
        (("", ""), {"sample": 0}, "sample must be a whole number from 1, not 0", ""),
        (("", ""), {"max_cost": float("nan")}, "max_cost must be a number of US dollars above 0, not nan", ""),
        (("", ""), {"max_tokens": 0}, "max_tokens must be a whole number from 1, not 0", ""),
        (("", ""), {"cache": "some"}, "cache is first or all, not 'some'", ""),
        (("", ""), {"ab": ("bot",)}, "needs two agents or variations, not 1", "--ab NAME NAME"),
        (("", ""), {"ab": ("bot", "cold")}, "arm B is 'cold', but test 'Second'", "bot, other"),
        (("prompt: two", "promt: two"), {}, "the suite can't be run", ""),
    ],
)  # fmt: skip
def test_what_can_not_be_run_is_said_in_a_sentence(
    suite: Load, change: tuple[str, str], options: dict[str, Any], what: str, fix: str
) -> None:
    text = SUITE.replace(*change) if change[0] else SUITE
    with pytest.raises(AgentevalError) as raised:
        planned(suite, text, **options)
    assert what in raised.value.what
    assert fix in raised.value.fix
    if change[0]:
        assert "greetings.suite.yaml:" in raised.value.where


@pytest.mark.parametrize(
    ("change", "options", "option"),
    [
        (("", ""), {"variation": "clod"}, "variation"),
        (("", ""), {"agent": "bto"}, "agent"),
        (("agent: bot\n", ""), {}, "agent"),
        *((("", ""), {name: 0}, name) for name in ("repeat", "concurrency", "sample", "max_tokens", "max_seconds")),
        (("", ""), {"max_cost": -1}, "max_cost"),
        (("", ""), {"cache": "some"}, "cache"),
        *((("", ""), {"ab": names}, "ab") for names in (("bot",), ("bot", " "), ("bot", "cold"))),
        (("", ""), {"ab": ("bot", "other"), "agent": "bot"}, "agent"),
    ],
)  # fmt: skip
def test_an_option_that_can_not_be_planned_with_is_named(
    suite: Load, change: tuple[str, str], options: dict[str, Any], option: str
) -> None:
    with pytest.raises(OptionError) as raised:
        planned(suite, SUITE.replace(*change) if change[0] else SUITE, **options)
    assert raised.value.option == option


def test_of_a_broken_suite_the_tests_that_are_right_can_be_run_by_name(suite: Load) -> None:
    broken = SUITE.replace("prompt: two", "promt: two")
    assert len(planned(suite, broken, tests=("first",)).runs) == 5


def test_only_what_failed_in_an_execution(suite: Load, store: Store, execution: Callable[..., Any]) -> None:
    text = SUITE.replace("contains: a", "contains: hello", 1)  # the first passes, the second fails
    ran = execution(text)
    asyncio.run(ran.run())
    again = make_plan([suite(text)], PlanOptions(failed_from="last"), user_agents={}, store=store)
    assert {run.ref.test for run in again.runs} == {"Second"}
    with pytest.raises(AgentevalError, match="without a history"):
        planned(suite, failed_from="last")
    with pytest.raises(AgentevalError):
        make_plan([suite(text)], PlanOptions(failed_from="nothing-like-it"), user_agents={}, store=store)


def test_options_survive_json() -> None:
    options = PlanOptions(tests=("a",), tags=("b", "c"), agent="x", repeat=2, failed_from="last", seed=3)
    assert convert(to_builtins(options), PlanOptions) == options
    assert to_builtins(PlanOptions()) == {}
    with pytest.raises(ValidationError):
        convert({"unknown": 1}, PlanOptions)
