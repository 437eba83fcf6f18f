"""Prompts, messages and turns with variables put in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.runs.plan.conversation import Text
from agenteval_tui.runs.plan.model import RunPlan
from agenteval_tui.runs.plan.options import PlanOptions
from agenteval_tui.runs.plan.planner import make_plan
from agenteval_tui.suites.load import LoadedSuite
from agenteval_tui.suites.templates import render

SUITE = """
name: Talks
agent: bot
agents: {bot: {kind: scripted}}
tests:
  - id: talk
    variables: {city: Rome, days: 3, customer: {name: Ada}}
ASKED
    criteria:
      - {name: c, prototype_class: TextResponse, config_uxon: {metrics: [{type: TextMatch, contains: a}]}}
"""

Ask = Callable[[str], RunPlan]


@pytest.fixture
def ask(suite: Callable[[str], LoadedSuite]) -> Ask:
    """The run of a test that asks this."""

    def made(asked: str) -> RunPlan:
        text = SUITE.replace("ASKED", "\n".join("    " + line for line in asked.strip().splitlines()))
        return make_plan([suite(text)], PlanOptions(), user_agents={}).runs[0]

    return made


def said(run: RunPlan) -> list[tuple[str, str]]:
    return [(message.role, message.content) for message in run.messages]


def test_turns_follow_the_first_one(ask: Ask) -> None:
    run = ask("turns: ['To {{city}}?', '{{customer.name}}, {{days}} days', 'Thanks']")
    assert said(run) == [("user", "To Rome?")]
    assert run.turns == ("Ada, 3 days", "Thanks")
    assert run.prompt == "To Rome?"


@pytest.mark.parametrize(
    ("messages", "expected", "turns"),
    [
        ("[{role: system, content: 'In {{city}}'}]", ["In Rome", "one"], ("two 3",)),
        ("[{role: developer, content: be brief}]", ["be brief", "one"], ("two 3",)),
        ("[{role: user, content: a}, {role: assistant, content: b}]", ["a", "b", "one"], ("two 3",)),
        # A question that waits for its answer gets it before the turns go on.
        ("[{role: user, content: 'a {{city}}'}]", ["a Rome"], ("one", "two 3")),
    ],
)  # fmt: skip
def test_turns_go_on_after_messages(ask: Ask, messages: str, expected: list[str], turns: tuple[str, ...]) -> None:
    run = ask(f"messages: {messages}\nturns: [one, 'two {{{{days}}}}']")
    assert [content for _, content in said(run)] == expected
    assert run.turns == turns


CALLS = """
messages:
  - {role: system, content: 'You know {{city}}.'}
  - {role: developer, content: Be brief.}
  - {role: user, content: Weather?}
  - role: assistant
    tool_calls:
      - {id: c1, type: function, function: {name: weather, arguments: '{"city": "{{city}}", "n": [1, "{{days}}"]}'}}
      - {id: c2, type: function, function: {name: time, arguments: {zone: "{{customer.name}}", raw: 4}}}
  - {role: tool, tool_call_id: c2, content: noon}
  - {role: tool, tool_call_id: c1, content: "sun in {{city}}"}
  - {role: assistant, content: Sunny.}
  - {role: user, content: And then?}
"""


def test_messages_may_hold_calls_and_their_results(ask: Ask) -> None:
    run = ask(CALLS)
    assert [role for role, _ in said(run)] == [
        "system", "developer", "user", "assistant", "tool", "tool", "assistant", "user"
    ]  # fmt: skip
    assert run.messages[0].content == "You know Rome."
    assert run.messages[3].tool_calls == (0, 1)
    assert (run.messages[4].tool_call, run.messages[5].tool_call) == (1, 0)
    weather, time = run.tool_calls
    assert (weather.id, weather.name, weather.status, weather.message) == ("c1", "weather", "ok", 3)
    assert weather.arguments == {"city": "Rome", "n": [1, "3"]}
    assert weather.result == run.messages[5].content == "sun in Rome"
    assert time.arguments == {"zone": "Ada", "raw": 4}
    assert run.prompt == "And then?"


@pytest.mark.parametrize(
    ("asked", "what", "fix"),
    [
        (CALLS.replace("  - {role: tool, tool_call_id: c2, content: noon}\n", ""), "call of time (c2)", "role: tool"),
        (CALLS.replace("tool_call_id: c2", "tool_call_id: c9"), "call of time (c2)", "tool_call_id: c2"),
        ("messages: [{role: tool, tool_call_id: x, content: y}]", "missing tool call", "tool_call_id"),
        (CALLS.replace("name: time, ", ""), "a tool call without a name", "function"),
        (CALLS.replace("customer.name", "customer.nam"), 'customer has no "nam"', ""),
        ("turns: [a, '{{nope}}']", '"nope" is not known', "city"),
    ],
)  # fmt: skip
def test_what_is_no_conversation_is_said(ask: Ask, asked: str, what: str, fix: str) -> None:
    with pytest.raises(AgentevalError) as raised:
        ask(asked)
    assert what in raised.value.what
    assert "test 'talk'" in raised.value.what
    assert fix in raised.value.fix
    assert raised.value.where.endswith("greetings.suite.yaml:6")


NAMES = st.sampled_from(["a", "b", "self", "none", "true"])
PIECES = st.lists(
    st.sampled_from(
        ["{{a}}", "{{ b }}", "{{self}}", "{{true}}", "{{ none}}", "{", "}", "}}", "{#", "x", "\n", "\r\n", " "]
    )
    | st.text(alphabet="ab{} ", max_size=4),
    max_size=6,
).map("".join)
VALUES = st.one_of(st.text(max_size=3), st.integers(), st.booleans(), st.none(), st.just({"k": [1]}))


@given(PIECES, st.fixed_dictionaries({"a": VALUES}, optional={"b": VALUES, "self": VALUES, "true": VALUES}))
@example("{{{a}}", {"a": "x"})
@example("{{a}}}", {"a": "x"})
def test_a_text_taken_apart_gives_what_the_template_engine_gives(text: str, variables: dict[str, Any]) -> None:
    def outcome(made: Callable[[], str]) -> str:
        try:
            return made()
        except AgentevalError as error:
            return f"error: {error}"

    assert outcome(lambda: Text(text).of(variables)) == outcome(lambda: render(text, variables))
