"""The run context of an agent, where its type is unusual."""

from __future__ import annotations

from typing_extensions import TypedDict

from agenteval_tui.agents.process import python_context


class Own(TypedDict):
    tone: str


def test_a_typed_dict_of_typing_extensions() -> None:
    assert python_context.made(Own, {"_how": {}}, "m:x", "context") is None
    assert python_context.made(Own, {"_how": {"context": {"tone": "kind"}}}, "m:x", "context") == {"tone": "kind"}
