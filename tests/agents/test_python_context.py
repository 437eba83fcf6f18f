"""The run context of an agent, where its type is unusual."""

from __future__ import annotations

import dataclasses
import json
from typing import Any, Optional

import pydantic
import pytest
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage
from typing_extensions import TypedDict

from agenteval_tui.agents.process import python_answers, python_context, python_objects
from agenteval_tui.agents.process.python_pieces import WrongTarget


class Own(TypedDict):
    tone: str


def test_a_typed_dict_of_typing_extensions() -> None:
    assert python_context.create(Own, {"_how": {}}, "m:x", "context") is None
    assert python_context.create(Own, {"_how": {"context": {"tone": "kind"}}}, "m:x", "context") == {"tone": "kind"}


@dataclasses.dataclass
class Deps:
    name: str
    limit: int = 3
    rate: float | None = None
    tags: list[str] = dataclasses.field(default_factory=list)
    anything: Any = None


class Plain:
    def __init__(self, limit: int) -> None:
        self.limit = limit


def made(kind: Any, how: dict[str, Any]) -> Any:
    return python_context.create(kind, {"_how": how}, "m:x", "deps")


@pytest.mark.parametrize(
    ("kind", "fields", "problem"),
    [
        (Deps, {"name": "x", "limit": "many"}, "the deps of m:x is a Deps, which wants an int for limit, not 'many'"),
        (Deps, {"name": 3}, "wants a str for name, not 3"),
        (Deps, {"name": "x", "tags": "a"}, "wants a list for tags, not 'a'"),
        (Deps, {"name": "x", "rate": []}, "wants a float for rate, not []"),
        (Plain, {"limit": {}}, "wants an int for limit, not {}"),
        (Own, {"tone": 1}, "wants a str for tone, not 1"),
    ],
)
def test_a_field_of_another_type_is_refused(kind: type, fields: dict[str, Any], problem: str) -> None:
    with pytest.raises(WrongTarget) as raised:
        made(kind, {"context": fields})
    assert problem in str(raised.value)


def test_what_a_template_makes_of_a_number_is_a_number() -> None:
    deps = made(Deps, {"context": {"name": "x", "limit": "7", "rate": 1, "anything": {"a": 1}}})
    assert deps == Deps("x", 7, 1, [], {"a": 1})


@pytest.mark.parametrize(
    ("value", "problem"), [(None, "returns nothing (None)"), (42, "returns an int"), ("x", "returns a str")]
)
def test_a_function_that_makes_no_context_is_refused(value: Any, problem: str) -> None:
    with pytest.raises(WrongTarget, match="the function that `context` names") as raised:
        made(Deps, {"made_context": value})
    assert problem in str(raised.value)


@pytest.mark.parametrize(("kind", "value"), [(Deps, Deps("x")), (Deps, Plain(1)), (Own, {"tone": "x"}), (int, 3)])
def test_what_a_function_makes_is_taken(kind: type, value: Any) -> None:
    assert made(kind, {"made_context": value}) is value


@pytest.mark.parametrize("kind", [Deps | None, Optional[Deps]])  # noqa: UP045 - both are written
def test_a_context_that_need_not_be_there(kind: Any) -> None:
    assert made(kind, {}) is None
    assert made(kind, {"context": {"name": "x"}}) == Deps("x")
    assert made(kind, {"made_context": Deps("y")}) == Deps("y")
    assert made(Deps | Plain, {"context": {"limit": 3}}) == {"limit": 3}, "of several types none is chosen"


@dataclasses.dataclass
class Configuration:
    model: str = "small"


class Graph:
    """As `StateGraph(..., config_schema=Configuration).compile()` gives it: its nodes read `configurable`."""

    context_schema = Configuration


def test_a_graph_with_a_schema_finds_the_fields_in_its_configurable_too() -> None:
    request = {"_how": {"context": {"model": "large", "tags": ["a"]}}}
    context, config = python_context.of_graph(Graph(), request, "m:x")
    assert context == Configuration("large")
    assert config == {"configurable": {"model": "large"}, "tags": ["a"]}


class Message(pydantic.BaseModel):
    role: str
    content: str


@dataclasses.dataclass
class Turn:
    content: str
    role: str = "user"


class Topic(pydantic.BaseModel):
    name: str


def of_models(messages: list[Message], session_id: str = "") -> str:
    return session_id + "".join(type(message).__name__ + message.content for message in messages)


def of_turns(text: str, history: list[Turn] | None = None) -> str:
    return "".join(type(turn).__name__ + turn.content for turn in history or ()) + text


def of_langchain(messages: list[BaseMessage]) -> str:
    return "".join(type(message).__name__ + str(message.content) for message in messages)


def of_any(messages: list[AnyMessage]) -> str:
    return of_langchain(list(messages))


def of_dicts(messages: list[dict[str, Any]]) -> str:
    return json.dumps(messages)


def of_others(messages: list[Topic]) -> str:
    return json.dumps(messages)


MESSAGES = [
    {"role": "user", "content": "a"},
    {"role": "assistant", "content": "b", "tool_calls": [], "name": "desk"},
    {"role": "user", "content": "c"},
]


@pytest.mark.parametrize(
    ("function", "gives"),
    [
        (of_models, "MessageaMessagebMessagec"),
        (of_turns, "TurnaTurnbc"),
        (of_langchain, f"{HumanMessage.__name__}a{AIMessage.__name__}b{HumanMessage.__name__}c"),
        (of_any, f"{HumanMessage.__name__}a{AIMessage.__name__}b{HumanMessage.__name__}c"),
        (of_dicts, json.dumps(MESSAGES)),
        (of_others, json.dumps(MESSAGES)),
    ],
)
def test_messages_are_of_the_type_that_the_parameter_declares(function: Any, gives: str) -> None:
    request: Any = {"prompt": "c", "messages": MESSAGES, "variables": {}}
    assert python_answers.call(function, request) == gives


def test_messages_of_the_option_input_are_of_the_declared_type() -> None:
    how = {"input": {"messages": MESSAGES[:1], "session_id": "s1 "}}
    request: Any = {"prompt": "a", "messages": MESSAGES[:1], "_how": how}
    assert python_objects.asked(of_models, request, how, "m:x") == "s1 Messagea"
